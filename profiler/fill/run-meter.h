/* run-meter.h: the meter of a run: asks the back end, again where a set fails, and writes each
 * measurement down before the next; what the profile's log knows isn't measured again. */
#ifndef TCCL_RUN_METER_H
#define TCCL_RUN_METER_H

#include <time.h>

#include "measure/backends/backend.h"
#include "profile/cache.h"
#include "search/setmap.h"

enum { TCCL_RUN_METER_FAILURES = 10 }; /* in a row, after which a run has no more sense */

struct tccl_run_meter {
    struct tccl_backend *backend;
    struct tccl_profile *profile;
    struct tccl_setmap known; /* measured under the conditions of now */
    struct tccl_setmap twice; /* of them: measured more than once, which must do */
    struct tccl_setmap lost;  /* failed, and not good since: gbps is an enum lost of meter.c */
    long before;              /* good measurements of earlier runs */
    long measured;            /* now; failed ones count */
    long failed;              /* of them: given up */
    long noisy;               /* of them: too large a spread */
    int in_a_row;             /* failed, with none good in between */
    struct tccl_error why;    /* which failed last, and why; "" none */
    time_t synced;
};

/* Reads the log of the profile (opened with create). Both are borrowed. Returns 0, or -1 with err;
 * clear is right after either. */
int tccl_run_meter_open(struct tccl_run_meter *meter, struct tccl_backend *backend,
                        struct tccl_profile *profile, struct tccl_error *err);
void tccl_run_meter_clear(struct tccl_run_meter *meter);

/* Measures a set, or says what is known of it. A set that fails three times is given as failed, and
 * not tried again by this meter; so is one that the back end can't measure, without a try. Returns
 * 0; -1 with err: the back end can't go on, the log can't be written, or TCCL_RUN_METER_FAILURES
 * sets failed in a row. */
int tccl_run_meter_measure(struct tccl_run_meter *meter, const struct tccl_set *set,
                           struct tccl_measurement *out, struct tccl_error *err);

/* Measures a known set anew, once in all runs: then, as before, what is known is given. The larger
 * bandwidth counts, since what disturbs only slows down. Returns as measure; out->failed: nothing
 * new. */
int tccl_run_meter_again(struct tccl_run_meter *meter, const struct tccl_set *set,
                         struct tccl_measurement *out, struct tccl_error *err);

bool tccl_run_meter_knows(const struct tccl_run_meter *meter, const struct tccl_set *set);

/* Has a set among these GPUs (a mask) failed, and is not measured since? now: also if it was this
 * meter that tried. */
bool tccl_run_meter_lost(const struct tccl_run_meter *meter, uint32_t gpus, bool now);

/* Has one ever failed, also if it was measured since? What was made before then was made without
 * it.
 */
bool tccl_run_meter_doubts(const struct tccl_run_meter *meter, uint32_t gpus);

/* Tries one of those sets that failed in an earlier run. Returns 0; 1 if there is none; -1 with
 * err, as measure. */
int tccl_run_meter_retry(struct tccl_run_meter *meter, uint32_t gpus, struct tccl_error *err);

#endif
