/* settle.c: what a search has chosen is measured again, and so is NCCL's own: the best of many
 * noisy measurements is too high, those that come after it are not. The table promises these. What
 * else it has is as much too high as what was measured again turned out to be. */
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
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
};

static int settle_set(struct settler *settler, const struct tccl_set *set, double *gbps)
{
    return tccl_search_meter_settle(&settler->task->search->meter, set,
                                    settler->task->options->settle, gbps, settler->task->err);
}

static void note(struct settler *settler, double before, double now)
{
    if (before > 0 && now > 0 && settler->n < MOST)
        settler->ratios[settler->n++] = now / before;
}

/* A bound is made of the same measurements: what was proven within the gap still is. */
static void set_value(const struct settler *settler, struct tccl_result *result, double gbps)
{
    if (result->bound <= tccl_task_with_gap(settler->task, result->gbps) * (1 + 1e-9))
        result->bound *= gbps / result->gbps;
    result->bound = fmax(result->bound, gbps);
    result->gbps = gbps;
}

/* Returns 0; 1: stopped; -1 with err. What fails now keeps its value. */
static int settle_result(struct settler *settler, struct tccl_result *result)
{
    struct tccl_set set;
    double gbps;
    if (!result->chain.n_gpus)
        return 0;
    tccl_chain_set(&result->chain, &set);
    int status = settle_set(settler, &set, &gbps);
    if (status != 0 || gbps <= 0)
        return status;
    note(settler, result->gbps, gbps);
    set_value(settler, result, gbps);
    return 0;
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
            continue;
        }
        before = *own;
        if (own->n_chains == 0 || tccl_baseline_set(own, &set, NULL) != 0)
            continue;
        status = settle_set(settler, &set, &gbps);
        if (status == 0 && gbps > 0)
            own->gbps = tccl_baseline_gbps(own, gbps);
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
    struct tccl_table *table = settler->table;
    int status = settle_result(settler, &table->ring);
    for (int i = 0; i < table->n_others && status == 0; i++) {
        struct tccl_result *other = &table->others[i], ring = table->ring;
        if (!other->chain.closed)
            continue;
        if (stands_out(settler, other->gbps, ring.gbps))
            status = settle_result(settler, other);
        if (status == 0 && stands_out(settler, other->gbps, ring.gbps)) {
            table->ring.chain = other->chain;
            table->ring.gbps = other->gbps;
            table->ring.bound = fmax(ring.bound, other->gbps);
            other->chain = ring.chain;
            other->gbps = ring.gbps;
        }
        other->gbps = fmin(other->gbps, table->ring.gbps);
        other->bound = INFINITY;
    }
    return status;
}

static bool same_nics(const struct tccl_result *a, const struct tccl_result *b)
{
    return a->chain.entry.nic == b->chain.entry.nic && a->chain.exit.nic == b->chain.exit.nic;
}

/* The best one with these NICs that was measured again; 0: none was. */
static double best_settled(const struct tccl_result *results, const bool *settled, int count,
                           const struct tccl_result *like)
{
    double best = 0;
    for (int i = 0; i < count; i++)
        if (settled[i] && same_nics(&results[i], like))
            best = fmax(best, results[i].gbps);
    return best;
}

/* The best chain, of those that may be the best for their NICs; -1: none. */
static int next_result(const struct settler *settler, const struct tccl_result *results,
                       const bool *settled, int count)
{
    int best = -1;
    for (int i = 0; i < count; i++)
        if (results[i].chain.n_gpus && !results[i].chain.closed && !settled[i] &&
            (best < 0 || results[i].gbps > results[best].gbps) &&
            stands_out(settler, results[i].gbps,
                       best_settled(results, settled, count, &results[i])))
            best = i;
    return best;
}

