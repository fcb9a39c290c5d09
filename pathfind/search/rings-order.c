/* rings-order.c: which rings of a set come first: the best ones, one after the other. */
#include "search/rings-order.h"

#include <math.h>
#include <string.h>

/* What the line rates of the NICs leave to each ring, GB/s. */
static double line_rate(const struct tccl_machine *machine, const struct tccl_ring_set *set)
{
    int counts[TCCL_MAX_NICS][2] = {{0}};
    double rate = INFINITY;
    for (int i = 0; i < set->n && !set->rings[i].closed; i++) {
        counts[set->rings[i].entry.nic][0]++;
        counts[set->rings[i].exit.nic][1]++;
    }
    for (int i = 0; i < machine->n_nics; i++)
        for (int k = 0; k < 2; k++)
            if (counts[i][k])
                rate = fmin(rate, machine->nics[i].gbps / counts[i][k]);
    return rate;
}

/* Of the first n rings together, GB/s; 0: not known. */
static double rate_first(const struct tccl_model *model, const struct tccl_rings_rater *rater,
                         const struct tccl_ring_set *set, int n)
{
    struct tccl_ring_set first = *set;
    struct tccl_side side;
    double rates[TCCL_MAX_SIDE];
    first.n = n;
    tccl_ring_set_side(&first, &side);
    int status = rater ? rater->rate(rater->context, side.transfers, side.count, rates, NULL)
                       : tccl_model_rates(model, side.transfers, side.count, rates, NULL, NULL);
    if (status != 0)
        return 0;
    double least = line_rate(rater ? rater->machine : tccl_model_machine(model), &first);
    for (int i = 0; i < side.count; i++)
        least = fmin(least, rates[i]);
    return n * least;
}

/* Ring `from` comes to the place `to` before it; those between move on by one. */
static void move(struct tccl_ring_set *set, int from, int to)
{
    struct tccl_chain ring = set->rings[from];
    memmove(&set->rings[to + 1], &set->rings[to], (size_t)(from - to) * sizeof(ring));
    set->rings[to] = ring;
}

/* The best ring for a place, beside those before it. Returns what they reach together. */
static double fill(const struct tccl_model *model, const struct tccl_rings_rater *rater, int place,
                   struct tccl_ring_set *set)
{
    struct tccl_ring_set best = *set;
    double most = 0;
    for (int i = place; i < set->n; i++) {
        struct tccl_ring_set tried = *set;
        move(&tried, i, place);
        double gbps = rate_first(model, rater, &tried, place + 1);
        if (gbps > most * (1 + 1e-9)) {
            most = gbps;
            best = tried;
        }
    }
    *set = best;
    return most;
}

int tccl_rings_order(const struct tccl_model *model, const struct tccl_rings_rater *rater,
                     struct tccl_ring_set *set, double gbps[static TCCL_CHAIN_RINGS])
{
    int rated = 0;
    for (int place = 0; place < set->n; place++) {
        gbps[place] = fill(model, rater, place, set);
        rated += set->n - place;
    }
    return rated;
}
