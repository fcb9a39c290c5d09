/* drift.c: draws a sample of a profile, measures it again, and judges whether the profile still
 * holds. */
#include "fill/fill.h"

#include <math.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/numberset.h"
#include "fill/run-meter.h"
#include "measure/pool/workers.h"
#include "search/setmap.h"

static const double MARGIN = 1.5; /* over the noise and the spreads, of the median of all */
/* Of one set: the noise is that within a process. What two processes measure of the same set, one
 * after the other, differs by 0.03 (standard deviation, an H200), and 40 sets are not to seem to
 * have drifted for that. */
static const double ONE = 4;
enum { MANY = 5 };                    /* for their median to say something */
static const double EQUAL = 1e-6;     /* rounding */
static const double TOO_NOISY = 0.25; /* spread of which nothing can be told */
static const double CHAINS = 0.4;     /* of the sample, at most, */
static const double SINGLES = 0.75;   /* and with these */

struct sample {
    const struct tccl_backend *backend;
    struct tccl_setmap stored; /* what the log has of sets that can be measured now */
    struct tccl_drift_set *sets;
    int count;
};

/* ---- the sample ---- */

static int store(void *context, const struct tccl_set *set, const struct tccl_measurement *measured)
{
    struct sample *sample = context;
    if (measured->failed || measured->marks != sample->backend->marks || measured->gbps <= 0 ||
        tccl_backend_can(sample->backend, set, NULL) != 0)
        return 0;
    return tccl_setmap_note(&sample->stored, set, measured) ? 0 : -1;
}

/* gbps: as a table says, for a set whose bandwidth was known from a symmetric one. gpus: of the
 * table, else 0. */
static void add(struct sample *sample, int most, const struct tccl_set *set, double gbps,
                uint32_t gpus, const char *what)
{
    const struct tccl_setmap_entry *entry = tccl_setmap_find(&sample->stored, set);
    struct tccl_drift_set *one = &sample->sets[sample->count];
    char names[24] = "";
    for (int i = 0; i < sample->count; i++)
        if (tccl_set_equal(&sample->sets[i].set, set))
            return;
    if (sample->count >= most || (!entry && gbps <= 0))
        return;
    sample->count++;
    *one = (struct tccl_drift_set){.set = *set,
                                   .then = entry ? entry->best.gbps : gbps,
                                   .spread_then = entry ? entry->best.spread : 0};
    tccl_numberset_format(gpus, names, sizeof(names));
    snprintf(one->what, sizeof(one->what), "%s%s%s", what, gpus ? " of GPUs " : "", names);
}

/* n rings over several GPUs, that have so much together. */
static void add_rings(struct sample *sample, int most, const struct tccl_chain *rings, int n,
                      double gbps, uint32_t gpus, const char *what)
{
    struct tccl_side side;
    struct tccl_set set;
    if (gbps > 0 && rings->n_gpus > 1 && tccl_rings_side(rings, n, &side) == 0 &&
        tccl_side_set(&side, &set) == 0)
        add(sample, most, &set, gbps / n, gpus, what);
}

/* Those of the whole node first, as they are profiled. */
static int add_tables(struct sample *sample, int most, struct tccl_profile *profile,
                      struct tccl_error *err)
{
    cleanup_free uint32_t *gpus = NULL;
    int count = tccl_gpusets_all(tccl_profile_machine(profile)->n_gpus, &gpus, err);
    for (int i = 0; i < count && sample->count < most; i++) {
        struct tccl_error ignored = {0};
        const struct tccl_table *table = tccl_profile_table(profile, gpus[i], &ignored);
        if (table) {
            const struct tccl_result *ring = tccl_table_ring(table),
                                     *best = tccl_table_best(table, -1, -1);
            const struct tccl_baseline *alone = &table->baselines[1][TCCL_NEWEST],
                                       *between = &table->baselines[0][TCCL_NEWEST];
            add_rings(sample, most, &ring->chain, 1, ring->gbps, table->gpus, "best ring");
            if (best)
                add_rings(sample, most, &best->chain, 1, best->gbps, table->gpus, "best chain");
            add_rings(sample, most, alone->set.rings, alone->set.n, alone->gbps, table->gpus,
                      "baseline ring");
            add_rings(sample, most, between->set.rings, between->set.n, between->gbps, table->gpus,
                      "baseline chain");
        }
    }
    return count < 0 ? -1 : 0;
}

