/* member.c: what the processes of the pool do, and their side of a run in shared memory. */
#include "measure/pool/pool-run.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

/* How long a member that shares its CPU goes on before it lets others have it. */
static const int64_t turn_ns = 100000;

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

int64_t tccl_member_wait(struct tccl_member *member)
{
    char ready = TCCL_MEMBER_READY;
    int64_t now;
    if (send(member->fd, &ready, 1, MSG_NOSIGNAL) != 1 ||
        await_state(member->run) != TCCL_POOL_RUN_GO)
        return -1;
    int64_t start = member->run->start;
    struct timespec at = {start / 1000000000, start % 1000000000};
    if (member->oversubscribed)
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
    while ((now = tccl_now_ns()) < start)
        ;
    member->turn = now; /* the first is short, so that the others begin soon */
    tccl_trace_begin(&member->trace, now);
    return now;
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
    if (member->oversubscribed && now >= member->turn) {
        sched_yield();
        member->turn = tccl_now_ns() + turn_ns;
    }
    return true;
}

int64_t tccl_member_deadline(const struct tccl_member *member)
{
    return atomic_load(&member->run->deadline);
}

/* ---- the processes ---- */

/* Waits for a word. Returns whether one came; else the pool is gone. */
static bool hear(int fd)
{
    ssize_t got;
    char word;
    while ((got = recv(fd, &word, 1, 0)) < 0 && errno == EINTR)
        ;
    return got == 1;
}

static void say(int fd, char word)
{
    send(fd, &word, 1, MSG_NOSIGNAL);
}

/* A mover that can't be opened is tried again at the next run. */
static int run_member(const struct tccl_worker_job *job, void *state, bool *opened)
{
    const struct tccl_mover *mover = job->mover;
    struct tccl_member *member = job->member;
    struct tccl_error *err = &member->error;
    if (!state)
        return tccl_fail(err, "out of memory");
    if (!*opened && mover->open && mover->open(state, err) < 0)
        return -1;
    *opened = true;
    return mover->prepare(state, member->transfer, err) < 0 ? -1 : mover->move(state, member, err);
}

void tccl_worker_body(int fd, void *context)
{
    const struct tccl_worker_job *job = context;
    struct tccl_seat *state = calloc(1, job->mover->size);
    bool opened = false;
    if (state)
        *state = job->seat;
    while (hear(fd)) {
        job->member->fd = fd;
        job->member->result = run_member(job, state, &opened);
        say(fd, TCCL_MEMBER_DONE);
    }
    if (opened && job->mover->close)
        job->mover->close(state);
    free(state);
}

void tccl_keeper_body(int fd, void *context)
{
    const struct tccl_worker_job *job = context;
    struct tccl_workspace *workspace = job->seat.workspace;
    int gpu = job->seat.device.index;
    job->member->result = job->mover->keep(workspace, gpu, &job->member->error);
    if (job->member->result == 0)
        atomic_fetch_add(&tccl_workspace_loan(workspace, gpu)->turn, 1);
    say(fd, TCCL_MEMBER_DONE);
    while (hear(fd))
        ;
}
