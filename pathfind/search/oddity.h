/* oddity.h: measured sets that do otherwise than transfers that only share what limits them. */
#pragma once

#include "search/setmap.h"

/* Does the set collapse: is it slower than transfers that only share what limits them, by more than
 * measurements may be off? gbps: what it has. */
bool tccl_oddity_collapses(const struct tccl_setmap *map, const struct tccl_set *set, double gbps);

/* Two transfers that different GPUs start, as different jobs may: no GPU is in both. */
bool tccl_oddity_is_pair(const struct tccl_set *set);

/* The rule is that a further transfer never makes a set faster. Is the whole faster than the part,
 * each by the median of its later measurements, by more than these differ? Both have to be measured
 * TCCL_VALUES times. */
bool tccl_oddity_faster(const struct tccl_setmap_entry *part,
                        const struct tccl_setmap_entry *whole);

/* A part, and the fastest whole that breaks the rule with it. */
struct tccl_oddity {
    const struct tccl_setmap_entry *part, *whole;
    double part_gbps, whole_gbps; /* by the medians, GB/s */
};
/* All of the store, the one that is most times as fast first, so many at most; returns how many. */
enum { TCCL_MAX_ODDITIES = 16 };
int tccl_oddity_list(const struct tccl_setmap *map,
                     struct tccl_oddity list[static TCCL_MAX_ODDITIES]);
/* "g0>g4 reaches 36.8 GB/s, but 53.1 with g1>g2 beside it" of one, cut where it is too long. */
enum { TCCL_ODDITY_TEXT = 256 };
void tccl_oddity_format(const struct tccl_oddity *oddity, char text[static TCCL_ODDITY_TEXT]);
