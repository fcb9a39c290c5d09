/* others.c: chains of other footprints than the best ones, by the same search. For steps that run
 * beside others: which memories two steps share is what slows them down most often, so these are
 * the best ones with bounces through some of the memories only, or with none; NCCL's own, which
 * need not be the best; and all rings of few GPUs. For tasks that see only their own GPUs: the best
 * ones without P2P, on the machine without it. All that is known of sets holds there, too, and what
 * bounds all chains of a pair of ports bounds these. */
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "ring/neighbours.h"
#include "search/task.h"

/* How many rings and chains at least this part of the best one are worth keeping. */
#define WORTH_KEEPING 0.3

enum { FEW_RINGS = 64, FEW_MEMORIES = 4 };

/* The goals are these from now on. */
static void take_goals(struct tccl_task *task, struct tccl_goal *goals, int count, bool closed)
{
    task->goals = goals;
    task->n_goals = count;
    task->n_done = 0;
    task->closed = closed;
    task->pigeonholes = (struct tccl_pigeonholes){0};
    task->latest = (struct tccl_chain){0};
}

static bool allows(const struct tccl_task *task, struct tccl_port port)
{
    return port.via.kind != TCCL_MEMORY || !(task->shun >> port.via.index & 1);
}

/* What is measured above the bound shows that the bound was too low. */
static void keep(struct tccl_table *table, const struct tccl_chain *chain, double gbps)
{
    struct tccl_result *result = tccl_table_place(table, chain);
    if (result)
        result->bound = fmax(result->bound, gbps);
    tccl_table_keep_other(table, chain, gbps);
}

/* How good chains that read can be is proven where that is looked for to its end. */
static void lift(const struct tccl_task *task, struct tccl_result *known, double bound)
{
    if (task->reads && task->options->others <= 0 && isfinite(bound))
        known->bound = fmax(known->bound, bound);
}

/* What is known bounds chains whose P2P edges write. */
static double first_bound(const struct tccl_task *task, double known)
{
    return task->reads ? INFINITY : known;
}

static int find_ring(struct tccl_task *task, struct tccl_table *table)
{
    struct tccl_result result = {.bound = first_bound(task, tccl_table_ring(table)->bound)};
    struct tccl_goal goal = {.result = &result};
    if (__builtin_popcount(table->gpus) < 2)
        return 0;
    take_goals(task, &goal, 1, true);
    int status = tccl_task_prove_ring(task);
    lift(task, tccl_table_ring(table), result.bound);
    if (status >= 0 && result.chain.n_gpus &&
        result.gbps >= WORTH_KEEPING * tccl_table_ring(table)->gbps)
        keep(table, &result.chain, result.gbps);
    task->n_goals = 0;
    return status < 0 ? -1 : 0;
}

/* Can the pair of ports have a chain that can be measured, and is wanted? hosts: those without P2P,
 * where the best one of its NICs has some. */
static bool is_wanted(const struct tccl_task *task, struct tccl_table *table, int pair, bool hosts)
{
    struct tccl_port entry = table->ports[pair / table->n_ports];
    struct tccl_port exit = table->ports[pair % table->n_ports];
    const struct tccl_result *best = hosts ? tccl_table_best(table, entry.nic, exit.nic) : NULL;
    return isfinite(table->results[pair].bound) && table->results[pair].bound > 0 &&
           allows(task, entry) && allows(task, exit) &&
           (!hosts || (best && tccl_chain_has_p2p(&best->chain)));
}

/* What is known already is where those without P2P begin. Returns how many. */
static int list_goals(const struct tccl_task *task, struct tccl_table *table, bool hosts,
                      struct tccl_goal *goals, struct tccl_result *results)
{
    int n = table->n_ports, count = 0;
    for (int i = 0; i < n * n; i++) {
        const struct tccl_result *pair = &table->results[i];
        if (!is_wanted(task, table, i, hosts))
            continue;
        results[count] = (struct tccl_result){.bound = first_bound(task, pair->bound)};
        if (hosts && pair->chain.n_gpus && !tccl_chain_has_p2p(&pair->chain)) {
            results[count].gbps = pair->gbps;
            results[count].chain = pair->chain;
        }
        goals[count] = (struct tccl_goal){
            .entry = table->ports[i / n], .exit = table->ports[i % n], .result = &results[count]};
        count++;
    }
    return count;
}

/* Of the goals with the NICs of this one, is it the best? */
static bool is_best(const struct tccl_task *task, int goal)
{
    const struct tccl_goal *own = &task->goals[goal];
    for (int i = 0; i < task->n_goals; i++) {
        const struct tccl_goal *other = &task->goals[i];
        if (other->entry.nic == own->entry.nic && other->exit.nic == own->exit.nic &&
            (other->result->gbps > own->result->gbps ||
             (other->result->gbps == own->result->gbps && i < goal)))
            return false;
    }
    return true;
}

