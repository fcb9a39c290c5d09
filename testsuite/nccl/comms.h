/* comms.h: for programs of this folder that make communicators of all GPUs in one process. */
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

/* A collective on each of the communicators of several ranks that there are, at which NCCL
 * connects. It needs a rig in which a kernel's launch does nothing. Returns NCCL's result. */
static inline ncclResult_t use_comms(ncclComm_t *comms, int n)
{
    ncclResult_t result = ncclGroupStart(), ended;
    void *buffer;
    int device, ranks;
    for (int i = 0; i < n && result == ncclSuccess; i++) {
        if (!comms[i] || ncclCommCount(comms[i], &ranks) != ncclSuccess || ranks == 1)
            continue;
        if (ncclCommCuDevice(comms[i], &device) != ncclSuccess ||
            cudaSetDevice(device) != cudaSuccess || cudaMalloc(&buffer, 4) != cudaSuccess)
            result = ncclUnhandledCudaError;
        else
            result = ncclBroadcast(buffer, buffer, 4, ncclInt8, 0, comms[i], NULL);
    }
    ended = ncclGroupEnd();
    return result == ncclSuccess ? ended : result;
}
