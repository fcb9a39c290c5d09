/* node-class.c: a chain table as the ring sees it: of its entries the best one for each way through
 * the node. */
#include "ring/node-class.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/grow.h"
#include "ring/latency.h"
#include "ring/neighbours.h"
#include "ring/reach.h"

void tccl_node_class_free(struct tccl_node_class *class)
{
    if (!class)
        return;
    free(class->seen);
    free(class->beside);
    free(class);
}

struct tccl_node_class *tccl_node_class_new(int n_nics)
{
    struct tccl_node_class *class = calloc(1, sizeof(*class));
    if (!class)
        return NULL;
    class->n_nics = n_nics;
    class->n_seen = tccl_class_first_set(class);
    class->room = (size_t) class->n_seen;
    class->seen = calloc(class->room, sizeof(*class->seen));
    if (!class->seen) {
        free(class);
        return NULL;
    }
    return class;
}

/* ---- chains and rings ---- */

bool tccl_view_allows(enum tccl_view view, const struct tccl_chain *chain)
{
    bool reads = tccl_chain_reads(chain);
    return view == TCCL_VIEW_HIDDEN   ? !tccl_chain_has_p2p(chain)
           : view == TCCL_VIEW_WRITES ? !reads
           : view == TCCL_VIEW_READS  ? reads || !tccl_chain_has_p2p(chain)
                                      : true;
}

/* One of the others counts where the best one between its ports may not be seen. */
static bool counts(const struct tccl_table *table, const struct tccl_result *own,
                   enum tccl_view view)
{
    if (!tccl_view_allows(view, &own->chain) ||
        (own->part == TCCL_HOST && view != TCCL_VIEW_HIDDEN))
        return false;
    if (own->part != TCCL_OTHER)
        return true;
    const struct tccl_result *best = tccl_table_place(table, &own->chain);
    return view != TCCL_VIEW_HIDDEN && best && best->chain.n_gpus &&
           !tccl_view_allows(view, &best->chain);
}

static struct tccl_seen *place_of(const struct tccl_node_class *class,
                                  const struct tccl_chain *chain)
{
    return chain->closed ? tccl_class_ring(class)
                         : &class->seen[chain->entry.nic * class->n_nics + chain->exit.nic];
}

/* With nobody beside it. */
static void take(struct tccl_seen *seen, const struct tccl_result *result)
{
    const struct tccl_worth alone = {.gbps = result->gbps, .left = 1};
    tccl_seen_take(seen, result, &alone, false);
}

/* For each pair of NICs the best port pair, and the highest bound of all of them. Without P2P the
 * bounds of all chains hold, too. */
static void fill_singles(struct tccl_node_class *class, const struct tccl_table *table,
                         enum tccl_view view)
{
    const int n = table->n_ports;
    const struct tccl_result *own = NULL;
    struct tccl_seen *ring = tccl_class_ring(class);
    for (int i = 0; i < tccl_table_pairs(table); i++) {
        struct tccl_seen *seen =
            &class->seen[table->ports[i / n].nic * class->n_nics + table->ports[i % n].nic];
        seen->bound = fmax(seen->bound, table->results[i].bound);
    }
    ring->bound = class->n_gpus > 1 ? tccl_table_ring(table)->bound : 0;
    if (view == TCCL_VIEW_HIDDEN)
        ring->bound = fmin(ring->bound, tccl_table_host_ring(table)->bound);
    while ((own = tccl_table_next(table, own, TCCL_SINGLES))) {
        struct tccl_seen *seen = place_of(class, &own->chain);
        bool faster = own->gbps > seen->gbps; /* few are: the rest is not looked at */
        if ((!faster && own->part != TCCL_HOST) || !counts(table, own, view))
            continue;
        if (own->part == TCCL_HOST)
            seen->bound = fmin(seen->bound, own->bound);
        if (faster)
            take(seen, own);
    }
}

/* On a part of a node: chains that are as fast but for the noise, and leave more memories that are
 * next to other GPUs only to these, or as many, and are faster, for steps that come. */
static void leave_room(struct tccl_node_class *class, const struct tccl_table *table,
                       const struct tccl_machine *machine, enum tccl_view view)
{
    double best[TCCL_MAX_NICS * TCCL_MAX_NICS];
    double noise = fmax(fmin(table->noise, TCCL_MOST_FOR_ROOM), 1e-9);
    if (class->n_gpus == machine->n_gpus)
        return;
    for (int i = 0; i < tccl_class_pairs(class); i++)
        best[i] = class->seen[i].gbps;
    for (const struct tccl_result *own = NULL; (own = tccl_table_next(table, own, TCCL_SINGLES));) {
        struct tccl_seen *seen = place_of(class, &own->chain);
        if (own->chain.closed || !(own->gbps > 0) ||
            own->gbps < best[seen - class->seen] * (1 - noise) ||
            !tccl_view_allows(view, &own->chain))
            continue;
        int far = tccl_chain_far(machine, &own->chain);
        int now = tccl_chain_far(machine, &seen->set.rings[0]);
        if (far < now || (far == now && own->gbps > seen->gbps))
            take(seen, own);
    }
}