/* Of NICs of which none was measured again all chains are as much too high as those were. */
static void lower(const struct settler *settler, struct tccl_result *results, int count,
                  const struct tccl_result *chosen, const bool *settled, int n_chosen, int first)
{
    double ratio = 0;
    for (int i = first; i < settler->n; i++)
        ratio += fmin(settler->ratios[i], 1) / (settler->n - first);
    for (int i = 0; i < count; i++) {
        double best = best_settled(chosen, settled, n_chosen, &results[i]);
        if (!results[i].chain.n_gpus || results[i].chain.closed ||
            (results == chosen && settled[i]))
            continue;
        if (best > 0)
            set_value(settler, &results[i], fmin(results[i].gbps, best));
        else if (ratio > 0)
            set_value(settler, &results[i], results[i].gbps * ratio);
    }
}

/* The best chains for their NICs; all others are no better. */
static int settle_results(struct settler *settler, struct tccl_result *results, int count)
{
    cleanup_free bool *settled = calloc((size_t)count + 1, sizeof(*settled));
    int status = 0, first = settler->n;
    if (!settled)
        return tccl_fail(settler->task->err, "out of memory");
    for (int done = 0; done < CELLS && status == 0; done++) {
        int next = next_result(settler, results, settled, count);
        if (next < 0)
            break;
        settled[next] = true;
        status = settle_result(settler, &results[next]);
    }
    lower(settler, results, count, results, settled, count, first);
    if (results == settler->table->pairs)
        lower(settler, settler->table->others, settler->table->n_others, results, settled, count,
              settler->n);
    return status;
}

static int settle_rings(struct settler *settler, struct tccl_set_result *result)
{
    struct tccl_side side = {0};
    struct tccl_set set = {0};
    double gbps;
    tccl_ring_set_side(&result->set, &side);
    for (int i = 0; i < side.count; i++)
        if (tccl_set_add_again(&set, side.transfers[i]) != 0)
            return 0;
    int status = settle_set(settler, &set, &gbps);
    if (status != 0 || gbps <= 0)
        return status;
    gbps = fmin(result->set.n * gbps,
                tccl_ring_set_lines(&result->set, settler->task->search->machine));
    note(settler, result->gbps, gbps);
    result->gbps = gbps;
    result->bound = fmax(result->bound, gbps);
    return 0;
}

/* The best ring sets, as long as one that was not measured again looks best. */
static int settle_sets(struct settler *settler, bool closed)
{
    struct tccl_table *table = settler->table;
    cleanup_free bool *settled = calloc((size_t)table->n_sets + 1, sizeof(*settled));
    int status = 0;
    if (!settled)
        return tccl_fail(settler->task->err, "out of memory");
    for (int done = 0; done < SETS && status == 0; done++) {
        int best = -1;
        for (int i = 0; i < table->n_sets; i++)
            if (table->sets[i].set.rings[0].closed == closed &&
                (best < 0 || table->sets[i].gbps > table->sets[best].gbps))
                best = i;
        if (best < 0 || settled[best])
            break;
        settled[best] = true;
        status = settle_rings(settler, &table->sets[best]);
    }
    double best = 0;
    for (int i = 0; i < table->n_sets; i++)
        if (settled[i])
            best = fmax(best, table->sets[i].gbps);
    for (int i = 0; i < table->n_sets; i++)
        if (!settled[i] && best > 0 && table->sets[i].set.rings[0].closed == closed)
            table->sets[i].gbps = fmin(table->sets[i].gbps, best);
    return status;
}

int tccl_task_settle(struct tccl_task *task, struct tccl_table *table)
{
    struct settler settler = {.task = task, .table = table};
    int status = settle_baselines(&settler, table->baseline_ring);
    if (status == 0)
        status = settle_baselines(&settler, table->baseline_chain);
    if (status == 0)
        status = settle_ring(&settler);
    if (status == 0)
        status = settle_results(&settler, table->pairs, table->n_ports * table->n_ports);
    if (status == 0)
        status = settle_result(&settler, &table->host_ring);
    if (status == 0)
        status = settle_results(&settler, table->hosts, table->n_hosts);
    if (status == 0)
        status = settle_sets(&settler, true);
    if (status == 0)
        status = settle_sets(&settler, false);
    return status;
}
