/* cuda-driver.h: NVIDIA's driver library, loaded at run time, so that what is built with CUDA also
 * starts where there is no driver. */
#pragma once

#include <cuda.h>

#include "base/error.h"

/* Names as in cuda.h, whose macros make the versions of them that the library is asked for. */
#define TCCL_CUDA_CALLS(X)                                                                         \
    X(cuInit)                                                                                      \
    X(cuDriverGetVersion)                                                                          \
    X(cuGetErrorName)                                                                              \
    X(cuGetErrorString)                                                                            \
    X(cuDeviceGetByPCIBusId)                                                                       \
    X(cuDeviceGetAttribute)                                                                        \
    X(cuDevicePrimaryCtxRetain)                                                                    \
    X(cuCtxSetCurrent)                                                                             \
    X(cuModuleLoadData)                                                                            \
    X(cuModuleGetFunction)                                                                         \
    X(cuOccupancyMaxActiveBlocksPerMultiprocessor)                                                 \
    X(cuLaunchKernel)                                                                              \
    X(cuMemAlloc)                                                                                  \
    X(cuMemsetD8)                                                                                  \
    X(cuMemHostRegister)                                                                           \
    X(cuMemHostGetDevicePointer)                                                                   \
    X(cuIpcGetMemHandle)                                                                           \
    X(cuIpcOpenMemHandle)                                                                          \
    X(cuIpcCloseMemHandle)                                                                         \
    X(cuStreamCreate)                                                                              \
    X(cuStreamQuery)                                                                               \
    X(cuStreamSynchronize)                                                                         \
    X(cuEventCreate)                                                                               \
    X(cuEventRecord)                                                                               \
    X(cuEventQuery)                                                                                \
    X(cuMemcpyHtoDAsync)                                                                           \
    X(cuMemcpyDtoHAsync)                                                                           \
    X(cuMemcpyDtoDAsync)

struct tccl_cuda {
    void *library;
#define TCCL_CUDA_MEMBER(name) __typeof__(&(name)) name;
    TCCL_CUDA_CALLS(TCCL_CUDA_MEMBER)
#undef TCCL_CUDA_MEMBER
};

/* Loads the library; nothing is called in it, so that the process may still fork. Returns 0, or -1
 * with err: there is no driver, or one that is older than this program needs. */
int tccl_cuda_load(struct tccl_cuda *cuda, struct tccl_error *err);
void tccl_cuda_unload(struct tccl_cuda *cuda); /* only if nothing was called in it */

/* In a process that does not fork later: loads the library and starts it, for all GPUs of this
 * machine, whatever part of them and whatever ways the environment asks of CUDA (it is changed for
 * this process). Returns 0, or -1 with err. */
int tccl_cuda_start(struct tccl_cuda *cuda, struct tccl_error *err);

/* Fills err with "WHAT: the driver's own text (NAME)". Returns -1. */
int tccl_cuda_fail(const struct tccl_cuda *cuda, CUresult result, struct tccl_error *err,
                   const char *fmt, ...) __attribute__((format(printf, 4, 5)));