/* ---- what NCCL builds ---- */

static void add_ascending(uint8_t *nics, int count, uint8_t nic)
{
    for (; count > 0 && nics[count - 1] > nic; count--)
        nics[count] = nics[count - 1];
    nics[count] = nic;
}

static void fill_baseline(struct tccl_class_baseline *baseline, const struct tccl_table *table,
                          int generation)
{
    const struct tccl_baseline *chains = &table->baselines[0][generation];
    *baseline = (struct tccl_class_baseline){.n_chains = chains->set.n};
    for (int closed = 0; closed < 2; closed++) {
        const struct tccl_baseline *own = &table->baselines[closed][generation];
        baseline->gbps[closed] = own->gbps;
        baseline->share[closed] = 1;
        baseline->bounces[closed] = tccl_bounces(own->set.rings, own->set.n);
        baseline->ends[closed] = tccl_baseline_ends(own);
        baseline->ring[closed] = own->ring;
        baseline->tree[closed] = own->tree;
    }
    for (int i = 0; i < chains->set.n; i++) {
        add_ascending(baseline->entry_nics, i, chains->set.rings[i].entry.nic);
        add_ascending(baseline->exit_nics, i, chains->set.rings[i].exit.nic);
    }
}

static bool is_on(const struct tccl_machine *machine, int nic, const char *fabric)
{
    return strcmp(machine->nics[nic].fabric, fabric) == 0;
}

const char *tccl_table_fabric(const struct tccl_table *table, const struct tccl_machine *machine)
{
    const struct tccl_baseline *newest = &table->baselines[0][TCCL_NEWEST];
    bool one = machine->n_nics > 0;
    for (int i = 1; i < machine->n_nics; i++)
        one = one && is_on(machine, i, machine->nics[0].fabric);
    if (one)
        return machine->nics[0].fabric;
    if (newest->set.n == 0)
        return NULL;
    const char *fabric = machine->nics[newest->set.rings[0].entry.nic].fabric;
    for (int i = 0; i < TCCL_GENERATIONS; i++) {
        const struct tccl_baseline *own = &table->baselines[0][i];
        for (int k = 0; k < own->set.n; k++)
            if (!is_on(machine, own->set.rings[k].entry.nic, fabric) ||
                !is_on(machine, own->set.rings[k].exit.nic, fabric))
                return NULL;
        if (own->set.n == 0)
            return NULL;
    }
    return fabric;
}

/* ---- ring sets ---- */

void tccl_set_nics(const struct tccl_ring_set *set, int *in, int *out)
{
    for (int i = 0; i < set->n; i++) {
        in[i] = set->rings[i].closed ? -1 : set->rings[i].entry.nic;
        out[i] = set->rings[i].closed ? -1 : set->rings[i].exit.nic;
    }
}

double tccl_class_hops(const struct tccl_node_class *class, const int *in, const int *out,
                       int rings)
{
    int counts[2][TCCL_MAX_NICS] = {{0}};
    double rate = INFINITY;
    for (int i = 0; i < rings; i++) {
        counts[0][in[i]]++;
        counts[1][out[i]]++;
    }
    for (int i = 0; i < rings; i++)
        rate = fmin(rate, fmin(class->nics[in[i]].gbps / counts[0][in[i]],
                               class->nics[out[i]].gbps / counts[1][out[i]]));
    return rings * rate;
}

static bool one_fabric(const struct tccl_node_class *class, int a, int b)
{
    return a == b ||
           (class && a >= 0 && b >= 0 && strcmp(class->nics[a].fabric, class->nics[b].fabric) == 0);
}

/* Do the set's chains have these NICs, in some order? With a class: NICs of the same fabrics. */
static bool fits(const struct tccl_node_class *class, const struct tccl_ring_set *set,
                 const int *in, const int *out, int rings, uint8_t *order)
{
    int own_in[TCCL_CHAIN_RINGS], own_out[TCCL_CHAIN_RINGS];
    uint32_t taken = 0;
    if (set->n != rings)
        return false;
    tccl_set_nics(set, own_in, own_out);
    for (int i = 0; i < rings; i++) {
        int j = 0;
        while (j < rings && (taken >> j & 1 || !one_fabric(class, in[i], own_in[j]) ||
                             !one_fabric(class, out[i], own_out[j])))
            j++;
        if (j == rings)
            return false;
        taken |= UINT32_C(1) << j;
        order[i] = (uint8_t)j;
    }
    return true;
}

