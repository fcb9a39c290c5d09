/* bench-optimum.c: the best ring that a stock NCCL can be made to build over some nodes, by trying
 * all of them (optimum-sets.h), then the best set of up to eight rings, and what none exceeds: each
 * ring enters and leaves each GPU once, so of all ways in which so many transfers enter it at once
 * the best one is a bound. It shares nothing with the search but the model. */
#include <math.h>

#include "bench.h"
#include "chain/chain-text.h"
#include "chain/chain.h"
#include "optimum-sets.h"

enum { MAX_NODES = 8, STEPS_A_LOOK = 4096 };

struct node {
    const struct tccl_model *model;
    const struct tccl_machine *machine;
    double cells[TCCL_MAX_NICS][TCCL_MAX_NICS]; /* by entry and exit NIC; 0: none above the floor */
};

static double until;  /* processor time */
static long steps;    /* sets looked at */
static bool complete; /* no part was left out for want of time */

static struct tccl_device device(int kind, int index)
{
    return (struct tccl_device){kind, index};
}

/* Is there time left? */
static bool goes_on(void)
{
    if (steps++ % STEPS_A_LOOK == 0 && bench_cpu() > until)
        complete = false;
    return complete;
}

/* The best ring of a node by itself, or the best chain between two NICs, if it is better than the
 * floor; else 0. P2P edges write in all of it, or read. */
static double best_ring(const struct node *node, bool closed, int entry, int exit, double floor)
{
    double best = 0;
    const struct tccl_port in = {.nic = (uint8_t)entry, .via.kind = TCCL_NIC},
                           out = {.nic = (uint8_t)exit, .via.kind = TCCL_NIC};
    for (int reads = 0; reads < 2; reads++) {
        const struct optimum_kind kind = {
            .model = node->model, .closed = closed, .reads = reads, .ports = {&in, &out}};
        bool late;
        double gbps = optimum_of(&kind, 1, fmax(best, floor) * (1 + 1e-9), until, &steps, &late);
        best = fmax(best, gbps);
        complete = complete && !late;
    }
    return best;
}

/* All NICs of all nodes, one node after the other: the best ring of chains above the floor. */
static double close_ring(const struct node *nodes, int count, int at, int first, int entry)
{
    const struct node *own = &nodes[at], *next = &nodes[(at + 1) % count];
    double best = 0;
    for (int exit = 0; exit < own->machine->n_nics; exit++)
        for (int in = 0; in < next->machine->n_nics; in++) {
            const struct tccl_nic *from = &own->machine->nics[exit], *to = &next->machine->nics[in];
            double least = fmin(own->cells[entry][exit], fmin(from->gbps, to->gbps));
            bool last = at + 1 == count;
            if (strcmp(from->fabric, to->fabric) != 0 || least <= best || (last && in != first))
                continue;
            if (!last)
                least = fmin(least, close_ring(nodes, count, at + 1, first, in));
            best = fmax(best, least);
        }
    return best;
}

static double optimum(struct node *nodes, int count, double floor)
{
    double best = floor;
    if (count == 1)
        return fmax(floor, best_ring(&nodes[0], true, 0, 0, floor));
    /* The chains between all NICs of each node; equal nodes share them. */
    for (int i = 0; i < count; i++) {
        int n = nodes[i].machine->n_nics;
        if (i > 0 && nodes[i].model == nodes[i - 1].model) {
            memcpy(nodes[i].cells, nodes[i - 1].cells, sizeof(nodes[i].cells));
            continue;
        }
        for (int k = 0; k < n * n; k++)
            nodes[i].cells[k / n][k % n] = best_ring(&nodes[i], false, k / n, k % n, floor);
    }
    for (int first = 0; first < nodes[0].machine->n_nics; first++)
        best = fmax(best, close_ring(nodes, count, 0, first, first));
    return best;
}

/* Sets of rings. */

/* What may enter a GPU, or leave it, and the most that some of these reach together. */
struct gate {
    const struct tccl_model *model;
    int n, rings;
    tccl_transfer ways[TCCL_MAX_GPUS + TCCL_MAX_MEMORIES + TCCL_MAX_NICS];
    tccl_transfer chosen[TCCL_CHAIN_RINGS];
    double best; /* of all rings together */
};

static void add_way(struct gate *gate, struct tccl_device who, bool reads, struct tccl_device whom)
{
    tccl_transfer transfer = tccl_transfer_make(who, reads, whom);
    if (tccl_machine_allows(tccl_model_machine(gate->model), transfer, NULL) == 0)
        gate->ways[gate->n++] = transfer;
}

/* P2P edges write. */
static void list_ways(struct gate *gate, int gpu, bool enter, bool closed)
{
    const struct tccl_machine *machine = tccl_model_machine(gate->model);
    struct tccl_device own = device(TCCL_GPU, gpu);
    for (int i = 0; i < machine->n_gpus; i++)
        if (i != gpu && machine->p2p[i][gpu])
            add_way(gate, enter ? device(TCCL_GPU, i) : own, false,
                    enter ? own : device(TCCL_GPU, i));
    for (int i = 0; i < machine->n_memories; i++)
        add_way(gate, own, enter, device(TCCL_MEMORY, i));
    for (int i = 0; i < machine->n_nics && !closed; i++)
        add_way(gate, device(TCCL_NIC, i), !enter, own);
}

