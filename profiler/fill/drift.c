#include "fill/drift.h"

#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/numbers.h"
#include "fill/gpusets.h"
#include "measure/pool/repeat.h"
#include "nccl/baseline.h"
#include "search/setmap.h"

enum { TRIES = 3 };
static const double MARGIN = 1.5;     /* over the noise and the spreads */
static const double EQUAL = 1e-6;     /* rounding */
static const double TOO_NOISY = 0.25; /* spread of which nothing can be told */
static const double CHAINS = 0.4;     /* of the sample, at most, */
static const double SINGLES = 0.75;   /* and with these */

/* What the log says. */
struct stored {
    struct tccl_setmap map;
    double *spreads; /* by entry */
    size_t room;
    unsigned marks;
    const struct tccl_backend *backend;
};

struct sample {
    struct stored stored;
    struct tccl_drift_set *sets;
    int count, room;
};

/* ---- the sample ---- */

static int store(void *context, const struct tccl_set *set, const struct tccl_measurement *measured)
{
    struct stored *stored = context;

    if (measured->failed || measured->marks != stored->marks || measured->gbps <= 0 ||
        tccl_backend_can(stored->backend, set, NULL) < 0)
        return 0;
    if (tccl_grow((void **)&stored->spreads, stored->map.count, &stored->room,
                  sizeof(*stored->spreads)) < 0 ||
        tccl_setmap_add(&stored->map, set, measured->gbps) < 0)
        return -1;
    struct tccl_setmap_entry *entry = tccl_setmap_find(&stored->map, set);
    entry->gbps = measured->gbps;
    stored->spreads[entry - stored->map.entries] = measured->spread;
    return 0;
}

static bool has(const struct sample *sample, const struct tccl_set *set)
{
    for (int i = 0; i < sample->count; i++)
        if (tccl_set_equal(&sample->sets[i].set, set))
            return true;
    return false;
}

/* gbps: as a table says, for a set whose bandwidth was known from a symmetric one. */
static void add(struct sample *sample, int most, const struct tccl_set *set, double gbps,
                const char *what)
{
    const struct tccl_setmap_entry *entry = tccl_setmap_find(&sample->stored.map, set);

    if (sample->count >= most || sample->count >= sample->room || has(sample, set) ||
        (!entry && gbps <= 0))
        return;
    struct tccl_drift_set *one = &sample->sets[sample->count++];
    *one = (struct tccl_drift_set){.set = *set, .then = entry ? entry->gbps : gbps};
    if (entry)
        one->spread_then = sample->stored.spreads[entry - sample->stored.map.entries];
    snprintf(one->what, sizeof(one->what), "%s", what);
}

static void add_chain(struct sample *sample, int most, const struct tccl_result *result,
                      uint32_t gpus, const char *what)
{
    char text[TCCL_DRIFT_WHAT], names[24] = "";
    struct tccl_set set = {0};

    if (result->chain.n_gpus == 0 || result->gbps <= 0 || tccl_chain_edges(&result->chain) == 0)
        return;
    tccl_chain_set(&result->chain, &set);
    tccl_numberset_format(gpus, names, sizeof(names));
    snprintf(text, sizeof(text), "%s of GPUs %s", what, names);
    add(sample, most, &set, result->gbps, text);
}

/* The baseline: the set of all of its chains. */
static void add_baseline(struct sample *sample, int most, const struct tccl_baseline *baseline,
                         uint32_t gpus, const char *what)
{
    char text[TCCL_DRIFT_WHAT], names[24] = "";
    struct tccl_set set;

    if (baseline->gbps <= 0 || baseline->chains[0].n_gpus < 2 ||
        tccl_baseline_set(baseline, &set, NULL) != 0)
        return;
    tccl_numberset_format(gpus, names, sizeof(names));
    snprintf(text, sizeof(text), "%s of GPUs %s", what, names);
    add(sample, most, &set, baseline->gbps / tccl_baseline_gbps(baseline, 1), text);
}

static void add_table(struct sample *sample, int most, const struct tccl_table *table)
{
    const struct tccl_result *best = NULL;

    for (int i = 0; i < table->n_ports * table->n_ports; i++)
        if (!best || table->pairs[i].gbps > best->gbps)
            best = &table->pairs[i];
    add_chain(sample, most, &table->ring, table->gpus, "best ring");
    if (best)
        add_chain(sample, most, best, table->gpus, "best chain");
    add_baseline(sample, most, &table->baseline_ring, table->gpus, "baseline ring");
    add_baseline(sample, most, &table->baseline_chain, table->gpus, "baseline chain");
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
        if (table)
            add_table(sample, most, table);
    }
    return count < 0 ? -1 : 0;
}

static void add_singles(struct sample *sample, int most)
{
    for (size_t i = 0; i < sample->stored.map.count; i++)
        if (sample->stored.map.entries[i].set.count == 1)
            add(sample, most, &sample->stored.map.entries[i].set, 0, "alone");
}