/* Between equal nodes, GB/s. */
static double reached(const struct tccl_node_class *class, const struct tccl_seen *seen)
{
    int in[TCCL_CHAIN_RINGS], out[TCCL_CHAIN_RINGS];
    if (seen->set.n == 0 || seen->set.rings[0].closed)
        return seen->gbps;
    tccl_set_nics(&seen->set, in, out);
    return fmin(seen->gbps, tccl_class_hops(class, in, out, seen->set.n));
}

int tccl_class_best_rings(const struct tccl_node_class *class)
{
    double best = 0;
    int rings = 0;
    for (int i = 0; i < class->n_seen; i++) {
        const struct tccl_seen *seen = &class->seen[i];
        if (seen->set.n == 0 || seen->set.rings[0].closed ||
            !(reached(class, seen) > best * (seen->set.n > 1 ? 1 + 1e-3 : 1)))
            continue;
        best = reached(class, seen);
        rings = seen->set.n;
    }
    return rings;
}

const struct tccl_seen *tccl_class_best_set(const struct tccl_node_class *class, bool closed)
{
    const struct tccl_seen *best = NULL;
    for (int i = tccl_class_first_set(class); i < class->n_seen; i++)
        if (class->seen[i].set.rings[0].closed == closed &&
            (!best || reached(class, &class->seen[i]) > reached(class, best)))
            best = &class->seen[i];
    return best;
}

int tccl_job_sets(const struct tccl_table *table, const struct tccl_machine *machine,
                  struct tccl_seen best[static 2])
{
    cleanup_class struct tccl_node_class *class =
        tccl_node_class_from_table(table, machine, TCCL_VIEW_JOB);
    for (int closed = 0; class && closed < 2; closed++) {
        const struct tccl_seen *own = tccl_class_best_set(class, closed);
        best[closed] = own ? *own : (struct tccl_seen){0};
    }
    return class ? 0 : -1;
}

int tccl_node_class_add_set(struct tccl_node_class *class, const struct tccl_seen *set)
{
    int in[TCCL_CHAIN_RINGS], out[TCCL_CHAIN_RINGS];
    uint8_t order[TCCL_CHAIN_RINGS];
    struct tccl_seen own = *set;
    if (!(own.alone > 0)) {
        own.alone = own.gbps;
        own.share = 1;
    }
    tccl_set_nics(&own.set, in, out);
    for (int i = tccl_class_first_set(class); i < class->n_seen; i++)
        if (tccl_ring_set_reads(&class->seen[i].set) == tccl_ring_set_reads(&own.set) &&
            fits(class, &class->seen[i].set, in, out, own.set.n, order)) {
            struct tccl_seen *better = &class->seen[i];
            double bound = fmin(better->bound, own.bound); /* of all such sets of as many rings */
            if (reached(class, &own) > reached(class, better))
                *better = own;
            better->bound = fmax(bound, better->gbps);
            return 0;
        }
    if (class->n_seen == tccl_class_first_set(class) + TCCL_CLASS_SETS)
        return 0;
    if (TCCL_GROW(class->seen, (size_t) class->n_seen, class->room) != 0)
        return -1;
    class->seen[class->n_seen++] = own;
    return 0;
}

static double leaves(const struct tccl_seen *seen)
{
    return seen->alone > 0 ? fmin(seen->gbps / seen->alone, seen->share) : seen->share;
}

/* Of two that pass through the node in the same way: what leaves the larger least share, then the
 * faster one, then what an all-reduce has more of. */
static bool is_better(const struct tccl_seen *a, const struct tccl_seen *b)
{
    const double pairs[][2] = {
        {leaves(a), leaves(b)},
        {a->gbps, b->gbps},
        {tccl_reach(a->ends, a->set.rings[0].n_gpus), tccl_reach(b->ends, b->set.rings[0].n_gpus)}};
    for (size_t i = 0; i < sizeof(pairs) / sizeof(*pairs); i++)
        if (fabs(pairs[i][0] - pairs[i][1]) > 1e-6 * pairs[i][1])
            return pairs[i][0] > pairs[i][1];
    return false;
}

