/* workers.c: the worker pool: who works where, and one run after another. */
#include "measure/pool/workers.h"

#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "measure/pool/pool-run.h"

/* From the word that starts a run to the start: each member must wake up for it. */
static const int64_t lead_ns = 150000, lead_per_member_ns = 20000;
/* Seconds: members told to stop are killed after that; the dead are waited for, and
 * those that may go. */
static const double stop_limit = 1, death_limit = 1, leave_limit = 5;
static const int64_t late_ns = 200000000; /* members notice the deadline themselves */

enum state { IDLE, CALLED, READY, DONE };

struct worker {
    struct tccl_child child; /* pid 0: the place is free */
    struct tccl_device device;
    int slot;   /* the device's how manieth transfer in a set */
    bool dying; /* killed, and not yet gone: its place can't be used */
    enum state state;
    struct tccl_member *member;
};

enum { PLACES = TCCL_WORKSPACE_PLACES, ALL = PLACES + TCCL_MAX_GPUS };

struct tccl_workers {
    struct tccl_workspace *workspace;
    struct tccl_workers_options options;
    struct tccl_pool_run *run; /* in shared memory */
    struct tccl_side others;
    /* By place; behind them the keepers of GPUs, which are in no set, but all need them. */
    struct worker workers[ALL];
    long replaced;
};

/* The workers of a set, in its order, then those of others; behind them the keepers, which
 * only must not die. */
struct squad {
    int rated, members, count;
    tccl_transfer transfers[PLACES];
    struct worker *workers[ALL];
};

static int64_t nanoseconds(double seconds)
{
    return (int64_t)(seconds * 1e9);
}

static int index_of(const struct tccl_workers *workers, const struct worker *worker)
{
    return (int)(worker - workers->workers);
}

static bool is_keeper(const struct tccl_workers *workers, const struct worker *worker)
{
    return index_of(workers, worker) >= PLACES;
}

static const cpu_set_t *cpus_of(const struct tccl_workers *workers, struct tccl_device device)
{
    const struct tccl_site *site = &workers->workspace->site;
    return device.kind == TCCL_NIC ? &site->nic_cpus[device.index] : &site->gpu_cpus[device.index];
}

static int start_worker(struct tccl_workers *workers, struct worker *worker, struct tccl_error *err)
{
    const struct tccl_workers_options *options = &workers->options;
    struct tccl_device device = worker->device;
    bool keeper = is_keeper(workers, worker), nic = device.kind == TCCL_NIC;
    struct tccl_worker_job job = {.seat = {workers->workspace, device, index_of(workers, worker)},
                                  .mover = nic ? options->nic : options->gpu,
                                  .member = worker->member};
    char name[16];
    if (job.mover->choose)
        job.mover = job.mover->choose(workers->workspace, device.index);
    if (keeper)
        snprintf(name, sizeof(name), "tccl keep g%u", device.index & 0xfU);
    else
        snprintf(name, sizeof(name), "tccl %c%u.%u", nic ? 'n' : 'g', device.index & 0xfU,
                 (unsigned)worker->slot & 0xffU);
    worker->state = IDLE;
    worker->dying = false;
    return tccl_child_start(&worker->child, name, cpus_of(workers, device),
                            keeper ? tccl_keeper_body : tccl_worker_body, &job, err);
}

/* Returns true if the worker is gone, and its place free again. */
static bool bury(struct tccl_workers *workers, struct worker *worker, double seconds,
                 char how[TCCL_CHILD_HOW])
{
    if (worker->child.pid > 0 && !tccl_child_ended(&worker->child, seconds, how))
        return false;
    if (!worker->dying)
        workers->replaced++;
    worker->dying = false;
    return true;
}

/* One that sleeps in the kernel for good does not hold up the others. */
static void kill_worker(struct tccl_workers *workers, struct worker *worker)
{
    if (worker->child.pid == 0)
        return;
    tccl_child_kill(&worker->child);
    if (!bury(workers, worker, death_limit, NULL)) {
        worker->dying = true;
        workers->replaced++;
    }
}

