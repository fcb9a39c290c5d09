/* gpu-memory.c: memory of a GPU that a NIC may read and write. */
#include "measure/peer/peer.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>

#include "measure/cuda/cuda-driver.h"

/* As in cuda.h from CUDA 11.7 on, for older ones: CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD. */
enum { AS_DMABUF = 1 };
typedef CUresult get_handle(void *handle, CUdeviceptr address, size_t bytes, int type,
                            unsigned long long flags);

enum { ALIGNMENT = 2 << 20 /* whole pages of the GPU, which a handle must have */ };

static struct tccl_cuda cuda;

int tccl_gpu_memory_get(const char *busid, size_t bytes, struct tccl_gpu_memory *memory,
                        struct tccl_error *err)
{
    size_t whole = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    static bool started;
    CUdeviceptr address;
    CUcontext context;
    CUdevice device;
    if (!started && tccl_cuda_start(&cuda, err) != 0)
        return -1;
    started = true;
    CUresult result = cuda.cuDeviceGetByPCIBusId(&device, busid);
    if (result == CUDA_SUCCESS)
        result = cuda.cuDevicePrimaryCtxRetain(&context, device);
    if (result == CUDA_SUCCESS)
        result = cuda.cuCtxSetCurrent(context);
    if (result == CUDA_SUCCESS)
        result = cuda.cuMemAlloc(&address, whole);
    if (result != CUDA_SUCCESS)
        return tccl_cuda_fail(&cuda, result, err, "GPU %s has no memory for a NIC", busid);
    get_handle *get = (get_handle *)(intptr_t)dlsym(cuda.library, "cuMemGetHandleForAddressRange");
    *memory = (struct tccl_gpu_memory){(void *)(uintptr_t)address, -1};
    if (!get || get(&memory->dmabuf, address, whole, AS_DMABUF, 0) != CUDA_SUCCESS)
        memory->dmabuf = -1;
    return 0;
}
