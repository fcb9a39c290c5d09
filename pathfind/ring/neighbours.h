/* neighbours.h: steps that run beside each other on one node, and a chain table seen beside them.
 *
 * What counts is the least share: what a step has beside the others, as a part of what it has
 * alone, the least of all of them, the step itself included. Shares that are equal but for the
 * noise are told apart by their sum. What runs already is never changed. */
#pragma once

#include "chain/ring-set.h"
#include "machine/machine.h"
#include "machine/sides.h"
#include "ring/node-class.h"

/* Who runs already. Sides are borrowed. */
struct tccl_beside {
    const struct tccl_model *model; /* NULL: not known; then those two, */
    const struct tccl_machine *machine;
    const struct tccl_together *together; /* which may be NULL, too */
    int n;
    const struct tccl_side *others[TCCL_MAX_SIDES - 1];
    double alone[TCCL_MAX_SIDES - 1]; /* of each, GB/s */
    double own;                       /* what the step itself reaches alone, GB/s */
    int mates;    /* of these the last so many are groups of the same job (groups.h) */
    bool selfish; /* shares of the others don't count */
};

/* What a side is worth beside the others. */
struct tccl_worth {
    double gbps;  /* of the side, while all run, GB/s */
    double least; /* the least share */
    double left;  /* the least share of the others, without mates; 1 if there are none */
    double sum;   /* of all shares */
    double others[TCCL_MAX_SIDES - 1]; /* what each of the others reaches, GB/s */
    enum tccl_basis basis;             /* by bounds: all of these are so much at least */
};

/* Without a model side->alone is to be said, and that of the others, too. Returns 0, or -1 with err
 * as tccl_rates_sides. */
int tccl_beside_worth(const struct tccl_beside *beside, const struct tccl_side *side,
                      struct tccl_worth *worth, struct tccl_error *err);
/* The ends of the rounds of all-reduces (reach.h) of the side, then of the others, while all run,
 * of what tccl_beside_worth says that these have: ends that are known stay as they are without a
 * model, and of sides whose ranks are not known. It takes nine times as long as that: candidates
 * are compared by what they have. Returns 0, or -1 with err. */
int tccl_beside_ends(const struct tccl_beside *beside, const struct tccl_side *side,
                     const struct tccl_worth *worth, uint8_t ends[static TCCL_MAX_SIDES],
                     struct tccl_error *err);
/* Has the side, or one of the others, less than three quarters of what it had if all only shared
 * what is slow: 1 / (sum of rings / alone) for each of its rings? Then copies of some of them
 * collapse beside those of others. Not by bounds, which are that. */
bool tccl_beside_collapses(const struct tccl_beside *beside, const struct tccl_side *side,
                           const struct tccl_worth *worth);
/* Has the side itself less than that? */
bool tccl_beside_held_up(const struct tccl_beside *beside, const struct tccl_side *side,
                         const struct tccl_worth *worth);
/* Is a better than b: by more than this ratio in the least share, else in the sum? */
bool tccl_worth_better(const struct tccl_worth *a, const struct tccl_worth *b, double noise);

/* A chain as it is seen when it is worth that beside the others; its bound is there. */
void tccl_seen_take(struct tccl_seen *seen, const struct tccl_result *result,
                    const struct tccl_worth *worth, bool harms);

/* What each of those that run has beside NCCL's own choice for a newcomer, GB/s. Nobody is to get
 * less: where NCCL's own is not known there, or by bounds only, what each has alone; beside a
 * newcomer that is known by bounds, too, it is the same bounds that count. */
struct tccl_floor {
    double known[TCCL_MAX_SIDES - 1], bounds[TCCL_MAX_SIDES - 1];
};

/* Of several choices of NCCL's own (generations) the largest counts. own: NULL if it is not known.
 */
void tccl_floor_raise(struct tccl_floor *floor, const struct tccl_beside *beside,
                      const struct tccl_worth *own);
