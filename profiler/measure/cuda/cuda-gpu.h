/* cuda-gpu.h: what a keeper process has set up on its GPU: the context, the kernel, memory of its
 * own for each worker, memory that it lends to other GPUs, and mappings of what it can reach. All
 * of it is kept until the process ends, but for mappings of other GPUs: CUDA lets a GPU reach eight
 * others at once (CUDA_ERROR_TOO_MANY_PEERS), so the one not asked for longest gives way. */
#pragma once

#include "measure/cuda/cuda-driver.h"
#include "measure/cuda/cuda-request.h"

struct tccl_cuda_gpu {
    struct tccl_cuda cuda;
    struct tccl_workspace *workspace;
    int gpu;
    CUdevice device;
    CUcontext context;
    CUfunction copy;
    int blocks; /* of each copy: several copies fit on the GPU at once */
    CUdeviceptr lent;
    CUdeviceptr requests;
    CUstream streams[TCCL_WORKSPACE_PLACES];
    CUdeviceptr own[TCCL_WORKSPACE_PLACES];
    CUdeviceptr host[TCCL_MAX_MEMORIES][TCCL_WORKSPACE_PLACES];
    struct {
        uint32_t turn; /* of the loan that is mapped; 0: none */
        CUdeviceptr address;
        unsigned long asked; /* when it was last asked for, in calls */
    } peers[TCCL_MAX_GPUS];
    unsigned long calls;
    uint32_t busy; /* GPUs whose memory copies use now that can't be let go, as a mask */
};

/* In the process that keeps the GPU, once. Returns NULL with err. */
struct tccl_cuda_gpu *tccl_cuda_gpu_open(struct tccl_workspace *workspace, int gpu,
                                         struct tccl_error *err);

/* Fills the loan but for its turn. A GPU whose memory can't be lent lends 0 bytes, and the handle
 * holds the reason: transfers with the host's memories go all the same. */
void tccl_cuda_gpu_lend(struct tccl_cuda_gpu *gpu);

/* Is all there for that transfer of the worker at that place? If not, to be set up, which may wait
 * for kernels that run. Returns 0, or -1 with err. */
bool tccl_cuda_gpu_is_set_up(struct tccl_cuda_gpu *gpu, tccl_transfer transfer, int place);
int tccl_cuda_gpu_set_up(struct tccl_cuda_gpu *gpu, tccl_transfer transfer, int place,
                         struct tccl_error *err);

/* The GPU's addresses of the place's regions at both ends of a transfer that is set up. */
void tccl_cuda_gpu_ends(const struct tccl_cuda_gpu *gpu, tccl_transfer transfer, int place,
                        CUdeviceptr *source, CUdeviceptr *sink);

/* Says which GPU failed at what, and why. Returns -1. */
int tccl_cuda_gpu_fail(const struct tccl_cuda_gpu *gpu, CUresult result, const char *what,
                       struct tccl_error *err);

/* ---- copies by its copy engines (cuda-engine.c): a few large pieces in flight, one behind
 * another, by asynchronous copies of the driver ---- */

enum { TCCL_ENGINE_FLIGHT = 4 };

struct tccl_cuda_engine {
    const struct tccl_cuda_gpu *gpu;
    tccl_transfer transfer;
    int place;
    CUevent events[TCCL_ENGINE_FLIGHT]; /* made at first use, kept */
    unsigned begun, done;               /* pieces so far; equal: it is idle */
    size_t piece, offset;
    uint64_t moved;
};

/* Readies the engine for a run; nothing is copied yet. */
CUresult tccl_cuda_engine_arm(struct tccl_cuda_engine *engine, const struct tccl_cuda_gpu *gpu,
                              tccl_transfer transfer, int place);
/* Counts what is done in engine->moved, and with more starts further pieces. Does not wait. */
CUresult tccl_cuda_engine_pump(struct tccl_cuda_engine *engine, bool more);