const struct tccl_seen *tccl_class_find(const struct tccl_node_class *class, const int *in,
                                        const int *out, int rings,
                                        uint8_t order[static TCCL_CHAIN_RINGS])
{
    const struct tccl_seen *best = NULL;
    uint8_t own[TCCL_CHAIN_RINGS];
    for (int i = 0; i < class->n_seen; i++) {
        const struct tccl_seen *seen = &class->seen[i];
        if (!fits(NULL, &seen->set, in, out, rings, own) || (best && !is_better(seen, best)))
            continue;
        best = seen;
        memcpy(order, own, sizeof(own));
    }
    return best;
}

void tccl_class_drop_twin(struct tccl_node_class *class)
{
    int in[TCCL_CHAIN_RINGS], out[TCCL_CHAIN_RINGS];
    uint8_t order[TCCL_CHAIN_RINGS];
    const struct tccl_seen *last = &class->seen[class->n_seen - 1];
    tccl_set_nics(&last->set, in, out);
    for (int i = tccl_class_first_set(class); i < class->n_seen - 1; i++) {
        struct tccl_seen *own = &class->seen[i];
        if (!fits(class, &own->set, in, out, last->set.n, order))
            continue;
        if (is_better(last, own))
            *own = *last;
        class->n_seen--;
        return;
    }
}

/* ---- from a table ---- */

static bool allows_all(enum tccl_view view, const struct tccl_ring_set *set)
{
    for (int i = 0; i < set->n; i++)
        if (!tccl_view_allows(view, &set->rings[i]))
            return false;
    return true;
}

/* The best single one that is there. */
static const struct tccl_chain *best_chain(const struct tccl_node_class *class, bool closed)
{
    const struct tccl_seen *best = closed ? tccl_class_ring(class) : &class->seen[0];
    for (int i = 1; i < tccl_class_pairs(class) && !closed; i++)
        if (class->seen[i].gbps > best->gbps)
            best = &class->seen[i];
    return &best->set.rings[0];
}

struct tccl_node_class *tccl_node_class_from_table(const struct tccl_table *table,
                                                   const struct tccl_machine *machine,
                                                   enum tccl_view view)
{
    cleanup_class struct tccl_node_class *class = tccl_node_class_new(machine->n_nics);
    if (!class)
        return NULL;
    memcpy(class->machine, table->machine, sizeof(class->machine));
    memcpy(class->source, table->source, sizeof(class->source));
    class->gpus = table->gpus;
    class->moved = table->moved;
    class->n_gpus = __builtin_popcount(table->gpus);
    for (int i = 0; i < machine->n_nics; i++) {
        memcpy(class->nics[i].name, machine->nics[i].name, TCCL_NAME);
        memcpy(class->nics[i].fabric, machine->nics[i].fabric, TCCL_NAME);
        class->nics[i].gbps = machine->nics[i].gbps;
    }
    const char *meets = tccl_table_fabric(table, machine);
    snprintf(class->meets, sizeof(class->meets), "%s", meets ? meets : "");
    class->noise = table->noise;
    for (int i = 0; i < TCCL_GENERATIONS; i++)
        fill_baseline(&class->baselines[i], table, i);
    fill_singles(class, table, view);
    leave_room(class, table, machine, view);
    /* What is single is there. */
    for (const struct tccl_result *own = NULL; (own = tccl_table_next(table, own, TCCL_SETS));) {
        const struct tccl_seen set = {.gbps = own->gbps,
                                      .bound = own->bound,
                                      .ends = tccl_result_ends(own),
                                      .set = *own->set};
        if (!allows_all(view, own->set) ||
            (view != TCCL_VIEW_ALL &&
             tccl_set_takes_room(machine, own->set, best_chain(class, own->chain.closed))))
            continue;
        if (tccl_node_class_add_set(class, &set) != 0)
            return NULL;
    }
    for (int i = 0; i < class->n_seen; i++) /* bounds of several entries have been put together */
        class->seen[i].bound = fmax(class->seen[i].bound, class->seen[i].gbps);
    return tccl_steal(class);
}

void tccl_class_format(const struct tccl_node_class *class, const struct tccl_ring_set *set,
                       char text[static TCCL_RINGS_TEXT])
{
    struct tccl_named_rings named = {.n = set->n};
    for (int i = 0; i < set->n; i++) {
        const struct tccl_chain *chain = &set->rings[i];
        tccl_chain_name_nics(chain, chain->closed ? "" : class->nics[chain->entry.nic].name,
                             chain->closed ? "" : class->nics[chain->exit.nic].name,
                             &named.chains[i]);
    }
    tccl_named_rings_format(&named, text);
}
