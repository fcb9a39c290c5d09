/* prove.c: proves the best chains of all pairs of ports, best first, and keeps the bounds true when
 * measurements turn out to be wrong. */
#include "search/task.h"

#include <limits.h>
#include <math.h>

enum {
    WITHOUT_AVOIDED =
        3000000,   /* transfers tried for bounds without failed sets: some two seconds */
    MAX_FIRST = 4, /* chains tried as a pair's first one, while they fail */
};

double tccl_bound_lifted(const struct tccl_raise *raises, size_t first, size_t count, double bound)
{
    for (size_t i = first; i < count; i++)
        if (raises[i].low <= bound && bound < raises[i].high)
            bound = raises[i].high;
    return bound;
}

/* What was proven with limits that were raised since holds no more; less still does. */
static void lift_bounds(struct tccl_task *task)
{
    const struct tccl_raise *raises;
    size_t count = tccl_bounds_raises(task->search->meter.bounds, &raises);
    if (count == task->raises)
        return;
    for (int i = 0; i < task->n_goals; i++) {
        struct tccl_result *result = task->goals[i].result;
        bool was_proven = result->bound <= tccl_task_with_gap(task, result->gbps);
        result->bound = tccl_bound_lifted(raises, task->raises, count, result->bound);
        task->unproven |= was_proven && result->bound > tccl_task_with_gap(task, result->gbps);
    }
    task->raises = count;
    task->pigeonholes = (struct tccl_pigeonholes){0};
}

/* Without the symmetry, what was proven with it has to be proven anew. */
static int give_up_symmetry(struct tccl_task *task)
{
    struct tccl_search_meter *meter = &task->search->meter;
    if (!tccl_bounds_assumes(meter->bounds))
        return 0;
    if (tccl_bounds_distrust(meter->bounds) != 0)
        return tccl_fail(task->err, "out of memory");
    for (int i = 0; i < task->n_goals; i++)
        task->goals[i].result->bound = INFINITY;
    task->pigeonholes = (struct tccl_pigeonholes){0};
    task->unproven = true;
    return 0;
}

/* Parts that were measured slower than the whole: those that still are limit nothing. */
static int look_at_doubts(struct tccl_task *task)
{
    struct tccl_search *search = task->search;
    const struct tccl_doubt *doubts;
    while (search->doubts < tccl_bounds_doubts(search->meter.bounds, &doubts)) {
        const struct tccl_doubt doubt = doubts[search->doubts];
        bool slower;
        int status = tccl_search_meter_compare(&search->meter, &doubt.part, &doubt.whole, &slower,
                                               task->err);
        if (status != 0) /* stopped: another time */
            return status < 0 ? -1 : 0;
        search->doubts++;
        if (slower && tccl_bounds_except(search->meter.bounds, &doubt.part) != 0)
            return tccl_fail(task->err, "out of memory");
    }
    return 0;
}

int tccl_task_reconsider(struct tccl_task *task)
{
    if (look_at_doubts(task) != 0)
        return -1;
    lift_bounds(task);
    return task->search->meter.distrusts ? give_up_symmetry(task) : 0;
}

struct nic_pair {
    int entry, exit;
};

/* pair NULL: all do. */
static bool joins(const struct tccl_goal *goal, const struct nic_pair *pair)
{
    return !pair || (goal->entry.nic == pair->entry && goal->exit.nic == pair->exit);
}

/* Proves the best goals, one after the other: as soon as no bound is above the best bandwidth by
 * more than the gap, that best one is done. Returns 0; 1 when stopped; -1 with err. */
static int prove_best(struct tccl_task *task, int wanted, const struct nic_pair *pair)
{
    struct tccl_goal *best, *open;
    while (wanted > 0) {
        if (tccl_task_reconsider(task) != 0)
            return -1;
        /* The goals not done with the best bandwidth (*best) and with the highest bound (*open);
         * NULL if none. */
        best = open = NULL;
        for (int i = 0; i < task->n_goals; i++) {
            struct tccl_goal *goal = &task->goals[i];
            if (goal->done || !joins(goal, pair))
                continue;
            if (!best || goal->result->gbps > best->result->gbps)
                best = goal;
            if (!open || goal->result->bound > open->result->bound)
                open = goal;
        }
        if (!best)
            return 0;
        if (open->result->bound <= tccl_task_with_gap(task, best->result->gbps) ||
            open->result->bound <= 0) {
            best->result->bound = fmin(best->result->bound, open->result->bound);
            tccl_goal_finish(task, best);
            wanted--;
            if (tccl_task_report(task))
                return 1;
            continue;
        }
        enum tccl_improvement outcome =
            tccl_goal_improve(task, open, tccl_goal_ask(task, open, best->result->gbps));
        if (outcome == TCCL_GOAL_FAILED)
            return -1;
        if (outcome == TCCL_GOAL_STOPPED || tccl_task_report(task))
            return 1;
    }
    return 0;
}

