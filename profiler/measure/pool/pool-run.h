/* pool-run.h: a run in shared memory: its members, and the words that start and stop them all (see
 * mover.h for what movers see of it); and what the processes of the pool do. */
#pragma once

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "measure/pool/mover.h"
#include "measure/pool/workers.h"

/* ---- how many bytes a member had moved at which time (trace.c) ---- */

enum { TCCL_TRACE_SAMPLES = 1024 }; /* even */

struct tccl_trace_sample {
    int64_t time;   /* nanoseconds of CLOCK_MONOTONIC */
    uint64_t bytes; /* moved since the start */
};

/* samples[0] is the start, last the end; what was said in between is thinned out evenly. */
struct tccl_trace {
    uint32_t count, stride, skipped;
    struct tccl_trace_sample last;
    struct tccl_trace_sample samples[TCCL_TRACE_SAMPLES];
};

void tccl_trace_begin(struct tccl_trace *trace, int64_t time);
/* Times rise, bytes don't fall. As long as bytes is 0 the start is put off to that time. */
void tccl_trace_add(struct tccl_trace *trace, int64_t time, uint64_t bytes);

/* Bytes moved by a time, between samples in proportion; 0 before the start, all after the end. */
double tccl_trace_bytes(const struct tccl_trace *trace, int64_t time);

/* Fills the run from the traces of its n > 0 members, of which the first `rated` (TCCL_MAX_SET at
 * most) have a bandwidth; the others must only have run, too. Returns 0, or -1: there is no time in
 * which all of them ran. */
int tccl_trace_run(const struct tccl_trace *const *traces, int n, int rated,
                   struct tccl_run_result *run);

/* ---- the run ---- */

struct tccl_pool_run;

struct tccl_member {
    struct tccl_pool_run *run;
    int fd; /* the worker's: where it says TCCL_MEMBER_READY */
    tccl_transfer transfer;
    bool oversubscribed; /* more members than CPUs where it runs: don't wait busily, and take turns
                          */
    bool beside;         /* another side than the rated one: it has no share, and ends with it */
    bool arrived;        /* has moved its share */
    int64_t turn;        /* oversubscribed: until when it may go on before others have theirs */
    int result;          /* of the run, and why it failed */
    struct tccl_error error;
    struct tccl_trace trace;
};

enum { TCCL_MEMBER_READY = 'r', TCCL_MEMBER_DONE = 'd', TCCL_MEMBER_RUN = 'x' };
enum tccl_pool_run_state { TCCL_POOL_RUN_WAIT, TCCL_POOL_RUN_GO, TCCL_POOL_RUN_OFF };

/* Those of the members' words that change during a run lie apart from what each one reads. */
struct tccl_pool_run {
    _Atomic uint32_t state; /* a futex */
    uint32_t n_members;     /* with a share */
    uint64_t share;
    int64_t start;
    _Atomic int64_t deadline;
    _Alignas(64) _Atomic uint32_t arrived;
    _Alignas(64) struct tccl_member members[TCCL_WORKSPACE_PLACES + TCCL_MAX_GPUS]; /* by place;
                                                                     behind them, keepers */
};

struct tccl_worker_job {
    struct tccl_seat seat;
    const struct tccl_mover *mover;
    struct tccl_member *member; /* a keeper's: where it says why it can't lend */
};

/* Bodies of child processes (context: the job); return when the socket is closed. A worker waits
 * for its member to be set up, runs it, and waits again; a keeper lends a GPU's memory for as long
 * as it lives. */
void tccl_worker_body(int fd, void *job);
void tccl_keeper_body(int fd, void *job);

/* child.c: a process that works for this one and never outlives it: forked, pinned, with nothing
 * of its parent's open but one socket to it. */

struct tccl_child {
    pid_t pid; /* 0: none */
    int fd;    /* the parent's end of the socket (packets); readable with nothing when it ended */
};

enum { TCCL_CHILD_HOW = 48 };

/* Runs body in a child, with the child's end of the socket; the child ends when body returns, and
 * at the latest when the parent does. cpus: where it runs, empty: anywhere (also where none of them
 * may be used). name: as ps shows it. Returns 0, or -1 with err. The parent has one thread. */
int tccl_child_start(struct tccl_child *child, const char *name, const cpu_set_t *cpus,
                     void (*body)(int fd, void *context), void *context, struct tccl_error *err);

/* Waits until the child has ended, seconds at most (0: only looks). Returns true if it has; it is
 * gone then, its socket closed, and how (if not NULL) says "was killed by signal 9". */
bool tccl_child_ended(struct tccl_child *child, double seconds, char how[TCCL_CHILD_HOW]);

void tccl_child_kill(const struct tccl_child *child); /* does not wait */
