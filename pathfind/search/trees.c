/* trees.c: the best tree beside a chain. Orders of GPUs are gone through depth first, cut off where
 * known bounds say that they are no better than the best one; what is left is measured, one tree
 * after the other, and what makes it slow bounds the next ones, as with chains (search.h). */
#include <math.h>

#include "search/task.h"

enum {
    STEPS = 100000, /* transfers tried to find one tree */
    FEW_GPUS = 4,   /* these have so few trees that each is measured */
    FOUND = 1,      /* what grow returns: found */
    NONE = 0,
    GAVE_UP = -1
};

static const double FIRST_FACTOR = 1.6, LAST_FACTOR = 1.05;

struct growth {
    struct tccl_task *task;
    const struct tccl_tree_ways *ways;
    double above; /* the bound of what is looked for is above this, GB/s */
    long steps;
    struct tccl_set walk; /* what is on the bounds' stack */
    struct tccl_tree tree;
};

static void take_back(struct growth *growth, int count)
{
    for (; growth->walk.count > count; growth->walk.count--)
        tccl_bounds_pop(growth->task->search->meter.bounds);
}

/* Can these be measured beside what is there, and is the bound still above? */
static bool put(struct growth *growth, const tccl_transfer *transfers, int count)
{
    const struct tccl_search_options *options = growth->task->options;
    struct tccl_set *walk = &growth->walk;
    for (int i = 0; i < count; i++) {
        int at = 0;
        while (at < walk->count && walk->transfers[at] != transfers[i])
            at++;
        if (at < walk->count)
            continue;
        if (walk->count == TCCL_MAX_SET ||
            (options->can && !options->can(options->context, transfers[i])))
            return false;
        growth->steps--;
        walk->transfers[walk->count++] = transfers[i];
        if (tccl_bounds_push(growth->task->search->meter.bounds, transfers[i], growth->above) <=
            growth->above)
            return false;
    }
    return true;
}

/* Puts the GPU at this place of the tree. */
static bool put_gpu(struct growth *growth, int place, int gpu)
{
    struct tccl_tree *tree = &growth->tree;
    tccl_transfer some[4];
    tree->gpus[place] = (uint8_t)gpu;
    return (place == 0 ||
            put(growth, some, tccl_tree_edge(growth->ways, tree->gpus[place - 1], gpu, some))) &&
           (place > 1 || put(growth, some, tccl_tree_end(growth->ways, tree->nic, gpu, some)));
}

/* From this place on. What was found stays on the stack. */
static int grow(struct growth *growth, int place, uint32_t used)
{
    const struct tccl_chain *chain = growth->ways->chain;
    if (place == chain->n_gpus)
        return FOUND;
    for (int i = 0; i < chain->n_gpus; i++) {
        int gpu = chain->gpus[i], before = growth->walk.count, found = NONE;
        if (used >> gpu & 1)
            continue;
        if (growth->steps <= 0)
            return GAVE_UP;
        if (put_gpu(growth, place, gpu))
            found = grow(growth, place + 1, used | UINT32_C(1) << gpu);
        if (found == FOUND)
            return found;
        take_back(growth, before);
        if (found != NONE)
            return found;
    }
    return NONE;
}

/* A tree that may be better than growth->above, over any NIC. */
static int find(struct growth *growth)
{
    int found = NONE;
    growth->steps = STEPS;
    for (int nic = 0; nic < growth->ways->machine->n_nics && found == NONE; nic++) {
        growth->walk.count = 0;
        growth->tree.nic = (uint8_t)nic;
        found = grow(growth, 0, 0);
    }
    for (int i = 0; i < growth->walk.count; i++)
        tccl_bounds_pop(growth->task->search->meter.bounds);
    return found;
}

/* What the tree taught: where there are few, that it is no better itself; else what makes it slow.
 * Returns as tccl_search_meter_measure; 1 also where there is no room for it. */
