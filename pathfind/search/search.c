/* search.c: the best chain of every port pair, best pairs first. */
#include "search/search.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "search/task.h"

/* Transfers tried in all route searches of a call, some ten seconds: then it stops. */
enum { EFFORT = 15000000, FEW_SETS = 8 };

struct tccl_search *tccl_search_new(const struct tccl_machine *machine, struct tccl_meter meter,
                                    const struct tccl_symmetry *symmetry)
{
    struct tccl_search *search = calloc(1, sizeof(*search));
    if (!search)
        return NULL;
    search->machine = machine;
    search->meter.source = meter;
    search->meter.sets = meter.sets ? meter.sets : &search->own;
    search->meter.bounds = tccl_bounds_new(machine, symmetry, search->meter.sets);
    if (!search->meter.bounds) {
        free(search);
        return NULL;
    }
    search->assumed = tccl_bounds_assumes(search->meter.bounds);
    return search;
}

void tccl_search_free(struct tccl_search *search)
{
    if (!search)
        return;
    tccl_bounds_free(search->meter.bounds);
    tccl_setmap_clear(&search->own);
    free(search);
}

bool tccl_search_symmetric(const struct tccl_search *search)
{
    return !search->assumed || tccl_bounds_assumes(search->meter.bounds);
}

long tccl_search_measured(const struct tccl_search *search)
{
    return search->meter.measured - search->baselines;
}

long tccl_search_measured_sets(const struct tccl_search *search)
{
    return search->sets_measured;
}

int tccl_search_measure(struct tccl_search *search, const struct tccl_set *set, double *gbps,
                        struct tccl_error *err)
{
    long budget = search->meter.budget;
    search->meter.budget = 0;
    search->meter.stopped = false;
    bool repeats = tccl_set_repeats(set);
    int status = repeats ? tccl_search_meter_measure_repeats(&search->meter, set, gbps, err)
                         : tccl_search_meter_measure(&search->meter, set, gbps, err);
    search->meter.budget = budget;
    struct tccl_known known;
    if (status == 0 && repeats && *gbps <= 0)
        return tccl_fail(err, "the load could not be measured");
    if (status == 0 && !repeats && tccl_bounds_find(search->meter.bounds, set, &known) &&
        known.failed)
        return tccl_fail(err, "the load could not be measured");
    return status;
}

static bool can_measure(const struct tccl_search_options *options, const tccl_transfer *transfers,
                        int count)
{
    for (int i = 0; options->can && i < count; i++)
        if (!options->can(options->context, transfers[i]))
            return false;
    return true;
}

/* Measures for comparison: such sets are not counted. Returns as tccl_search_meter_measure. */
static int measure_own(struct tccl_search *search, const struct tccl_set *set, double *gbps,
                       struct tccl_error *err)
{
    long before = search->meter.measured;
    int status = tccl_set_repeats(set)
                     ? tccl_search_meter_measure_repeats(&search->meter, set, gbps, err)
                     : tccl_search_meter_measure_itself(&search->meter, set, gbps, err);
    search->baselines += search->meter.measured - before;
    if (status != 0)
        *gbps = 0;
    return status;
}

/* The baselines of the GPUs, not measured; without chains where there are none. */
static const struct tccl_baseline *find_baselines(struct tccl_search *search,
                                                  const struct tccl_search_options *options,
                                                  uint32_t gpus, bool closed)
{
    struct kept_baseline *kept = &search->kept[closed];
    struct tccl_baseline *newest = &kept->baselines[TCCL_NEWEST];
    if (kept->gpus == gpus && kept->every_nccl == options->every_nccl)
        return kept->baselines;
    if ((options->every_nccl
             ? tccl_baseline_find_all(search->machine, gpus, closed, kept->baselines, NULL)
             : tccl_baseline_find(search->machine, gpus, closed, TCCL_NEWEST, newest, NULL)) != 0)
        memset(kept->baselines, 0, sizeof(kept->baselines));
    for (int i = 0; !options->every_nccl && i < TCCL_NEWEST; i++)
        kept->baselines[i] = *newest;
    kept->gpus = gpus;
    kept->every_nccl = options->every_nccl;
    return kept->baselines;
}

