/* baseline.c: the rings that a stock NCCL builds on a node by itself, and the transfers of all of
 * them together. */
#include "nccl/baseline.h"

#include <string.h>

#include "base/cleanup.h"
#include "nccl/topo.h"

/* What NCCL treats as one node: the machine, or a part of it. */
struct part {
    struct tccl_topo topo;
    struct tccl_topo unused; /* as it was before the search, which changes the last digits */
    struct tccl_rings rings;
};

/* All parts of the machine, in their order in the ring. */
struct parts {
    int count;
    struct part *list[TCCL_MAX_GPUS];
};

static void free_parts(struct parts *parts)
{
    for (int i = 0; i < parts->count; i++)
        free(parts->list[i]);
    parts->count = 0;
}

#define cleanup_parts __attribute__((cleanup(free_parts)))

/* NCCL uses GPUDirect below a common switch; for sending, only from sm_80 on, or
 * with a single GPU. */
static struct tccl_port port_of(const struct tccl_machine *machine, const struct tccl_topo *topo,
                                int nic, int gpu, bool sends)
{
    int index = topo->gpus[gpu].index;
    bool new_enough = topo->gpus[gpu].sm >= 80;
    bool direct = machine->gpudirect[topo->nics[nic].index][index] &&
                  topo->gpus[gpu].to_nic[nic].far <= TCCL_FAR_SWITCHES &&
                  (!sends || new_enough || topo->n_gpus == 1);
    struct tccl_device itself = {TCCL_GPU, (uint8_t)index};
    struct tccl_device memory = {TCCL_MEMORY, (uint8_t)machine->gpus[index].numa};
    return (struct tccl_port){(uint8_t)topo->nics[nic].index, direct ? itself : memory};
}

/* A bounce, through the memory of the receiver, which owns the buffer. */
static struct tccl_edge bounce_to(const struct tccl_machine *machine, int to)
{
    return (struct tccl_edge){.kind = TCCL_BOUNCE, .memory = (uint8_t)machine->gpus[to].numa};
}

/* Where the GPU meets the network: by the NIC with which its channel begins if it is the first one
 * there, else by that with which it ends (ncclTopoGetNetDev). */
static struct tccl_port port_in(const struct tccl_machine *machine, const struct part *part,
                                int channel, int gpu, bool sends)
{
    bool first = part->rings.gpus[channel][0] == gpu;
    return port_of(machine, &part->topo, part->rings.nics[channel][!first], gpu, sends);
}

static struct tccl_edge edge_of(const struct tccl_machine *machine, const struct part *part,
                                int channel, int from, int to)
{
    const struct tccl_topo *topo = &part->topo;
    if (tccl_topo_by_network(topo, from, to))
        return (struct tccl_edge){.kind = TCCL_BY_NICS,
                                  .from = port_in(machine, part, channel, from, true),
                                  .to = port_in(machine, part, channel, to, false)};
    if (tccl_topo_p2p(topo, machine, from, to))
        return (struct tccl_edge){.kind = TCCL_P2P_WRITE};
    return bounce_to(machine, topo->gpus[to].index);
}

/* From a channel's last GPU in one part to its first one in the next: by NICs, but in 2.30, where
 * ncclTopoCheckNet leaves the answer as it was, 0, for GPUs of other parts. */
static struct tccl_edge between(const struct tccl_machine *machine, const struct part *part,
                                int channel, const struct part *next, int next_channel)
{
    int from = part->rings.gpus[channel][part->topo.n_gpus - 1],
        to = next->rings.gpus[next_channel][0];
    if (next->topo.nccl == TCCL_NCCL_2_30)
        return bounce_to(machine, next->topo.gpus[to].index);
    return (struct tccl_edge){.kind = TCCL_BY_NICS,
                              .from = port_in(machine, part, channel, from, true),
                              .to = port_in(machine, next, next_channel, to, false)};
}

/* The channel of a part that belongs to channel c. If channels cross, NCCL swaps them in pairs on
 * every second node. */