static void add_random(struct sample *sample, int most, unsigned seed)
{
    size_t count = sample->stored.map.count;

    for (int tries = 0; count > 0 && sample->count < most && tries < 20 * most; tries++)
        add(sample, most, &sample->stored.map.entries[(size_t)rand_r(&seed) % count].set, 0,
            "random");
}

static int draw(struct sample *sample, struct tccl_profile *profile,
                const struct tccl_drift_options *options, struct tccl_error *err)
{
    int most = options->sets < TCCL_DRIFT_SETS ? options->sets : TCCL_DRIFT_SETS;

    sample->room = most;
    sample->sets = calloc((size_t)most + 1, sizeof(*sample->sets));
    if (!sample->sets)
        return tccl_fail(err, "out of memory");
    if (tccl_profile_sets(profile, store, &sample->stored, NULL, err) < 0 ||
        add_tables(sample, (int)ceil(most * CHAINS), profile, err) < 0)
        return -1;
    add_singles(sample, (int)ceil(most * SINGLES));
    add_random(sample, most, options->seed);
    if (sample->count == 0)
        return tccl_fail(err, "%s: has no measured sets to check: tccl-profile run measures them",
                         tccl_profile_folder(profile));
    return 0;
}

/* ---- measuring again ---- */

static double change(const struct tccl_drift_set *one)
{
    return one->now / one->then - 1;
}

static bool is_off(const struct tccl_drift_set *one)
{
    return fabs(change(one)) > one->limit;
}

/* Once. Returns as tccl_backend_measure. */
static int measure_once(struct tccl_backend *backend, struct tccl_drift_set *one,
                        struct tccl_error *err)
{
    struct tccl_measurement out = {0};
    struct tccl_error why = {0};
    int rc = tccl_backend_measure(backend, &one->set, &out, &why);

    if (rc < 0)
        return tccl_fail(err, "%s", why.text);
    one->failed = rc > 0 || out.failed || out.marks != tccl_backend_marks(backend);
    one->now = one->failed ? 0 : out.gbps;
    one->spread = out.spread;
    double wide = fmax(one->spread, one->spread_then);
    one->noisy = !one->failed && wide > TOO_NOISY;
    one->limit = MARGIN * fmax(tccl_backend_noise(backend), wide) + EQUAL;
    return 0;
}

/* Again and again while it is off; a try that is not decides. */
static int measure(struct tccl_backend *backend, struct tccl_drift_set *one, struct tccl_error *err)
{
    for (int i = 0; i < TRIES; i++) {
        if (measure_once(backend, one, err) < 0)
            return -1;
        if (!one->failed && !one->noisy && !is_off(one))
            return 0;
    }
    one->drifted = !one->failed && !one->noisy;
    return 0;
}

static int measure_all(struct tccl_backend *backend, const struct tccl_drift_options *options,
                       struct tccl_drift *drift, int count, struct tccl_error *err)
{
    double end = options->seconds > 0 ? tccl_seconds() + options->seconds : INFINITY;

    for (int i = 0; i < count && (i == 0 || tccl_seconds() < end); i++) {
        if (options->progress && options->progress(options->context, i, count) != 0)
            return 1;
        if (measure(backend, &drift->sets[i], err) < 0)
            return -1;
        drift->count++;
    }
    return 0;
}

/* ---- the verdict ---- */

static void judge(struct tccl_drift *drift, double noise)
{
    double ratios[TCCL_DRIFT_SETS], limits[TCCL_DRIFT_SETS];
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
        ratios[told++] = one->now / one->then;
        if (drift->worst < 0 || fabs(change(one)) > fabs(change(&drift->sets[drift->worst])))
            drift->worst = i;
    }
    drift->median = told > 0 ? tccl_median(ratios, told) : 0;
    drift->limit = told > 0 ? tccl_median(limits, told) : 0;
    bool all = told > 0 && fabs(drift->median - 1) > fmax(MARGIN * noise, drift->limit) + EQUAL;
    drift->verdict = 2 * told <= drift->count    ? TCCL_DRIFT_UNCLEAR
                     : all || drift->drifted > 0 ? TCCL_DRIFT_DRIFTED
                                                 : TCCL_DRIFT_HOLDS;
}

int tccl_drift_check(struct tccl_backend *backend, struct tccl_profile *profile,
                     const struct tccl_drift_options *options, struct tccl_drift *drift,
                     struct tccl_error *err)
{
    struct sample sample = {.stored = {.marks = tccl_backend_marks(backend), .backend = backend}};

    *drift = (struct tccl_drift){.worst = -1};
    int rc = draw(&sample, profile, options, err);
    drift->sets = sample.sets;
    if (rc == 0)
        rc = measure_all(backend, options, drift, sample.count, err);
    judge(drift, tccl_backend_noise(backend));
    tccl_setmap_clear(&sample.stored.map);
    free(sample.stored.spreads);
    return rc;
}

void tccl_drift_clear(struct tccl_drift *drift)
{
    free(drift->sets);
    *drift = (struct tccl_drift){.worst = -1};
}
