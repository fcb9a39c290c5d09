/* beside.h: the best ring of a step beside others that run on the same node (ring/neighbours.h). */
#pragma once

#include "ring/neighbours.h"
#include "search/search.h"

/* The best ring of a GPU set that has the node for itself but for the others. own and selfish are
 * set here. *best: the ring, its bandwidth beside the others, and as its bound what it reaches
 * alone. Returns 0, or -1 with err. */
int tccl_beside_ring(struct tccl_beside *beside, uint32_t gpus,
                     const struct tccl_search_options *options, struct tccl_result *best,
                     struct tccl_worth *worth, struct tccl_error *err);

/* Adds to the table's other chains the rings that are best beside those which a step on the rest of
 * the GPUs may have: its best one, NCCL's own, and the best one beside the table's ring. Without
 * effect where there is no such step. Returns 0, or -1 with err. */
int tccl_beside_replies(const struct tccl_model *model, struct tccl_table *table,
                        const struct tccl_search_options *options, struct tccl_error *err);