static void keep_best(const struct tccl_task *task, struct tccl_table *table)
{
    for (int i = 0; i < task->n_goals; i++) {
        const struct tccl_result *result = task->goals[i].result;
        struct tccl_chain ends = {.entry = task->goals[i].entry, .exit = task->goals[i].exit};
        lift(task, tccl_table_place(table, &ends), result->bound);
        const struct tccl_result *best =
            tccl_table_best(table, task->goals[i].entry.nic, task->goals[i].exit.nic);
        if (result->chain.n_gpus > 1 && best && result->gbps >= WORTH_KEEPING * best->gbps &&
            is_best(task, i))
            keep(table, &result->chain, result->gbps);
    }
}

/* The bound over all pairs of ports of these NICs; infinity where one could not be looked at. */
static double bound_of(const struct tccl_task *task, const struct tccl_table *table, int entry,
                       int exit)
{
    int n = table->n_ports;
    double bound = 0;
    for (int i = 0; i < n * n; i++)
        if (table->ports[i / n].nic == entry && table->ports[i % n].nic == exit &&
            !isfinite(table->results[i].bound))
            return INFINITY;
    for (int i = 0; i < task->n_goals; i++)
        if (task->goals[i].entry.nic == entry && task->goals[i].exit.nic == exit)
            bound = fmax(bound, task->goals[i].result->bound);
    return bound;
}

/* The best one of each pair of NICs. */
static int find_chains(struct tccl_task *task, struct tccl_table *table, bool hosts)
{
    size_t n = (size_t)tccl_table_pairs(table) + 1;
    cleanup_free struct tccl_goal *goals = calloc(n, sizeof(*goals));
    cleanup_free struct tccl_result *results = calloc(n, sizeof(*results));
    if (!goals || !results)
        return tccl_fail(task->err, "out of memory for %d port pairs", (int)n - 1);
    take_goals(task, goals, list_goals(task, table, hosts, goals, results), false);
    int status = tccl_task_prove_cells(task);
    if (status >= 0 && hosts) {
        tccl_table_drop(table, TCCL_HOST);
        tccl_task_bound_without_avoided(task);
        for (int i = 0; i < task->n_goals; i++) {
            struct tccl_result result = *task->goals[i].result;
            if (!result.chain.n_gpus)
                continue;
            result.bound = bound_of(task, table, result.chain.entry.nic, result.chain.exit.nic);
            tccl_table_keep_host(table, &result);
        }
    } else if (status >= 0) {
        keep_best(task, table);
    }
    task->n_goals = 0;
    return status < 0 ? -1 : 0;
}

/* Keeps the chain if NCCL can be made to build it, and it is worth it. Returns 0; 1: no other set
 * may be asked for; -1 with err. */
static int keep_measured(struct tccl_task *task, struct tccl_table *table,
                         const struct tccl_chain *chain)
{
    struct tccl_set walk;
    double gbps;
    if (tccl_expressible(task->search->machine, chain, 1, NULL) != 0)
        return 0;
    tccl_chain_walk(chain, &walk);
    int status = tccl_search_meter_measure_itself(&task->search->meter, &walk, &gbps, task->err);
    if (status == 0 && gbps > 0 && gbps >= WORTH_KEEPING * tccl_table_ring(table)->gbps)
        keep(table, chain, gbps);
    return status;
}

struct every {
    int n;
    struct tccl_chain rings[FEW_RINGS];
};

static int visit_ring(void *context, const struct tccl_chain *chain, double *above UNUSED)
{
    struct every *every = context;
    every->rings[every->n++] = *chain;
    return every->n == FEW_RINGS;
}

/* All rings, where they are few. */
static int find_every_ring(struct tccl_task *task, struct tccl_table *table)
{
    struct tccl_result result = {.bound = tccl_table_ring(table)->bound};
    struct tccl_goal goal = {.result = &result};
    struct every every = {.n = 0};
    struct tccl_chain last;
    int status = 0;
    take_goals(task, &goal, 1, true);
    struct tccl_route route =
        tccl_goal_route(task, &goal, WORTH_KEEPING * tccl_table_ring(table)->gbps);
    route.visit = visit_ring;
    route.context = &every;
    if (tccl_table_ring(table)->chain.n_gpus &&
        tccl_route_count(&route, FEW_RINGS + 1) <= FEW_RINGS)
        tccl_route_find(&route, &last);
    task->n_goals = 0;
    for (int i = 0; i < every.n && status == 0; i++)
        status = keep_measured(task, table, &every.rings[i]);
    return status < 0 ? -1 : 0;
}

