/* cuda-gpu.c: a GPU in its keeper process: context, kernels, its own memory, and what it maps of
 * others'. */
#include "measure/cuda/cuda-gpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern const unsigned long long tccl_copy_image[]; /* copy.cu for all kinds of GPUs, by nvcc */

/* Peers that write to one GPU share so many regions of what it lends: 16 at once get one each. */
enum { LENT_REGIONS = 16 };
/* A GPU starts at most two transfers of a chain; some more are to fit at once, in reports too. */
enum { COPIES_AT_ONCE = 4 };
enum { OWN_PATTERN = 0xA0, LENT_PATTERN = 0x50 };

_Static_assert(sizeof(CUipcMemHandle) == TCCL_LOAN_BYTES, "a loan holds a handle");

int tccl_cuda_gpu_fail(const struct tccl_cuda_gpu *gpu, CUresult result, const char *what,
                       struct tccl_error *err)
{
    return tccl_cuda_fail(&gpu->cuda, result, err, "GPU %d (%s): %s", gpu->gpu,
                          gpu->workspace->site.gpu_busid[gpu->gpu], what);
}

static size_t region_of(const struct tccl_cuda_gpu *gpu)
{
    return gpu->workspace->settings.region;
}

static int attribute(const struct tccl_cuda_gpu *gpu, CUdevice_attribute which)
{
    int value = 0;
    gpu->cuda.cuDeviceGetAttribute(&value, which, gpu->device);
    return value;
}

static int make_context(struct tccl_cuda_gpu *gpu, struct tccl_error *err)
{
    CUresult result;
    if (attribute(gpu, CU_DEVICE_ATTRIBUTE_COMPUTE_MODE) == CU_COMPUTEMODE_PROHIBITED)
        return tccl_fail(err, "GPU %d: compute mode \"prohibited\": nvidia-smi -c DEFAULT",
                         gpu->gpu);
    result = gpu->cuda.cuDevicePrimaryCtxRetain(&gpu->context, gpu->device);
    if (result != CUDA_SUCCESS &&
        attribute(gpu, CU_DEVICE_ATTRIBUTE_COMPUTE_MODE) == CU_COMPUTEMODE_EXCLUSIVE_PROCESS)
        return tccl_cuda_gpu_fail(gpu, result,
                                  "another process has it, and its compute mode allows only one "
                                  "(nvidia-smi -c DEFAULT)",
                                  err);
    if (result != CUDA_SUCCESS)
        return tccl_cuda_gpu_fail(gpu, result, "no CUDA context can be made on it", err);
    result = gpu->cuda.cuCtxSetCurrent(gpu->context);
    return result == CUDA_SUCCESS
               ? 0
               : tccl_cuda_gpu_fail(gpu, result, "no CUDA context can be made on it", err);
}

static int load_kernel(struct tccl_cuda_gpu *gpu, struct tccl_error *err)
{
    int each = 0;
    CUmodule module;
    CUresult result = gpu->cuda.cuModuleLoadData(&module, tccl_copy_image);
    if (result == CUDA_SUCCESS)
        result = gpu->cuda.cuModuleGetFunction(&gpu->copy, module, "tccl_copy");
    if (result == CUDA_SUCCESS)
        result = gpu->cuda.cuOccupancyMaxActiveBlocksPerMultiprocessor(&each, gpu->copy,
                                                                       TCCL_COPY_THREADS, 0);
    if (result != CUDA_SUCCESS) {
        /* An older driver may not know what a newer nvcc writes. */
        int version = CUDA_VERSION;
        char what[160];
        gpu->cuda.cuDriverGetVersion(&version);
        if (version >= CUDA_VERSION)
            return tccl_cuda_gpu_fail(gpu, result, "the copying kernel can't be loaded", err);
        snprintf(
            what, sizeof(what),
            "the copying kernel can't be loaded: it was built with CUDA %d.%d, the driver is of "
            "CUDA %d.%d (update it, or build with an older one)",
            CUDA_VERSION / 1000, CUDA_VERSION % 1000 / 10, version / 1000, version % 1000 / 10);
        return tccl_cuda_gpu_fail(gpu, result, what, err);
    }
    gpu->blocks = each * attribute(gpu, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) / COPIES_AT_ONCE;
    if (gpu->blocks > TCCL_COPY_BLOCKS)
        gpu->blocks = TCCL_COPY_BLOCKS;
    return gpu->blocks > 0 ? 0
                           : tccl_fail(err, "GPU %d is too small for the copying kernel", gpu->gpu);
}

