/* groups.h: groups of one job on a node. The communicators of data, tensor or expert parallel
 * divide the step's GPUs into parts of one shape, and all of these run at the same time: so their
 * chains are chosen jointly.
 *
 * Each group has as much to send, and the job waits for the slowest. So what counts is the
 * bandwidth of the slowest group, as a part of the best that one of them has alone, and the shares
 * of other steps on the node (neighbours.h); then the sum. */
#pragma once

#include "ring/neighbours.h"

enum { TCCL_MAX_GROUPS = TCCL_MAX_SIDES };

/* The groups of a layout of which this one is one: its GPUs, counted among the step's, moved by
 * some places, cover them all; or it has half of them, and the rest is the other one. Masks of
 * GPUs, in the order of their first ones. Returns how many there are, or 0: no layout has such a
 * group, or it has all GPUs. */
int tccl_groups_split(uint32_t step, uint32_t group, uint32_t groups[static TCCL_MAX_GROUPS]);

/* What one of them is given. */
struct tccl_group_choice {
    struct tccl_seen cell; /* its chain; gbps, told_ends: while all groups have theirs */
    double baseline_gbps[TCCL_GENERATIONS]; /* NCCL's own, when all groups have those; 0: unknown */
    uint8_t baseline_ends[TCCL_GENERATIONS]; /* of the rounds of these then (tccl_beside_ends) */
    /* Is it better than NCCL's own, beside what the others have with that NCCL? */
    bool better[TCCL_GENERATIONS];
};

struct tccl_groups;

/* Groups of which all have this node alone (closed: rings), or none. machine: borrowed.
 * view: which chains. NULL without memory. */
struct tccl_groups *tccl_groups_new(const struct tccl_machine *machine, bool closed,
                                    enum tccl_view view);
void tccl_groups_free(struct tccl_groups *groups); /* NULL is fine */
/* One more, whose GPUs no other has: what it may have is copied from its table. Returns 0, or -1
 * with err: there is no chain, or there are TCCL_MAX_GROUPS. */
int tccl_groups_add(struct tccl_groups *groups, const struct tccl_table *table,
                    struct tccl_error *err);

/* Chooses their chains; choices: as many as were added, in that order. beside: other steps that
 * run; own and selfish don't matter. The same question has the same answer. Returns 0, or -1 with
 * err: fewer than 2 groups, more than TCCL_MAX_SIDES sides, or as tccl_beside_worth. */
int tccl_groups_choose(struct tccl_groups *groups, const struct tccl_beside *beside,
                       struct tccl_group_choice *choices, struct tccl_error *err);
/* That chain of a class, where nothing else of the step runs. How many nodes a group has is not
 * known here: two, if there are several. */
void tccl_group_alone(const struct tccl_node_class *class, const struct tccl_seen *cell,
                      bool closed, struct tccl_group_choice *choice);
