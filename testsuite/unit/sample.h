/* sample.h: a small machine and chains on it, built in memory, for tests of tables and kinds. */
#pragma once

#include <math.h>

#include "ring/node-class.h"
#include "search/setlog.h"

/* Four GPUs and two memories, two NICs; GPUs 0 and 1 reach NIC 0 directly, all GPUs each other. */
static inline struct tccl_machine sample_machine(void)
{
    struct tccl_machine machine = {.name = "sample", .n_gpus = 4, .n_memories = 2, .n_nics = 2};
    for (int i = 0; i < 4; i++) {
        struct tccl_gpu *gpu = &machine.gpus[i];
        snprintf(gpu->busid, sizeof(gpu->busid), "0000:%02x:00.0", 0x21 + 0x20 * i);
        snprintf(gpu->model, sizeof(gpu->model), "V100");
        gpu->numa = i / 2;
        gpu->minor = i;
        gpu->sm = 70;
        gpu->parent = -1;
        for (int j = 0; j < 4; j++)
            machine.p2p[i][j] = i != j;
    }
    for (int i = 0; i < 2; i++) {
        struct tccl_nic *nic = &machine.nics[i];
        snprintf(nic->name, sizeof(nic->name), "mlx5_%d", i);
        snprintf(nic->busid, sizeof(nic->busid), "0000:%02x:00.0", 0xa1 + i);
        snprintf(nic->fabric, sizeof(nic->fabric), "ib%d", i);
        nic->gbps = 25;
        nic->numa = i;
        nic->parent = -1;
    }
    machine.gpudirect[0][0] = machine.gpudirect[0][1] = true;
    return machine;
}

/* A random order of the GPUs of the mask; returns how many. */
static inline int sample_order(uint32_t gpus, uint8_t *order)
{
    int n = 0;
    for (int i = 0; i < TCCL_MAX_GPUS; i++)
        if (gpus >> i & 1) {
            int j = rand() % (n + 1);
            order[n++] = order[j];
            order[j] = i;
        }
    return n;
}

/* All chains here go together: P2P within the pairs 0, 1 and 2, 3, each GPU has one memory. */
static uint8_t sample_memory(int gpu)
{
    return gpu % 2;
}

static inline struct tccl_chain sample_chain(uint32_t gpus, bool closed)
{
    struct tccl_chain chain = {.closed = closed};
    chain.n_gpus = sample_order(gpus, chain.gpus);
    for (int i = 0; i < tccl_chain_edges(&chain); i++) {
        int from = chain.gpus[i], to = chain.gpus[(i + 1) % chain.n_gpus];
        if (from / 2 == to / 2)
            chain.edges[i].kind = gpus % 3 == 0 ? TCCL_P2P_READ : TCCL_P2P_WRITE; /* alike in all */
        else
            chain.edges[i] = (struct tccl_edge){TCCL_BOUNCE, sample_memory(to)};
    }
    return chain;
}

/* Without P2P. */
static inline struct tccl_chain sample_host_chain(uint32_t gpus, bool closed)
{
    struct tccl_chain chain = sample_chain(gpus, closed);
    for (int i = 0; i < tccl_chain_edges(&chain); i++)
        chain.edges[i] =
            (struct tccl_edge){TCCL_BOUNCE, sample_memory(chain.gpus[(i + 1) % chain.n_gpus])};
    return chain;
}

/* Through the memories of the chain's ends. */
static void sample_ports(struct tccl_chain *chain)
{
    int head = chain->gpus[0], tail = chain->gpus[chain->n_gpus - 1];
    chain->entry.nic = (uint8_t)(rand() % 2);
    chain->exit.nic = chain->n_gpus > 1 ? (uint8_t)(rand() % 2) : chain->entry.nic;
    chain->entry.via = (struct tccl_device){TCCL_MEMORY, sample_memory(head)};
    chain->exit.via = (struct tccl_device){TCCL_MEMORY, sample_memory(tail)};
}

/* So many chains between random NICs, or rings. */
static inline struct tccl_seen sample_set(uint32_t gpus, int rings, bool closed)
{
    struct tccl_seen set = {.gbps = 1 + rand() % 1000 / 97.0, .bound = INFINITY};
    set.set.n = rings;
    for (int r = 0; r < rings; r++) {
        set.set.rings[r] = sample_chain(gpus, closed);
        if (!closed)
            sample_ports(&set.set.rings[r]);
    }
    return set;
}

static inline struct tccl_tree sample_tree(uint32_t gpus, int nic)
{
    struct tccl_chain order = sample_chain(gpus, false);
    struct tccl_tree tree = {.nic = (uint8_t)nic, .along = rand() % 1000 / 97.0};
    memcpy(tree.gpus, order.gpus, order.n_gpus);
    tree.gbps = tree.along + 0.5;
    return tree;
}

/* A random chain between the ports; none where a port's GPU can't be head or tail, or where NCCL
 * can't be made to build it. */
static inline struct tccl_result sample_result(const struct tccl_machine *machine, uint32_t gpus,
                                               struct tccl_port entry, struct tccl_port exit)
{
    struct tccl_result result = {.bound = INFINITY};
    struct tccl_chain chain = sample_chain(gpus, false);
    if ((entry.via.kind == TCCL_GPU && entry.via.index != chain.gpus[0]) ||
        (exit.via.kind == TCCL_GPU && exit.via.index != chain.gpus[chain.n_gpus - 1]))
        return result;
    chain.entry = entry;
    chain.exit = exit;
    if (tccl_expressible(machine, &chain, 1, NULL) != 0)
        return result;
    result.chain = chain;
    result.gbps = 1 + rand() % 1000 / 97.0;
    result.bound = rand() % 2 ? result.gbps : result.gbps * 1.03;
    if (chain.n_gpus > 1 && rand() % 32 == 0)
        result.tree = sample_tree(gpus, entry.nic);
    return result;
}

