/* member.c: one run of a transfer set in shared memory. */
#include "measure/pool/member.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "measure/pool/run.h"

/* How long a member that shares its CPU goes on before it lets others have it. */
static const int64_t turn_ns = 100000;

double tccl_seconds(void)
{
    return (double)tccl_now_ns() / 1e9;
}

void tccl_race_set(struct tccl_race *race, uint32_t members, uint64_t share, int64_t deadline)
{
    race->members = members;
    race->share = share;
    atomic_store(&race->arrived, 0);
    atomic_store(&race->deadline, deadline);
    atomic_store(&race->state, TCCL_RACE_WAIT);
}

void tccl_race_lane(struct tccl_race *race, int place, tccl_transfer transfer, bool crowded)
{
    struct tccl_lane *lane = &race->lanes[place];

    lane->race = race;
    lane->transfer = transfer;
    lane->crowded = crowded;
    lane->arrived = false;
    lane->result = 0;
    lane->error.text[0] = '\0';
    tccl_trace_begin(&lane->trace, 0);
}

static void set_state(struct tccl_race *race, enum tccl_race_state state)
{
    atomic_store(&race->state, state);
    syscall(SYS_futex, &race->state, FUTEX_WAKE, TCCL_STAGE_PLACES, NULL, NULL, 0);
}

void tccl_race_go(struct tccl_race *race, int64_t lead, int64_t limit)
{
    race->start = tccl_now_ns() + lead;
    atomic_store(&race->deadline, race->start + limit);
    set_state(race, TCCL_RACE_GO);
}

void tccl_race_off(struct tccl_race *race)
{
    set_state(race, TCCL_RACE_OFF);
}

/* Until the run is started or called off. Returns its state; TCCL_RACE_WAIT: past the deadline. */
static uint32_t await_state(struct tccl_race *race)
{
    uint32_t state;

    while ((state = atomic_load(&race->state)) == TCCL_RACE_WAIT) {
        int64_t left = atomic_load(&race->deadline) - tccl_now_ns();
        if (left <= 0)
            break;
        struct timespec patience = {left / 1000000000, left % 1000000000};
        syscall(SYS_futex, &race->state, FUTEX_WAIT, TCCL_RACE_WAIT, &patience, NULL, 0);
    }
    return state;
}

static int64_t await_start(int64_t start, bool crowded)
{
    struct timespec at = {start / 1000000000, start % 1000000000};
    int64_t now;

    if (crowded)
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
    while ((now = tccl_now_ns()) < start)
        ;
    return now;
}

int64_t tccl_lane_wait(struct tccl_lane *lane)
{
    char ready = TCCL_LANE_READY;

    if (send(lane->fd, &ready, 1, MSG_NOSIGNAL) != 1 || await_state(lane->race) != TCCL_RACE_GO)
        return -1;
    int64_t now = await_start(lane->race->start, lane->crowded);
    lane->turn = now; /* the first is short, so that the others begin soon */
    tccl_trace_begin(&lane->trace, now);
    return now;
}

static void take_turns(struct tccl_lane *lane, int64_t now)
{
    if (now < lane->turn)
        return;
    sched_yield();
    lane->turn = tccl_now_ns() + turn_ns;
}

bool tccl_lane_moved(struct tccl_lane *lane, uint64_t total)
{
    struct tccl_race *race = lane->race;
    int64_t now = tccl_now_ns();

    tccl_trace_add(&lane->trace, now, total);
    if (!lane->arrived && total >= race->share) {
        lane->arrived = true;
        atomic_fetch_add(&race->arrived, 1);
    }
    if (atomic_load_explicit(&race->arrived, memory_order_relaxed) >= race->members ||
        atomic_load_explicit(&race->state, memory_order_relaxed) != TCCL_RACE_GO ||
        now >= atomic_load_explicit(&race->deadline, memory_order_relaxed))
        return false;
    if (lane->crowded)
        take_turns(lane, now);
    return true;
}

uint64_t tccl_lane_share(const struct tccl_lane *lane)
{
    return lane->race->share;
}

int64_t tccl_lane_deadline(const struct tccl_lane *lane)
{
    return atomic_load(&lane->race->deadline);
}