/* Tries one chain above some share of the goal's bound. Returns as tccl_search_meter_measure;
 * *found: as tccl_route_find. */
static int try_first(struct tccl_task *task, struct tccl_goal *goal, double above, int *found)
{
    struct tccl_search_meter *meter = &task->search->meter;
    struct tccl_chain chain;
    struct tccl_set walk;
    double gbps;
    int status;
    *found = tccl_goal_find_route(task, goal, above, &chain, &status);
    if (status != 0 || *found < 0)
        return status;
    if (*found == 0) {
        goal->result->bound = fmax(above, goal->result->gbps);
        return 0;
    }
    tccl_chain_walk(&chain, &walk);
    status = tccl_search_meter_measure(meter, &walk, &gbps, task->err);
    if (status == 0)
        status = tccl_goal_offer(task, goal, &chain, &gbps);
    if (status == 0 && tccl_task_has_failed(task, &walk))
        status = tccl_search_meter_explain(meter, &walk, 0, task->err);
    return status;
}

/* A first chain for a goal that nobody proves: one as good as what is known allows. */
static int first_chain(struct tccl_task *task, struct tccl_goal *goal)
{
    static const double share[] = {0.97, 0.8, 0.5, 0};
    double bound = isfinite(goal->result->bound) ? goal->result->bound : 0;
    int tries = 0;
    for (size_t i = 0; i < sizeof(share) / sizeof(share[0]) && tries < MAX_FIRST;) {
        int found;
        int status = try_first(task, goal, bound * share[i], &found);
        if (status != 0 || found < 0 || goal->result->gbps > 0)
            return status;
        i += found == 0;
        tries += found > 0;
    }
    return 0;
}

static int first_chains(struct tccl_task *task)
{
    for (int i = 0; i < task->n_goals; i++) {
        struct tccl_goal *goal = &task->goals[i];
        if (goal->done || goal->result->gbps > 0)
            continue;
        int status = first_chain(task, goal);
        if (status != 0)
            return status;
        tccl_goal_finish(task, goal);
        if (tccl_task_report(task))
            return 1;
    }
    return 0;
}

/* One transfer alone: lowers the goal's bound to its bandwidth, which then limits all that contain
 * it; to 0 if it failed. Returns as tccl_search_meter_measure. */
static int bound_by(struct tccl_task *task, tccl_transfer transfer, struct tccl_result *result)
{
    struct tccl_search_meter *meter = &task->search->meter;
    struct tccl_set one = {.count = 1, .transfers = {transfer}};
    struct tccl_known known = {0};
    double gbps;
    int status = tccl_search_meter_measure(meter, &one, &gbps, task->err);
    if (status != 0)
        return status;
    tccl_bounds_find(meter->bounds, &one, &known);
    double most = fmax(known.upper, tccl_bounds_floor(meter->bounds, &one));
    if (known.failed || tccl_bounds_alone(meter->bounds, transfer) > most)
        status = tccl_search_meter_explain(meter, &one, most, task->err);
    double alone = known.failed ? 0 : tccl_bounds_alone(meter->bounds, transfer);
    result->bound = fmax(fmin(result->bound, alone), result->gbps);
    return status;
}

/* Each NIC's own transfers alone give every pair of ports a first bound. */
static int bound_ports(struct tccl_task *task)
{
    for (int i = 0; i < task->n_goals; i++) {
        struct tccl_goal *goal = &task->goals[i];
        tccl_transfer in[2], out[2];
        tccl_entry_transfers(goal->entry, 0, in);
        tccl_exit_transfers(goal->exit, 0, out);
        int status = bound_by(task, in[0], goal->result);
        if (status == 0)
            status = bound_by(task, out[0], goal->result);
        if (status != 0)
            return status;
    }
    return 0;
}

/* Has a pair of NICs a goal that is proven to be its best? */
static bool cell_done(const struct tccl_task *task, const struct nic_pair *pair)
{
    double best = 0, bound = 0;
    for (int i = 0; i < task->n_goals; i++) {
        if (joins(&task->goals[i], pair)) {
            best = fmax(best, task->goals[i].result->gbps);
            bound = fmax(bound, task->goals[i].result->bound);
        }
    }
    return bound <= tccl_task_with_gap(task, best);
}

