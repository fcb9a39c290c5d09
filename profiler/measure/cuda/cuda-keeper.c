/* cuda-keeper.c: the process that holds a GPU. It lends the memory of the GPU, and starts the
 * copies that workers ask for. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "measure/cuda/cuda-gpu.h"

/* Seconds until a kernel must be there, and until one that was told to stop must be gone. */
static const double arm_patience = 5, end_patience = 2;
enum { WATCH_NAP = 20 /* microseconds */, ENGINE_NAP = 2 };

/* One worker's copy. */
struct run {
    bool active;
    bool parked; /* taken off the GPU before its start, to be put back */
    int64_t end; /* CLOCK_MONOTONIC: no new pieces of an engine after it */
    tccl_transfer transfer;
    struct tccl_cuda_engine engine;
};

struct keeper {
    struct tccl_cuda_gpu *gpu;
    struct tccl_cuda_requests *requests;
    struct tccl_error *last_words; /* shared with the pool */
    bool engine;
    struct run runs[TCCL_WORKSPACE_PLACES];
};

static struct tccl_cuda_slot *slot_of(const struct keeper *keeper, int place)
{
    return &keeper->requests->slots[place];
}

static uint32_t word(const uint32_t *address)
{
    return __atomic_load_n(address, __ATOMIC_SEQ_CST);
}

static bool has_started(const struct keeper *keeper, int place)
{
    const struct tccl_cuda_slot *slot = slot_of(keeper, place);
    return word(&slot->control.go) == slot->turn;
}

/* ---- the end of a copy ---- */

/* A context in which a kernel failed is of no more use: the pool sees this process end, says what
 * it left as last words, and puts a new one in its place. */
static void collapse(const struct keeper *keeper, CUresult result)
{
    keeper->last_words->text[0] = '\0';
    tccl_cuda_gpu_fail(keeper->gpu, result, "the copy failed", keeper->last_words);
    _exit(1);
}

static void finish(struct keeper *keeper, int place)
{
    struct tccl_cuda_slot *slot = slot_of(keeper, place);
    keeper->runs[place].active = false;
    atomic_store(&slot->ended, slot->turn);
}

static bool is_running(struct keeper *keeper, int place)
{
    const struct tccl_cuda_gpu *gpu = keeper->gpu;
    CUresult result = gpu->cuda.cuStreamQuery(gpu->streams[place]);
    if (result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_READY)
        collapse(keeper, result);
    return result == CUDA_ERROR_NOT_READY;
}

static void look_after(struct keeper *keeper, int place)
{
    if (keeper->engine) {
        struct run *run = &keeper->runs[place];
        struct tccl_cuda_slot *slot = slot_of(keeper, place);
        bool stopped =
            (int32_t)(word(&slot->control.stop) - slot->turn) >= 0 || tccl_now_ns() > run->end;
        bool started = word(&slot->control.go) == slot->turn;
        CUresult result = tccl_cuda_engine_pump(&run->engine, started && !stopped);
        if (result != CUDA_SUCCESS)
            collapse(keeper, result);
        if (started)
            __atomic_store_n(&slot->control.lines[0].begun, slot->turn, __ATOMIC_RELEASE);
        __atomic_store_n(&slot->control.lines[0].moved, run->engine.moved, __ATOMIC_RELEASE);
        if (stopped && run->engine.begun == run->engine.done)
            finish(keeper, place);
    } else if (!is_running(keeper, place))
        finish(keeper, place);
}

/* A copy that does not end ends with this process. */
static void end_it(struct keeper *keeper, int place)
{
    int64_t end = tccl_now_ns() + (int64_t)(end_patience * 1e9);
    tccl_cuda_slot_stop(slot_of(keeper, place));
    while (keeper->runs[place].active) {
        if (tccl_now_ns() > end)
            collapse(keeper, CUDA_ERROR_LAUNCH_TIMEOUT);
        tccl_cuda_nap(WATCH_NAP);
        look_after(keeper, place);
    }
}

/* ---- kernels ---- */

