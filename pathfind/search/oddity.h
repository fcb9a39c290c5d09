/* oddity.h: measured sets that do otherwise than transfers that only share what limits them. */
#ifndef TCCL_ODDITY_H
#define TCCL_ODDITY_H

#include "search/setmap.h"

/* What each transfer of a set has at least where they only share capacities, GB/s: 1 / sum of 1 /
 * alone, since the time that a byte of each takes in the bottleneck adds up. 0: not all of them
 * were measured alone. */
double tccl_oddity_shared(const struct tccl_setmap *map, const struct tccl_set *set);

/* Does the set collapse: is it slower than that, by more than measurements may be off? gbps: what
 * it has. */
bool tccl_oddity_collapses(const struct tccl_setmap *map, const struct tccl_set *set, double gbps);

/* Two transfers that different GPUs start, as different jobs may: no GPU is in both. */
bool tccl_oddity_is_pair(const struct tccl_set *set);

#endif
