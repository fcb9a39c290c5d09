/* side.h: what one step runs on a node: the transfers of its rings. Several steps, or several
 * groups of one, are several sides: all run at the same time, and each is as fast as its own
 * slowest transfer. */
#ifndef TCCL_SIDE_H
#define TCCL_SIDE_H

#include "machine/model.h"

enum { TCCL_MAX_SIDES = 16, TCCL_MAX_SIDE = 8 * 36 /* 8 rings over 16 GPUs have fewer */ };

/* Zero-initialise. A transfer that several rings make stands there as often as they make it. */
struct tccl_side {
    int rings; /* that carry equal parts of the data; its bandwidth is that of all together */
    int count;
    double alone; /* what it reaches when nobody else runs, GB/s; 0: not said. For bounds. */
    tccl_transfer transfers[TCCL_MAX_SIDE];
};

/* Adds a ring's transfers; in any order, repeats stay. Returns 0, or -1: more than TCCL_MAX_SIDE.
 */
int tccl_side_add(struct tccl_side *side, const struct tccl_set *ring);

/* What is known of the transfers of chains that run at once. */
struct tccl_rated {
    struct tccl_set set;
    double gbps[TCCL_MAX_SET]; /* of each member; 0: not known */
    struct tccl_set slow;      /* the part that is as slow as all of it; none: not known; a single
                                * one is not held back by others, and not marked */
};

/* The bandwidth of each of n sides while all run, GB/s: rings times the rate of its slowest
 * transfer; infinite for a side without transfers. Returns 0, or -1 with err: a transfer that is
 * not possible on the machine, too many of them, or no memory. */
int tccl_model_sides(const struct tccl_model *model, const struct tccl_side *const *sides, int n,
                     double *gbps, struct tccl_error *err);

#endif
