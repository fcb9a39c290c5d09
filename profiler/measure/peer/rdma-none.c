/* rdma-none.c: a build without verbs. */
#include "measure/peer/rdma.h"

bool tccl_rdma_is_here(const char *name)
{
    (void)name;
    return false;
}

struct tccl_rdma *tccl_rdma_open(const char *name, bool any, struct tccl_error *err)
{
    (void)name, (void)any;
    tccl_fail(err, "built without RDMA verbs");
    return NULL;
}

void tccl_rdma_close(struct tccl_rdma *rdma)
{
    (void)rdma;
}

/* There is none that these could be called with. */

int tccl_rdma_register(struct tccl_rdma *rdma, void *address, size_t bytes, int dmabuf, bool shared,
                       struct tccl_error *err)
{
    (void)rdma, (void)address, (void)bytes, (void)dmabuf, (void)shared;
    return tccl_fail(err, "built without RDMA verbs");
}

void tccl_rdma_describe(const struct tccl_rdma *rdma, struct tccl_rdma_end *end)
{
    (void)rdma;
    *end = (struct tccl_rdma_end){0};
}

int tccl_rdma_join(struct tccl_rdma *rdma, const struct tccl_rdma_end *there,
                   struct tccl_error *err)
{
    (void)rdma, (void)there;
    return tccl_fail(err, "built without RDMA verbs");
}

int tccl_rdma_start(struct tccl_rdma *rdma, bool reads, int memory, uint64_t here, uint64_t there,
                    uint32_t bytes, struct tccl_error *err)
{
    (void)rdma, (void)reads, (void)memory, (void)here, (void)there, (void)bytes;
    return tccl_fail(err, "built without RDMA verbs");
}

int tccl_rdma_ended(struct tccl_rdma *rdma, struct tccl_error *err)
{
    (void)rdma;
    return tccl_fail(err, "built without RDMA verbs");
}
