/* place.c: the sets of GPUs that a step could get, rated and ranked. Sets that a symmetry of the
 * machine turns into one another, with what runs left in place, are rated once. */
#include "search/place.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "nccl/baseline.h"

/* SMALL: with up to so many GPUs rings are searched exactly, and all orders of the GPUs tried to
 * find out whether two sets are alike. */
enum { SMALL = 5, KEY = TCCL_MAX_SET + TCCL_MAX_GPUS };

/* What is the same for all sets. */
struct ground {
    const struct tccl_machine *machine;
    const struct tccl_symmetry *symmetry;
    struct tccl_search_options options; /* of one set's search */
    int (*progress)(void *context, const struct tccl_search_progress *progress); /* of all sets */
    void *context;
    uint32_t free;
    struct tccl_beside running; /* nobody, or the step on the busy GPUs */
    struct tccl_side busy;
};

/* What two sets must have in common to be alike: the images of what runs, and of their GPUs. */
struct key {
    int n;
    tccl_transfer images[KEY];
};

long tccl_places_count(uint32_t free, int k)
{
    int n = __builtin_popcount(free);
    long count = k <= n;
    for (int i = 0; i < k && i < n; i++)
        count = count * (n - i) / (i + 1);
    return count;
}

struct tccl_place *tccl_places_new(uint32_t free, int k, int *n)
{
    struct tccl_place *places = calloc(tccl_places_count(free, k) + 1, sizeof(*places));
    *n = 0;
    for (uint32_t gpus = free; places && gpus; gpus = (gpus - 1) & free)
        if (__builtin_popcount(gpus) == k)
            places[(*n)++] = (struct tccl_place){gpus, NAN, NAN, NAN, NAN, 0};
    return places;
}

void tccl_place_take(struct tccl_place *place, const struct tccl_table *table)
{
    if (table->ring.chain.n_gpus)
        place->gbps = table->ring.gbps;
    if (table->baseline_ring[TCCL_NEWEST].gbps > 0)
        place->nccl = table->baseline_ring[TCCL_NEWEST].gbps;
}

/* ---- ranking ---- */

enum { LEVELS = 4 };

static double value(const struct tccl_place *place, int level)
{
    const double values[LEVELS] = {place->gbps, place->least, place->rest, place->nccl};
    return values[level];
}

static int by_numbers(const void *x, const void *y)
{
    uint32_t a = ((const struct tccl_place *)x)->gpus, b = ((const struct tccl_place *)y)->gpus;
    uint32_t first = (a ^ b) & -(a ^ b);
    return a == b ? 0 : a & first ? -1 : 1;
}

static int by_value(const void *x, const void *y, void *level)
{
    double a = value(x, *(int *)level), b = value(y, *(int *)level);
    if (isnan(a) || isnan(b))
        return isnan(a) - isnan(b);
    return (a < b) - (a > b);
}

/* Sorts sets that are equal in all that comes before this level. *tier: the next one. */
static void sort_level(struct tccl_place *places, int n, int level, double noise, int *tier)
{
    if (level == LEVELS) {
        qsort(places, n, sizeof(*places), by_numbers);
        for (int i = 0; i < n; i++)
            places[i].tier = *tier;
        ++*tier;
        return;
    }
    qsort_r(places, n, sizeof(*places), by_value, &level);
    for (int i = 0, end; i < n; i = end) {
        double best = value(&places[i], level);
        for (end = i + 1; end < n; end++) {
            double next = value(&places[end], level);
            if (isnan(best) != isnan(next) || next * (1 + noise) < best)
                break;
        }
        sort_level(places + i, end - i, level + 1, noise, tier);
    }
}

void tccl_places_sort(struct tccl_place *places, int n, double noise)
{
    int tier = 0;
    sort_level(places, n, 0, fmax(noise, 1e-9), &tier);
}

/* ---- sets that are alike ---- */

static void key_of(const struct ground *ground, const int *order, int n, struct key *key)
{
    tccl_transfer walk[KEY];
    int count = ground->busy.count;
    memcpy(walk, ground->busy.transfers, count * sizeof(*walk));
    for (int i = 0; i < n; i++) {
        struct tccl_device gpu = {TCCL_GPU, order[i]}, next = {TCCL_GPU, order[(i + 1) % n]};
        walk[count++] = tccl_transfer_make(gpu, false, next);
    }
    *key = (struct key){.n = count};
    tccl_symmetry_relabel(ground->symmetry, walk, count, key->images);
}

/* Keeps the least key of all orders of the GPUs from place `from` on. */
static void least_key(const struct ground *ground, int *order, int from, int n, struct key *least)
{
    struct key key;
    if (from == n || n > SMALL) {
        key_of(ground, order, n, &key);
        if (!least->n || memcmp(key.images, least->images, sizeof(key.images)) < 0)
            *least = key;
        return;
    }
    for (int i = from; i < n; i++) {
        int first = order[from];
        order[from] = order[i];
        order[i] = first;
        least_key(ground, order, from + 1, n, least);
        order[i] = order[from];
        order[from] = first;
    }
}

