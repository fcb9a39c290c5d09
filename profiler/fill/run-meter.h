/* run-meter.h: the meter of a run: asks the back end, again where a set fails, and writes each
 * measurement down before the next; what the profile's log knows isn't measured again. */
#ifndef TCCL_GAUGE_H
#define TCCL_GAUGE_H

#include <time.h>

#include "measure/backends/backend.h"
#include "profile/cache.h"
#include "search/setmap.h"

enum { TCCL_GAUGE_FAILURES = 10 }; /* in a row, after which a run has no more sense */

struct tccl_gauge {
    struct tccl_backend *backend;
    struct tccl_profile *profile;
    struct tccl_setmap known; /* measured under the conditions of now */
    struct tccl_setmap twice; /* of them: measured more than once, which must do */
    struct tccl_setmap lost;  /* failed, and not good since: gbps is an enum lost of gauge.c */
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
int tccl_gauge_open(struct tccl_gauge *gauge, struct tccl_backend *backend,
                    struct tccl_profile *profile, struct tccl_error *err);
void tccl_gauge_clear(struct tccl_gauge *gauge);

/* Measures a set, or says what is known of it. A set that fails three times is given as failed, and
 * not tried again by this gauge; so is one that the back end can't measure, without a try. Returns
 * 0; -1 with err: the back end can't go on, the log can't be written, or TCCL_GAUGE_FAILURES sets
 * failed in a row. */
int tccl_gauge_measure(struct tccl_gauge *gauge, const struct tccl_set *set,
                       struct tccl_measurement *out, struct tccl_error *err);

/* Measures a known set anew, once in all runs: then, as before, what is known is given. The larger
 * bandwidth counts, since what disturbs only slows down. Returns as measure; out->failed: nothing
 * new. */
int tccl_gauge_again(struct tccl_gauge *gauge, const struct tccl_set *set,
                     struct tccl_measurement *out, struct tccl_error *err);

bool tccl_gauge_knows(const struct tccl_gauge *gauge, const struct tccl_set *set);

/* Has a set among these GPUs (a mask) failed, and is not measured since? now: also if it was this
 * gauge that tried. */
bool tccl_gauge_lost(const struct tccl_gauge *gauge, uint32_t gpus, bool now);

/* Has one ever failed, also if it was measured since? What was made before then was made without
 * it.
 */
bool tccl_gauge_doubts(const struct tccl_gauge *gauge, uint32_t gpus);

/* Tries one of those sets that failed in an earlier run. Returns 0; 1 if there is none; -1 with
 * err, as measure. */
int tccl_gauge_retry(struct tccl_gauge *gauge, uint32_t gpus, struct tccl_error *err);

#endif
