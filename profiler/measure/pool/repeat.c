/* repeat.c: how often a set is run until its bandwidth is known. */
#include "measure/pool/workers.h"

#include <stdlib.h>

/* The share of a first run, whose rate is not known, and bounds of those after it (bytes). */
static const double first_share = 1 << 20, least_share = 64 << 10, most_share = 1e12;
static const double most_growth = 64; /* from run to run */
/* A run in which the members were together for less was disturbed, and is made again. Each further
 * round takes longer runs: what disturbs weighs less. */
static const double longer = 2;
static const double least_overlap = 0.95;

enum { WARM_UPS = 5, MOST_REPEATS = 101 };

struct round {
    int count;
    double gbps[MOST_REPEATS], skew[MOST_REPEATS];
    double spread, overlap;
};

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double tccl_median(double *values, int n)
{
    qsort(values, (size_t)n, sizeof(*values), compare);
    return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

double tccl_spread(const double *sorted, int n)
{
    double median = n % 2 == 1 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
    return median > 0 ? (sorted[n - 1] - sorted[0]) / median : 0;
}

/* Runs until one takes about as long as it should. Returns as tccl_repeat, with *share. */
static int warm_up(struct tccl_workers *workers, double window, const struct tccl_set *set,
                   double *share, struct tccl_error *err)
{
    struct tccl_run_result run;
    *share = first_share;
    for (int i = 0; i < WARM_UPS; i++) {
        int rc = tccl_workers_run(workers, set, (uint64_t)*share, &run, err);
        if (rc != 0)
            return rc;
        /* By what the last one took, not by its rates: members that don't start together get a
         * longer run, too. One in which they never were together says little of how long it was. */
        double factor = run.window > 0 ? window / run.window : longer;
        *share *= factor < most_growth ? factor : most_growth;
        *share = *share < least_share ? least_share : *share > most_share ? most_share : *share;
        if (run.window > window / 2)
            break;
    }
    return 0;
}

/* Returns as tccl_repeat. As many disturbed runs as there are repeats are made again. */
static int run_round(struct tccl_workers *workers, int repeats, const struct tccl_set *set,
                     double share, struct round *round, struct tccl_error *err)
{
    int again = repeats;
    round->count = 0;
    round->overlap = 1;
    while (round->count < repeats) {
        struct tccl_run_result run;
        int rc = tccl_workers_run(workers, set, (uint64_t)share, &run, err);
        if (rc != 0)
            return rc;
        if (run.overlap < least_overlap && again-- > 0)
            continue;
        round->gbps[round->count] = run.slowest;
        round->skew[round->count++] = run.skew;
        if (run.overlap < round->overlap)
            round->overlap = run.overlap;
    }
    tccl_median(round->gbps, round->count);
    round->spread = tccl_spread(round->gbps, round->count);
    return 0;
}

static bool is_good(const struct round *round, double spread)
{
    return round->spread <= spread && round->overlap >= least_overlap;
}

static bool is_better(const struct round *a, const struct round *b)
{
    bool a_overlaps = a->overlap >= least_overlap, b_overlaps = b->overlap >= least_overlap;
    return a_overlaps != b_overlaps ? a_overlaps : a->spread < b->spread;
}

int tccl_repeat(struct tccl_workers *workers, const struct tccl_repeat_options *options,
                const struct tccl_set *set, struct tccl_measurement *out, struct tccl_error *err)
{
    int repeats = options->repeats < 3              ? 3
                  : options->repeats > MOST_REPEATS ? MOST_REPEATS
                                                    : options->repeats;
    struct round best = {0}, round;
    double share;
    int rc = warm_up(workers, options->window, set, &share, err);
    for (int i = 0; rc == 0 && (i == 0 || i < options->rounds); i++, share *= longer) {
        rc = run_round(workers, repeats, set, share, &round, err);
        if (rc == 0 && (i == 0 || is_better(&round, &best)))
            best = round;
        if (is_good(&best, options->spread))
            break;
    }
    if (rc != 0)
        return rc;
    out->gbps = tccl_median(best.gbps, best.count);
    out->skew = tccl_median(best.skew, best.count);
    out->spread = best.spread;
    out->overlap = best.overlap;
    out->noisy = !is_good(&best, options->spread);
    if (!(out->gbps > 0))
        return -tccl_fail(err, "its transfers hardly run at the same time here");
    return 0;
}
