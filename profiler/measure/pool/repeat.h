/* repeat.h: how often a set is run until its bandwidth is known: a warm-up that finds the share,
 * repeats, their median and spread, and all of it again where the spread is large. */
#ifndef TCCL_REPEAT_H
#define TCCL_REPEAT_H

#include "machine/meter.h"
#include "measure/pool/workers.h"

struct tccl_repeat_options {
    double window; /* seconds that each run should take */
    int repeats;   /* runs of one round, odd; at least 3 */
    int rounds;    /* rounds at most, each with runs twice as long; the one with the least spread
                      counts */
    double spread; /* a round is good if its spread is no more (0.05), and its members ran together
                      for 95 % of the time */
};

/* Returns 0 with *out (noisy where no round was good; marks and failed are not touched); 1 with err
 * if the set failed; -1 with err if the pool can't go on. */
int tccl_repeat(struct tccl_workers *workers, const struct tccl_repeat_options *options,
                const struct tccl_set *set, struct tccl_measurement *out, struct tccl_error *err);

/* Median of n > 0 values, which are sorted in place; (largest - smallest) / median of sorted ones.
 */
double tccl_median(double *values, int n);
double tccl_spread(const double *sorted, int n);

#endif
