/* cudart-launch.c: what the stand-in CUDA runtime can't do: kernels, graphs. All of it is refused,
 * loudly. Also the driver's entry points that programs ask the runtime for. */
#include "cudart.h"

#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The header names them in its comments only; compilers write calls of them into programs. */
void **__cudaRegisterFatBinary(void *binary);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaUnregisterFatBinary(void **handle);
char __cudaInitModule(void **handle);
void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
                            int threads, void *thread, void *block, void *block_size,
                            void *grid_size, int *warp);
void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int external,
                       size_t size, int constant, int global);
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, void *stream);
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream);
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *function);
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments,
                               size_t shared, cudaStream_t stream);

static cudaError_t refuse(const char *what)
{
    rig_refuse(what);
    return rig_error(cudaErrorNotSupported);
}

/* ---- kernels ---- */

/* With TCCL_RIG_LAUNCH=nothing a launch is accepted and nothing runs: no byte is copied, and nobody
 * may look at the data. What the host does after a collective goes on. */
static bool launches_nothing(void)
{
    const char *wanted = getenv("TCCL_RIG_LAUNCH");

    return wanted && strcmp(wanted, "nothing") == 0;
}

cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments,
                             size_t shared, cudaStream_t stream)
{
    (void)function, (void)grid, (void)block, (void)arguments, (void)shared, (void)stream;
    return launches_nothing() ? cudaSuccess : refuse("a kernel launch");
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments,
                               size_t shared, cudaStream_t stream)
{
    return cudaLaunchKernel(kernel, grid, block, arguments, shared, stream);
}

/* NCCL up to 2.20 launches by it. */
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *configuration, const void *function,
                                void **arguments)
{
    return cudaLaunchKernel(function, configuration->gridDim, configuration->blockDim, arguments,
                            configuration->dynamicSmemBytes, configuration->stream);
}

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *function)
{
    (void)function;
    memset(attributes, 0, sizeof(*attributes));
    attributes->maxThreadsPerBlock = 1024;
    return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void *function, enum cudaFuncAttribute attribute, int value)
{
    (void)function, (void)attribute, (void)value;
    return cudaSuccess;
}

cudaError_t cudaGetFuncBySymbol(cudaFunction_t *out, const void *symbol)
{
    *out = (cudaFunction_t)symbol;
    return cudaSuccess;
}

cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *function)
{
    *kernel = (cudaKernel_t)function;
    return cudaSuccess;
}

void **__cudaRegisterFatBinary(void *binary)
{
    static void *handle;

    (void)binary;
    return &handle;
}

void __cudaRegisterFatBinaryEnd(void **handle)
{
    (void)handle;
}

void __cudaUnregisterFatBinary(void **handle)
{
    (void)handle;
}

char __cudaInitModule(void **handle)
{
    (void)handle;
    return 1;
}

void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
                            int threads, void *thread, void *block, void *block_size,
                            void *grid_size, int *warp)
{
    (void)handle, (void)host, (void)device, (void)name, (void)threads;
    (void)thread, (void)block, (void)block_size, (void)grid_size, (void)warp;
}

void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int external,
                       size_t size, int constant, int global)
{
    (void)handle, (void)host, (void)device, (void)name;
    (void)external, (void)size, (void)constant, (void)global;
}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, void *stream)
{
    (void)grid, (void)block, (void)shared, (void)stream;
    rig_refuse("a kernel launch");
    return 1;
}

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream)
{
    (void)grid, (void)block, (void)shared, (void)stream;
    return refuse("a kernel launch");
}

/* ---- graphs and batches ---- */

cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
                                     const cudaGraphNode_t *to, const cudaGraphEdgeData *edges,
                                     size_t count)
{
    (void)graph, (void)from, (void)to, (void)edges, (void)count;
    return refuse("a CUDA graph");
}

cudaError_t cudaGraphAddEventRecordNode(cudaGraphNode_t *out, cudaGraph_t graph,
                                        const cudaGraphNode_t *nodes, size_t count,
                                        cudaEvent_t event)
{
    (void)out, (void)graph, (void)nodes, (void)count, (void)event;
    return refuse("a CUDA graph");
}

cudaError_t cudaGraphAddEventWaitNode(cudaGraphNode_t *out, cudaGraph_t graph,
                                      const cudaGraphNode_t *nodes, size_t count, cudaEvent_t event)
{
    return cudaGraphAddEventRecordNode(out, graph, nodes, count, event);
}

cudaError_t cudaGraphAddHostNode(cudaGraphNode_t *out, cudaGraph_t graph,
                                 const cudaGraphNode_t *nodes, size_t count,
                                 const struct cudaHostNodeParams *parameters)
{
    (void)out, (void)graph, (void)nodes, (void)count, (void)parameters;
    return refuse("a CUDA graph");
}

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t *out, cudaGraph_t graph,
                                   const cudaGraphNode_t *nodes, size_t count,
                                   const struct cudaKernelNodeParams *parameters)
{
    (void)out, (void)graph, (void)nodes, (void)count, (void)parameters;
    return refuse("a CUDA graph");
}

cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned count,
                                      unsigned flags)
{
    (void)graph, (void)object, (void)count, (void)flags;
    return refuse("a CUDA graph");
}

cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t *nodes,
                                                const cudaGraphEdgeData *edges, size_t count,
                                                unsigned flags)
{
    (void)stream, (void)nodes, (void)edges, (void)count, (void)flags;
    return refuse("a CUDA graph");
}

