/* meter.h: whatever can tell the bandwidth of a transfer set: a model, a profile, real hardware. */
#ifndef TCCL_METER_H
#define TCCL_METER_H

#include "error.h"
#include "transfer.h"

struct tccl_measurement {
    double gbps;   /* bandwidth of the slowest member while all run, GB/s, median of the repeats */
    double spread; /* (max - min) / median over the repeats; 0 for a model */
};

/* measure returns 0, or -1 with err. */
struct tccl_meter {
    int (*measure)(void *context, const struct tccl_set *set, struct tccl_measurement *out,
                   struct tccl_error *err);
    void *context;
};

#endif
