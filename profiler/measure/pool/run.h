/* run.h: a run as the one who leads it sees it: the members of its members, in shared memory, and
 * the words that start and stop them all (see member.h for the members' side). */
#ifndef TCCL_POOL_RUN_H
#define TCCL_POOL_RUN_H

#include <stdatomic.h>

#include "measure/pool/member.h"
#include "measure/pool/trace.h"
#include "measure/pool/workspace.h"

struct tccl_pool_run;

struct tccl_member {
    struct tccl_pool_run *run;
    int fd; /* the worker's: where it says TCCL_MEMBER_READY */
    tccl_transfer transfer;
    bool oversubscribed; /* more members than CPUs where it runs: don't wait busily, and take turns
                          */
    bool beside;         /* of the background: it has no share, and ends with the others */
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
    _Alignas(64) struct tccl_member members[TCCL_WORKSPACE_PLACES]; /* by place */
};

/* Before the members are called: so many have a share. They are set up one by one. */
void tccl_pool_run_set(struct tccl_pool_run *run, uint32_t members, uint64_t share,
                       int64_t deadline);
void tccl_pool_run_member(struct tccl_pool_run *run, int place, tccl_transfer transfer, bool beside,
                          bool oversubscribed);

/* Starts all members after lead nanoseconds; the run may take limit nanoseconds. */
void tccl_pool_run_go(struct tccl_pool_run *run, int64_t lead, int64_t limit);
/* Calls the run off: members stop where they are. */
void tccl_pool_run_off(struct tccl_pool_run *run);

#endif