/* What several generations have alike is asked for once. */
static int keep_baselines(struct tccl_task *task, struct tccl_table *table,
                          const struct tccl_baseline baselines[static TCCL_GENERATIONS])
{
    for (int i = 0; i < TCCL_GENERATIONS; i++) {
        int status = i > 0 && tccl_baseline_equal(&baselines[i], &baselines[i - 1]);
        for (int k = 0; k < baselines[i].set.n && status == 0; k++)
            status = keep_measured(task, table, &baselines[i].set.rings[k]);
        if (status < 0)
            return -1;
    }
    return 0;
}

static int find_within(struct tccl_task *task, struct tccl_table *table, uint32_t memories)
{
    uint32_t all = (1u << task->search->machine->n_memories) - 1;
    task->shun = all & ~memories;
    return find_ring(task, table) != 0 || find_chains(task, table, false) != 0 ? -1 : 0;
}

/* No memory; of few memories all parts; of more one, two neighbours, four and so on. */
static int find_footprints(struct tccl_task *task, struct tccl_table *table)
{
    int n = task->search->machine->n_memories;
    int status = find_within(task, table, 0);
    for (uint32_t part = 1; n <= FEW_MEMORIES && part < (1u << n) - 1 && status == 0; part++)
        status = find_within(task, table, part);
    for (int width = 1; n > FEW_MEMORIES && width < n && status == 0; width *= 2)
        for (int first = 0; first < n && status == 0; first += width)
            status = find_within(task, table, ((1u << width) - 1) << first);
    task->shun = 0;
    return status;
}

/* Of rings that are as fast, the one that leaves the memories of other GPUs to these. What was
 * proven within the gap still is. */
static void leave_room(struct tccl_task *task, struct tccl_table *table)
{
    const struct tccl_machine *machine = task->search->machine;
    double least =
        fmax(tccl_table_ring(table)->gbps * (1 - fmin(task->gap, TCCL_MOST_FOR_ROOM)),
             fmin(tccl_table_ring(table)->gbps, tccl_table_ring(table)->bound / (1 + task->gap))) *
        (1 - 1e-9);
    struct tccl_result *ring = tccl_table_ring(table), *best = ring, *other = NULL;
    if (table->gpus == (UINT32_C(1) << machine->n_gpus) - 1 || !ring->chain.n_gpus)
        return;
    while ((other = tccl_table_next(table, other, TCCL_OTHERS))) {
        int far = tccl_chain_far(machine, &other->chain),
            fewest = tccl_chain_far(machine, &best->chain);
        if (other->chain.closed && other->gbps >= least &&
            (far < fewest || (far == fewest && other->gbps > best->gbps)))
            best = other;
    }
    tccl_table_swap(ring, best);
}

int tccl_task_find_others(struct tccl_task *task, struct tccl_table *table)
{
    tccl_table_drop(table, TCCL_OTHER);
    if (find_every_ring(task, table) != 0 || find_footprints(task, table) != 0 ||
        keep_baselines(task, table, table->baselines[1]) != 0 ||
        keep_baselines(task, table, table->baselines[0]) != 0)
        return -1;
    leave_room(task, table);
    return task->search->meter.stopped;
}

/* ---- without P2P ---- */

static int find_host_ring(struct tccl_task *task, struct tccl_table *table)
{
    struct tccl_result *own = tccl_table_host_ring(table);
    struct tccl_goal goal = {.result = own};
    if (!tccl_chain_has_p2p(&tccl_table_ring(table)->chain))
        return 0;
    *own = (struct tccl_result){.bound = tccl_table_ring(table)->bound, .part = TCCL_HOST};
    take_goals(task, &goal, 1, true);
    int status = tccl_task_prove_ring(task);
    if (status >= 0)
        tccl_task_bound_without_avoided(task);
    return status;
}

/* That the sets which these may cost are used up is no reason to go on later. */
int tccl_task_find_hosts(struct tccl_task *task, struct tccl_table *table)
{
    if (find_host_ring(task, table) < 0 || find_chains(task, table, true) < 0)
        return -1;
    return task->search->meter.stopped;
}

/* ---- by reading ---- */

int tccl_task_find_reads(struct tccl_task *task, struct tccl_table *table)
{
    uint32_t all = (1u << task->search->machine->n_memories) - 1;
    int status = tccl_task_reads_lose(task, table);
    if (status != 0)
        return status < 0 ? -1 : task->search->meter.stopped;
    task->reads = true;
    status = find_within(task, table, all);
    if (status == 0 && task->options->others > 0)
        status = find_within(task, table, 0);
    task->reads = false;
    task->shun = 0;
    /* The better kind is the best one. */
    struct tccl_result *own = NULL, *best;
    while ((own = tccl_table_next(table, own, TCCL_OTHERS)))
        if (tccl_chain_reads(&own->chain) && (best = tccl_table_place(table, &own->chain)) &&
            own->gbps > best->gbps * (1 + fmax(task->options->noise, 1e-9)))
            tccl_table_swap(best, own);
    return status < 0 ? -1 : task->search->meter.stopped;
}