static struct worker *find_worker(struct tccl_workers *workers, struct tccl_device device, int slot)
{
    for (int i = 0; i < PLACES; i++) {
        struct worker *worker = &workers->workers[i];
        if (worker->child.pid > 0 && !worker->dying && worker->slot == slot &&
            tccl_device_equal(worker->device, device))
            return worker;
    }
    return NULL;
}

/* A free place; else that of a worker which this set does not need. */
static struct worker *find_place(struct tccl_workers *workers, const struct squad *squad)
{
    struct worker *idle = NULL;
    for (int i = 0; i < PLACES; i++) {
        struct worker *worker = &workers->workers[i];
        bool needed = false;
        if (worker->child.pid == 0)
            return worker;
        for (int k = 0; k < squad->count; k++)
            needed |= squad->workers[k] == worker;
        if (!worker->dying && !needed)
            idle = worker;
    }
    if (!idle)
        return NULL;
    tccl_child_kill(&idle->child);
    idle->dying = !tccl_child_ended(&idle->child, death_limit, NULL);
    return idle->dying ? NULL : idle;
}

/* Returns 0; 1 or -1 with err, as tccl_workers_run. */
static int enlist(struct tccl_workers *workers, struct squad *squad, struct tccl_device device,
                  int slot, struct tccl_error *err)
{
    struct worker *worker = find_worker(workers, device, slot);
    if (!worker) {
        worker = find_place(workers, squad);
        if (!worker)
            return -tccl_fail(
                err, "no more worker processes: %d are there, and some of them do not end", PLACES);
        worker->device = device;
        worker->slot = slot;
        if (start_worker(workers, worker, err) != 0)
            return -1;
    }
    squad->workers[squad->count++] = worker;
    squad->members = squad->count;
    return 0;
}

/* What is to run: the set, and others. Returns 0; 1 or -1 with err, as tccl_workers_run. */
static int enlist_set(struct tccl_workers *workers, const struct tccl_set *set, struct squad *squad,
                      struct tccl_error *err)
{
    const struct tccl_side *others = &workers->others;
    int slots[3][TCCL_MAX_GPUS] = {0}, count = set->count + others->count;
    if (count > PLACES) {
        tccl_fail(err, "more than %d transfers at once", PLACES);
        return 1;
    }
    squad->rated = set->count;
    memcpy(squad->transfers, set->transfers, set->count * sizeof(set->transfers[0]));
    memcpy(squad->transfers + set->count, others->transfers,
           (size_t)others->count * sizeof(others->transfers[0]));
    for (int i = 0; i < count; i++) {
        struct tccl_device device = tccl_transfer_initiator(squad->transfers[i]);
        if (device.kind == TCCL_NIC && !workers->options.nic)
            return -tccl_fail(err, "n%d: there are no NICs here", device.index);
        int rc = enlist(workers, squad, device, slots[device.kind][device.index]++, err);
        if (rc != 0)
            return rc;
    }
    return 0;
}

static int fail_member(const struct tccl_workers *workers, const struct worker *worker,
                       struct tccl_error *err, const char *text)
{
    char transfer[12];
    if (is_keeper(workers, worker))
        return tccl_fail(err, "g%d: %s", worker->device.index, text);
    tccl_transfer_format(worker->member->transfer, transfer);
    return tccl_fail(err, "%s: %s", transfer, text);
}

static int mourn(struct tccl_workers *workers, struct worker *worker, struct tccl_error *err)
{
    char how[TCCL_CHILD_HOW] = "ended", text[TCCL_CHILD_HOW + 16];
    if (!bury(workers, worker, death_limit, how))
        kill_worker(workers, worker);
    worker->state = DONE;
    if (is_keeper(workers, worker) && worker->member->error.text[0])
        return fail_member(workers, worker, err, worker->member->error.text);
    snprintf(text, sizeof(text), "its %s %s", is_keeper(workers, worker) ? "keeper" : "worker",
             how);
    return fail_member(workers, worker, err, text);
}

