/* meter.h: whatever can tell the bandwidth of a transfer set: a model, a profile, real hardware. */
#pragma once

#include <stdbool.h>
#include <string.h>

#include "base/error.h"
#include "machine/transfer.h"

/* Conditions that NCCL won't have; chains found under them are never served. */
enum tccl_mark {
    TCCL_MARK_MIG = 1,      /* a GPU is cut into instances */
    TCCL_MARK_MPS = 2,      /* a GPU is shared by the MPS daemon */
    TCCL_MARK_BUSY = 4,     /* others used the GPUs meanwhile */
    TCCL_MARK_STAND_IN = 8, /* one GPU stood for several */
};

struct tccl_measurement {
    double gbps;    /* bandwidth of the slowest member while all run, GB/s, median of the repeats */
    double spread;  /* (max - min) / median over the repeats; 0 for a model */
    double skew;    /* from the first member's start to the last one's, microseconds, median */
    double overlap; /* part of the time in which all members ran, the least of the repeats; 0: not
                       known (a model) */
    unsigned marks; /* of enum tccl_mark */
    bool noisy;     /* the spread stayed too large, however often it was measured */
    bool failed;    /* could not be measured: gbps is 0, and says nothing */
};

/* Is that source one that measures ("host", "cuda"), and not "model"? */
static inline bool tccl_meter_measured(const char *source)
{
    return *source && strcmp(source, "model") != 0;
}

struct tccl_setmap;

typedef int tccl_measure(void *context, const struct tccl_set *set, struct tccl_measurement *out,
                         struct tccl_error *err);

/* Both functions return 0, or -1 with err if the meter can't go on. */
struct tccl_meter {
    tccl_measure *measure; /* may give what is known of the set */
    void *context;
    tccl_measure *again;  /* measures a known set anew, as far as the meter thinks it useful; NULL:
                             measure does */
    tccl_measure *settle; /* measures a known set anew, more often than again would; NULL: again
                             does */
    struct tccl_setmap *sets; /* where the meter itself notes what it measures, or has measured in
                                 earlier runs (search/setmap.h); NULL: who asks has to remember */
};
