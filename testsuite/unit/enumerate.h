/* enumerate.h: the best of all chains over a GPU set, as an oracle for searches
 * (bench/optimum-sets.c), and sets of transfers written out. */
#pragma once

#include <math.h>

#include "chain/chain.h"
#include "optimum-sets.h"
#include "ring/table.h"

static inline struct tccl_device enumerate_device(int kind, int index)
{
    return (struct tccl_device){kind, index};
}

static inline void enumerate_add(struct tccl_set *set, struct tccl_device who, bool reads,
                                 struct tccl_device whom)
{
    tccl_set_add(set, tccl_transfer_make(who, reads, whom));
}

static inline void enumerate_edge(struct tccl_set *set, int from, int to, int how)
{
    struct tccl_device giver = enumerate_device(TCCL_GPU, from);
    struct tccl_device taker = enumerate_device(TCCL_GPU, to);
    if (how == 0)
        enumerate_add(set, giver, false, taker);
    if (how == 1)
        enumerate_add(set, taker, true, giver);
    if (how >= 2) {
        enumerate_add(set, giver, false, enumerate_device(TCCL_MEMORY, how - 2));
        enumerate_add(set, taker, true, enumerate_device(TCCL_MEMORY, how - 2));
    }
}

/* The best of all chains of a kind; 0: there is none. */
static inline double enumerate_all(const struct optimum_kind *kind)
{
    long looked = 0;
    bool late;
    return optimum_of(kind, 1, 0, INFINITY, &looked, &late);
}

/* Of all rings; any: also of those that NCCL can't build; without: some transfers, or NULL. */
static inline double enumerate_ring(const struct tccl_model *model, uint32_t gpus, bool any,
                                    const struct tccl_set *without)
{
    return enumerate_all(&(struct optimum_kind){
        .model = model, .gpus = gpus, .closed = true, .any = any, .without = without});
}

/* Of all chains between the ports of a table's pair. */
static inline double enumerate_pair(const struct tccl_model *model, const struct tccl_table *table,
                                    int pair, bool any, const struct tccl_set *without)
{
    return enumerate_all(&(struct optimum_kind){
        .model = model,
        .gpus = table->gpus,
        .any = any,
        .ports = {&table->ports[pair / table->n_ports], &table->ports[pair % table->n_ports]},
        .without = without});
}