static inline struct tccl_nominal sample_nominal(bool ring)
{
    static const float rates[] = {0, 0.12F, 2.4F, 12, 17.5F, 22.55F, 96};
    return (struct tccl_nominal){.pattern = ring ? 4 : 1 + rand() % 3,
                                 .channels = (uint8_t)(rand() % 33),
                                 .intra = rates[rand() % 7],
                                 .inter = rates[rand() % 7],
                                 .far_intra = (uint8_t)(rand() % 12),
                                 .far_inter = (uint8_t)(rand() % 12)};
}

/* Up to as many chains as there can be, each by the last two ports of the table. */
static inline struct tccl_baseline sample_baseline(const struct tccl_table *table, bool closed)
{
    struct tccl_baseline baseline = {.gbps = closed ? 3.1 : 1 + rand() % 1000 / 97.0};
    baseline.set.n = 1 + rand() % TCCL_MAX_CHANNELS;
    for (int i = 0; i < baseline.set.n; i++) {
        struct tccl_chain chain = sample_chain(table->gpus, closed);
        if (!closed) {
            chain.entry = table->ports[table->n_ports - 1 - rand() % 2];
            chain.exit = table->ports[table->n_ports - 1 - rand() % 2];
        }
        baseline.set.rings[i] = chain;
    }
    baseline.ring = sample_nominal(true);
    baseline.tree = sample_nominal(false);
    return baseline;
}

/* Of all generations; some have that of the one before, or the first. */
static inline void sample_baselines(const struct tccl_table *table, bool closed,
                                    struct tccl_baseline *baselines)
{
    for (int i = 0; i < TCCL_GENERATIONS; i++) {
        int like = rand() % 4;
        baselines[i] = i > 0 && like == 0   ? baselines[i - 1]
                       : i > 0 && like == 1 ? baselines[0]
                                            : sample_baseline(table, closed);
    }
}

/* Of so many rings, open ones between ports of the table, as memories are. */
static inline struct tccl_seen sample_table_set(const struct tccl_table *table, bool closed,
                                                int rings)
{
    struct tccl_seen result = {.gbps = 1 + rand() % 1000 / 97.0, .set = {.n = rings}};
    result.bound = rand() % 2 ? result.gbps * 1.03 : INFINITY;
    for (int i = 0; i < rings; i++) {
        struct tccl_chain *chain = &result.set.rings[i];
        *chain = sample_chain(table->gpus, closed);
        if (!closed)
            sample_ports(chain);
    }
    return result;
}

static inline void sample_sets(struct tccl_table *table)
{
    for (int i = 0; i < 8; i++) {
        bool closed = __builtin_popcount(table->gpus) > 1 && rand() % 2;
        struct tccl_seen set = sample_table_set(table, closed, 2 + rand() % 7);
        tccl_table_keep_set(table, &set.set, set.gbps, set.bound);
    }
}

static inline struct tccl_table *sample_table(const struct tccl_machine *machine, uint32_t gpus)
{
    struct tccl_table *table = tccl_table_new(machine, gpus);
    if (!table)
        abort();
    snprintf(table->source, sizeof(table->source), "model");
    table->measured = rand();
    table->noise = 0.01;
    int n = table->n_ports;
    for (int i = 0; i < n * n; i++)
        table->results[i] = sample_result(machine, gpus, table->ports[i / n], table->ports[i % n]);
    sample_baselines(table, false, table->baselines[0]);
    if (__builtin_popcount(gpus) > 1) {
        *tccl_table_ring(table) =
            (struct tccl_result){.gbps = 7.25, .bound = 7.5, .chain = sample_chain(gpus, true)};
        sample_baselines(table, true, table->baselines[1]);
        *tccl_table_host_ring(table) = (struct tccl_result){
            .gbps = 4.5, .bound = 7.5, .chain = sample_host_chain(gpus, true), .part = TCCL_HOST};
    }
    for (int i = 0; i < n * n; i++) /* memories are the last ports of each NIC */
        if (rand() % 4 == 0 && table->results[i].chain.n_gpus > 0 &&
            table->ports[i / n].via.kind == TCCL_MEMORY &&
            table->ports[i % n].via.kind == TCCL_MEMORY) {
            struct tccl_result host = {.gbps = 1 + rand() % 1000 / 97.0, .bound = 99};
            host.chain = sample_host_chain(gpus, false);
            host.chain.entry = table->ports[i / n];
            host.chain.exit = table->ports[i % n];
            if (tccl_expressible(machine, &host.chain, 1, NULL) == 0)
                tccl_table_keep_host(table, &host);
        }
    sample_sets(table);
    return table;
}

static inline struct tccl_measurement random_measurement(void)
{
    struct tccl_measurement measurement = {.gbps = rand() / (1.0 + rand()),
                                           .spread = rand() % 2 ? rand() / 3e10 : 0};
    if (rand() % 2) { /* from real hardware */
        measurement.skew = rand() / 1e6;
        measurement.overlap = rand() / (1.0 + RAND_MAX);
        measurement.noisy = rand() % 2;
        measurement.marks = rand() % (1 << TCCL_MARKS);
        measurement.failed = rand() % 8 == 0;
        measurement.gbps = measurement.failed ? 0 : measurement.gbps;
    }
    return measurement;
}