static int channel_of(const struct parts *parts, int part, int c, int n_channels)
{
    bool exchanged = parts->list[part]->rings.crosses && n_channels % 2 == 0 && part % 2 == 1;
    return exchanged ? c ^ 1 : c;
}

/* Channel c as a chain over all parts, which are connected by the network. */
static void make_chain(const struct tccl_machine *machine, const struct parts *parts, int c,
                       int n_channels, struct tccl_chain *chain)
{
    for (int i = 0; i < parts->count; i++) {
        int before = chain->n_gpus, channel = channel_of(parts, i, c, n_channels);
        const struct part *part = parts->list[i];
        const uint8_t *order = part->rings.gpus[channel];
        for (int k = 0; k < part->topo.n_gpus; k++) {
            int at = chain->n_gpus++;
            chain->gpus[at] = (uint8_t)part->topo.gpus[order[k]].index;
            if (k > 0)
                chain->edges[at - 1] = edge_of(machine, part, channel, order[k - 1], order[k]);
        }
        if (i > 0)
            chain->edges[before - 1] =
                between(machine, parts->list[i - 1], channel_of(parts, i - 1, c, n_channels),
                        parts->list[i], channel);
    }
    const struct part *first = parts->list[0], *last = parts->list[parts->count - 1];
    int channel = channel_of(parts, parts->count - 1, c, n_channels);
    int tail = last->rings.gpus[channel][last->topo.n_gpus - 1], head = first->rings.gpus[c][0];
    if (chain->closed) {
        chain->edges[chain->n_gpus - 1] = parts->count == 1
                                              ? edge_of(machine, first, c, tail, head)
                                              : between(machine, last, channel, first, c);
    } else {
        chain->entry = port_of(machine, &first->topo, first->rings.nics[c][0], head, false);
        chain->exit = port_of(machine, &last->topo, last->rings.nics[channel][1], tail, true);
    }
}

/* Normal form of a closed ring: it begins at its lowest GPU. */
static void turn_to_lowest(struct tccl_chain *chain)
{
    struct tccl_chain turned = *chain;
    int lowest = 0;
    for (int i = 1; i < chain->n_gpus; i++)
        if (chain->gpus[i] < chain->gpus[lowest])
            lowest = i;
    for (int i = 0; i < chain->n_gpus; i++) {
        int from = (lowest + i) % chain->n_gpus;
        turned.gpus[i] = chain->gpus[from];
        turned.edges[i] = chain->edges[from];
    }
    *chain = turned;
}

/* Adds the chain unless the baseline has it already, or has no room. memcmp is valid, because all
 * bytes of chains are set. */
static void add_distinct(struct tccl_baseline *baseline, const struct tccl_chain *chain)
{
    for (int i = 0; i < baseline->set.n; i++)
        if (memcmp(&baseline->set.rings[i], chain, sizeof(*chain)) == 0)
            return;
    if (baseline->set.n < TCCL_MAX_CHANNELS)
        baseline->set.rings[baseline->set.n++] = *chain;
}

/* Searches the part, unless an older NCCL finds the same. before: its parts, or NULL. */
static int search_part(struct part *part, int i, bool alone, const struct parts *before,
                       struct tccl_error *err)
{
    part->unused = part->topo;
    if (before && i < before->count &&
        tccl_nccl_search_alike(&before->list[i]->unused, &part->unused, alone)) {
        part->rings = before->list[i]->rings;
        return 0;
    }
    return tccl_nccl_search(&part->topo, alone, &part->rings, err);
}

/* Views all GPUs together, then searches each part separately, as NCCL does. */
static int find_parts(const struct tccl_machine *machine, uint32_t gpus, bool closed,
                      enum tccl_nccl nccl, const struct parts *before, struct parts *parts,
                      struct tccl_error *err)
{
    cleanup_free struct tccl_topo *whole = calloc(1, sizeof(*whole));
    uint32_t masks[TCCL_MAX_GPUS];
    if (!whole)
        return tccl_fail(err, "out of memory");
    if (tccl_topo_make(machine, nccl, gpus, gpus, false, whole, err) != 0)
        return -1;
    int count = tccl_topo_parts(whole, masks);
    for (int i = 0; i < count; i++) {
        struct part *part = parts->list[i] = calloc(1, sizeof(*part));
        if (!part)
            return tccl_fail(err, "out of memory");
        parts->count++;
        bool alone = closed && count == 1;
        if (tccl_topo_make(machine, nccl, gpus, masks[i], alone, &part->topo, err) != 0 ||
            search_part(part, i, alone, before, err) != 0)
            return -1;
    }
    return 0;
}

