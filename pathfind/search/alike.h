/* alike.h: GPU sets of a machine that are alike, also in what NCCL builds over them: those that
 * symmetries move into one another with their GPUs in the same order (likeness.h). One of them, the
 * first, stands for all. So a profile needs few tables where a machine has many equal parts: 340 of
 * 65,535 with 16 GPUs below four equal switches. */
#pragma once

#include <jansson.h>

#include "ring/table.h"

enum { TCCL_MAX_ALIKE = 64 };
/* Exchanges of two equal parts; none: each set stands for itself. */
struct tccl_alike {
    double noise; /* values of sets that are alike may differ by this ratio; 0: by nothing */
    int n;
    struct tccl_exchange exchanges[TCCL_MAX_ALIKE];
};

/* The set that stands for this one, as a mask, and the move from there. It is found by exchanges
 * that lower the mask and keep the order, until none is left: some ten microseconds. Sets with the
 * same first one are alike; sets that are alike may have several first ones. */
uint32_t tccl_alike_first(const struct tccl_alike *alike, uint32_t gpus,
                          struct tccl_exchange *move);

/* The chain moved; none stays none. */
struct tccl_chain tccl_exchange_chain(const struct tccl_exchange *move,
                                      const struct tccl_chain *chain);
/* All rings of the set. */
void tccl_exchange_rings(const struct tccl_exchange *move, struct tccl_ring_set *set);

/* The table of a set, made of its first one's by the move from there: all chains, bounds, trees and
 * baselines. The caller frees it. NULL with err: no memory, or the table doesn't fit the machine.
 */
struct tccl_table *tccl_alike_table(const struct tccl_table *first,
                                    const struct tccl_machine *machine,
                                    const struct tccl_exchange *move, struct tccl_error *err);

/* {"noise": 0.02, "exchanges": ["g0=g1", "g0=g4 g1=g5", …]}: what changes places. A new reference;
 * NULL only without memory. */
json_t *tccl_alike_to_json(const struct tccl_alike *alike);
/* json NULL: nothing is alike. Exchanges that the machine's description contradicts are refused.
 * Returns 0, or -1 with err. */
int tccl_alike_from_json(const json_t *json, const struct tccl_machine *machine,
                         struct tccl_alike *alike, struct tccl_error *err);
