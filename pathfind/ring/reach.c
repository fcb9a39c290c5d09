/* reach.c: what an all-reduce reaches over rings. */
#include "ring/reach.h"

#include <math.h>

/* Rings that run at once, and the blocks of their GPUs, each of each ring. */
struct blocks {
    struct tccl_side side;
    int n;
    struct tccl_block list[TCCL_MAX_SIDE];
};

/* What a ring does twice, as by NICs, counts twice. Returns 0, or -1: there is no room for all. */
static int find_blocks(const struct tccl_chain *rings, int n, struct blocks *blocks)
{
    struct tccl_set walk;
    blocks->side.rings = blocks->side.count = blocks->n = 0;
    for (int i = 0; i < n; i++) {
        tccl_chain_walk(&rings[i], &walk);
        if (tccl_side_add(&blocks->side, &walk) != 0)
            return -1;
    }
    blocks->n = tccl_side_blocks(&blocks->side, blocks->list);
    return 0;
}

struct rater {
    int (*rates)(const void *context, const tccl_transfer *transfers, int count, double *gbps);
    const void *context;
};

/* The time of each transfer while all run of which these places are: 0 of the others. */
static int time_part(const struct rater *rater, const struct tccl_side *side, const bool *runs,
                     double *times)
{
    tccl_transfer members[TCCL_MAX_SIDE];
    double rates[TCCL_MAX_SIDE];
    int count = 0;
    for (int i = 0; i < side->count; i++)
        if (runs[i])
            members[count++] = side->transfers[i];
    if (count > 0 && rater->rates(rater->context, members, count, rates) != 0)
        return -1;
    count = 0;
    for (int i = 0; i < side->count; i++)
        times[i] = runs[i] ? 1 / rates[count++] : 0;
    return 0;
}

static double time_of(const double *times, int at)
{
    return at < 0 ? 0 : times[at];
}

static uint8_t hundredths(double ends)
{
    return (uint8_t)ceil(100 * fmin(fmax(ends, 1), 2) - 1e-6);
}

uint8_t tccl_ends_reached(int ranks, double all, double reached)
{
    const int steps = 2 * ranks - 2;
    return hundredths(steps * all / reached - (steps - 1));
}

uint8_t tccl_ends_by(int (*rates)(const void *context, const tccl_transfer *transfers, int count,
                                  double *gbps),
                     const void *context, const struct tccl_chain *rings, int n)
{
    const struct rater rater = {rates, context};
    struct blocks blocks;
    const struct tccl_side *side = &blocks.side;
    bool all[TCCL_MAX_SIDE], sent[TCCL_MAX_SIDE] = {false}, received[TCCL_MAX_SIDE] = {false};
    double busy[TCCL_MAX_SIDE], first[TCCL_MAX_SIDE], last[TCCL_MAX_SIDE], step = 0, round = 0;
    if (find_blocks(rings, n, &blocks) != 0)
        return 0;
    for (int i = 0; i < side->count; i++)
        all[i] = true;
    for (int i = 0; i < blocks.n; i++) {
        if (blocks.list[i].sends >= 0)
            sent[blocks.list[i].sends] = true;
        if (blocks.list[i].receives >= 0)
            received[blocks.list[i].receives] = true;
    }
    if (n == 0 || time_part(&rater, side, all, busy) != 0 ||
        time_part(&rater, side, sent, first) != 0 || time_part(&rater, side, received, last) != 0)
        return 0;
    int ranks = rings[0].closed ? rings[0].n_gpus : 2 * rings[0].n_gpus;
    for (int i = 0; i < side->count; i++)
        step = fmax(step, busy[i]);
    for (int i = 0; i < blocks.n; i++) {
        int sends = blocks.list[i].sends, receives = blocks.list[i].receives;
        double both = fmax(time_of(busy, sends), time_of(busy, receives));
        round =
            fmax(round, time_of(first, sends) + (2 * ranks - 3) * both + time_of(last, receives));
    }
    return hundredths(round / step - (2 * ranks - 3));
}

static int rate_by_model(const void *context, const tccl_transfer *transfers, int count,
                         double *gbps)
{
    return tccl_model_rates(context, transfers, count, gbps, NULL, NULL);
}

uint8_t tccl_ends(const struct tccl_model *model, const struct tccl_chain *rings, int n)
{
    return tccl_ends_by(rate_by_model, model, rings, n);
}

void tccl_ends_sides(const struct tccl_chain *rings, int n, struct tccl_side *sent,
                     struct tccl_side *received)
{
    struct blocks blocks;
    if (find_blocks(rings, n, &blocks) != 0)
        return;
    for (int i = 0; i < blocks.n; i++) {
        if (blocks.list[i].sends >= 0)
            sent->transfers[sent->count++] = blocks.side.transfers[blocks.list[i].sends];
        if (blocks.list[i].receives >= 0)
            received->transfers[received->count++] = blocks.side.transfers[blocks.list[i].receives];
    }
}

uint8_t tccl_ends_measured(double all, double sent, double received)
{
    return hundredths(all / sent + all / received);
}

uint8_t tccl_ends_most(const struct tccl_chain *rings, int n)
{
    struct blocks blocks;
    if (find_blocks(rings, n, &blocks) != 0)
        return TCCL_ENDS_MOST;
    for (int i = 0; i < blocks.n; i++)
        if (blocks.list[i].sends >= 0 && blocks.list[i].receives >= 0)
            return TCCL_ENDS_MOST;
    return TCCL_ENDS_LEAST;
}

uint8_t tccl_result_ends(const struct tccl_result *result)
{
    int n;
    const struct tccl_chain *rings = tccl_result_rings(result, &n);
    return result->ends ? result->ends : tccl_ends_most(rings, n);
}

uint8_t tccl_baseline_ends(const struct tccl_baseline *baseline)
{
    return baseline->ends ? baseline->ends : tccl_ends_most(baseline->set.rings, baseline->set.n);
}

double tccl_reach(uint8_t ends, int gpus)
{
    double steps = 2.0 * gpus - 2;
    return ends > TCCL_ENDS_LEAST && gpus > 1 ? steps / (steps - 1 + ends / 100.0) : 1;
}

void tccl_table_ends(struct tccl_table *table, const struct tccl_model *model)
{
    for (int i = 0, n; i < table->n_results; i++) {
        const struct tccl_chain *rings = tccl_result_rings(&table->results[i], &n);
        table->results[i].ends = tccl_ends(model, rings, n);
    }
    for (int k = 0; k < 2 * TCCL_GENERATIONS; k++) {
        struct tccl_baseline *own = &table->baselines[k / TCCL_GENERATIONS][k % TCCL_GENERATIONS];
        own->ends = tccl_ends(model, own->set.rings, own->set.n);
    }
}
