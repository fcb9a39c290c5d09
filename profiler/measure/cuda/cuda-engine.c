/* cuda-engine.c: copies by the copy engines, piece by piece, with a few pieces in flight. */
#include "measure/cuda/cuda-gpu.h"

enum { PIECE = 4 << 20 };

CUresult tccl_cuda_engine_arm(struct tccl_cuda_engine *engine, const struct tccl_cuda_gpu *gpu,
                              tccl_transfer transfer, int place)
{
    size_t region = gpu->workspace->settings.region;
    engine->gpu = gpu;
    engine->transfer = transfer;
    engine->place = place;
    engine->begun = engine->done = 0;
    engine->offset = 0;
    engine->moved = 0;
    engine->piece = region < PIECE ? region : PIECE;
    for (int i = 0; i < TCCL_ENGINE_FLIGHT; i++) {
        CUresult result = engine->events[i] ? CUDA_SUCCESS
                                            : gpu->cuda.cuEventCreate(&engine->events[i],
                                                                      CU_EVENT_DISABLE_TIMING);
        if (result != CUDA_SUCCESS)
            return result;
    }
    return CUDA_SUCCESS;
}

static CUresult copy_piece(const struct tccl_cuda_engine *engine)
{
    struct tccl_device target = tccl_transfer_target(engine->transfer);
    const struct tccl_cuda_gpu *gpu = engine->gpu;
    CUdeviceptr source, sink;
    if (target.kind != TCCL_GPU) {
        /* Host memory is named by the CPU's address: the driver finds that it is page-locked. */
        CUdeviceptr own = gpu->own[engine->place] + engine->offset;
        char *host = tccl_workspace_region(gpu->workspace, target, engine->place, NULL);
        if (!host)
            return CUDA_ERROR_INVALID_VALUE;
        host += engine->offset;
        return tccl_transfer_reads(engine->transfer)
                   ? gpu->cuda.cuMemcpyHtoDAsync(own, host, engine->piece,
                                                 gpu->streams[engine->place])
                   : gpu->cuda.cuMemcpyDtoHAsync(host, own, engine->piece,
                                                 gpu->streams[engine->place]);
    }
    tccl_cuda_gpu_ends(gpu, engine->transfer, engine->place, &source, &sink);
    return gpu->cuda.cuMemcpyDtoDAsync(sink + engine->offset, source + engine->offset,
                                       engine->piece, gpu->streams[engine->place]);
}

static CUresult begin_piece(struct tccl_cuda_engine *engine)
{
    CUevent event = engine->events[engine->begun % TCCL_ENGINE_FLIGHT];
    CUresult result = copy_piece(engine);
    if (result == CUDA_SUCCESS)
        result = engine->gpu->cuda.cuEventRecord(event, engine->gpu->streams[engine->place]);
    engine->begun++;
    engine->offset += engine->piece;
    if (engine->offset + engine->piece > engine->gpu->workspace->settings.region)
        engine->offset = 0;
    return result;
}

CUresult tccl_cuda_engine_pump(struct tccl_cuda_engine *engine, bool more)
{
    CUresult result = CUDA_SUCCESS;
    while (engine->done != engine->begun) {
        result = engine->gpu->cuda.cuEventQuery(engine->events[engine->done % TCCL_ENGINE_FLIGHT]);
        if (result != CUDA_SUCCESS)
            break;
        engine->done++;
        engine->moved += engine->piece;
    }
    if (result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_READY)
        return result;
    while (more && engine->begun - engine->done < TCCL_ENGINE_FLIGHT) {
        result = begin_piece(engine);
        if (result != CUDA_SUCCESS)
            return result;
    }
    return CUDA_SUCCESS;
}
