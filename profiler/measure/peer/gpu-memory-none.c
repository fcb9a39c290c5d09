/* gpu-memory-none.c: a build without CUDA. */
#include "measure/peer/peer.h"

int tccl_gpu_memory_get(const char *busid, size_t bytes UNUSED,
                        struct tccl_gpu_memory *memory UNUSED, struct tccl_error *err)
{
    return tccl_fail(err, "GPU %s: built without CUDA", busid);
}
