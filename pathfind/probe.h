/* probe.h: measures sets for a search, each at most once, and finds out what makes a set slow. */
#ifndef TCCL_PROBE_H
#define TCCL_PROBE_H

#include "knowledge.h"
#include "meter.h"
#include "setmap.h"

struct tccl_probe {
    struct tccl_meter meter;
    struct tccl_knowledge *knowledge;
    struct tccl_setmap archive; /* measured earlier: answers instead of the meter */
    long measured;              /* asked of the meter */
    long asked;                 /* of the meter or the archive: the same in a run that is resumed */
    long shared;                /* known from a symmetric set */
    long budget;                /* measured may not pass this; 0: no limit */
    long limit;                 /* asked may not pass this; 0: no limit */
};

/* Bandwidth of a set, GB/s: known, symmetric to a known one, or measured now. Returns 0; 1 if the
 * budget is used up; -1 with err if the meter failed or without memory. */
int tccl_probe_measure(struct tccl_probe *probe, const struct tccl_walk *walk, double *gbps,
                       struct tccl_error *err);

/* For a set that reaches no more than most: finds a part of it that alone reaches no more, from
 * which no transfer can be left out (QuickXplain, Junker, AAAI 2004), and makes it limit later
 * routes. Returns as measure. */
int tccl_probe_explain(struct tccl_probe *probe, const struct tccl_walk *walk, double most,
                       struct tccl_error *err);

#endif