/* All transfers of the baseline, if they can be measured. */
static bool baseline_set(const struct tccl_baseline *baseline,
                         const struct tccl_search_options *options, struct tccl_set *set)
{
    return baseline->set.n > 0 && tccl_baseline_set(baseline, set, NULL) == 0 &&
           can_measure(options, set->transfers, set->count);
}

/* Where NICs are not measured (GPUs without a peer), what NCCL has by them between GPUs of a node
 * is taken for what it would have through host memory, which is less: rings that gain little are
 * promised to gain more. Without any figure each ring of ours would be taken. */
static int measure_baseline(struct tccl_search *search, const struct tccl_search_options *options,
                            struct tccl_baseline *baseline, struct tccl_error *err)
{
    struct tccl_set set;
    double gbps = 0;
    int status = 0;
    bool known = baseline_set(baseline, options, &set);
    if (!known) {
        tccl_baseline_leave_nics(search->machine, baseline);
        known = baseline_set(baseline, options, &set);
    }
    if (known)
        status = measure_own(search, &set, &gbps, err);
    if (gbps > 0)
        baseline->gbps = baseline->set.n * gbps;
    else
        baseline->set.n = 0;
    return status;
}

/* The baselines of all generations, measured; no chains where there are none, or where they can't
 * be measured. What several have alike is measured once. */
static int measure_baselines(struct tccl_search *search, const struct tccl_search_options *options,
                             uint32_t gpus, bool closed,
                             struct tccl_baseline baselines[static TCCL_GENERATIONS],
                             struct tccl_error *err)
{
    const struct tccl_baseline *found = find_baselines(search, options, gpus, closed);
    int status = 0;
    for (int i = 0; status == 0 && i < TCCL_GENERATIONS; i++) {
        if (i > 0 && tccl_baseline_equal(&found[i], &found[i - 1])) {
            baselines[i] = baselines[i - 1];
            continue;
        }
        baselines[i] = found[i];
        status = measure_baseline(search, options, &baselines[i], err);
    }
    return status;
}

/* Keeps the chain for the goals that it serves, with its bandwidth alone. Returns as
 * tccl_search_meter_measure. */
static int keep_own(struct tccl_task *task, const struct tccl_chain *chain)
{
    struct tccl_set set;
    double gbps;
    if (tccl_chain_by_nics(chain) ||
        (!task->options->any && tccl_expressible(task->search->machine, chain, 1, NULL) != 0))
        return 0;
    tccl_chain_set(chain, &set);
    int status = measure_own(task->search, &set, &gbps, task->err);
    for (int i = 0; status == 0 && gbps > 0 && i < task->n_goals; i++) {
        struct tccl_goal *goal = &task->goals[i];
        if (task->closed || (tccl_port_equal(goal->entry, chain->entry) &&
                             tccl_port_equal(goal->exit, chain->exit)))
            tccl_goal_keep(goal, chain, gbps);
    }
    return status;
}

/* Each chain of the newest NCCL's baseline may be the best one; so it is also a beginning. Returns
 * as tccl_search_meter_measure. */
static int keep_baseline(struct tccl_task *task)
{
    const struct tccl_baseline *baseline =
        &find_baselines(task->search, task->options, task->gpus, task->closed)[TCCL_NEWEST];
    struct tccl_set set;
    int status = 0;
    if (!baseline_set(baseline, task->options, &set))
        return 0;
    for (int i = 0; status == 0 && i < baseline->set.n; i++)
        status = keep_own(task, &baseline->set.rings[i]);
    return status;
}

