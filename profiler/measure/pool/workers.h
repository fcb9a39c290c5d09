/* workers.h: the worker pool: processes that are started once, pinned near their device, and run
 * the transfers of a set all together, again and again. A worker that dies or hangs fails the run
 * and is replaced at the next one. */
#pragma once

#include "machine/meter.h"
#include "machine/sides.h"
#include "measure/pool/mover.h"

struct tccl_workers;

struct tccl_workers_options {
    const struct tccl_mover *gpu; /* runs the transfers that GPUs start */
    const struct tccl_mover *nic; /* and those of NICs; NULL: there can be none */
    double prepare_limit;         /* seconds until all members are ready, at most */
    double run_limit;             /* seconds that a run may take, at most */
};

/* Starts the keepers; workers are started when first needed, and kept. workspace is borrowed for
 * the pool's life. Returns NULL with err. */
struct tccl_workers *tccl_workers_new(struct tccl_workspace *workspace,
                                      const struct tccl_workers_options *options,
                                      struct tccl_error *err);
/* Ends all processes; takes a second at most. NULL is fine. */
void tccl_workers_free(struct tccl_workers *workers);

/* What else runs from now on as long as each set does, without a bandwidth; copied. */
void tccl_workers_others(struct tccl_workers *workers, const struct tccl_side *others);

struct tccl_run_result {
    double window;             /* seconds in which all members ran, and the others */
    double overlap;            /* window / time from the first start to the last end */
    double skew;               /* from the first start to the last one, microseconds */
    double gbps[TCCL_MAX_SET]; /* of each member within the window, in the set's order, GB/s */
    double slowest;            /* the smallest of them */
};

/* Runs the set once; each member moves at least share bytes, and the others move data until the
 * last one has. Returns 0, with a run that is all zeros if its members never ran at the same time,
 * as a busy machine may have it; 1 with err if the set failed (a worker died, hung, or said why it
 * can't) and the pool is ready for the next; -1 with err if the pool can't go on (no processes can
 * be started). */
int tccl_workers_run(struct tccl_workers *workers, const struct tccl_set *set, uint64_t share,
                     struct tccl_run_result *run, struct tccl_error *err);

/* Processes that run now, and how many had to be replaced so far. */
int tccl_workers_count(const struct tccl_workers *workers);
long tccl_workers_replaced(const struct tccl_workers *workers);

/* ---- how often a set is run until its bandwidth is known (repeat.c): a warm-up that finds the
 * share, repeats, their median and spread, and all of it again where the spread is large ---- */

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