/* Hops depend on the NICs, so a network that joins only some of them needs the best of each pair.
 */
static int prove_cells(struct tccl_task *task)
{
    int nics = task->search->machine->n_nics;
    for (int i = 0; i < nics * nics; i++) {
        struct nic_pair pair = {i / nics, i % nics};
        if (cell_done(task, &pair))
            continue;
        int status = prove_best(task, 1, &pair);
        if (status != 0)
            return status;
    }
    return 0;
}

static int prove_all(struct tccl_task *task)
{
    bool all = task->options->pairs <= 0 || task->options->pairs >= task->n_goals;
    int status = 0;
    if (!all)
        status = bound_ports(task);
    if (status == 0)
        status = prove_best(task, all ? task->n_goals : task->options->pairs, NULL);
    if (status == 0 && !all)
        status = prove_cells(task);
    if (status == 0 && !all)
        status = first_chains(task);
    return status;
}

/* Until what was proven holds, whatever was learnt of measurements since. */
static int prove(struct tccl_task *task, int (*once)(struct tccl_task *))
{
    int status = 0;
    for (int round = 0; status == 0 && round < TCCL_MAX_PASSES && (round == 0 || task->unproven);
         round++) {
        task->unproven = false;
        task->n_done = 0;
        for (int i = 0; i < task->n_goals; i++)
            task->goals[i].done = false;
        status = once(task);
        if (tccl_task_reconsider(task) != 0)
            return -1;
    }
    return status;
}

int tccl_task_prove(struct tccl_task *task)
{
    return prove(task, prove_all);
}

int tccl_task_prove_cells(struct tccl_task *task)
{
    return prove(task, prove_cells);
}

int tccl_task_prove_ring(struct tccl_task *task)
{
    struct tccl_goal *goal = &task->goals[0];
    while (!goal->done && goal->result->bound > tccl_task_with_gap(task, goal->result->gbps)) {
        enum tccl_improvement outcome =
            tccl_goal_try(task, goal, tccl_goal_ask(task, goal, goal->result->gbps));
        if (outcome == TCCL_GOAL_FAILED || tccl_task_reconsider(task) != 0)
            return -1;
        if (outcome == TCCL_GOAL_STOPPED)
            return 1;
    }
    return 0;
}

/* ---- bounds without sets that failed ---- */

/* Looks for a chain that may be better than above: one that was measured may not. */
static int visit_rest(void *context, const struct tccl_chain *chain, double *above)
{
    const struct tccl_task *task = context;
    struct tccl_set walk;
    struct tccl_known known;
    tccl_chain_walk(chain, &walk);
    return !tccl_bounds_find(task->search->meter.bounds, &walk, &known) || known.failed ||
           known.gbps > *above;
}

/* Is it proven that no chain is above, whatever the failed sets may reach? */
static bool is_proven(struct tccl_task *task, const struct tccl_goal *goal, double above)
{
    struct tccl_chain chain;
    struct tccl_pigeonholes none = {0};
    struct tccl_route route = tccl_goal_route(task, goal, above);
    route.pigeonholes = &none;
    route.visit = visit_rest;
    route.context = task;
    return task->spent < task->effort && tccl_route_find(&route, &chain) == 0;
}

double tccl_goal_lowest_proven(struct tccl_task *task, const struct tccl_goal *goal, double least)
{
    const double *values;
    size_t low = 0, count = tccl_bounds_values(task->search->meter.bounds, &values);
    size_t high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (values[middle] >= least && is_proven(task, goal, values[middle]))
            high = middle;
        else
            low = middle + 1;
    }
    return high < count ? values[high] : INFINITY;
}

void tccl_task_bound_without_avoided(struct tccl_task *task)
{
    struct tccl_bounds *bounds = task->search->meter.bounds;
    if (!tccl_bounds_avoids(bounds))
        return;
    tccl_bounds_ignore_avoided(bounds, true);
    task->effort =
        task->spent < LONG_MAX - WITHOUT_AVOIDED ? task->spent + WITHOUT_AVOIDED : LONG_MAX;
    for (int i = 0; i < task->n_goals; i++) {
        const struct tccl_goal *goal = &task->goals[i];
        double bound = goal->result->bound;
        if (isfinite(bound) && !is_proven(task, goal, bound))
            goal->result->bound = tccl_goal_lowest_proven(task, goal, bound);
    }
    tccl_bounds_ignore_avoided(bounds, false);
}
