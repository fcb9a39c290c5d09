#include "fill.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "search.h"

enum { SYNC_SECONDS = 2 };

struct fill {
    struct tccl_backend *backend;
    struct tccl_profile *profile;
    const struct tccl_fill_options *options;
    struct tccl_search *search;
    struct tccl_fill_progress progress;
    double work_done, work_now, work_total;
    time_t synced;
    bool stopped;
};

/* How much work the chains of a set are, next to those of others: a guess for the time left. */
static double work(uint32_t gpus)
{
    double n = __builtin_popcount(gpus);
    return n * n * n * n;
}

/* part: how much of the table at work is done, by the search's count, which may also go back. */
static bool stop(struct fill *fill, double part)
{
    double now = part > 1 ? 1 : part;
    double fraction = (fill->work_done + now * fill->work_now) / fill->work_total;

    if (fraction > fill->progress.fraction)
        fill->progress.fraction = fraction;
    if (fill->options->progress &&
        fill->options->progress(fill->options->context, &fill->progress) != 0)
        fill->stopped = true;
    return fill->stopped;
}

static int sync_sometimes(struct fill *fill, struct tccl_error *err)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    if (now.tv_sec - fill->synced < SYNC_SECONDS)
        return 0;
    fill->synced = now.tv_sec;
    return tccl_profile_sync(fill->profile, err);
}

/* The meter that the search asks: measures, and writes down at once. */
static int measure(void *context, const struct tccl_set *set, struct tccl_measurement *out,
                   struct tccl_error *err)
{
    struct fill *fill = context;

    if (tccl_backend_measure(fill->backend, set, out, err) < 0 ||
        tccl_profile_append(fill->profile, set, out, err) < 0)
        return -1;
    fill->progress.measured++;
    return sync_sometimes(fill, err);
}

static int follow(void *context, const struct tccl_search_progress *search)
{
    struct fill *fill = context;
    double part = search->pairs_total > 0 ? (double)search->pairs_done / search->pairs_total : 0;

    fill->progress.shared = search->shared;
    return stop(fill, part);
}

static int know(void *context, const struct tccl_set *set, const struct tccl_measurement *measured)
{
    return tccl_search_know(context, set, measured->gbps);
}

static bool proven(const struct tccl_result *result, double gap)
{
    return result->bound <= result->gbps * (1 + gap) * (1 + 1e-9);
}

bool tccl_fill_complete(const struct tccl_table *table, const struct tccl_fill_options *options)
{
    long pairs = (long)table->n_ports * table->n_ports, good = 0;
    long wanted = options->pairs > 0 && options->pairs < pairs ? options->pairs : pairs;

    if (options->budget > 0 && table->measured >= (unsigned long)options->budget)
        return true;
    for (long i = 0; i < pairs; i++)
        good += proven(&table->pairs[i], options->gap);
    bool alone = __builtin_popcount(table->gpus) < 2; /* no ring to be proven */
    return good >= wanted && (alone || proven(&table->ring, options->gap));
}

/* Is there a table that needs no work? A bad one is as good as none: it is written anew. */
static bool have(struct fill *fill, uint32_t gpus)
{
    struct tccl_error ignored = {0};
    const struct tccl_table *table = tccl_profile_table(fill->profile, gpus, &ignored);

    return table && tccl_fill_complete(table, fill->options);
}

static int search_table(struct fill *fill, struct tccl_table *table, struct tccl_error *err)
{
    const struct tccl_search_options options = {.gap = fill->options->gap,
                                                .noise = tccl_backend_noise(fill->backend),
                                                .budget = fill->options->budget,
                                                .pairs = fill->options->pairs,
                                                .progress = follow,
                                                .context = fill};

    strcpy(table->source, tccl_profile_source(fill->profile));
    if (tccl_search_table(fill->search, table, &options, err) < 0)
        return -1;
    return fill->stopped ? 1 : tccl_profile_put(fill->profile, table, err);
}

static int make_table(struct fill *fill, uint32_t gpus, struct tccl_error *err)
{
    struct tccl_table *table = tccl_table_new(tccl_profile_machine(fill->profile), gpus);

    if (!table)
        return tccl_fail(err, "out of memory");
    int rc = search_table(fill, table, err);
    tccl_table_free(table);
    return rc;
}

static int fill_one(struct fill *fill, uint32_t gpus, struct tccl_error *err)
{
    fill->progress.gpus = gpus;
    fill->work_now = work(gpus);
    if (stop(fill, 0))
        return 1;
    if (have(fill, gpus)) {
        fill->progress.kept++;
    } else {
        int rc = make_table(fill, gpus, err);
        if (rc != 0)
            return rc;
    }
    fill->work_done += fill->work_now;
    fill->progress.done++;
    return 0;
}

static int fill_all(struct fill *fill, struct tccl_error *err)
{
    long known = tccl_profile_sets(fill->profile, know, fill->search, NULL, err);

    if (known < 0)
        return -1;
    fill->progress.known = known;
    for (int i = 0; i < fill->options->n_sets; i++)
        fill->work_total += work(fill->options->sets[i]);
    for (int i = 0; i < fill->options->n_sets; i++) {
        int rc = fill_one(fill, fill->options->sets[i], err);
        if (rc != 0)
            return rc;
    }
    fill->work_now = 0;
    stop(fill, 0);
    return 0;
}

int tccl_fill(struct tccl_backend *backend, struct tccl_profile *profile,
              const struct tccl_fill_options *options, struct tccl_fill_progress *end,
              struct tccl_error *err)
{
    struct fill fill = {.backend = backend,
                        .profile = profile,
                        .options = options,
                        .progress = {.total = options->n_sets}};
    struct tccl_meter meter = {.measure = measure, .context = &fill};

    fill.search =
        tccl_search_new(tccl_profile_machine(profile), meter, tccl_backend_symmetry(backend));
    int rc = fill.search ? fill_all(&fill, err) : tccl_fail(err, "out of memory");
    tccl_search_free(fill.search);
    *end = fill.progress;
    if (tccl_profile_sync(profile, rc < 0 ? NULL : err) < 0)
        rc = -1;
    return rc;
}
