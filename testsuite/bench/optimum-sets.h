/* optimum-sets.h: the best ring sets of a machine model by a search of its own, which shares
 * nothing with pathfind/search but the model: all sets, one transfer after the other, what can't be
 * better any more cut off; and where there is no time for all, rings of the best set so far are
 * taken out and put back in other ways, by chance. */
#pragma once

#include <stdbool.h>

#include "chain/ring-set.h"
#include "machine/model.h"

/* What rings are built of. */
struct optimum_kind {
    const struct tccl_model *model;
    uint32_t gpus; /* 0: all of the model */
    bool closed;   /* of a node by itself; else each ring enters and leaves by NICs */
    bool reads;    /* P2P edges read, else they write */
    bool any;      /* what NCCL can't build, too, and both kinds of P2P edges */
    const struct tccl_port *ports[2]; /* entry and exit, whose lines don't count; via a NIC: by it
                                         in any way; NULL: any */
    const struct tccl_set *without;   /* rings with one of these don't count; NULL: none */
    double (*rate)(void *context, const struct tccl_set *set); /* of all single rings, in place of
                                                                  what the model says; NULL */
    void *context;
};

/* What the best set of so many rings reaches, GB/s, by trying all that may be faster than the
 * floor; 0: none is. until: processor time (bench_cpu) at which it is late. *looked: counts the
 * sets that were looked at. */
double optimum_of(const struct optimum_kind *kind, int rings, double floor, double until,
                  long *looked, bool *late);

struct optimum {
    double gbps[TCCL_CHAIN_RINGS + 1]; /* of the best set of so many rings, GB/s; 0: none */
    bool all[TCCL_CHAIN_RINGS + 1];    /* all sets of so many were tried: none is faster */
    struct tccl_ring_set sets[TCCL_CHAIN_RINGS + 1];
};

/* Sets over all GPUs that a stock NCCL can be made to build. closed: of a node by itself; else each
 * ring enters and leaves by any NICs. bounds: no set of so many rings is faster, GB/s (INFINITY:
 * unknown); numbers of rings that can't be the best are left out. seconds: processor time. */
void optimum_sets(const struct tccl_model *model, bool closed,
                  const double bounds[static TCCL_CHAIN_RINGS + 1], double seconds,
                  struct optimum *optimum);
