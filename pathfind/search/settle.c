/* settle.c: what a search has chosen is measured again, and so is NCCL's own: the best of many
 * noisy measurements is too high, those that come after it are not. The table promises these. What
 * else it has is as much too high as what was measured again turned out to be. */
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "ring/reach.h"
#include "search/task.h"

enum {
    CELLS = 4, /* chains that are measured again, */
    SETS = 2,  /* and ring sets, closed and open ones */
    MOST = 64
};

struct settler {
    struct tccl_task *task;
    struct tccl_table *table;
    double ratios[MOST]; /* of the second value to the first one */
    int n;
    uint8_t ends; /* the most that were found (ring/reach.h) */
};

static int settle_set(struct settler *settler, const struct tccl_set *set, double *gbps)
{
    return tccl_search_meter_settle(&settler->task->search->meter, set,
                                    settler->task->options->settle, gbps, settler->task->err);
}

/* What its GPUs send, and receive, is measured once: an end more or less of a round changes little.
 * all: what all of it reaches, of each ring. Returns as settle_result. */
static int find_ends(struct settler *settler, const struct tccl_chain *rings, int n, double all,
                     uint8_t *ends)
{
    struct tccl_side sides[2] = {{0}, {0}};
    double gbps[2] = {0};
    int status = 0;
    *ends = tccl_ends_most(rings, n);
    if (*ends == TCCL_ENDS_LEAST)
        return 0;
    *ends = 0;
    tccl_ends_sides(rings, n, &sides[0], &sides[1]);
    for (int k = 0; k < 2 && status == 0; k++) {
        struct tccl_set set;
        if (tccl_side_set(&sides[k], &set) != 0)
            return 0;
        status = tccl_search_meter_measure_repeats(&settler->task->search->meter, &set, &gbps[k],
                                                   settler->task->err);
    }
    if (status == 0 && gbps[0] > 0 && gbps[1] > 0)
        *ends = tccl_ends_measured(all, gbps[0], gbps[1]);
    settler->ends = *ends > settler->ends ? *ends : settler->ends;
    return status;
}

/* A bound is made of the same measurements: what was proven within the gap still is. */
static void set_value(const struct settler *settler, struct tccl_result *result, double gbps)
{
    if (result->bound <= tccl_task_with_gap(settler->task, result->gbps) * (1 + 1e-9))
        result->bound *= gbps / result->gbps;
    result->bound = fmax(result->bound, gbps);
    result->gbps = gbps;
}

/* Returns 0; 1: stopped; -1 with err. What fails now keeps its value, and so do rings that have
 * more transfers than a set. */
static int settle_result(struct settler *settler, struct tccl_result *result)
{
    struct tccl_side side;
    struct tccl_set set;
    double gbps;
    int n;
    const struct tccl_chain *rings = tccl_result_rings(result, &n);
    if (n == 0 || tccl_rings_side(rings, n, &side) != 0 || tccl_side_set(&side, &set) != 0)
        return 0;
    int status = settle_set(settler, &set, &gbps);
    if (status != 0 || gbps <= 0)
        return status;
    status = find_ends(settler, rings, n, gbps, &result->ends);
    if (result->set)
        gbps = result->set->n *
               fmin(gbps, tccl_ring_set_line(result->set, settler->task->search->machine));
    if (result->gbps > 0 && gbps > 0 && settler->n < MOST)
        settler->ratios[settler->n++] = gbps / result->gbps;
    if (!result->set) {
        set_value(settler, result, gbps);
    } else {
        result->gbps = gbps;
        result->bound = fmax(result->bound, gbps);
    }
    return status;
}

/* What several generations have alike is asked for once. */
static int settle_baselines(struct settler *settler,
                            struct tccl_baseline baselines[static TCCL_GENERATIONS])
{
    struct tccl_baseline before;
    int status = 0;
    for (int i = 0; i < TCCL_GENERATIONS && status == 0; i++) {
        struct tccl_baseline *own = &baselines[i];
        struct tccl_set set;
        double gbps;
        if (i > 0 && tccl_baseline_equal(own, &before)) {
            own->gbps = baselines[i - 1].gbps;
            own->ends = baselines[i - 1].ends;
            continue;
        }
        before = *own;
        if (own->set.n == 0 || tccl_baseline_set(own, &set, NULL) != 0)
            continue;
        status = settle_set(settler, &set, &gbps);
        if (status != 0 || gbps <= 0)
            continue;
        status = find_ends(settler, own->set.rings, own->set.n, gbps, &own->ends);
        own->gbps = own->set.n * gbps;
    }
    return status;
}

/* Is it better than what was measured again, by more than noise? */
static bool stands_out(const struct settler *settler, double gbps, double settled)
{
    return gbps > settled * (1 + settler->task->options->blur);
}

/* The ring, and another one that is better then. */
static int settle_ring(struct settler *settler)
{
    struct tccl_result *ring = tccl_table_ring(settler->table), *other = NULL;
    int status = settle_result(settler, ring);
    while (status == 0 && (other = tccl_table_next(settler->table, other, TCCL_OTHERS))) {
        if (!other->chain.closed)
            continue;
        if (stands_out(settler, other->gbps, ring->gbps))
            status = settle_result(settler, other);
        if (status == 0 && stands_out(settler, other->gbps, ring->gbps)) {
            tccl_table_swap(ring, other);
            ring->bound = fmax(ring->bound, ring->gbps);
        }
        other->gbps = fmin(other->gbps, ring->gbps);
        other->bound = INFINITY;
    }
    return status;
}

