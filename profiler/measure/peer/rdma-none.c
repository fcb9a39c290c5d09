/* rdma-none.c: a build without verbs: there are no RDMA devices. */
#include "measure/peer/peer.h"
#include "measure/pool/mover.h"

static const struct tccl_mover *choose(const struct tccl_workspace *workspace UNUSED,
                                       int nic UNUSED)
{
    return &tccl_mover_tcp;
}

const struct tccl_mover tccl_mover_nic = {.choose = choose};

bool tccl_rdma_is_here(const char *name UNUSED)
{
    return false;
}

struct tccl_rdma *tccl_rdma_lend(const struct tccl_rdma_end *guest UNUSED, void *memory UNUSED,
                                 size_t bytes UNUSED, struct tccl_rdma_end *ours UNUSED,
                                 struct tccl_error *err)
{
    return tccl_fail_null(err, "built without RDMA verbs");
}

void tccl_rdma_close(struct tccl_rdma *rdma UNUSED)
{
}
