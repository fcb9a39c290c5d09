/* rings.h: the best ring set of a GPU set: several rings that run at once, on a single node or on
 * each of several equal ones.
 *
 * The search changes a few things of a set at a time, by chance, keeps what is better, and now and
 * then what is not (simulated annealing), from several beginnings. Only sets that a stock NCCL can
 * be made to build are rated, unless any are wanted. What it finds is compared with a proven bound
 * (rings-bound.c); it ends when it is as close to that as is wanted, or when its budget is
 * used up. */
#pragma once

#include "base/error.h"
#include "chain/ring-set.h"

/* Rates transfers in place of a model, which is not asked for anything but its machine: GB/s of
 * each, the same one as often as it runs. Returns 0; 1: they can't be rated; -1 with err. */
struct tccl_rings_rater {
    int (*rate)(void *context, const tccl_transfer *transfers, int count, double *rates,
                struct tccl_error *err);
    void *context;
    const struct tccl_machine *machine;
    double bound; /* no set is faster */
};
/* For such: of guessed rates, where the slowest one is known. The slowest guess is that, and no
 * other one is less. */
void tccl_rings_known(double *rates, int count, double gbps);

struct tccl_rings_options {
    const struct tccl_rings_rater *rater; /* NULL: the model */
    int rings;   /* how many at once; 0: whatever is best, up to TCCL_CHAIN_RINGS */
    bool any;    /* sets count that a stock NCCL can't be made to build, too; then none is proven
                  * exactly, and as many sets again are rated */
    bool reads;  /* P2P edges read, else they write; with any: as each likes */
    bool turns;  /* rings may leave by another fabric than that by which they came, if others of
                  * the set come in by that one: over an even number of nodes, say, two of them
                  * change places on each */
    double gap;  /* ends when proven within this ratio; 0: exact, with up to 4 GPUs */
    long budget; /* sets to rate at most, with more than 4 GPUs; 0: 10,000 */
    double single_bound; /* no single ring is faster, GB/s; 0: unknown */
    uint32_t nics;       /* that rings may use, as a mask; 0: all */
    uint64_t seed;       /* of what is chosen by chance: the same seed gives the same set */
};

struct tccl_rings_result {
    struct tccl_ring_set set; /* by a model the first rings are the best ones */
    double gbps;              /* of all rings together, GB/s; 0: no set was found */
    double bound; /* no set (any: of all; else that a stock NCCL can be made to build) is faster */
    long rated;
};

/* starts: n sets to begin with, such as the best single chains and the baseline, whose P2P edges
 * are as those that are wanted; one that a stock NCCL can't be made to build is mended. closed: of
 * a single node; else of each of several equal ones: each ring keeps to one fabric, unless they
 * turn. Returns 0 (gbps is 0 if there is no set), or -1 with err. */
int tccl_rings_find(const struct tccl_model *model, uint32_t gpus, bool closed,
                    const struct tccl_rings_options *options, const struct tccl_ring_set *starts,
                    int n, struct tccl_rings_result *result, struct tccl_error *err);

/* What no set of from to to rings at once over the GPUs can be faster than, GB/s of all together,
 * by their number in bounds; none is below least, which is known to be in reach. closed: of a
 * single node. reads: P2P edges read, else they write. any: also of sets that a stock NCCL can't be
 * made to build. Returns 0, or -1 with err. */
int tccl_rings_bounds(const struct tccl_model *model, uint32_t gpus, bool closed, bool reads,
                      bool any, int from, int to, double least, double *bounds,
                      struct tccl_error *err);

/* simplex.c: linear programs: the largest value of one sum under bounds of others. Small ones, kept
 * as a dense table. */

/* The largest x[goal] with, for each row, the sum of row[i] * x[i] at most limit, and all x >= 0.
 * rows: n_rows times n_columns numbers; limits: one for each row, none below 0. *values: one number
 * for each column. Returns 0; 1 if it was given up after too many steps; -1 with err: out of
 * memory, or x[goal] has no bound. */
int tccl_simplex(const double *rows, const double *limits, int n_rows, int n_columns, int goal,
                 double *values, struct tccl_error *err);
