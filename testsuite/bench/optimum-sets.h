/* optimum-sets.h: the best ring sets of a machine model by a search of its own, which shares
 * nothing with pathfind/search but the model: all sets, one transfer after the other, what can't be
 * better any more cut off; and where there is no time for all, rings of the best set so far are
 * taken out and put back in other ways, by chance. */
#pragma once

#include <stdbool.h>

#include "chain/ring-set.h"
#include "machine/model.h"

/* What rings are built of: over all GPUs of the model; closed: of a node by itself; else each ring
 * enters and leaves by any NICs, or by these. */
struct optimum_kind {
    const struct tccl_model *model;
    bool closed;
    bool reads;  /* P2P edges read, else they write */
    bool any;    /* what NCCL can't build, too, and both kinds of P2P edges */
    int nics[2]; /* of the entry, and of the exit; -1: any */
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
