/* puppet.h: a mover that does as it is told: moves at a given rate by the clock (no byte is really
 * moved), starts late, fails, dies or hangs. Strings are in memory shared with its workers. */
#pragma once

#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "measure/pool/pool-run.h"
#include "measure/pool/workers.h"

enum puppet_act {
    PUPPET_MOVES,
    PUPPET_DIES,          /* in the middle of a run, by SIGKILL */
    PUPPET_EXITS,         /* in the middle, with status 3 */
    PUPPET_FAILS,         /* in the middle, and says why */
    PUPPET_FAILS_TO_OPEN, /* the same when it is opened */
    PUPPET_FAILS_TO_PREPARE,
    PUPPET_HANGS,        /* before it is ready */
    PUPPET_HANGS_MOVING, /* after the start */
    PUPPET_IS_STUCK,     /* goes on, and moves nothing any more */
    PUPPET_NEVER_BEGINS, /* returns without a start */
    PUPPET_INTERRUPTED,  /* gets the terminal's SIGINT */
};

struct puppet {
    _Atomic int act[TCCL_MAX_GPUS];     /* of the GPU that starts the transfer */
    _Atomic double gbps[TCCL_MAX_GPUS]; /* its rate */
    _Atomic double late[TCCL_MAX_GPUS]; /* seconds that it begins after the start */
    _Atomic int wobble[TCCL_MAX_GPUS];  /* percent by which the rate changes from run to run */
    _Atomic int alone[TCCL_MAX_GPUS];   /* runs still to come that are over before others begin */
    _Atomic int runs[TCCL_MAX_GPUS];
    _Atomic int pid[TCCL_MAX_GPUS], fds[TCCL_MAX_GPUS], opened[TCCL_MAX_GPUS];
    _Atomic int acted[TCCL_MAX_GPUS]; /* how often it did other than move */
    _Atomic int keeper[TCCL_MAX_GPUS];
    _Atomic int keep_fails;
    _Atomic double leaves; /* seconds that it takes to close */
    _Atomic int closed;
};

static struct puppet *puppet;

static inline void puppet_make(void)
{
    puppet = mmap(NULL, sizeof(*puppet), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < TCCL_MAX_GPUS; i++)
        puppet->gbps[i] = 1;
}

static inline void puppet_hang(void)
{
    for (;;)
        pause();
}

static inline int puppet_open_files(void)
{
    DIR *folder = opendir("/proc/self/fd");
    struct dirent *entry;
    int count = 0;
    while (folder && (entry = readdir(folder)))
        count += entry->d_name[0] != '.' && atoi(entry->d_name) != dirfd(folder);
    if (folder)
        closedir(folder);
    return count;
}

static int puppet_open(void *state, struct tccl_error *err)
{
    int gpu = ((struct tccl_seat *)state)->device.index;
    if (puppet->act[gpu] == PUPPET_FAILS_TO_OPEN)
        return tccl_fail(err, "the strings are tangled");
    puppet->pid[gpu] = getpid();
    puppet->opened[gpu]++;
    return 0;
}

static int puppet_prepare(void *state, tccl_transfer transfer, struct tccl_error *err)
{
    int gpu = ((struct tccl_seat *)state)->device.index;
    (void)transfer;
    puppet->fds[gpu] = puppet_open_files();
    if (puppet->act[gpu] == PUPPET_HANGS)
        puppet_hang();
    if (puppet->act[gpu] == PUPPET_FAILS_TO_PREPARE)
        return tccl_fail(err, "the workspace is not set");
    return 0;
}

static inline int64_t puppet_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static inline void puppet_nap(void)
{
    nanosleep(&(struct timespec){0, 50000}, NULL);
}

static inline int puppet_act(int gpu, struct tccl_error *err)
{
    switch ((int)puppet->act[gpu]) {
    case PUPPET_DIES:
        raise(SIGKILL);
        break;
    case PUPPET_EXITS:
        _exit(3);
    case PUPPET_FAILS:
        return tccl_fail(err, "a string broke");
    case PUPPET_HANGS_MOVING:
        puppet_hang();
        break;
    case PUPPET_INTERRUPTED:
        raise(SIGINT);
        break;
    default:
        break;
    }
    return 0;
}

static int puppet_move(void *state, struct tccl_member *member, struct tccl_error *err)
{
    int gpu = ((struct tccl_seat *)state)->device.index;
    int odd = puppet->runs[gpu]++ % 2;
    double rate = puppet->gbps[gpu] * (odd ? 1 + puppet->wobble[gpu] / 100.0 : 1);
    uint64_t total = 0, half = member->run->share / 2;
    if (puppet->act[gpu] == PUPPET_NEVER_BEGINS)
        return 0;
    int64_t start = tccl_member_wait(member);
    if (start < 0)
        return 0;
    start += (int64_t)(puppet->late[gpu] * 1e9);
    while (puppet_now() < start)
        puppet_nap();
    while (tccl_member_moved(member, total)) {
        puppet_nap();
        int64_t past = puppet_now() - start;
        total = past > 0 ? (uint64_t)((double)past * rate) : 0;
        if (total <= half || puppet->act[gpu] == PUPPET_MOVES)
            continue;
        puppet->acted[gpu]++;
        if (puppet_act(gpu, err) < 0)
            return -1;
        if (puppet->act[gpu] == PUPPET_IS_STUCK)
            total = half;
    }
    if (puppet->alone[gpu] > 0) {
        puppet->alone[gpu]--;
        member->trace.last.time = member->trace.samples[0].time;
    }
    return 0;
}

static void puppet_close(void *state)
{
    for (int64_t end = puppet_now() + (int64_t)(puppet->leaves * 1e9); puppet_now() < end;)
        puppet_nap();
    puppet->closed++;
}

static inline int puppet_keep(struct tccl_workspace *workspace, int gpu, struct tccl_error *err)
{
    if (puppet->keep_fails)
        return tccl_fail(err, "nothing to lend");
    tccl_workspace_loan(workspace, gpu)->bytes = 42;
    puppet->keeper[gpu] = getpid();
    return 0;
}

static const struct tccl_mover puppet_mover = {.size = sizeof(struct tccl_seat),
                                               .open = puppet_open,
                                               .prepare = puppet_prepare,
                                               .move = puppet_move,
                                               .close = puppet_close};

/* A machine of so many GPUs and one memory; workers run anywhere. */
static inline struct tccl_site *puppet_site(int gpus)
{
    static struct tccl_site site;
    site = (struct tccl_site){.machine = {.n_gpus = gpus, .n_memories = 1}};
    return &site;
}
