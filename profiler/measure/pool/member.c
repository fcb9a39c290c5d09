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

void tccl_pool_run_set(struct tccl_pool_run *run, uint32_t members, uint64_t share,
                       int64_t deadline)
{
    run->n_members = members;
    run->share = share;
    atomic_store(&run->arrived, 0);
    atomic_store(&run->deadline, deadline);
    atomic_store(&run->state, TCCL_POOL_RUN_WAIT);
}

void tccl_pool_run_member(struct tccl_pool_run *run, int place, tccl_transfer transfer, bool beside,
                          bool oversubscribed)
{
    struct tccl_member *member = &run->members[place];

    member->run = run;
    member->transfer = transfer;
    member->beside = beside;
    member->oversubscribed = oversubscribed;
    member->arrived = false;
    member->result = 0;
    member->error.text[0] = '\0';
    tccl_trace_begin(&member->trace, 0);
}

static void set_state(struct tccl_pool_run *run, enum tccl_pool_run_state state)
{
    atomic_store(&run->state, state);
    syscall(SYS_futex, &run->state, FUTEX_WAKE, TCCL_WORKSPACE_PLACES, NULL, NULL, 0);
}

void tccl_pool_run_go(struct tccl_pool_run *run, int64_t lead, int64_t limit)
{
    run->start = tccl_now_ns() + lead;
    atomic_store(&run->deadline, run->start + limit);
    set_state(run, TCCL_POOL_RUN_GO);
}

void tccl_pool_run_off(struct tccl_pool_run *run)
{
    set_state(run, TCCL_POOL_RUN_OFF);
}

/* Until the run is started or called off. Returns its state; TCCL_POOL_RUN_WAIT: past the deadline.
 */
static uint32_t await_state(struct tccl_pool_run *run)
{
    uint32_t state;

    while ((state = atomic_load(&run->state)) == TCCL_POOL_RUN_WAIT) {
        int64_t left = atomic_load(&run->deadline) - tccl_now_ns();
        if (left <= 0)
            break;
        struct timespec patience = {left / 1000000000, left % 1000000000};
        syscall(SYS_futex, &run->state, FUTEX_WAIT, TCCL_POOL_RUN_WAIT, &patience, NULL, 0);
    }
    return state;
}

static int64_t await_start(int64_t start, bool oversubscribed)
{
    struct timespec at = {start / 1000000000, start % 1000000000};
    int64_t now;

    if (oversubscribed)
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
    while ((now = tccl_now_ns()) < start)
        ;
    return now;
}

int64_t tccl_member_wait(struct tccl_member *member)
{
    char ready = TCCL_MEMBER_READY;

    if (send(member->fd, &ready, 1, MSG_NOSIGNAL) != 1 ||
        await_state(member->run) != TCCL_POOL_RUN_GO)
        return -1;
    int64_t now = await_start(member->run->start, member->oversubscribed);
    member->turn = now; /* the first is short, so that the others begin soon */
    tccl_trace_begin(&member->trace, now);
    return now;
}

static void take_turns(struct tccl_member *member, int64_t now)
{
    if (now < member->turn)
        return;
    sched_yield();
    member->turn = tccl_now_ns() + turn_ns;
}

bool tccl_member_moved(struct tccl_member *member, uint64_t total)
{
    struct tccl_pool_run *run = member->run;
    int64_t now = tccl_now_ns();

    tccl_trace_add(&member->trace, now, total);
    if (!member->beside && !member->arrived && total >= run->share) {
        member->arrived = true;
        atomic_fetch_add(&run->arrived, 1);
    }
    if (atomic_load_explicit(&run->arrived, memory_order_relaxed) >= run->n_members ||
        atomic_load_explicit(&run->state, memory_order_relaxed) != TCCL_POOL_RUN_GO ||
        now >= atomic_load_explicit(&run->deadline, memory_order_relaxed))
        return false;
    if (member->oversubscribed)
        take_turns(member, now);
    return true;
}

uint64_t tccl_member_share(const struct tccl_member *member)
{
    return member->run->share;
}

int64_t tccl_member_deadline(const struct tccl_member *member)
{
    return atomic_load(&member->run->deadline);
}
