/* together.h: rings and chains of several sets of GPUs, measured while all of them run: what steps
 * do to each other (machine/together.h). */
#ifndef TCCL_FILL_TOGETHER_H
#define TCCL_FILL_TOGETHER_H

#include "fill/fill.h"
#include "fill/splits.h"

struct tccl_together_options {
    const struct tccl_split *splits;
    int n_splits;
    double seconds; /* for all of it; 0: no limit */
    /* As of tccl_fill_options. */
    int (*progress)(void *context, const struct tccl_fill_progress *progress);
    void *context;
};

/* Of each set of a split its chain table gives candidates: the best ring, NCCL's own, the best
 * chain between NICs, NCCL's chains, then others, the fastest first; 20 of each set of two, fewer
 * of more. They are run together, one of each set: all combinations in which at most one set has
 * another than the first two of them, which a step runs that started alone. The
 * transfers of one side are rated while those of the others run, then those of the next one, so
 * nobody is judged by the neighbour's slowest transfer. What the profile has is not measured again;
 * each result is in its log before the next one is measured. Sets without a table, and candidates
 * that the back end can't measure, are left out. *end (as tccl_fill left it) counts on. Returns as
 * tccl_fill. */
int tccl_fill_together(struct tccl_backend *backend, struct tccl_profile *profile,
                       const struct tccl_together_options *options, struct tccl_fill_progress *end,
                       struct tccl_error *err);

#endif
