/* rings-order.h: which rings of a set come first. NCCL builds as many of them, in order, as the
 * node with the fewest channels has room for (runtime/README.md, "Several rings"), so the first
 * ones are those that are best without the others. */
#ifndef TCCL_RINGS_ORDER_H
#define TCCL_RINGS_ORDER_H

#include "search/rings.h"

/* Puts the ring first that is fastest by itself, then the one that is fastest together with it, and
 * so on; of those alike what was first stays. By the rater, or, if that is NULL, by the model.
 * gbps[k - 1]: of the first k rings together; 0: they can't be rated. Returns how many sets were
 * rated. */
int tccl_rings_order(const struct tccl_model *model, const struct tccl_rings_rater *rater,
                     struct tccl_ring_set *set, double gbps[static TCCL_CHAIN_RINGS]);

#endif
