/* baseline.h: how fast NCCL's own choice is: all of its chains run at the same time. */
#ifndef TCCL_BASELINE_H
#define TCCL_BASELINE_H

#include "nccl/choice.h"

/* All transfers of all chains. Returns 0, or -1 with err if there are more than TCCL_MAX_SET. */
int tccl_baseline_set(const struct tccl_choice *choice, struct tccl_set *set,
                      struct tccl_error *err);

/* The bandwidth of all chains together, where the slowest transfer of the set above has gbps: each
 * chain carries an equal part of the data, so the slowest counts for all. NCCL may be a little
 * faster where its chains are unequal, since the slow one has more room when the others are done;
 * and slower where two chains make the same transfer, which stands in the set only once. */
double tccl_baseline_gbps(const struct tccl_choice *choice, double gbps);

#endif