static void key_of_set(const struct ground *ground, uint32_t gpus, struct key *key)
{
    int order[TCCL_MAX_GPUS], n = 0;
    *key = (struct key){0};
    for (int i = 0; i < TCCL_MAX_GPUS; i++)
        if (gpus >> i & 1)
            order[n++] = i;
    least_key(ground, order, 0, n, key);
}

/* ---- rating ---- */

/* Adds the best ring of the GPUs to those that run. *gbps: beside them; unchanged where there are
 * too few GPUs for a ring. */
static int add_ring(const struct ground *ground, uint32_t gpus, struct tccl_beside *running,
                    struct tccl_side *side, double *gbps, double *least, struct tccl_error *err)
{
    struct tccl_search_options options = ground->options;
    struct tccl_result best;
    struct tccl_worth worth;
    if (__builtin_popcount(gpus) < 2)
        return 0;
    if (__builtin_popcount(gpus) <= SMALL) {
        options.gap = 0;
        options.budget = 0;
    }
    if (tccl_beside_ring(running, gpus, &options, &best, &worth, err) != 0)
        return -1;
    *side = (struct tccl_side){0};
    if (tccl_side_add_chain(side, &best.chain) != 0)
        return tccl_fail(err, "more than %d transfers in a ring", TCCL_MAX_SET);
    running->others[running->n] = side;
    running->alone[running->n++] = running->own;
    *gbps = worth.gbps;
    *least = worth.least;
    return 0;
}

/* NCCL's own rings for the GPUs, beside what runs; NAN where it has none. */
static int rate_nccl(const struct ground *ground, uint32_t gpus, double *gbps,
                     struct tccl_error *err)
{
    struct tccl_baseline own;
    struct tccl_beside running = ground->running;
    struct tccl_side side = {0};
    struct tccl_worth worth;
    if (__builtin_popcount(gpus) < 2 ||
        tccl_baseline_find(ground->machine, gpus, true, TCCL_NEWEST, &own, NULL, NULL) != 0)
        return 0;
    for (int i = 0; i < own.n_chains; i++)
        if (tccl_side_add_chain(&side, &own.chains[i]) != 0)
            return 0;
    running.own = 1;
    if (tccl_beside_worth(&running, &side, &worth, err) != 0)
        return -1;
    *gbps = own.n_chains ? worth.gbps : NAN;
    return 0;
}

static int rate(const struct ground *ground, struct tccl_place *place, struct tccl_error *err)
{
    struct tccl_beside running = ground->running;
    struct tccl_side side, rest;
    if (add_ring(ground, place->gpus, &running, &side, &place->gbps, &place->least, err) != 0)
        return -1;
    return add_ring(ground, ground->free & ~place->gpus, &running, &rest, &place->rest,
                    &place->least, err);
}

static void tell(const struct ground *ground, int done, int total)
{
    const struct tccl_search_progress progress = {.pairs_done = done, .pairs_total = total};
    if (ground->progress)
        ground->progress(ground->context, &progress);
}

static int rate_all(const struct ground *ground, struct tccl_place *places, int n,
                    struct tccl_error *err)
{
    cleanup_free struct key *keys = calloc(n, sizeof(*keys));
    if (!keys)
        return tccl_fail(err, "out of memory");
    for (int i = 0; i < n; i++) {
        int like = i;
        tell(ground, i, n);
        if (ground->symmetry)
            key_of_set(ground, places[i].gpus, &keys[i]);
        for (int k = 0; ground->symmetry && k < i && like == i; k++)
            if (memcmp(&keys[k], &keys[i], sizeof(keys[i])) == 0)
                like = k;
        if (like == i && rate(ground, &places[i], err) != 0)
            return -1;
        uint32_t gpus = places[i].gpus;
        places[i] = places[like];
        places[i].gpus = gpus;
        if (rate_nccl(ground, gpus, &places[i].nccl, err) != 0) /* it knows no symmetry */
            return -1;
    }
    return 0;
}

int tccl_place_rank(const struct tccl_model *model, const struct tccl_symmetry *symmetry,
                    uint32_t busy, int k, const struct tccl_search_options *options,
                    struct tccl_place **places, int *n, struct tccl_error *err)
{
    const struct tccl_machine *machine = tccl_model_machine(model);
    struct ground ground = {.machine = machine,
                            .symmetry = symmetry,
                            .options = *options,
                            .progress = options->progress,
                            .context = options->context,
                            .free = ((1u << machine->n_gpus) - 1) & ~busy,
                            .running = {.model = model}};
    double gbps, least;
    ground.options.progress = NULL; /* it is told of whole sets */
    *places = tccl_places_new(ground.free, k, n);
    if (!*places)
        return tccl_fail(err, "out of memory");
    if (add_ring(&ground, busy, &ground.running, &ground.busy, &gbps, &least, err) != 0 ||
        rate_all(&ground, *places, *n, err) != 0) {
        free(*places);
        *places = NULL;
        return -1;
    }
    tccl_places_sort(*places, *n, options->noise);
    return 0;
}