static int take_memory(const struct tccl_cuda_gpu *gpu, size_t bytes, int pattern,
                       CUdeviceptr *address, struct tccl_error *err)
{
    CUresult result = gpu->cuda.cuMemAlloc(address, bytes);
    if (result == CUDA_SUCCESS)
        result = gpu->cuda.cuMemsetD8(*address, (unsigned char)(pattern + gpu->gpu), bytes);
    if (result == CUDA_SUCCESS)
        result = gpu->cuda.cuStreamSynchronize(NULL);
    return result == CUDA_SUCCESS
               ? 0
               : tccl_cuda_gpu_fail(gpu, result, "no memory on it for the copies", err);
}

static int map_host(const struct tccl_cuda_gpu *gpu, void *memory, size_t bytes,
                    CUdeviceptr *address, struct tccl_error *err)
{
    CUresult result = gpu->cuda.cuMemHostRegister(
        memory, bytes, CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP);
    if (result == CUDA_SUCCESS)
        result = gpu->cuda.cuMemHostGetDevicePointer(address, memory, 0);
    return result == CUDA_SUCCESS
               ? 0
               : tccl_cuda_gpu_fail(gpu, result, "host memory can't be mapped for it", err);
}

static int open_gpu(struct tccl_cuda_gpu *gpu, struct tccl_error *err)
{
    long page = sysconf(_SC_PAGESIZE);
    size_t requests_bytes =
        (sizeof(struct tccl_cuda_requests) + (size_t)page - 1) / (size_t)page * (size_t)page;
    struct tccl_cuda_requests *requests = tccl_cuda_requests_of(gpu->workspace, gpu->gpu, err);
    if (!requests || tccl_cuda_start(&gpu->cuda, err) != 0)
        return -1;
    CUresult result =
        gpu->cuda.cuDeviceGetByPCIBusId(&gpu->device, gpu->workspace->site.gpu_busid[gpu->gpu]);
    if (result != CUDA_SUCCESS)
        return tccl_cuda_gpu_fail(gpu, result, "CUDA can't see it", err);
    if (make_context(gpu, err) != 0 || load_kernel(gpu, err) != 0)
        return -1;
    if (take_memory(gpu, LENT_REGIONS * region_of(gpu), LENT_PATTERN, &gpu->lent, err) != 0)
        return -1;
    return map_host(gpu, requests, requests_bytes, &gpu->requests, err);
}

struct tccl_cuda_gpu *tccl_cuda_gpu_open(struct tccl_workspace *workspace, int gpu,
                                         struct tccl_error *err)
{
    struct tccl_cuda_gpu *opened = calloc(1, sizeof(*opened));
    if (!opened)
        return tccl_fail_null(err, "out of memory");
    opened->workspace = workspace;
    opened->gpu = gpu;
    if (open_gpu(opened, err) == 0)
        return opened;
    free(opened);
    return NULL;
}

void tccl_cuda_gpu_lend(struct tccl_cuda_gpu *gpu)
{
    struct tccl_loan *loan = tccl_workspace_loan(gpu->workspace, gpu->gpu);
    CUipcMemHandle handle;
    CUresult result = gpu->cuda.cuIpcGetMemHandle(&handle, gpu->lent);
    const char *text = NULL;
    memset(loan->handle, 0, sizeof(loan->handle));
    loan->bytes = result == CUDA_SUCCESS ? LENT_REGIONS * region_of(gpu) : 0;
    if (result == CUDA_SUCCESS) {
        memcpy(loan->handle, &handle, sizeof(handle));
        return;
    }
    gpu->cuda.cuGetErrorString(result, &text);
    snprintf((char *)loan->handle, sizeof(loan->handle), "%s", text ? text : "unknown error");
}

static void unmap_peer(struct tccl_cuda_gpu *gpu, int peer)
{
    if (gpu->peers[peer].turn != 0)
        gpu->cuda.cuIpcCloseMemHandle(gpu->peers[peer].address);
    gpu->peers[peer].turn = 0;
}

/* The GPU reaches so many others that CUDA allows no more: lets go of the one not asked for longest
 * that nothing uses. Returns false where there is none. */