/* What a worker says. Returns 0, or -1 with err: it failed or died. */
static int hear(struct tccl_workers *workers, struct worker *worker, struct tccl_error *err)
{
    char word;
    ssize_t got = recv(worker->child.fd, &word, 1, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (got != 1)
        return mourn(workers, worker, err);
    enum state before = worker->state;
    worker->state = word == TCCL_MEMBER_READY ? READY : DONE;
    if (worker->state != DONE || worker->member->result == 0)
        return worker->state == DONE && before != READY && !is_keeper(workers, worker)
                   ? fail_member(workers, worker, err, "its worker ended before it began")
                   : 0;
    return fail_member(workers, worker, err, worker->member->error.text);
}

/* Returns how many are heard. */
static int poll_squad(const struct squad *squad, struct pollfd *polls, int64_t until)
{
    int64_t left = until - tccl_now_ns();
    struct timespec patience = {0, 0};
    if (left > 0)
        patience = (struct timespec){left / 1000000000, left % 1000000000};
    for (int i = 0; i < squad->count; i++) {
        int fd = squad->workers[i]->child.pid > 0 ? squad->workers[i]->child.fd : -1;
        polls[i] = (struct pollfd){.fd = fd, .events = POLLIN};
    }
    return ppoll(polls, (nfds_t)squad->count, &patience, NULL);
}

/* Waits until all members have come so far. Returns 0; 1: past the time; -1 with err: one failed.
 */
static int await_squad(struct tccl_workers *workers, const struct squad *squad, enum state wanted,
                       int64_t until, struct tccl_error *err)
{
    struct pollfd polls[ALL];
    int rc = 0;
    for (;;) {
        bool all = true;
        for (int i = 0; i < squad->members; i++)
            all = all && squad->workers[i]->state >= wanted;
        if (rc != 0 || all)
            return rc;
        if (tccl_now_ns() >= until)
            return 1;
        if (poll_squad(squad, polls, until) <= 0)
            continue;
        for (int i = 0; i < squad->count; i++)
            if (polls[i].revents && hear(workers, squad->workers[i], err) != 0)
                rc = -1;
    }
}

/* Members that share their CPUs with more of their kind than these can run at once. */
static bool is_oversubscribed(const struct tccl_workers *workers, const struct squad *squad,
                              int member)
{
    const cpu_set_t *cpus = cpus_of(workers, squad->workers[member]->device);
    cpu_set_t allowed, usable;
    int same = 0;
    CPU_ZERO(&allowed);
    sched_getaffinity(0, sizeof(allowed), &allowed);
    CPU_AND(&usable, cpus, &allowed);
    if (CPU_COUNT(&usable) == 0)
        usable = allowed;
    for (int i = 0; i < squad->members; i++)
        same += CPU_EQUAL(cpus, cpus_of(workers, squad->workers[i]->device));
    return same > CPU_COUNT(&usable) || squad->members > CPU_COUNT(&allowed);
}

static int call(struct tccl_workers *workers, const struct squad *squad, struct tccl_error *err)
{
    const char word = TCCL_MEMBER_RUN;
    for (int i = 0; i < squad->members; i++) {
        struct tccl_member *member = squad->workers[i]->member;
        member->run = workers->run;
        member->transfer = squad->transfers[i];
        member->beside = i >= squad->rated;
        member->oversubscribed = is_oversubscribed(workers, squad, i);
        member->arrived = false;
        member->result = 0;
        member->error.text[0] = '\0';
        tccl_trace_begin(&member->trace, 0);
    }
    for (int i = 0; i < squad->members; i++) {
        struct worker *worker = squad->workers[i];
        worker->state = CALLED;
        if (send(worker->child.fd, &word, 1, MSG_NOSIGNAL | MSG_DONTWAIT) != 1)
            return mourn(workers, worker, err);
    }
    return 0;
}

/* Members that are not where they should be by now hang. Returns -1 with err. */
static int fail_late(struct tccl_workers *workers, const struct squad *squad, enum state wanted,
                     struct tccl_error *err)
{
    char text[96];
    for (int i = 0; i < squad->members; i++) {
        struct worker *worker = squad->workers[i];
        if (worker->state >= wanted)
            continue;
        snprintf(text, sizeof(text), "its worker hangs: not %s within %g s",
                 wanted == READY ? "ready" : "done",
                 wanted == READY ? workers->options.prepare_limit : workers->options.run_limit);
        fail_member(workers, worker, err, text);
        kill_worker(workers, worker);
        worker->state = DONE;
    }
    return -1;
}

static void set_state(struct tccl_pool_run *run, enum tccl_pool_run_state state)
{
    atomic_store(&run->state, state);
    syscall(SYS_futex, &run->state, FUTEX_WAKE, PLACES, NULL, NULL, 0);
}

/* No member is left in this run when this returns. */
static void call_off(struct tccl_workers *workers, struct squad *squad)
{
    int64_t until = tccl_now_ns() + nanoseconds(stop_limit);
    set_state(workers->run, TCCL_POOL_RUN_OFF);
    squad->count = squad->members;
    for (int i = 0; i < squad->members; i++)
        if (squad->workers[i]->state == IDLE)
            squad->workers[i]->state = DONE;
    while (await_squad(workers, squad, DONE, until, NULL) < 0)
        ;
    for (int i = 0; i < squad->members; i++)
        if (squad->workers[i]->state != DONE)
            kill_worker(workers, squad->workers[i]);
}

/* From the call until all have moved their share. Returns 0, or -1 with err. */
static int run_together(struct tccl_workers *workers, const struct squad *squad,
                        struct tccl_error *err)
{
    const struct tccl_workers_options *options = &workers->options;
    struct tccl_pool_run *run = workers->run;
    int64_t until = atomic_load(&run->deadline);
    if (call(workers, squad, err) != 0)
        return -1;
    int rc = await_squad(workers, squad, READY, until, err);
    if (rc != 0)
        return rc < 0 ? -1 : fail_late(workers, squad, READY, err);
    run->start = tccl_now_ns() + lead_ns + squad->members * lead_per_member_ns;
    atomic_store(&run->deadline, run->start + nanoseconds(options->run_limit));
    set_state(run, TCCL_POOL_RUN_GO);
    until = atomic_load(&run->deadline) + late_ns;
    rc = await_squad(workers, squad, DONE, until, err);
    if (rc != 0)
        return rc < 0 ? -1 : fail_late(workers, squad, DONE, err);
    char text[128];
    for (int i = 0; i < squad->rated; i++) {
        const struct tccl_member *member = squad->workers[i]->member;
        if (member->arrived)
            continue;
        snprintf(text, sizeof(text), "moved %.3g of %.3g MB within %g s",
                 (double)member->trace.last.bytes * 1e-6, (double)workers->run->share * 1e-6,
                 workers->options.run_limit);
        return fail_member(workers, squad->workers[i], err, text);
    }
    return 0;
}

/* Keepers that died are started again. Returns 0; 1 or -1 with err, as tccl_workers_run. */
static int start_keepers(struct tccl_workers *workers, struct tccl_error *err)
{
    int count = workers->workspace->site.machine.n_gpus;
    int64_t until = tccl_now_ns() + nanoseconds(workers->options.prepare_limit);
    struct squad squad = {0};
    for (int i = 0; i < count; i++) {
        struct worker *keeper = &workers->workers[PLACES + i];
        if (keeper->child.pid > 0 && !keeper->dying)
            continue;
        if (keeper->dying)
            return -tccl_fail(err, "g%d: its process was killed, but has not ended", i);
        keeper->member->error.text[0] = '\0';
        if (start_worker(workers, keeper, err) != 0)
            return -1;
        squad.workers[squad.count++] = keeper;
    }
    squad.members = squad.count;
    int rc = await_squad(workers, &squad, DONE, until, err);
    if (rc > 0)
        fail_late(workers, &squad, DONE, err);
    for (int i = 0; i < squad.members && rc != 0; i++)
        kill_worker(workers, squad.workers[i]);
    return rc == 0 ? 0 : 1;
}

int tccl_workers_run(struct tccl_workers *workers, const struct tccl_set *set, uint64_t share,
                     struct tccl_run_result *run, struct tccl_error *err)
{
    const struct tccl_trace *traces[PLACES];
    struct squad squad = {0};
    int rc = 0;
    *run = (struct tccl_run_result){0};
    if (set->count == 0)
        return -tccl_fail(err, "the load has no transfer");
    for (int i = 0; i < ALL; i++) /* those that died since the last run */
        if (workers->workers[i].child.pid > 0)
            bury(workers, &workers->workers[i], 0, NULL);
    if (workers->options.gpu->keep)
        rc = start_keepers(workers, err);
    if (rc == 0)
        rc = enlist_set(workers, set, &squad, err);
    if (rc != 0)
        return rc;
    for (int i = PLACES; i < ALL; i++)
        if (workers->workers[i].child.pid > 0)
            squad.workers[squad.count++] = &workers->workers[i];
    workers->run->n_members = set->count;
    workers->run->share = share;
    atomic_store(&workers->run->arrived, 0);
    atomic_store(&workers->run->deadline,
                 tccl_now_ns() + nanoseconds(workers->options.prepare_limit));
    atomic_store(&workers->run->state, TCCL_POOL_RUN_WAIT);
    if (run_together(workers, &squad, err) != 0) {
        call_off(workers, &squad);
        return 1;
    }
    for (int i = 0; i < squad.members; i++)
        traces[i] = &squad.workers[i]->member->trace;
    if (tccl_trace_run(traces, squad.members, squad.rated, run) != 0)
        *run = (struct tccl_run_result){0}; /* one was not let run until another was done */
    return 0;
}

struct tccl_workers *tccl_workers_new(struct tccl_workspace *workspace,
                                      const struct tccl_workers_options *options,
                                      struct tccl_error *err)
{
    struct tccl_workers *workers = calloc(1, sizeof(*workers));
    struct tccl_pool_run *run =
        mmap(NULL, sizeof(*run), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (!workers || run == MAP_FAILED) {
        free(workers);
        if (run != MAP_FAILED)
            munmap(run, sizeof(*run));
        return tccl_fail_null(err, "out of memory");
    }
    workers->workspace = workspace;
    workers->options = *options;
    workers->run = run;
    for (int i = 0; i < ALL; i++)
        workers->workers[i].member = &run->members[i];
    for (int i = PLACES; i < ALL; i++)
        workers->workers[i].device = (struct tccl_device){TCCL_GPU, (uint8_t)(i - PLACES)};
    if (options->gpu->keep && start_keepers(workers, err) != 0) {
        tccl_workers_free(workers);
        return NULL;
    }
    return workers;
}

void tccl_workers_others(struct tccl_workers *workers, const struct tccl_side *others)
{
    workers->others = *others;
}

static double seconds_until(int64_t until)
{
    int64_t left = until - tccl_now_ns();
    return left > 0 ? (double)left * 1e-9 : 0;
}

/* A driver takes its time to clear up after a process, which has the GPU until then: whoever
 * measures next would find it in use. */
static void dismiss(struct worker *all, int count, int64_t until)
{
    for (int i = 0; i < count; i++)
        if (all[i].child.pid > 0)
            shutdown(all[i].child.fd, SHUT_RDWR);
    for (int i = 0; i < count; i++)
        if (!tccl_child_ended(&all[i].child, seconds_until(until), NULL))
            tccl_child_kill(&all[i].child);
    int64_t dead = tccl_now_ns() + nanoseconds(death_limit);
    for (int i = 0; i < count; i++)
        tccl_child_ended(&all[i].child, seconds_until(dead), NULL);
}

void tccl_workers_free(struct tccl_workers *workers)
{
    if (!workers)
        return;
    set_state(workers->run, TCCL_POOL_RUN_OFF);
    int64_t until = tccl_now_ns() + nanoseconds(leave_limit);
    dismiss(workers->workers, PLACES, until);
    dismiss(workers->workers + PLACES, TCCL_MAX_GPUS, until);
    munmap(workers->run, sizeof(*workers->run));
    free(workers);
}

int tccl_workers_count(const struct tccl_workers *workers)
{
    int count = 0;
    for (int i = 0; i < ALL; i++)
        count += workers->workers[i].child.pid > 0;
    return count;
}

long tccl_workers_replaced(const struct tccl_workers *workers)
{
    return workers->replaced;
}
