/* cuda-engine.h: copies by a GPU's copy engines: a few large pieces in flight, one behind another,
 * by asynchronous copies of the driver. */
#ifndef TCCL_CUDA_ENGINE_H
#define TCCL_CUDA_ENGINE_H

#include "measure/cuda/cuda-gpu.h"

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

#endif
