/* mover-cuda.c: a GPU copies. Its keeper has the context; this side, one process for each transfer,
 * starts, watches and stops it. */
#include <sys/prctl.h>

#include "base/clock.h"
#include "measure/cuda/cuda-request.h"
#include "measure/pool/mover.h"

/* Seconds: what is asked of the keeper (page-locking memory takes milliseconds, mapping a peer's
 * for the first time up to a second, and others may be served before), and a copy's end after the
 * stop. */
static const double ask_patience = 25, end_patience = 3;
enum { WATCH_NAP = 20 /* microseconds */ };
/* Nanoseconds. */
static const int64_t no_pause = 1000000, stalled = 10000000;

struct state {
    struct tccl_seat seat;
    struct tccl_cuda_requests *requests;
    struct tccl_cuda_slot *slot;
};

static int cuda_open(void *context, struct tccl_error *err)
{
    struct state *state = context;
    state->requests = tccl_cuda_requests_of(state->seat.workspace, state->seat.device.index, err);
    if (!state->requests)
        return -1;
    state->slot = &state->requests->slots[state->seat.place];
    prctl(PR_SET_TIMERSLACK, 1UL);
    return 0;
}

static int cuda_prepare(void *context, tccl_transfer transfer, struct tccl_error *err)
{
    struct state *state = context;
    state->slot->transfer = transfer;
    return tccl_cuda_requests_ask(state->requests, state->seat.place, TCCL_CUDA_PREPARE,
                                  ask_patience, err);
}

/* So long after the deadline that it is launched under (the run's own is set at its start) the GPU
 * ends by itself, should both processes hang by then. */
static const int64_t grace = INT64_C(60000000000);

/* Nothing of the slot's turn runs any more. */
static bool is_ended(const struct tccl_cuda_slot *slot)
{
    return atomic_load(&slot->ended) == slot->turn;
}

static int await_end(const struct state *state, struct tccl_error *err)
{
    int64_t end = tccl_now_ns() + (int64_t)(end_patience * 1e9);
    tccl_cuda_slot_stop(state->slot);
    while (!is_ended(state->slot)) {
        if (tccl_now_ns() > end)
            return tccl_fail(err, "GPU %d: the copy did not stop within %g s",
                             state->seat.device.index, end_patience);
        if (tccl_cuda_requests_check(state->requests, err) != 0)
            return -1;
        tccl_cuda_nap(WATCH_NAP);
    }
    return 0;
}

static int check_ended(const struct state *state, struct tccl_error *err)
{
    return is_ended(state->slot) ? tccl_fail(err, "GPU %d: the copy ended before it was told to",
                                             state->seat.device.index)
                                 : 0;
}

/* Until the GPU says that it has begun: the start is when it did, so there is no pause at first.
 * Returns 0; 1: not to go on; -1 with err. */
static int await_begin(const struct state *state, struct tccl_member *member,
                       struct tccl_error *err)
{
    struct tccl_cuda_slot *slot = state->slot;
    int64_t start = tccl_now_ns();
    __atomic_store_n(&slot->control.go, slot->turn, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&slot->control.lines[0].begun, __ATOMIC_ACQUIRE) != slot->turn) {
        if (!tccl_member_moved(member, 0))
            return 1;
        if (check_ended(state, err) != 0)
            return -1;
        if (tccl_now_ns() - start > no_pause)
            tccl_cuda_nap(WATCH_NAP);
    }
    return 0;
}

/* Bytes are counted by the piece: as long as there are none, nothing is said, or the start would
 * seem to be that of the second piece. */
static int watch(const struct state *state, struct tccl_member *member, struct tccl_error *err)
{
    int64_t begun = tccl_now_ns();
    for (;;) {
        uint64_t moved = 0;
        for (int i = 0; i < TCCL_COPY_BLOCKS; i++)
            moved += __atomic_load_n(&state->slot->control.lines[i].moved, __ATOMIC_ACQUIRE);
        bool news = moved > 0 || tccl_now_ns() - begun > stalled;
        if (news && !tccl_member_moved(member, moved))
            return 0;
        if (check_ended(state, err) != 0)
            return -1;
        tccl_cuda_nap(WATCH_NAP);
    }
}

static int cuda_move(void *context, struct tccl_member *member, struct tccl_error *err)
{
    struct state *state = context;
    int64_t left = tccl_member_deadline(member) - tccl_now_ns();
    state->slot->limit = (left > 0 ? left : 0) + grace;
    if (tccl_cuda_requests_ask(state->requests, state->seat.place, TCCL_CUDA_LAUNCH, ask_patience,
                               err) < 0)
        return -1;
    int rc = tccl_member_wait(member) < 0 ? 1 : await_begin(state, member, err);
    if (rc == 0)
        rc = watch(state, member, err);
    return rc < 0 ? -1 : await_end(state, err);
}

const struct tccl_mover tccl_mover_cuda = {
    .keep = tccl_cuda_keep,
    .size = sizeof(struct state),
    .open = cuda_open,
    .prepare = cuda_prepare,
    .move = cuda_move,
};
