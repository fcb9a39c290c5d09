/* older-cuda.h: names of CUDA 12 that NCCL up to 2.26 uses and CUDA 13's headers lack, or have with
 * other parameters. get-nccl includes it before each of their sources, which stay as they are. */
#include <cuda.h>
#include <cudaTypedefs.h>
#include <cuda_runtime.h>

/* Pointers to the driver's functions, which have a version in their names only by now. */
#define OLDER_POINTER(name) typedef decltype(&name) PFN_##name
OLDER_POINTER(cuCtxDestroy);
OLDER_POINTER(cuCtxGetCurrent);
OLDER_POINTER(cuCtxGetDevice);
OLDER_POINTER(cuCtxSetCurrent);
OLDER_POINTER(cuDeviceGet);
OLDER_POINTER(cuDeviceGetAttribute);
OLDER_POINTER(cuGetErrorName);
OLDER_POINTER(cuGetErrorString);
OLDER_POINTER(cuLaunchKernel);
OLDER_POINTER(cuLaunchKernelEx);
OLDER_POINTER(cuMemAddressFree);
OLDER_POINTER(cuMemAddressReserve);
OLDER_POINTER(cuMemCreate);
OLDER_POINTER(cuMemExportToShareableHandle);
OLDER_POINTER(cuMemGetAddressRange);
OLDER_POINTER(cuMemGetAllocationGranularity);
OLDER_POINTER(cuMemGetAllocationPropertiesFromHandle);
OLDER_POINTER(cuMemGetHandleForAddressRange);
OLDER_POINTER(cuMemImportFromShareableHandle);
OLDER_POINTER(cuMemMap);
OLDER_POINTER(cuMemRelease);
OLDER_POINTER(cuMemRetainAllocationHandle);
OLDER_POINTER(cuMemSetAccess);
OLDER_POINTER(cuMemUnmap);
OLDER_POINTER(cuMulticastAddDevice);
OLDER_POINTER(cuMulticastBindAddr);
OLDER_POINTER(cuMulticastBindMem);
OLDER_POINTER(cuMulticastCreate);
OLDER_POINTER(cuMulticastGetGranularity);
OLDER_POINTER(cuMulticastUnbind);
OLDER_POINTER(cuPointerGetAttribute);
#undef OLDER_POINTER
typedef PFN_cuCtxCreate_v11040 PFN_cuCtxCreate;

static inline cudaError_t older_capture_info(cudaStream_t stream, cudaStreamCaptureStatus *status,
                                             unsigned long long *id = nullptr,
                                             cudaGraph_t *graph = nullptr,
                                             const cudaGraphNode_t **nodes = nullptr,
                                             size_t *count = nullptr)
{
    return cudaStreamGetCaptureInfo(stream, status, id, graph, nodes, nullptr, count);
}

static inline cudaError_t newer_capture_info(cudaStream_t stream, cudaStreamCaptureStatus *status,
                                             unsigned long long *id, cudaGraph_t *graph,
                                             const cudaGraphNode_t **nodes,
                                             const cudaGraphEdgeData **edges, size_t *count)
{
    return cudaStreamGetCaptureInfo(stream, status, id, graph, nodes, edges, count);
}

static inline cudaError_t older_update_capture(cudaStream_t stream, cudaGraphNode_t *nodes,
                                               size_t count, unsigned flags = 0)
{
    return cudaStreamUpdateCaptureDependencies(stream, nodes, nullptr, count, flags);
}

static inline cudaError_t newer_update_capture(cudaStream_t stream, cudaGraphNode_t *nodes,
                                               const cudaGraphEdgeData *edges, size_t count,
                                               unsigned flags = 0)
{
    return cudaStreamUpdateCaptureDependencies(stream, nodes, edges, count, flags);
}

static inline cudaError_t older_add_dependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
                                                 const cudaGraphNode_t *to, size_t count)
{
    return cudaGraphAddDependencies(graph, from, to, nullptr, count);
}

static inline cudaError_t newer_add_dependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
                                                 const cudaGraphNode_t *to,
                                                 const cudaGraphEdgeData *edges, size_t count)
{
    return cudaGraphAddDependencies(graph, from, to, edges, count);
}

#define cudaStreamGetCaptureInfo_v2 older_capture_info
#define cudaStreamGetCaptureInfo_v3 newer_capture_info
#define cudaStreamUpdateCaptureDependencies older_update_capture
#define cudaStreamUpdateCaptureDependencies_v2 newer_update_capture
#define cudaGraphAddDependencies older_add_dependencies
#define cudaGraphAddDependencies_v2 newer_add_dependencies
