/* drift.h: does a profile still hold? A sample of its sets, measured again. */
#pragma once

#include "measure/backends/backend.h"
#include "profile/cache.h"

enum { TCCL_DRIFT_SETS = 1000, TCCL_DRIFT_WHAT = 48 };

enum tccl_drift_verdict {
    TCCL_DRIFT_HOLDS,
    TCCL_DRIFT_DRIFTED,
    TCCL_DRIFT_UNCLEAR, /* half of the sample or more can't be told: noisy, or can't be measured */
};

struct tccl_drift_set {
    struct tccl_set set;
    char what[TCCL_DRIFT_WHAT]; /* "best ring of GPUs 0-3", "alone", "random" */
    double then, now;           /* GB/s */
    double limit;               /* now / then may differ from 1 by so much */
    double spread_then, spread;
    bool drifted, noisy, failed;
};

struct tccl_drift {
    struct tccl_drift_set *sets; /* those measured again, in order */
    int count, drifted, noisy, failed;
    double median; /* of now / then; 0: nothing can be told */
    double limit;  /* median of the limits: of one set smaller changes are not seen */
    int worst;     /* whose bandwidth changed most; -1 */
    enum tccl_drift_verdict verdict;
};

struct tccl_drift_options {
    int sets;       /* at most, up to TCCL_DRIFT_SETS */
    double seconds; /* 0: no limit; one set is measured in any case */
    unsigned seed;  /* of the sets that are drawn */
    /* Called before each set, may be NULL; non-zero stops. */
    int (*progress)(void *context, int done, int count);
    void *context;
};

/* Measures again: the best chains and NCCL's own, of the whole node first; transfers alone; and
 * sets that are drawn. A set that differs by more than four times the noise, or
 * one and a half times its spreads, is measured three times, and has drifted only if all say so;
 * so has the profile if the median of five sets or more differs by one and a half times these.
 * Nothing is written. Returns 0; 1 if progress stopped it; -1 with err (nothing measured yet, the
 * back end can't go on). clear is right after all. */
int tccl_drift_check(struct tccl_backend *backend, struct tccl_profile *profile,
                     const struct tccl_drift_options *options, struct tccl_drift *drift,
                     struct tccl_error *err);
void tccl_drift_clear(struct tccl_drift *drift);
