#include "measure/cuda/cuda-request.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

enum { ASK_NAP = 20 /* microseconds */ };

struct tccl_desk *tccl_desk_of(struct tccl_stage *stage, int gpu, struct tccl_error *err)
{
    if (tccl_stage_settings(stage)->region < sizeof(struct tccl_desk)) {
        tccl_fail(err, "regions of %zu bytes are too small for the desk of a GPU",
                  tccl_stage_settings(stage)->region);
        return NULL;
    }
    return tccl_stage_gpu(stage, gpu, 0, err);
}

static int fail_ended(struct tccl_error *err)
{
    return tccl_fail(err, "the process that holds the GPU ended");
}

static void clear_slot(struct tccl_desk_slot *slot)
{
    uint32_t asked = atomic_load(&slot->asked);

    if (asked == atomic_load(&slot->answered) && atomic_load(&slot->ended) == slot->turn)
        return;
    slot->error = (struct tccl_error){0};
    slot->result = fail_ended(&slot->error);
    atomic_store(&slot->ended, slot->turn);
    atomic_store(&slot->answered, asked);
}

void tccl_desk_open(struct tccl_desk *desk, bool first)
{
    if (first)
        memset(desk, 0, sizeof(*desk));
    sem_init(&desk->bell, 1, 0);
    desk->keeper = getpid();
    for (int i = 0; i < TCCL_STAGE_PLACES; i++)
        clear_slot(&desk->slots[i]);
}

void tccl_desk_answer(struct tccl_desk_slot *slot, uint32_t number, int result)
{
    slot->result = result;
    atomic_store(&slot->answered, number);
}

void tccl_desk_end(struct tccl_desk_slot *slot)
{
    atomic_store(&slot->ended, slot->turn);
}

void tccl_desk_nap(int microseconds)
{
    nanosleep(&(struct timespec){.tv_nsec = microseconds * 1000L}, NULL);
}

/* It hangs in the driver. The pool puts another in its place. */
static int give_up(const struct tccl_desk *desk, double patience, struct tccl_error *err)
{
    if (desk->keeper > 1)
        kill(desk->keeper, SIGKILL);
    return tccl_fail(err, "the process that holds the GPU did not answer within %g s", patience);
}

int tccl_desk_ask(struct tccl_desk *desk, int place, enum tccl_desk_request request,
                  double patience, struct tccl_error *err)
{
    struct tccl_desk_slot *slot = &desk->slots[place];
    int64_t end = tccl_now_ns() + (int64_t)(patience * 1e9);
    uint32_t number = atomic_load(&slot->asked) + 1;

    slot->request = request;
    slot->error = (struct tccl_error){0};
    atomic_store(&slot->asked, number);
    sem_post(&desk->bell);
    while (atomic_load(&slot->answered) != number) {
        if (tccl_now_ns() > end)
            return give_up(desk, patience, err);
        if (tccl_desk_check(desk, err) < 0)
            return -1;
        tccl_desk_nap(ASK_NAP);
    }
    return slot->result == 0 ? 0 : tccl_fail(err, "%s", slot->error.text);
}

int tccl_desk_check(const struct tccl_desk *desk, struct tccl_error *err)
{
    return kill(desk->keeper, 0) != 0 && errno == ESRCH ? fail_ended(err) : 0;
}

void tccl_desk_go(struct tccl_desk_slot *slot)
{
    __atomic_store_n(&slot->control.go, slot->turn, __ATOMIC_SEQ_CST);
}

bool tccl_desk_begun(const struct tccl_desk_slot *slot)
{
    return __atomic_load_n(&slot->control.lines[0].begun, __ATOMIC_ACQUIRE) == slot->turn;
}

uint64_t tccl_desk_moved(const struct tccl_desk_slot *slot)
{
    uint64_t moved = 0;

    for (int i = 0; i < TCCL_COPY_BLOCKS; i++)
        moved += __atomic_load_n(&slot->control.lines[i].moved, __ATOMIC_ACQUIRE);
    return moved;
}

void tccl_desk_stop(struct tccl_desk_slot *slot)
{
    __atomic_store_n(&slot->control.stop, slot->turn, __ATOMIC_SEQ_CST);
}

bool tccl_desk_ended(const struct tccl_desk_slot *slot)
{
    return atomic_load(&slot->ended) == slot->turn;
}