static int await_armed(struct keeper *keeper, int place, struct tccl_error *err)
{
    const struct tccl_cuda_slot *slot = slot_of(keeper, place);
    int64_t end = tccl_now_ns() + (int64_t)(arm_patience * 1e9);
    for (;;) {
        bool armed = true;
        for (int block = 0; block < keeper->gpu->blocks; block++)
            armed = armed && word(&slot->control.lines[block].armed) == slot->turn;
        if (armed)
            return 0;
        if (tccl_now_ns() > end) {
            tccl_cuda_slot_stop(slot_of(keeper, place));
            return tccl_fail(err,
                             "GPU %d: the copying kernel did not start within %g s: is something "
                             "else running on the GPU?",
                             keeper->gpu->gpu, arm_patience);
        }
        is_running(keeper, place); /* a kernel that fails is found here */
        tccl_cuda_nap(WATCH_NAP);
    }
}

static int launch_kernel(struct keeper *keeper, int place, struct tccl_error *err)
{
    const struct tccl_cuda_gpu *gpu = keeper->gpu;
    struct tccl_cuda_slot *slot = slot_of(keeper, place);
    CUdeviceptr source, sink;
    tccl_cuda_gpu_ends(gpu, keeper->runs[place].transfer, place, &source, &sink);
    struct tccl_copy_job job = {
        .source = source,
        .sink = sink,
        .control = gpu->requests + ((uintptr_t)&slot->control - (uintptr_t)keeper->requests),
        .limit = (uint64_t)slot->limit,
        .pieces = (uint32_t)(gpu->workspace->settings.region / TCCL_COPY_PIECE),
        .turn = slot->turn,
        .hold = slot->control.hold,
    };
    void *parameters[] = {&job};
    memset(slot->control.lines, 0, sizeof(slot->control.lines));
    CUresult result =
        gpu->cuda.cuLaunchKernel(gpu->copy, (unsigned)gpu->blocks, 1, 1, TCCL_COPY_THREADS, 1, 1, 0,
                                 gpu->streams[place], parameters, NULL);
    if (result != CUDA_SUCCESS)
        return tccl_cuda_gpu_fail(gpu, result, "the copying kernel can't be started", err);
    keeper->runs[place].active = true;
    return await_armed(keeper, place, err);
}

static int take_off(struct keeper *keeper, int place, struct tccl_error *err)
{
    int64_t end = tccl_now_ns() + (int64_t)(end_patience * 1e9);
    keeper->runs[place].parked = true;
    __atomic_add_fetch(&slot_of(keeper, place)->control.hold, 1, __ATOMIC_SEQ_CST);
    while (is_running(keeper, place)) {
        if (tccl_now_ns() > end)
            return tccl_fail(err, "GPU %d: the kernel that starts the copies does not end",
                             keeper->gpu->gpu);
        tccl_cuda_nap(WATCH_NAP);
    }
    return 0;
}

/* What sets memory up may wait for the kernels that run, and these wait for a start that comes only
 * when all is set up: so they are off the GPU meanwhile. */
static int park(struct keeper *keeper, struct tccl_error *err)
{
    for (int place = 0; place < TCCL_WORKSPACE_PLACES; place++)
        if (keeper->runs[place].active && !keeper->engine && !has_started(keeper, place) &&
            take_off(keeper, place, err) != 0)
            return -1;
    return 0;
}

static int unpark(struct keeper *keeper, struct tccl_error *err)
{
    int result = 0;
    for (int place = 0; place < TCCL_WORKSPACE_PLACES; place++) {
        if (!keeper->runs[place].parked)
            continue;
        keeper->runs[place].parked = false;
        if (launch_kernel(keeper, place, err) != 0)
            result = -1;
    }
    return result;
}

/* ---- requests ---- */

/* What a worker that died left behind. */
static void end_last(struct keeper *keeper, int place)
{
    if (keeper->runs[place].active)
        end_it(keeper, place);
}

/* GPUs whose memory the members reach that wait for their start. */
static uint32_t find_busy(const struct keeper *keeper)
{
    uint32_t busy = 0;
    for (int place = 0; place < TCCL_WORKSPACE_PLACES; place++) {
        struct tccl_device target = tccl_transfer_target(keeper->runs[place].transfer);
        if (keeper->runs[place].active && target.kind == TCCL_GPU)
            busy |= UINT32_C(1) << target.index;
    }
    return busy;
}