static int learn(struct growth *growth, double gbps)
{
    struct tccl_search_meter *meter = &growth->task->search->meter;
    const struct tccl_set *walk = &growth->walk;
    int status = 0;
    if (growth->ways->chain->n_gpus > FEW_GPUS)
        status = tccl_search_meter_explain(meter, walk, growth->above, growth->task->err);
    else if (tccl_bounds_limit(meter->bounds, walk, gbps) != 0)
        return tccl_fail(growth->task->err, "out of memory");
    if (status != 0)
        return status;
    return tccl_bounds_of(meter->bounds, walk->transfers, walk->count, growth->above) >
           growth->above;
}

/* Measures what was found. Returns as learn. */
static int try_found(struct growth *growth, struct tccl_tree *tree)
{
    struct tccl_search_meter *meter = &growth->task->search->meter;
    double gbps;
    int status = tccl_search_meter_measure(meter, &growth->walk, &gbps, growth->task->err);
    if (status != 0)
        return status;
    if (gbps > tree->gbps) {
        growth->tree.along = tree->along;
        growth->tree.gbps = gbps;
        *tree = growth->tree;
    }
    return gbps > growth->above ? 0 : learn(growth, gbps);
}

/* Asks first for trees that are much better: what stands in their way bounds most others, too.
 * Returns 0; 1 when stopped; -1 with err. */
static int find_tree(struct tccl_task *task, struct tccl_result *result, long until)
{
    const struct tccl_search_meter *meter = &task->search->meter;
    struct tccl_tree_ways ways;
    struct tccl_tree *tree = &result->tree;
    struct growth growth = {.task = task, .ways = &ways};
    double factor = FIRST_FACTOR;
    tccl_tree_ways(task->search->machine, &result->chain, &ways);
    tccl_tree_along(growth.ways->chain, tree);
    growth.above = 0;
    growth.steps = STEPS;
    growth.tree = *tree;
    growth.walk.count = 0;
    bool fits = true;
    for (int i = 0; fits && i < growth.ways->chain->n_gpus; i++)
        fits = put_gpu(&growth, i, tree->gpus[i]);
    struct tccl_set walk = growth.walk;
    take_back(&growth, 0);
    int status = fits ? tccl_search_meter_measure(&growth.task->search->meter, &walk, &tree->along,
                                                  growth.task->err)
                      : 0;
    tree->gbps = tree->along;
    while (status == 0 && tree->gbps > 0 && meter->asked < until) {
        growth.above = tree->gbps * factor;
        if (find(&growth) == FOUND)
            status = try_found(&growth, tree);
        else if (factor <= 1 + task->gap)
            break;
        else
            factor = factor > LAST_FACTOR ? sqrt(factor) : 1 + task->gap;
    }
    return status < 0 ? -1 : meter->stopped;
}

static int list_best(struct tccl_table *table, int nics,
                     struct tccl_result *list[static TCCL_MAX_NICS * TCCL_MAX_NICS])
{
    int count = 0;
    for (int i = 0; i < nics * nics; i++) {
        struct tccl_result *best = tccl_table_best(table, i / nics, i % nics);
        int at = best && best->chain.n_gpus > 1 ? count++ : -1;
        for (; at > 0 && list[at - 1]->gbps < best->gbps; at--)
            list[at] = list[at - 1];
        if (at >= 0)
            list[at] = best;
    }
    return count;
}

int tccl_task_find_trees(struct tccl_task *task, struct tccl_table *table)
{
    struct tccl_result *list[TCCL_MAX_NICS * TCCL_MAX_NICS];
    const struct tccl_machine *machine = task->search->machine;
    long until = task->search->meter.asked + TCCL_TREE_SETS;
    if (machine->n_nics == 0 ||
        tccl_machine_fabric(machine, 0) != (UINT32_C(1) << machine->n_nics) - 1)
        return 0;
    task->n_goals = list_best(table, machine->n_nics, list);
    for (task->n_done = 0; task->n_done < task->n_goals; task->n_done++) {
        int status =
            task->search->meter.asked < until ? find_tree(task, list[task->n_done], until) : 0;
        if (status != 0)
            return status;
    }
    return 0;
}
