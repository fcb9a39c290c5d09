/* gpu-memory.h: memory of a GPU that a NIC of this process reaches directly (GPUDirect). */
#ifndef TCCL_GPU_MEMORY_H
#define TCCL_GPU_MEMORY_H

#include <stddef.h>

#include "base/error.h"

struct tccl_gpu_memory {
    void *address; /* the GPU's, not to be touched from here */
    int dmabuf;    /* the same as a file descriptor; -1: the driver has none (nvidia_peermem) */
};

/* Allocates it on the GPU of that bus id, in a context of this process that runs nothing; it stays
 * until the process ends. Returns 0, or -1 with err. */
int tccl_gpu_memory_get(const char *busid, size_t bytes, struct tccl_gpu_memory *memory,
                        struct tccl_error *err);

#endif