static int draw(struct sample *sample, struct tccl_profile *profile,
                const struct tccl_drift_options *options, struct tccl_error *err)
{
    int most = options->sets < TCCL_DRIFT_SETS ? options->sets : TCCL_DRIFT_SETS;
    const struct tccl_setmap *stored = &sample->stored;
    unsigned seed = options->seed;
    sample->sets = calloc((size_t)most + 1, sizeof(*sample->sets));
    if (!sample->sets)
        return tccl_fail(err, "out of memory");
    if (tccl_profile_sets(profile, store, sample, NULL, err) < 0 ||
        add_tables(sample, (int)ceil(most * CHAINS), profile, err) != 0)
        return -1;
    for (size_t i = 0; i < stored->count; i++)
        if (stored->entries[i].set.count == 1)
            add(sample, (int)ceil(most * SINGLES), &stored->entries[i].set, 0, 0, "alone");
    for (int tries = 0; stored->count > 0 && sample->count < most && tries < 20 * most; tries++)
        add(sample, most, &stored->entries[(size_t)rand_r(&seed) % stored->count].set, 0, 0,
            "random");
    if (sample->count == 0)
        return tccl_fail(err, "%s: has no measured loads to check: tccl-profile run measures them",
                         tccl_profile_folder(profile));
    return 0;
}

/* ---- measuring again ---- */

static double change(const struct tccl_drift_set *one)
{
    return one->now / one->then - 1;
}

/* Again while it is off; a try that is not decides. */
static int measure(struct tccl_backend *backend, struct tccl_drift_set *one, struct tccl_error *err)
{
    struct tccl_measurement now;
    struct tccl_error why;
    bool same = false;
    for (int i = 0; i < TCCL_TRIES && !same; i++) {
        if (tccl_retry(backend, &one->set, 1, &now, &why, err) != 0)
            return -1;
        /* What the measurement says of the set. Is it what it was? */
        double wide = fmax(now.spread, one->spread_then);
        one->failed = now.failed;
        one->now = now.failed ? 0 : now.gbps;
        one->spread = now.spread;
        one->noisy = !now.failed && wide > TOO_NOISY;
        one->limit = fmax(ONE * backend->noise, MARGIN * wide) + EQUAL;
        same = !one->failed && !one->noisy && fabs(change(one)) <= one->limit;
    }
    one->drifted = !same && !one->failed && !one->noisy;
    return 0;
}

/* ---- the verdict ---- */

static void judge(struct tccl_drift *drift, double noise)
{
    double ratios[TCCL_DRIFT_SETS], limits[TCCL_DRIFT_SETS], wide[TCCL_DRIFT_SETS];
    int told = 0;
    drift->worst = -1;
    for (int i = 0; i < drift->count; i++) {
        const struct tccl_drift_set *one = &drift->sets[i];
        drift->drifted += one->drifted;
        drift->noisy += one->noisy;
        drift->failed += one->failed;
        if (one->noisy || one->failed)
            continue;
        limits[told] = one->limit;
        wide[told] = fmax(one->spread, one->spread_then);
        ratios[told++] = one->now / one->then;
        if (drift->worst < 0 || fabs(change(one)) > fabs(change(&drift->sets[drift->worst])))
            drift->worst = i;
    }
    drift->median = told > 0 ? tccl_median(ratios, told) : 0;
    drift->limit = told > 0 ? tccl_median(limits, told) : 0;
    bool all = told >= MANY &&
               fabs(drift->median - 1) > MARGIN * fmax(noise, tccl_median(wide, told)) + EQUAL;
    drift->verdict = 2 * told <= drift->count    ? TCCL_DRIFT_UNCLEAR
                     : all || drift->drifted > 0 ? TCCL_DRIFT_DRIFTED
                                                 : TCCL_DRIFT_HOLDS;
}

int tccl_drift_check(struct tccl_backend *backend, struct tccl_profile *profile,
                     const struct tccl_drift_options *options, struct tccl_drift *drift,
                     struct tccl_error *err)
{
    double end = options->seconds > 0 ? tccl_seconds() + options->seconds : INFINITY;
    struct sample sample = {.backend = backend};
    *drift = (struct tccl_drift){.worst = -1};
    int rc = draw(&sample, profile, options, err);
    drift->sets = sample.sets;
    for (int i = 0; rc == 0 && i < sample.count && (i == 0 || tccl_seconds() < end); i++) {
        rc = options->progress && options->progress(options->context, i, sample.count) != 0;
        if (rc == 0)
            rc = measure(backend, &drift->sets[i], err);
        drift->count += rc == 0;
    }
    judge(drift, backend->noise);
    tccl_setmap_clear(&sample.stored);
    return rc;
}

void tccl_drift_clear(struct tccl_drift *drift)
{
    free(drift->sets);
    *drift = (struct tccl_drift){.worst = -1};
}
