/* rings-bound.h: what no set of rings on a node of a model can be faster than.
 *
 * All rings together enter and leave each GPU as often as there are rings, and each group of GPUs
 * at least as often; over several nodes they pass its NICs as often. So the numbers of transfers,
 * fractions allowed, solve a linear program whose limits are the model's resources: how many
 * transfers at the rings' rate each has room for, in whole numbers. A rate at which the program has
 * no solution is out of reach. Rules count where they limit a single transfer, or both of a
 * bounce. A GPU receives through one memory in all rings: where the solution has several, each is
 * tried by itself. */
#ifndef TCCL_RINGS_BOUND_H
#define TCCL_RINGS_BOUND_H

#include "machine/model.h"

/* The bounds for from to to rings at once over the GPUs, GB/s of all together, by their number in
 * bounds; none is below least, which is known to be in reach. closed: of a single node. any: also
 * of sets that a stock NCCL can't be made to build. Returns 0, or -1 with err. */
int tccl_rings_bounds(const struct tccl_model *model, uint32_t gpus, bool closed, bool any,
                      int from, int to, double least, double *bounds, struct tccl_error *err);

#endif