static int find(const struct tccl_machine *machine, uint32_t gpus, bool closed, int generation,
                const struct parts *before, struct parts *parts, struct tccl_baseline *baseline,
                struct tccl_error *err)
{
    memset(baseline, 0, sizeof(*baseline));
    if (gpus == 0 || gpus >> machine->n_gpus)
        return tccl_fail(err, "no GPU, or one that the machine doesn't have");
    if (closed && (gpus & (gpus - 1)) == 0)
        return tccl_fail(err, "one GPU makes no ring");
    if (!closed && machine->n_nics == 0)
        return tccl_fail(err, "the machine has no NIC");
    if (find_parts(machine, gpus, closed, (enum tccl_nccl)generation, before, parts, err) != 0)
        return -1;
    int n_channels = TCCL_SEARCH_CHANNELS;
    for (int i = 0; i < parts->count; i++)
        if (parts->list[i]->rings.n_channels < n_channels)
            n_channels = parts->list[i]->rings.n_channels;
    for (int c = 0; c < n_channels; c++) {
        struct tccl_chain chain;
        memset(&chain, 0, sizeof(chain));
        chain.closed = closed;
        make_chain(machine, parts, c, n_channels, &chain);
        if (closed)
            turn_to_lowest(&chain);
        add_distinct(baseline, &chain);
    }
    baseline->ring = parts->list[0]->rings.ring;
    baseline->tree = parts->list[0]->rings.tree;
    for (int i = 1; i < parts->count; i++) {
        tccl_nominal_least(&baseline->ring, &parts->list[i]->rings.ring);
        tccl_nominal_least(&baseline->tree, &parts->list[i]->rings.tree);
    }
    return 0;
}

int tccl_baseline_find(const struct tccl_machine *machine, uint32_t gpus, bool closed,
                       int generation, struct tccl_baseline *baseline, struct tccl_error *err)
{
    cleanup_parts struct parts parts = {0};
    return find(machine, gpus, closed, generation, NULL, &parts, baseline, err);
}

int tccl_baseline_find_all(const struct tccl_machine *machine, uint32_t gpus, bool closed,
                           struct tccl_baseline baselines[static TCCL_GENERATIONS],
                           struct tccl_error *err)
{
    cleanup_parts struct parts even = {0}, odd = {0};
    int status = 0;
    for (int i = 0; status == 0 && i < TCCL_GENERATIONS; i++) {
        struct parts *own = i % 2 ? &odd : &even, *before = i % 2 ? &even : &odd;
        free_parts(own);
        status = find(machine, gpus, closed, i, before, own, &baselines[i], err);
    }
    return status;
}

void tccl_baseline_leave_nics(const struct tccl_machine *machine, struct tccl_baseline *baseline)
{
    for (int i = 0; i < baseline->set.n; i++) {
        struct tccl_chain *ring = &baseline->set.rings[i];
        for (int k = 0; k < tccl_chain_edges(ring); k++)
            if (ring->edges[k].kind == TCCL_BY_NICS)
                ring->edges[k] = bounce_to(machine, ring->gpus[(k + 1) % ring->n_gpus]);
    }
}

int tccl_baseline_set(const struct tccl_baseline *baseline, struct tccl_set *set,
                      struct tccl_error *err)
{
    struct tccl_side side;
    if (tccl_ring_set_side(&baseline->set, &side) == 0 && tccl_side_set(&side, set) == 0)
        return 0;
    return tccl_fail(err,
                     "the %d rings of the baseline make more than %d transfers at once: their "
                     "bandwidth is unknown",
                     baseline->set.n, TCCL_MAX_SET);
}
