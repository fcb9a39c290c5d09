/* hosts.c: the best chains and the best ring without P2P, where the best ones have some: for tasks
 * that see only their own GPUs. The same search, on the machine without P2P; all that is known of
 * sets holds there, too, and what bounds all chains of a pair of ports bounds these. */
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "search/task.h"

void tccl_task_take_goals(struct tccl_task *task, struct tccl_goal *goals, int count, bool closed)
{
    task->goals = goals;
    task->n_goals = count;
    task->n_done = 0;
    task->closed = closed;
    task->pigeonholes = (struct tccl_pigeonholes){0};
    task->latest = (struct tccl_chain){0};
}

static int find_ring(struct tccl_task *task, struct tccl_table *table)
{
    struct tccl_goal goal = {.result = tccl_table_host_ring(table)};
    if (!tccl_chain_has_p2p(&tccl_table_ring(table)->chain))
        return 0;
    *tccl_table_host_ring(table) =
        (struct tccl_result){.bound = tccl_table_ring(table)->bound, .part = TCCL_HOST};
    tccl_task_take_goals(task, &goal, 1, true);
    int status = tccl_task_prove_ring(task);
    if (status >= 0)
        tccl_task_bound_without_avoided(task);
    return status;
}

/* Can the pair of ports have a chain that can be measured, and is the best one of its NICs one with
 * P2P? */
static bool is_wanted(struct tccl_table *table, int pair)
{
    const struct tccl_result *best = tccl_table_best(table, table->ports[pair / table->n_ports].nic,
                                                     table->ports[pair % table->n_ports].nic);
    return best && tccl_chain_has_p2p(&best->chain) && isfinite(table->results[pair].bound) &&
           table->results[pair].bound > 0;
}

/* What is known already is where they begin. Returns how many. */
static int list_goals(struct tccl_table *table, struct tccl_goal *goals,
                      struct tccl_result *results)
{
    int n = table->n_ports, count = 0;
    for (int i = 0; i < n * n; i++) {
        const struct tccl_result *pair = &table->results[i];
        if (!is_wanted(table, i))
            continue;
        results[count] = (struct tccl_result){.bound = pair->bound};
        if (pair->chain.n_gpus && !tccl_chain_has_p2p(&pair->chain))
            results[count] = (struct tccl_result){
                .gbps = pair->gbps, .bound = pair->bound, .chain = pair->chain};
        goals[count] = (struct tccl_goal){
            .entry = table->ports[i / n], .exit = table->ports[i % n], .result = &results[count]};
        count++;
    }
    return count;
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

static void keep_best(const struct tccl_task *task, struct tccl_table *table)
{
    for (int i = 0; i < task->n_goals; i++) {
        struct tccl_result result = *task->goals[i].result;
        if (!result.chain.n_gpus)
            continue;
        result.bound = bound_of(task, table, result.chain.entry.nic, result.chain.exit.nic);
        tccl_table_keep_host(table, &result);
    }
}

static int find_pairs(struct tccl_task *task, struct tccl_table *table)
{
    size_t n = (size_t)tccl_table_pairs(table) + 1;
    cleanup_free struct tccl_goal *goals = calloc(n, sizeof(*goals));
    cleanup_free struct tccl_result *results = calloc(n, sizeof(*results));
    if (!goals || !results)
        return tccl_fail(task->err, "out of memory for %d port pairs", (int)n - 1);
    tccl_task_take_goals(task, goals, list_goals(table, goals, results), false);
    tccl_table_drop(table, TCCL_HOST);
    int status = tccl_task_prove_cells(task);
    if (status >= 0)
        tccl_task_bound_without_avoided(task);
    keep_best(task, table);
    task->n_goals = 0;
    return status;
}

/* That the sets which these may cost are used up is no reason to go on later. */
int tccl_task_find_hosts(struct tccl_task *task, struct tccl_table *table)
{
    int status = find_ring(task, table);
    if (status >= 0)
        status = find_pairs(task, table);
    return status < 0 ? -1 : task->search->meter.stopped;
}