static bool let_go(struct tccl_cuda_gpu *gpu)
{
    int oldest = -1;
    for (int i = 0; i < TCCL_MAX_GPUS; i++)
        if (gpu->peers[i].turn != 0 && !(gpu->busy >> i & 1) &&
            (oldest < 0 || gpu->peers[i].asked < gpu->peers[oldest].asked))
            oldest = i;
    if (oldest >= 0)
        unmap_peer(gpu, oldest);
    return oldest >= 0;
}

/* A keeper that was replaced lends anew: what it lent before is gone. */
static int map_peer(struct tccl_cuda_gpu *gpu, int peer, struct tccl_error *err)
{
    struct tccl_loan *loan = tccl_workspace_loan(gpu->workspace, peer);
    uint32_t turn = atomic_load(&loan->turn);
    CUipcMemHandle handle;
    char what[64];
    if (turn == 0)
        return tccl_fail(err, "GPU %d: its process has not shared its memory yet", peer);
    if (loan->bytes == 0)
        return tccl_fail(err, "GPU %d can't share its memory with GPU %d: %.63s", peer, gpu->gpu,
                         (const char *)loan->handle);
    unmap_peer(gpu, peer);
    memcpy(&handle, loan->handle, sizeof(handle));
    CUresult result;
    do
        result = gpu->cuda.cuIpcOpenMemHandle(&gpu->peers[peer].address, handle,
                                              CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
    while (result == CUDA_ERROR_TOO_MANY_PEERS && let_go(gpu));
    snprintf(what, sizeof(what), "memory of GPU %d can't be mapped", peer);
    if (result != CUDA_SUCCESS)
        return tccl_cuda_gpu_fail(gpu, result, what, err);
    gpu->peers[peer].turn = turn;
    gpu->peers[peer].asked = ++gpu->calls;
    return 0;
}

static bool is_target_set_up(struct tccl_cuda_gpu *gpu, struct tccl_device target, int place)
{
    if (target.kind != TCCL_GPU)
        return gpu->host[target.index][place] != 0;
    uint32_t turn = atomic_load(&tccl_workspace_loan(gpu->workspace, target.index)->turn);
    gpu->peers[target.index].asked = ++gpu->calls;
    return turn != 0 && gpu->peers[target.index].turn == turn;
}

bool tccl_cuda_gpu_is_set_up(struct tccl_cuda_gpu *gpu, tccl_transfer transfer, int place)
{
    return gpu->own[place] && gpu->streams[place] &&
           is_target_set_up(gpu, tccl_transfer_target(transfer), place);
}

int tccl_cuda_gpu_set_up(struct tccl_cuda_gpu *gpu, tccl_transfer transfer, int place,
                         struct tccl_error *err)
{
    struct tccl_device target = tccl_transfer_target(transfer);
    if (!gpu->own[place] &&
        take_memory(gpu, region_of(gpu), OWN_PATTERN, &gpu->own[place], err) != 0)
        return -1;
    CUresult result = gpu->streams[place]
                          ? CUDA_SUCCESS
                          : gpu->cuda.cuStreamCreate(&gpu->streams[place], CU_STREAM_NON_BLOCKING);
    if (result != CUDA_SUCCESS)
        return tccl_cuda_gpu_fail(gpu, result, "no CUDA stream can be made on it", err);
    if (is_target_set_up(gpu, target, place))
        return 0;
    if (target.kind == TCCL_GPU)
        return map_peer(gpu, target.index, err);
    void *memory = tccl_workspace_region(gpu->workspace, target, place, err);
    return memory ? map_host(gpu, memory, region_of(gpu), &gpu->host[target.index][place], err)
                  : -1;
}

void tccl_cuda_gpu_ends(const struct tccl_cuda_gpu *gpu, tccl_transfer transfer, int place,
                        CUdeviceptr *source, CUdeviceptr *sink)
{
    struct tccl_device target = tccl_transfer_target(transfer);
    size_t offset = (size_t)(place % LENT_REGIONS) * region_of(gpu);
    CUdeviceptr there = target.kind == TCCL_GPU ? gpu->peers[target.index].address + offset
                                                : gpu->host[target.index][place];
    *source = tccl_transfer_reads(transfer) ? there : gpu->own[place];
    *sink = tccl_transfer_reads(transfer) ? gpu->own[place] : there;
}