static int prepare(struct keeper *keeper, int place, struct tccl_error *err)
{
    tccl_transfer transfer = slot_of(keeper, place)->transfer;
    end_last(keeper, place);
    /* Before a set starts, none of its members has: what runs is of an earlier one. It would be
     * measured along with this one, and what sets memory up might wait for its end. */
    for (int other = 0; other < TCCL_WORKSPACE_PLACES; other++)
        if (keeper->runs[other].active && has_started(keeper, other))
            end_it(keeper, other);
    if (tccl_cuda_gpu_is_set_up(keeper->gpu, transfer, place))
        return 0;
    keeper->gpu->busy = find_busy(keeper);
    int result = park(keeper, err);
    if (result == 0)
        result = tccl_cuda_gpu_set_up(keeper->gpu, transfer, place, err);
    return unpark(keeper, err) < 0 ? -1 : result;
}

static int launch(struct keeper *keeper, int place, struct tccl_error *err)
{
    struct tccl_cuda_slot *slot = slot_of(keeper, place);
    struct run *run = &keeper->runs[place];
    end_last(keeper, place);
    if (!tccl_cuda_gpu_is_set_up(keeper->gpu, slot->transfer, place))
        return tccl_fail(err,
                         "GPU %d: its process was started again meanwhile, or it needs more than "
                         "the 8 peers that CUDA allows",
                         keeper->gpu->gpu);
    slot->turn++;
    run->transfer = slot->transfer;
    run->end = tccl_now_ns() + slot->limit;
    if (!keeper->engine)
        return launch_kernel(keeper, place, err);
    CUresult result = tccl_cuda_engine_arm(&run->engine, keeper->gpu, run->transfer, place);
    if (result != CUDA_SUCCESS)
        return tccl_cuda_gpu_fail(keeper->gpu, result, "no CUDA event can be made on it", err);
    memset(slot->control.lines, 0, sizeof(struct tccl_copy_line));
    run->active = true;
    return 0;
}

static void attend(struct keeper *keeper, int place)
{
    struct tccl_cuda_slot *slot = slot_of(keeper, place);
    uint32_t asked = atomic_load(&slot->asked);
    if (asked != atomic_load(&slot->answered)) {
        int result = slot->request == TCCL_CUDA_LAUNCH ? launch(keeper, place, &slot->error)
                                                       : prepare(keeper, place, &slot->error);
        slot->result = result;
        atomic_store(&slot->answered, asked);
        /* Errors of some kinds stay in the context, whatever call met them first. */
        CUresult context = result < 0 ? keeper->gpu->cuda.cuStreamQuery(NULL) : CUDA_SUCCESS;
        if (context != CUDA_SUCCESS && context != CUDA_ERROR_NOT_READY)
            collapse(keeper, context);
    }
    if (keeper->runs[place].active)
        look_after(keeper, place);
}

static void *serve(void *context)
{
    struct keeper *keeper = context;
    prctl(PR_SET_TIMERSLACK, 1UL);
    keeper->gpu->cuda.cuCtxSetCurrent(keeper->gpu->context);
    for (;;) {
        bool busy = false;
        for (int place = 0; place < TCCL_WORKSPACE_PLACES; place++) {
            attend(keeper, place);
            busy |= keeper->runs[place].active;
        }
        if (busy)
            tccl_cuda_nap(keeper->engine ? ENGINE_NAP : WATCH_NAP);
        else
            sem_wait(&keeper->requests->bell);
    }
    return NULL;
}

int tccl_cuda_keep(struct tccl_workspace *workspace, int gpu, struct tccl_error *err)
{
    struct keeper *keeper = calloc(1, sizeof(*keeper)); /* for as long as the process lives */
    pthread_t thread;
    if (!keeper)
        return tccl_fail(err, "out of memory");
    keeper->gpu = tccl_cuda_gpu_open(workspace, gpu, err);
    keeper->requests = tccl_cuda_requests_of(workspace, gpu, err);
    if (!keeper->gpu || !keeper->requests)
        return -1;
    keeper->engine = workspace->settings.engine;
    keeper->last_words = err;
    tccl_cuda_requests_open(keeper->requests,
                            atomic_load(&tccl_workspace_loan(workspace, gpu)->turn) == 0);
    tccl_cuda_gpu_lend(keeper->gpu);
    if (pthread_create(&thread, NULL, serve, keeper) != 0)
        return tccl_fail(err, "no thread can be started for GPU %d", gpu);
    pthread_detach(thread);
    return 0;
}