static void set_up(struct tccl_task *task, struct tccl_search *search,
                   const struct tccl_search_options *options, uint32_t gpus, struct tccl_error *err)
{
    *task = (struct tccl_task){
        .search = search,
        .options = options,
        .err = err,
        .gpus = gpus,
        .gap = fmax(fmax(options->gap, options->noise), options->blur / 2),
    };
    struct tccl_route chains = {.machine = search->machine, .gpus = gpus, .any = options->any};
    /* What can be counted out is proven, however long it takes. */
    task->effort =
        tccl_route_count(&chains, TCCL_MANY_CHAINS) < TCCL_MANY_CHAINS ? LONG_MAX : EFFORT;
    search->meter.budget = options->budget > 0 ? search->meter.measured + options->budget : 0;
    search->meter.noise = options->noise;
    search->meter.blur = options->blur;
    tccl_bounds_set_blur(search->meter.bounds, options->blur);
    search->meter.poll = tccl_task_tell;
    search->meter.context = task;
    const struct tccl_raise *raises;
    task->raises = tccl_bounds_raises(search->meter.bounds, &raises);
}

/* Searches until the best ring is proven, also after what the baseline teaches; it may be the best
 * one. Returns as tccl_task_prove_ring. */
static int prove_ring(struct tccl_task *task, struct tccl_goal *goal)
{
    struct tccl_baseline baselines[TCCL_GENERATIONS];
    int status = 0;
    for (int round = 0; round < TCCL_MAX_PASSES && status == 0; round++) {
        status = tccl_task_prove_ring(task);
        if (status < 0 ||
            measure_baselines(task->search, task->options, task->gpus, true, baselines, task->err) <
                0 ||
            keep_baseline(task) < 0 || tccl_task_reconsider(task) != 0)
            return -1;
        if (goal->done || goal->result->bound <= tccl_task_with_gap(task, goal->result->gbps))
            break;
    }
    return status;
}

/* The ring of tccl_search_ring. */
static int find_ring(struct tccl_search *search, uint32_t gpus,
                     const struct tccl_search_options *options, struct tccl_result *result,
                     struct tccl_error *err)
{
    struct tccl_task task;
    struct tccl_goal goal = {.result = result};
    *result = (struct tccl_result){.bound = INFINITY};
    if (__builtin_popcount(gpus) < 2) {
        result->bound = 0;
        return 0;
    }
    set_up(&task, search, options, gpus, err);
    task.closed = true;
    task.goals = &goal;
    task.n_goals = 1;
    int status = prove_ring(&task, &goal);
    if (status >= 0 && !isfinite(result->bound))
        result->bound = tccl_goal_lowest_proven(&task, &goal, result->gbps);
    if (status >= 0)
        tccl_task_bound_without_avoided(&task);
    search->meter.poll = NULL;
    return status;
}

int tccl_search_ring(struct tccl_search *search, uint32_t gpus,
                     const struct tccl_search_options *options, struct tccl_result *result,
                     struct tccl_error *err)
{
    search->meter.stopped = false;
    return find_ring(search, gpus, options, result, err);
}

/* A GPU is not both ends of a chain of several; and not all ports go together at a chain of one. */
static bool can_be_ends(const struct tccl_task *task, struct tccl_port entry, struct tccl_port exit)
{
    const struct tccl_chain one = {
        .n_gpus = 1, .gpus = {(uint8_t)__builtin_ctz(task->gpus)}, .entry = entry, .exit = exit};
    if (__builtin_popcount(task->gpus) == 1)
        return task->options->any || tccl_expressible(task->search->machine, &one, 1, NULL) == 0;
    return entry.via.kind != TCCL_GPU || exit.via.kind != TCCL_GPU ||
           entry.via.index != exit.via.index;
}

