/* groups.h: groups of one job on a node. The communicators of data, tensor or expert parallel
 * divide the step's GPUs into parts of one shape, and all of these run at the same time: so their
 * chains are chosen jointly.
 *
 * Each group has as much to send, and the job waits for the slowest. So what counts is the
 * bandwidth of the slowest group, as a part of the best that one of them has alone, and the shares
 * of other steps on the node (neighbours.h); then the sum. */
#ifndef TCCL_GROUPS_H
#define TCCL_GROUPS_H

#include "ring/neighbours.h"

enum { TCCL_MAX_GROUPS = TCCL_MAX_SIDES };

/* The groups of a layout of which this one is one: its GPUs, counted among the step's, moved by
 * some places, cover them all; or it has half of them, and the rest is the other one. Masks of
 * GPUs, in the order of their first ones. Returns how many there are, or 0: no layout has such a
 * group, or it has all GPUs. */
int tccl_groups_split(uint32_t step, uint32_t group, uint32_t groups[static TCCL_MAX_GROUPS]);

/* What one of them is given. */
struct tccl_group {
    const struct tccl_table *table;         /* of its GPUs, borrowed */
    struct tccl_cell cell;                  /* its chain; gbps: while all groups have theirs */
    double baseline_gbps[TCCL_GENERATIONS]; /* what NCCL's own reach when all groups have them */
    /* Is it better than NCCL's own, beside what the others have with that NCCL? */
    bool better[TCCL_GENERATIONS];
};

/* Chooses the chains of n groups (2 to TCCL_MAX_GROUPS, no GPU in two of them) of which all have
 * this node alone (closed: rings), or none. beside: other steps that run, at most so many that all
 * together are TCCL_MAX_SIDES; own and selfish don't matter. hidden: chains without P2P. The same
 * question has the same answer. Returns 0; 1 with err: some group has no chain; or -1 with err. */
int tccl_groups_choose(const struct tccl_beside *beside, struct tccl_group *groups, int n,
                       bool closed, bool hidden, struct tccl_error *err);

#endif
