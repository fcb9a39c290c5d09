/* enumerate.h: all chains over a GPU set, one after the other, as an oracle for searches. It shares
 * nothing with them but the types: orders, edges, ports and what NCCL can build are written again.
 */
#pragma once

#include "chain/chain.h"
#include "machine/model.h"

struct enumeration {
    const struct tccl_model *model;
    int n;
    int gpus[TCCL_MAX_GPUS];
    bool closed, any;
    bool reads;                     /* P2P edges read, else they write */
    const struct tccl_set *without; /* chains with one of these don't count; NULL: none */
    double (*rate)(void *context, const struct tccl_set *set); /* NULL: as the model says */
    void *context;
    struct tccl_port entry, exit;
    double best;
    long chains;
    int order[TCCL_MAX_GPUS];
    int how[TCCL_MAX_GPUS]; /* 0 write, 1 read, 2 + m bounce */
};

static struct tccl_device enumerate_device(int kind, int index)
{
    return (struct tccl_device){kind, index};
}

static void enumerate_add(struct tccl_set *set, struct tccl_device who, bool reads,
                          struct tccl_device whom)
{
    tccl_set_add(set, tccl_transfer_make(who, reads, whom));
}

static void enumerate_edge(struct tccl_set *set, int from, int to, int how)
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

/* Fills the set of the current order. Returns false if the ports do not fit its head and tail. */
static bool enumerate_ports(const struct enumeration *all, struct tccl_set *set)
{
    struct tccl_device head = enumerate_device(TCCL_GPU, all->order[0]);
    struct tccl_device tail = enumerate_device(TCCL_GPU, all->order[all->n - 1]);
    if ((all->entry.via.kind == TCCL_GPU && all->entry.via.index != head.index) ||
        (all->exit.via.kind == TCCL_GPU && all->exit.via.index != tail.index))
        return false;
    enumerate_add(set, enumerate_device(TCCL_NIC, all->entry.nic), false, all->entry.via);
    if (all->entry.via.kind == TCCL_MEMORY)
        enumerate_add(set, head, true, all->entry.via);
    if (all->exit.via.kind == TCCL_MEMORY)
        enumerate_add(set, tail, false, all->exit.via);
    enumerate_add(set, enumerate_device(TCCL_NIC, all->exit.nic), true, all->exit.via);
    return true;
}

/* Does the last GPU receive in one memory and send from another? */
static bool enumerate_two_memories(const struct enumeration *all)
{
    int in = all->n > 1                           ? all->how[all->n - 2] - 2
             : all->entry.via.kind == TCCL_MEMORY ? all->entry.via.index
                                                  : -1;
    return !all->closed && all->exit.via.kind == TCCL_MEMORY && in >= 0 &&
           in != all->exit.via.index;
}

/* A NIC that one GPU of an island reaches directly is near all of it: all GPUs of a chain without a
 * bounce. GPUs before compute capability 8.0 send through memory wherever the NIC is. */
static bool enumerate_near_both_ways(const struct enumeration *all, int bounces)
{
    int sm = tccl_model_machine(all->model)->gpus[all->order[all->n - 1]].sm;
    bool sends = sm == 0 || sm >= 80;
    bool in = all->entry.via.kind == TCCL_GPU, out = all->exit.via.kind == TCCL_GPU;
    bool one_island = all->entry.nic == all->exit.nic && bounces == 0;
    if (all->closed || all->n == 1)
        return false;
    return (out && !sends) || (one_island && ((!in && out) || (in && !out && sends)));
}

static void enumerate_measure(struct enumeration *all)
{
    struct tccl_set set = {0};
    int edges = all->closed ? all->n : all->n - 1, others = 0, bounces = 0;
    double gbps;
    for (int i = 0; i < edges; i++) {
        others += all->how[i] == !all->reads;
        bounces += all->how[i] >= 2;
        enumerate_edge(&set, all->order[i], all->order[(i + 1) % all->n], all->how[i]);
    }
    bool differs = all->n == 1 && !all->closed &&
                   (all->entry.nic != all->exit.nic || all->entry.via.kind != all->exit.via.kind);
    bool one_near = all->entry.nic == all->exit.nic && all->entry.via.kind == TCCL_GPU &&
                    all->exit.via.kind == TCCL_GPU;
    if (!all->any && (others || ((all->closed || one_near) && bounces == 1) || differs ||
                      enumerate_two_memories(all) || enumerate_near_both_ways(all, bounces)))
        return;
    if (!all->closed && !enumerate_ports(all, &set))
        return;
    for (int i = 0; all->without && i < all->without->count; i++)
        if (tccl_set_has(&set, all->without->transfers[i]))
            return;
    all->chains++;
    if (all->rate)
        gbps = all->rate(all->context, &set);
    else if (tccl_model_measure(all->model, &set, &gbps, NULL, NULL, NULL) != 0)
        return;
    if (gbps > all->best)
        all->best = gbps;
}

static void enumerate_edges(struct enumeration *all, int edge)
{
    const struct tccl_machine *machine = tccl_model_machine(all->model);
    int edges = all->closed ? all->n : all->n - 1;
    if (edge == edges) {
        enumerate_measure(all);
        return;
    }
    int from = all->order[edge], to = all->order[(edge + 1) % all->n];
    for (int how = machine->p2p[from][to] ? 0 : 2; how < 2 + machine->n_memories; how++) {
        all->how[edge] = how;
        enumerate_edges(all, edge + 1);
    }
}

static void enumerate_orders(struct enumeration *all, int depth, uint32_t used)
{
    if (depth == all->n) {
        enumerate_edges(all, 0);
        return;
    }
    for (int i = 0; i < all->n; i++) {
        if ((used >> i & 1) || (all->closed && depth == 0 && i > 0))
            continue; /* a ring may begin anywhere */
        all->order[depth] = all->gpus[i];
        enumerate_orders(all, depth + 1, used | 1u << i);
    }
}

/* The best of all chains over the GPUs of the mask, of the kind that all says. */
static double enumerate_all(struct enumeration *all, uint32_t gpus)
{
    for (int i = 0; i < TCCL_MAX_GPUS; i++)
        if (gpus >> i & 1)
            all->gpus[all->n++] = i;
    enumerate_orders(all, 0, 0);
    return all->best;
}

/* The best bandwidth of all chains over the GPUs of the mask between two ports, or of all rings,
 * that do without some transfers. */
__attribute__((unused)) static double enumerate_best_without(const struct tccl_model *model,
                                                             uint32_t gpus, bool closed,
                                                             struct tccl_port entry,
                                                             struct tccl_port exit, bool any,
                                                             const struct tccl_set *without)
{
    struct enumeration all = {.model = model,
                              .closed = closed,
                              .any = any,
                              .entry = entry,
                              .exit = exit,
                              .without = without};
    return enumerate_all(&all, gpus);
}

__attribute__((unused)) static double enumerate_best(const struct tccl_model *model, uint32_t gpus,
                                                     bool closed, struct tccl_port entry,
                                                     struct tccl_port exit, bool any)
{
    return enumerate_best_without(model, gpus, closed, entry, exit, any, NULL);
}
