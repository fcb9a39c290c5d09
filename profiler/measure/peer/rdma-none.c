/* rdma-none.c: a build without verbs: there are no RDMA devices. */
#include "measure/peer/rdma.h"
#include "measure/pool/mover.h"

static const struct tccl_mover *choose(const struct tccl_workspace *workspace, int nic)
{
    (void)workspace, (void)nic;
    return &tccl_mover_tcp;
}

const struct tccl_mover tccl_mover_nic = {.choose = choose};

bool tccl_rdma_is_here(const char *name)
{
    (void)name;
    return false;
}

struct tccl_rdma *tccl_rdma_lend(const struct tccl_rdma_end *guest, void *memory, size_t bytes,
                                 struct tccl_rdma_end *ours, struct tccl_error *err)
{
    (void)guest, (void)memory, (void)bytes, (void)ours;
    tccl_fail(err, "built without RDMA verbs");
    return NULL;
}

void tccl_rdma_close(struct tccl_rdma *rdma)
{
    (void)rdma;
}