/* Has one of those that run less than that beside a newcomer of this worth, but for the noise? */
bool tccl_floor_harms(const struct tccl_floor *floor, const struct tccl_beside *beside,
                      const struct tccl_worth *worth, double noise);

/* What may be taken, the fastest first, and what counts. */
struct tccl_candidates {
    const struct tccl_result **list; /* single rings or chains, or sets */
    int n;
    double noise;
    const struct tccl_floor *floor;     /* who harms comes last; NULL: nobody is asked */
    const struct tccl_machine *machine; /* of as good ones, but for a little, the one that leaves
                                         * most room (room.c); NULL: the first one */
    int *work; /* transfers that may still be rated, while there is something; NULL: any number */
    int cost;  /* of these so many with each candidate, beside its own */
};

struct tccl_choice {
    const struct tccl_result *result; /* NULL: there is none */
    struct tccl_worth worth;
    bool harms;
};

/* The best one beside the others, by tccl_worth_better; it has to be better than *best, if there is
 * something. beside->own and selfish are said. Returns 0, or -1 with err as tccl_beside_worth. */
int tccl_choose(const struct tccl_beside *beside, const struct tccl_candidates *candidates,
                struct tccl_choice *best, struct tccl_error *err);

/* A table seen beside the others: the class of the node, in which each pair of NICs (one node of
 * several) or the ring (closed) has the chain that is best there, of all that the table has; ring
 * sets, and what a stock NCCL builds, are rated in the same way. Nobody who runs gets less than
 * beside NCCL's own choice, of any generation: a pair for which there is no other chain says that
 * its one harms, and such sets are left out. Where that is known by bounds
 * only, and a chain's bandwidth is not, it counts as it is alone. Ends are told of NCCL's own, and
 * of the fastest chains and sets, as many as take no more than a millisecond. own and selfish are
 * set here. NULL with err. */
struct tccl_node_class *tccl_beside_class(struct tccl_beside *beside,
                                          const struct tccl_table *table, bool closed,
                                          enum tccl_view view, struct tccl_error *err);

/* What a step with some GPUs of one node gets at its launch, of their chain table: several rings, a
 * single one, or NCCL's own where that is as good. */
struct tccl_launched {
    double gbps;           /* beside those that run, as an all-reduce reaches it (reach.h), GB/s; 0:
                            * nothing is known that it could run */
    double alone;          /* and when nobody else runs, as far as that is known */
    double nccl;           /* of the newest NCCL's own rings there, GB/s; 0: not known */
    bool ours;             /* it is given rings; else it has NCCL's own */
    enum tccl_basis basis; /* by what its rings are known beside those that run */
    struct tccl_side side; /* what it runs, and these transfers have alone; none: not known */
};

/* Chooses as tccld does for a step that is alone on its node but for those that run, with the
 * newest NCCL. most: rings at once, at most. beside->own and selfish are set here. Returns 0, or -1
 * with err. */
int tccl_launch_choose(struct tccl_beside *beside, const struct tccl_table *table, int most,
                       struct tccl_launched *launch, struct tccl_error *err);

/* room.c: what rings on a part of a node take that steps on its other GPUs would need: memories
 * next to those only, links of switches that they are below, too, and NICs. */

/* What a chain may be slower than the best one, as a part of it, or its shares less, to leave room
 * to others. */
#define TCCL_MOST_FOR_ROOM 0.02

/* How many of a chain's bounces and ports go through memories that are next to none of its GPUs. */
int tccl_chain_far(const struct tccl_machine *machine, const struct tccl_chain *chain);

/* Does a ring set take more than a single chain would: more bounces through such memories in one of
 * its (closed) rings; more rings over a NIC that is next to other GPUs, too, or over the link of a
 * switch that they are below; or more NICs, and more than the part of all NICs that its GPUs are of
 * all GPUs (one at least)? No set of all GPUs does. single may be empty. */
bool tccl_set_takes_room(const struct tccl_machine *machine, const struct tccl_ring_set *set,
                         const struct tccl_chain *single);