/* The best one of the part with these NICs that was measured again; 0: none was. */
static double best_settled(const struct settler *settler, const bool *settled, enum tccl_part part,
                           const struct tccl_chain *like)
{
    const struct tccl_table *table = settler->table;
    double best = 0;
    for (int i = 0; i < table->n_results; i++)
        if (settled[i] && table->results[i].part == part &&
            table->results[i].chain.entry.nic == like->entry.nic &&
            table->results[i].chain.exit.nic == like->exit.nic)
            best = fmax(best, table->results[i].gbps);
    return best;
}

/* Of an open chain of the part that was not measured again? */
static bool is_open(const struct settler *settler, const bool *settled, int i, enum tccl_part part)
{
    const struct tccl_result *result = &settler->table->results[i];
    return result->part == part && result->chain.n_gpus && !result->chain.closed && !settled[i];
}

/* Those that were not measured again are no better than the best one for their NICs, of the chosen
 * part; of NICs of which none was they are as much too high as those were. */
static void lower(const struct settler *settler, const bool *settled, enum tccl_part part,
                  enum tccl_part chosen, int first)
{
    double ratio = 0;
    for (int i = first; i < settler->n; i++)
        ratio += fmin(settler->ratios[i], 1) / (settler->n - first);
    for (int i = 0; i < settler->table->n_results; i++) {
        struct tccl_result *result = &settler->table->results[i];
        if (!is_open(settler, settled, i, part))
            continue;
        double best = best_settled(settler, settled, chosen, &result->chain);
        if (best > 0)
            set_value(settler, result, fmin(result->gbps, best));
        else if (ratio > 0)
            set_value(settler, result, result->gbps * ratio);
    }
}

/* The best chains for their NICs; all others are no better. */
static int settle_results(struct settler *settler, enum tccl_part part)
{
    cleanup_free bool *settled = calloc((size_t)settler->table->n_results, sizeof(*settled));
    int status = 0, first = settler->n;
    if (!settled)
        return tccl_fail(settler->task->err, "out of memory");
    for (int done = 0; done < CELLS && status == 0; done++) {
        /* The best chain, of those that may be the best for their NICs; -1: none. */
        const struct tccl_result *results = settler->table->results;
        int next = -1;
        for (int i = 0; i < settler->table->n_results; i++)
            if (is_open(settler, settled, i, part) &&
                (next < 0 || results[i].gbps > results[next].gbps) &&
                stands_out(settler, results[i].gbps,
                           best_settled(settler, settled, part, &results[i].chain)))
                next = i;
        if (next < 0)
            break;
        settled[next] = true;
        status = settle_result(settler, &settler->table->results[next]);
    }
    lower(settler, settled, part, part, first);
    if (part == TCCL_BEST)
        lower(settler, settled, TCCL_OTHER, part, settler->n);
    return status;
}

/* The best ring sets, as long as one that was not measured again looks best. */
static int settle_sets(struct settler *settler, bool closed)
{
    const struct tccl_table *table = settler->table;
    struct tccl_result *settled[SETS], *own;
    double best = 0;
    int n = 0, status = 0;
    while (n < SETS && status == 0) {
        struct tccl_result *next = NULL;
        for (own = NULL; (own = tccl_table_next(table, own, TCCL_SETS));)
            if (own->chain.closed == closed && (!next || own->gbps > next->gbps))
                next = own;
        if (!next || (n > 0 && (next == settled[0] || next == settled[n - 1])))
            break;
        settled[n++] = next;
        status = settle_result(settler, next);
    }
    for (int i = 0; i < n; i++)
        best = fmax(best, settled[i]->gbps);
    for (own = NULL; n > 0 && (own = tccl_table_next(table, own, TCCL_SETS));)
        if (own->chain.closed == closed)
            own->gbps = fmin(own->gbps, best);
    return status;
}

int tccl_task_settle(struct tccl_task *task, struct tccl_table *table)
{
    struct settler settler = {.task = task, .table = table};
    int status = settle_baselines(&settler, table->baselines[1]);
    if (status == 0)
        status = settle_baselines(&settler, table->baselines[0]);
    if (status == 0)
        status = settle_ring(&settler);
    if (status == 0)
        status = settle_results(&settler, TCCL_BEST);
    if (status == 0)
        status = settle_result(&settler, tccl_table_host_ring(table));
    if (status == 0)
        status = settle_results(&settler, TCCL_HOST);
    if (status == 0)
        status = settle_sets(&settler, true);
    if (status == 0)
        status = settle_sets(&settler, false);
    /* Those that were not measured again have the most that others have. */
    for (int i = 0; i < settler.table->n_results; i++) {
        struct tccl_result *result = &settler.table->results[i];
        if (result->chain.n_gpus && !result->ends)
            result->ends =
                tccl_result_ends(result) == TCCL_ENDS_LEAST ? TCCL_ENDS_LEAST : settler.ends;
    }
    return status;
}
