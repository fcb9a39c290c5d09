/* print-baseline.c: the baseline as nccl/ predicts it, for check-baseline to compare: a line for
 * each of its chains. Usage: print-baseline MODEL closed|open GPU... */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fileio.h"
#include "nccl/baseline.h"

static void print_port(const struct tccl_machine *machine, struct tccl_port port)
{
    printf(" %s/%s", machine->nics[port.nic].name, port.via.kind == TCCL_GPU ? "gpu" : "memory");
}

static void print_chain(const struct tccl_machine *machine, const struct tccl_chain *chain,
                        uint32_t by_network)
{
    for (int i = 0; i < chain->n_gpus; i++)
        printf("%s%d", i > 0 ? " " : "", chain->gpus[i]);
    printf(" |");
    for (int i = 0; i < tccl_chain_edges(chain); i++) {
        bool bounce = chain->edges[i].kind == TCCL_BOUNCE;
        printf(" %s", by_network >> i & 1 ? "NET" : bounce ? "SHM" : "P2P");
    }
    printf(" |");
    if (!chain->closed) {
        print_port(machine, chain->entry);
        print_port(machine, chain->exit);
    }
    printf("\n");
}

int main(int argc, char **argv)
{
    struct tccl_machine machine;
    struct tccl_baseline baseline;
    uint32_t by_network[TCCL_MAX_CHANNELS];
    struct tccl_error err = {0};
    uint32_t gpus = 0;

    if (argc < 4)
        return 2;
    cleanup_json json_t *model = tccl_read_json(argv[1], 1 << 22, &err);
    for (int i = 3; i < argc; i++)
        gpus |= UINT32_C(1) << atoi(argv[i]) % TCCL_MAX_GPUS;
    if (!model || tccl_machine_from_json(json_object_get(model, "machine"), &machine, &err) < 0 ||
        tccl_baseline_find(&machine, gpus, strcmp(argv[2], "closed") == 0, &baseline, by_network,
                           &err) != 0) {
        fprintf(stderr, "print-baseline: %s\n", err.text);
        return 1;
    }
    for (int i = 0; i < baseline.n_chains; i++)
        print_chain(&machine, &baseline.chains[i], by_network[i]);
    return 0;
}