static int find_pairs(struct tccl_search *search, struct tccl_table *table,
                      const struct tccl_search_options *options, struct tccl_error *err)
{
    struct tccl_task task;
    set_up(&task, search, options, table->gpus, err);
    cleanup_free struct tccl_goal *goals =
        calloc((size_t)tccl_table_pairs(table) + 1, sizeof(*goals));
    task.n_goals = 0;
    for (int i = 0; goals && i < tccl_table_pairs(table); i++) {
        struct tccl_port entry = table->ports[i / table->n_ports];
        struct tccl_port exit = table->ports[i % table->n_ports];
        table->results[i] = (struct tccl_result){.bound = INFINITY};
        if (!can_be_ends(&task, entry, exit)) {
            table->results[i].bound = 0;
            continue;
        }
        /* The transfers of the NICs themselves, whichever GPUs are the ends. */
        tccl_transfer in[2], out[2];
        tccl_entry_transfers(entry, 0, in);
        tccl_exit_transfers(exit, 0, out);
        if (!can_measure(task.options, in, 1) || !can_measure(task.options, out, 1))
            continue;
        goals[task.n_goals++] =
            (struct tccl_goal){.entry = entry, .exit = exit, .result = &table->results[i]};
    }
    if (!goals)
        return tccl_fail(err, "out of memory for %d port pairs", tccl_table_pairs(table));
    task.goals = goals;
    int status = measure_baselines(search, options, table->gpus, false, table->baselines[0], err);
    if (status == 0)
        status = keep_baseline(&task);
    if (status == 0)
        status = tccl_task_prove(&task);
    if (status >= 0)
        tccl_task_bound_without_avoided(&task);
    search->meter.poll = NULL;
    return status;
}

/* What goes beside the best chains, by a budget of its own: sets to ask for at most; 0: find has
 * one. */
static int find_beside(struct tccl_search *search, struct tccl_table *table,
                       const struct tccl_search_options *options, long most,
                       int (*find)(struct tccl_task *task, struct tccl_table *table),
                       struct tccl_error *err)
{
    struct tccl_task task;
    set_up(&task, search, options, table->gpus, err);
    search->meter.budget = 0;
    search->meter.most_asked = most > 0 ? search->meter.asked + most : 0;
    int status = find(&task, table);
    search->meter.most_asked = 0;
    search->meter.poll = NULL;
    return status;
}

/* Only what chains may have is left out: sets that were measured with P2P bound those without it.
 */
static int find_hosts(struct tccl_search *search, struct tccl_table *table,
                      const struct tccl_search_options *options, struct tccl_error *err)
{
    const struct tccl_machine *whole = search->machine;
    struct tccl_machine machine = *whole;
    memset(machine.p2p, 0, sizeof(machine.p2p));
    search->machine = &machine;
    int status = find_beside(search, table, options, options->hosts, tccl_task_find_hosts, err);
    search->machine = whole;
    return status;
}

static int find_reading_sets(struct tccl_task *task, struct tccl_table *table)
{
    task->reads = true;
    return tccl_task_find_sets(task, table);
}

/* Ring sets are asked for no more sets than all else was, by all searches so far; a few at least.
 */
static int find_sets(struct tccl_search *search, struct tccl_table *table,
                     const struct tccl_search_options *options,
                     int (*find)(struct tccl_task *task, struct tccl_table *table),
                     struct tccl_error *err)
{
    long before = search->meter.asked, measured = search->meter.measured;
    long most = before - 2 * search->sets;
    most = most < FEW_SETS ? FEW_SETS : most;
    most = most < options->sets ? most : options->sets;
    int status = find_beside(search, table, options, most, find, err);
    search->sets += search->meter.asked - before;
    search->sets_measured += search->meter.measured - measured;
    return status;
}

/* What is left of the budget, one set at least. */
static struct tccl_search_options left_of(const struct tccl_search_options *options, long used)
{
    struct tccl_search_options rest = *options;
    if (options->budget > 0)
        rest.budget = options->budget > used ? options->budget - used : 1;
    return rest;
}

static double ratio_of(const struct tccl_result *result)
{
    return result->gbps > 0 ? result->bound / result->gbps : INFINITY;
}

/* What the pairs taught of measurements that were wrong concerns the ring, too: if it is proven no
 * more, it is looked for again. */