cudaError_t cudaUserObjectCreate(cudaUserObject_t *out, void *data, cudaHostFn_t destroy,
                                 unsigned count, unsigned flags)
{
    (void)out, (void)data, (void)destroy, (void)count, (void)flags;
    return refuse("a CUDA graph");
}

cudaError_t cudaMemcpyBatchAsync(void *const *to, const void *const *from, const size_t *sizes,
                                 size_t count, struct cudaMemcpyAttributes *attributes,
                                 size_t *indices, size_t attribute_count, cudaStream_t stream)
{
    (void)to, (void)from, (void)sizes, (void)count;
    (void)attributes, (void)indices, (void)attribute_count, (void)stream;
    return refuse("a batch of copies");
}

/* ---- the driver's functions ---- */

static CUresult driver_device(CUdevice *device, int ordinal)
{
    if (rig_ordinal(ordinal) < 0)
        return CUDA_ERROR_INVALID_DEVICE;
    *device = ordinal;
    return CUDA_SUCCESS;
}

/* The hexadecimal digits of "GPU-01234567-89ab-…". */
static CUresult driver_uuid(CUuuid *uuid, CUdevice device)
{
    int gpu = rig_ordinal(device), byte = 0;

    if (gpu < 0)
        return CUDA_ERROR_INVALID_DEVICE;
    memset(uuid, 0, sizeof(*uuid));
    for (const char *at = strchr(rig_devices()->gpus[gpu].uuid, '-'); at && byte < 16; byte++) {
        unsigned value = 0;
        at += *at == '-';
        if (sscanf(at, "%2x", &value) != 1)
            break;
        uuid->bytes[byte] = (char)value;
        at += 2;
    }
    return CUDA_SUCCESS;
}

/* The numbers of the driver's attributes are those of the runtime's. */
static CUresult driver_attribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    if (cudaDeviceGetAttribute(value, (enum cudaDeviceAttr)attribute, device) != cudaSuccess)
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

static CUresult driver_error_text(CUresult error, const char **text)
{
    static __thread char buffer[32];

    snprintf(buffer, sizeof(buffer), "CUresult %d", (int)error);
    *text = error == CUDA_ERROR_NOT_SUPPORTED ? "operation not supported" : buffer;
    return CUDA_SUCCESS;
}

static CUresult driver_address_range(CUdeviceptr *base, size_t *size, CUdeviceptr address)
{
    void *start;
    size_t length;

    if (!rig_allocation((void *)address, &start, &length))
        return CUDA_ERROR_NOT_FOUND;
    if (base)
        *base = (CUdeviceptr)start;
    if (size)
        *size = length;
    return CUDA_SUCCESS;
}

/* A context is told from others by its device only. */
static CUresult driver_current_context(CUcontext *context)
{
    *context = (CUcontext)(size_t)(rig_current() + 1);
    return CUDA_SUCCESS;
}

static CUresult driver_set_context(CUcontext context)
{
    cudaError_t error = context ? cudaSetDevice((int)(size_t)context - 1) : cudaSuccess;

    return error == cudaSuccess ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

static CUresult driver_context_device(CUdevice *device)
{
    *device = rig_current();
    return CUDA_SUCCESS;
}

static CUresult driver_launch(CUfunction function)
{
    (void)function;
    if (launches_nothing())
        return CUDA_SUCCESS;
    rig_refuse("a kernel launch");
    return CUDA_ERROR_NOT_SUPPORTED;
}

static CUresult driver_launch_extended(const CUlaunchConfig *configuration)
{
    (void)configuration;
    return driver_launch(NULL);
}

static const struct {
    const char *name;
    void *function;
} driver_functions[] = {
    {"cuDeviceGet", driver_device},
    {"cuDeviceGetAttribute", driver_attribute},
    {"cuDeviceGetUuid", driver_uuid},
    {"cuGetErrorString", driver_error_text},
    {"cuGetErrorName", driver_error_text},
    {"cuMemGetAddressRange", driver_address_range},
    {"cuCtxGetCurrent", driver_current_context},
    {"cuCtxSetCurrent", driver_set_context},
    {"cuCtxGetDevice", driver_context_device},
    {"cuLaunchKernel", driver_launch},
    {"cuLaunchKernelEx", driver_launch_extended},
};

CUresult cuGetProcAddress_v2(const char *name, void **function, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *result)
{
    (void)version, (void)flags;
    *function = NULL;
    for (size_t i = 0; i < sizeof(driver_functions) / sizeof(*driver_functions); i++)
        if (strcmp(name, driver_functions[i].name) == 0)
            *function = driver_functions[i].function;
    if (!*function)
        *function = rig_virtual_function(name);
    *result = *function ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return CUDA_SUCCESS;
}

/* As the runtime does: it has the driver's function from dlsym, here from its own library. */
cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **function, unsigned version,
                                             unsigned long long flags,
                                             enum cudaDriverEntryPointQueryResult *result)
{
    void *self = dlopen("libcudart.so.13", RTLD_NOLOAD | RTLD_LAZY);
    CUresult (*find)(const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *) =
        dlsym(self, "cuGetProcAddress_v2");
    CUdriverProcAddressQueryResult found;

    find(name, function, (int)version, flags, &found);
    dlclose(self);
    if (result)
        *result = *function ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
    return cudaSuccess;
}

/* The one of before CUDA 13: of the driver's functions that are here, the newest is the only one.
 */
cudaError_t cudaGetDriverEntryPoint(const char *name, void **function, unsigned long long flags,
                                    enum cudaDriverEntryPointQueryResult *result)
{
    return cudaGetDriverEntryPointByVersion(name, function, CUDART_VERSION, flags, result);
}
