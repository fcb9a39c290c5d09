/* test-topo.c: a machine as NCCL sees it. More is shown by test-baseline.c and testsuite/nccl. */
#include "nccl/topo.h"

#include "machines.h"

/* Four functions of one NIC, 5 GB/s each. */
TEST(ports_of_a_nic)
{
    struct tccl_machine machine = *tccl_model_machine(load_machine("amd-4gpu"));
    struct tccl_topo topo;
    machine.n_nics = 4;
    for (int i = 0; i < 4; i++) {
        machine.nics[i] = machine.nics[0];
        snprintf(machine.nics[i].name, TCCL_NAME, "mlx5_%d", i);
        snprintf(machine.nics[i].busid, TCCL_BUSID, "0000:e1:00.%d", i);
        machine.nics[i].gbps = 5;
    }
    for (int nccl = 0; nccl < TCCL_GENERATIONS; nccl++) {
        int fused = nccl < TCCL_NCCL_2_25 ? 2 : 4;
        CHECK_OK(tccl_topo_make(&machine, (enum tccl_nccl)nccl, 3, 3, false, &topo, ERR));
        CHECK_INT(topo.n_nics, 4 / fused);
        for (int i = 0; i < topo.n_nics; i++)
            CHECK(topo.nics[i].gbps == 5 * (float)fused);
    }
}