static int reconsider_ring(struct tccl_search *search, struct tccl_table *table, size_t raises_then,
                           bool assumed_then, const struct tccl_search_options *options,
                           struct tccl_error *err)
{
    const struct tccl_raise *raises;
    double most = 1 + fmax(fmax(options->gap, options->noise), options->blur / 2),
           ratio = ratio_of(tccl_table_ring(table));
    size_t count = tccl_bounds_raises(search->meter.bounds, &raises);
    tccl_table_ring(table)->bound =
        tccl_bound_lifted(raises, raises_then, count, tccl_table_ring(table)->bound);
    if ((assumed_then && !tccl_bounds_assumes(search->meter.bounds)) ||
        (ratio <= most * (1 + 1e-9) && ratio_of(tccl_table_ring(table)) > most * (1 + 1e-9)))
        return find_ring(search, table->gpus, options, tccl_table_ring(table), err);
    return 0;
}

/* What was learnt of measurements since there were first raised limits. */
static void lift_pairs(const struct tccl_search *search, struct tccl_table *table, size_t first)
{
    const struct tccl_raise *raises;
    size_t count = tccl_bounds_raises(search->meter.bounds, &raises);
    for (int i = 0; i < tccl_table_pairs(table); i++)
        table->results[i].bound = tccl_bound_lifted(raises, first, count, table->results[i].bound);
}

/* The ring, the pairs, and the ring once more where they changed it; then what goes beside them. */
static int find_all(struct tccl_search *search, struct tccl_table *table,
                    const struct tccl_search_options *options, struct tccl_error *err)
{
    const struct tccl_raise *raises;
    const struct tccl_bounds *bounds = search->meter.bounds;
    long before = search->meter.measured;
    int status = find_ring(search, table->gpus, options, tccl_table_ring(table), err);
    if (search->left_ring)
        search->meter.stopped = false;
    if (status < 0 ||
        measure_baselines(search, options, table->gpus, true, table->baselines[1], err) < 0)
        return -1;
    size_t raises_then = tccl_bounds_raises(bounds, &raises);
    bool assumed_then = tccl_bounds_assumes(bounds);
    struct tccl_search_options rest = left_of(options, search->meter.measured - before);
    int pairs = options->alone ? 0 : find_pairs(search, table, &rest, err);
    if (pairs < 0)
        return -1;
    size_t pairs_then = tccl_bounds_raises(bounds, &raises);
    rest = left_of(options, search->meter.measured - before);
    int ring = reconsider_ring(search, table, raises_then, assumed_then, &rest, err);
    bool built = !options->any;
    int more = ring;
    if (more >= 0 && built && options->hosts > 0)
        more |= find_hosts(search, table, options, err);
    if (more >= 0 && built && options->others > 0)
        more |= find_beside(search, table, options, options->others, tccl_task_find_others, err);
    if (more >= 0 && built && options->reads)
        more |= find_beside(search, table, options, options->others, tccl_task_find_reads, err);
    if (more >= 0 && built && options->trees)
        more |= find_beside(search, table, options, 0, tccl_task_find_trees, err);
    lift_pairs(search, table, pairs_then);
    if (more >= 0 && built && options->sets > 0)
        more |= find_sets(search, table, options, tccl_task_find_sets, err);
    if (more >= 0 && built && options->sets > 0 && tccl_table_reads(table))
        more |= find_sets(search, table, options, find_reading_sets, err);
    if (more >= 0 && options->settle > 0)
        more |= find_beside(search, table, options, 0, tccl_task_settle, err);
    return more < 0 ? -1 : pairs | status | more;
}

int tccl_search_table(struct tccl_search *search, struct tccl_table *table,
                      const struct tccl_search_options *options, struct tccl_error *err)
{
    long before = search->meter.measured;
    search->meter.stopped = false;
    int status = find_all(search, table, options, err);
    table->noise = options->noise;
    table->measured += search->meter.measured - before;
    return status;
}
