/* run.h: a run as the one who leads it sees it: the lanes of its members, in shared memory, and
 * the words that start and stop them all (see lane.h for the members' side). */
#ifndef TCCL_RACE_H
#define TCCL_RACE_H

#include <stdatomic.h>

#include "measure/pool/member.h"
#include "measure/pool/trace.h"
#include "measure/pool/workspace.h"

struct tccl_race;

struct tccl_lane {
    struct tccl_race *race;
    int fd; /* the worker's: where it says TCCL_LANE_READY */
    tccl_transfer transfer;
    bool crowded; /* more members than CPUs where it runs: don't wait busily, and take turns */
    bool arrived; /* has moved its share */
    int64_t turn; /* crowded: until when it may go on before others have theirs */
    int result;   /* of the run, and why it failed */
    struct tccl_error error;
    struct tccl_trace trace;
};

enum { TCCL_LANE_READY = 'r', TCCL_LANE_DONE = 'd', TCCL_LANE_RUN = 'x' };
enum tccl_race_state { TCCL_RACE_WAIT, TCCL_RACE_GO, TCCL_RACE_OFF };

/* Those of the members' words that change during a run lie apart from what each one reads. */
struct tccl_race {
    _Atomic uint32_t state; /* a futex */
    uint32_t members;
    uint64_t share;
    int64_t start;
    _Atomic int64_t deadline;
    _Alignas(64) _Atomic uint32_t arrived;
    _Alignas(64) struct tccl_lane lanes[TCCL_STAGE_PLACES]; /* by place */
};

/* Before the members are called. Their lanes are set up one by one. */
void tccl_race_set(struct tccl_race *race, uint32_t members, uint64_t share, int64_t deadline);
void tccl_race_lane(struct tccl_race *race, int place, tccl_transfer transfer, bool crowded);

/* Starts all members after lead nanoseconds; the run may take limit nanoseconds. */
void tccl_race_go(struct tccl_race *race, int64_t lead, int64_t limit);
/* Calls the run off: members stop where they are. */
void tccl_race_off(struct tccl_race *race);

#endif