/* All choices of one way for each ring, in ascending order, from this one on. */
static void choose_ways(struct gate *gate, int from, int count)
{
    double gbps = 0;
    if (count > 0 && (tccl_model_slowest(gate->model, gate->chosen, count, &gbps, NULL) != 0 ||
                      gate->rings * gbps <= gate->best * (1 + 1e-9)))
        return;
    if (count == gate->rings) {
        gate->best = gate->rings * gbps;
        return;
    }
    for (int i = from; i < gate->n && goes_on(); i++) {
        gate->chosen[count] = gate->ways[i];
        choose_ways(gate, i, count + 1);
    }
}

/* No set of so many rings on the node is faster; infinite where there was no time to find out. */
static void set_bounds(const struct node *node, bool closed, double bounds[TCCL_CHAIN_RINGS + 1])
{
    for (int rings = 0; rings <= TCCL_CHAIN_RINGS; rings++)
        bounds[rings] = INFINITY;
    for (int i = 0; i < 2 * node->machine->n_gpus; i++) {
        struct gate gate = {.model = node->model};
        list_ways(&gate, i / 2, i % 2 == 0, closed);
        for (gate.rings = 1; gate.rings <= TCCL_CHAIN_RINGS; gate.rings++) {
            gate.best = 0;
            choose_ways(&gate, 0, 0);
            if (complete)
                bounds[gate.rings] = fmin(bounds[gate.rings], gate.best);
        }
    }
}

/* The best set over all nodes, each ring by any NICs: as many rings on each of them. */
struct best_set {
    double gbps, bound; /* bound: none is faster; INFINITY: unknown */
    int rings;
    bool all; /* none is faster, as all were tried that may be */
};

/* seconds: processor time for each model, and as much for its bounds. */
static void find_sets(const struct node *nodes, int count, double seconds, struct best_set *best)
{
    double gbps[TCCL_CHAIN_RINGS + 1], most[TCCL_CHAIN_RINGS + 1], bounds[TCCL_CHAIN_RINGS + 1];
    for (int rings = 1; rings <= TCCL_CHAIN_RINGS; rings++)
        gbps[rings] = most[rings] = INFINITY;
    for (int i = 0; i < count; i++) {
        struct optimum found;
        if (i > 0 && nodes[i].model == nodes[i - 1].model)
            continue;
        complete = true;
        until = bench_cpu() + seconds;
        set_bounds(&nodes[i], count == 1, bounds);
        optimum_sets(nodes[i].model, count == 1, bounds, seconds, &found);
        /* What was found by rules written anew can be built by those of the product as well. */
        struct tccl_error err = {""};
        for (int rings = 1; rings <= TCCL_CHAIN_RINGS; rings++) {
            char text[TCCL_RINGS_TEXT];
            if (found.gbps[rings] <= 0 ||
                (tccl_ring_set_check(&found.sets[rings], nodes[i].machine, &err) == 0 &&
                 tccl_expressible(nodes[i].machine, found.sets[rings].rings, rings, &err) == 0))
                continue;
            tccl_ring_set_format(&found.sets[rings], nodes[i].machine, text);
            fprintf(stderr, "tccl: bench: %s: %s\n", text, err.text);
            exit(1);
        }
        for (int rings = 1; rings <= TCCL_CHAIN_RINGS; rings++) {
            gbps[rings] = fmin(gbps[rings], found.gbps[rings]);
            most[rings] = fmin(most[rings], found.all[rings] ? found.gbps[rings] : bounds[rings]);
        }
    }
    /* By the number of rings, what all nodes have, and what none of them exceeds. */
    *best = (struct best_set){.gbps = 0};
    for (int rings = 1; rings <= TCCL_CHAIN_RINGS; rings++) {
        best->bound = fmax(best->bound, most[rings]);
        if (gbps[rings] <= best->gbps * (1 + 1e-9))
            continue;
        best->gbps = gbps[rings];
        best->rings = rings;
    }
    best->all = best->bound <= best->gbps * (1 + 1e-6);
}

int main(int argc, char **argv)
{
    struct node nodes[MAX_NODES] = {0};
    struct tccl_model *models[MAX_NODES] = {0};
    int count = argc - 3;
    if (count < 1 || count > MAX_NODES) {
        fprintf(stderr, "Usage: bench-optimum FLOOR SECONDS MODEL...\nFLOOR: GB/s that are reached "
                        "anyway. MODEL: one for each node.\n");
        return 2;
    }
    for (int i = 0; i < count; i++) {
        bool same = i > 0 && strcmp(argv[i + 3], argv[i + 2]) == 0;
        MUST(!same && tccl_model_read(argv[i + 3], &models[i], ERR) < 0);
        nodes[i].model = same ? nodes[i - 1].model : models[i];
        nodes[i].machine = tccl_model_machine(nodes[i].model);
    }
    complete = true;
    until = bench_cpu() + strtod(argv[2], NULL);
    double best = optimum(nodes, count, strtod(argv[1], NULL));
    printf("{\"gbps\": %.9g, \"complete\": %s, \"sets\": %ld", best, complete ? "true" : "false",
           steps);
    struct best_set sets;
    find_sets(nodes, count, strtod(argv[2], NULL), &sets);
    printf(", \"set_gbps\": %.9g, \"set_rings\": %d, \"all_sets\": %s, \"set_bound\": ", sets.gbps,
           sets.rings, sets.all ? "true" : "false");
    if (isfinite(sets.bound))
        printf("%.9g}\n", sets.bound);
    else
        printf("null}\n");
    for (int i = 0; i < count; i++)
        tccl_model_free(models[i]);
    return 0;
}
