/* place.c: the sets of GPUs that a step could get, rated by what it gets there, and ranked. */
#include "search/place.h"

#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "ring/neighbours.h"
#include "search/likeness.h"
#include "search/model-table.h"

/* What is the same for all sets. */
struct ground {
    const struct tccl_place_source *source;
    struct tccl_model_tables *tables; /* made of the model; NULL: there is none */
    uint32_t free;
    bool alone;                 /* what steps do to each other is not known */
    struct tccl_beside running; /* nobody, or the step on the busy GPUs */
};

/* The sets of k of the free GPUs, unranked, all values NAN. */
static struct tccl_place *list_places(uint32_t free, int k, int *n)
{
    size_t count = 1;
    for (uint32_t gpus = free; gpus; gpus = (gpus - 1) & free)
        count += __builtin_popcount(gpus) == k;
    struct tccl_place *places = calloc(count, sizeof(*places));
    *n = 0;
    for (uint32_t gpus = free; places && gpus; gpus = (gpus - 1) & free)
        if (__builtin_popcount(gpus) == k)
            places[(*n)++] = (struct tccl_place){
                .gpus = gpus, .gbps = NAN, .alone = NAN, .least = NAN, .rest = NAN, .nccl = NAN};
    return places;
}

/* ---- ranking ---- */

enum { LEVELS = 5 };

/* So many times the noise a bandwidth may be less, where others have more for it. */
#define FOR_OTHERS 4

static double value(const struct tccl_place *place, int level)
{
    const double values[LEVELS] = {!place->collapses, place->gbps, place->least, place->rest,
                                   place->nccl};
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
    double little = level == 1 ? FOR_OTHERS * noise : noise;
    qsort_r(places, n, sizeof(*places), by_value, &level);
    for (int i = 0, end; i < n; i = end) {
        double best = value(&places[i], level);
        for (end = i + 1; end < n; end++) {
            double next = value(&places[end], level);
            if (isnan(best) != isnan(next) || next * (1 + little) < best)
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

/* ---- rating ---- */

/* *table: NULL where there is none. */
static int table_of(const struct ground *ground, uint32_t gpus, const struct tccl_table **table,
                    struct tccl_error *err)
{
    const struct tccl_place_source *source = ground->source;
    *table = NULL;
    if (source->table && source->table(source->context, gpus, table, err) != 0)
        return -1;
    if (*table || !ground->tables)
        return 0;
    *table = tccl_model_tables_get(ground->tables, gpus, err);
    return *table ? 0 : -1;
}

/* What a step on the GPUs gets beside those that run, to whom it is added; *first: with nobody
 * else. Without transfers where there are too few GPUs for a ring, or nothing is known of them. */
static int launch(const struct ground *ground, uint32_t gpus, struct tccl_beside *running,
                  struct tccl_launched *step, struct tccl_launched *first, struct tccl_error *err)
{
    struct tccl_beside nobody = ground->running;
    const struct tccl_table *table;
    *step = *first = (struct tccl_launched){0};
    nobody.n = 0;
    if (__builtin_popcount(gpus) < 2)
        return 0;
    if (table_of(ground, gpus, &table, err) != 0)
        return -1;
    if (!table)
        return 0;
    if (tccl_launch_choose(&nobody, table, TCCL_CHAIN_RINGS, first, err) != 0 ||
        tccl_launch_choose(running, table, TCCL_CHAIN_RINGS, step, err) != 0)
        return -1;
    if (step->side.count > 0) {
        running->others[running->n] = &step->side;
        running->alone[running->n++] = first->side.alone;
    }
    return 0;
}

/* What NCCL's own does beside those that run. */
static int rate_own(const struct ground *ground, struct tccl_place *place, struct tccl_error *err)
{
    struct tccl_beside running = ground->running;
    const struct tccl_table *table;
    struct tccl_side own = {0};
    struct tccl_worth worth;
    if (running.n == 0 || __builtin_popcount(place->gpus) < 2)
        return 0;
    if (table_of(ground, place->gpus, &table, err) != 0)
        return -1;
    const struct tccl_baseline *baseline = table ? &table->baselines[1][TCCL_NEWEST] : NULL;
    if (!baseline || !(baseline->gbps > 0) || tccl_ring_set_side(&baseline->set, &own) != 0)
        return 0;
    running.own = own.alone = baseline->gbps;
    if (tccl_beside_worth(&running, &own, &worth, err) != 0)
        return -1;
    place->collapses = tccl_beside_collapses(&running, &own, &worth);
    return 0;
}

static double known(double gbps)
{
    return gbps > 0 ? gbps : NAN;
}

static int rate(const struct ground *ground, struct tccl_place *place, struct tccl_error *err)
{
    struct tccl_beside running = ground->running;
    struct tccl_launched step, rest, first, rest_first;
    if (launch(ground, place->gpus, &running, &step, &first, err) != 0)
        return -1;
    place->gbps = known(step.gbps);
    place->alone = known(first.alone);
    place->nccl = known(step.nccl);
    if (ground->alone)
        return 0;
    if (rate_own(ground, place, err) != 0)
        return -1;
    if (launch(ground, ground->free & ~place->gpus, &running, &rest, &rest_first, err) != 0)
        return -1;
    place->rest = known(rest.gbps);
    /* The least share of all that run. */
    struct tccl_worth worth = {.least = 1};
    if (running.n == 0)
        return 0;
    const struct tccl_side *last = running.others[--running.n];
    running.own = running.alone[running.n];
    if (running.n > 0 && tccl_beside_worth(&running, last, &worth, err) != 0)
        return -1;
    place->least = fmin(worth.least, 1);
    place->basis = worth.basis;
    return 0;
}

/* ---- sets that are alike ---- */

/* A set that is rated, and who may have its values. */
struct alike {
    const struct ground *ground;
    uint32_t busy;
    struct tccl_place *places;
    int *at;     /* the place of each mask of GPUs among them, from 1 on; 0: none */
    bool *rated; /* by place */
    int from;
    bool begun; /* with the images of this one */
};

/* Does what runs stay as it is? */
static bool keeps(const struct tccl_side *side, const struct tccl_exchange *move)
{
    struct tccl_side there = *side;
    for (int i = 0; i < side->count; i++)
        there.transfers[i] = tccl_exchange_transfer(move, side->transfers[i]);
    return tccl_side_equal(side, &there);
}

/* Is the set's table made of the model? Such tables are moved where sets are alike. */
static bool by_model(const struct ground *ground, uint32_t gpus)
{
    const struct tccl_place_source *source = ground->source;
    const struct tccl_table *table = NULL;
    return !source->table ||
           (source->table(source->context, gpus, &table, NULL) == 0 && table == NULL);
}

/* A set has the values of the one that is moved there with all that counts: its table, that of the
 * rest, and what runs. */
static bool hand_on(void *context, uint32_t gpus, const struct tccl_exchange *move)
{
    struct alike *alike = context;
    const struct ground *ground = alike->ground;
    const struct tccl_machine *machine = ground->source->machine;
    const struct tccl_place *from = &alike->places[alike->from];
    uint32_t rest = ground->free & ~from->gpus;
    int at = alike->at[gpus] - 1;
    if (!alike->begun)
        return alike->begun = true; /* itself */
    if (at < 0 || alike->rated[at] || tccl_exchange_gpus(move, alike->busy) != alike->busy ||
        !tccl_exchange_in_order(move, from->gpus) || !tccl_exchange_in_order(move, rest) ||
        !tccl_likeness_to_nccl(machine, move) || !by_model(ground, gpus) ||
        !by_model(ground, ground->free & ~gpus))
        return false;
    for (int i = 0; i < ground->running.n; i++)
        if (!keeps(ground->running.others[i], move))
            return false;
    alike->places[at] = *from;
    alike->places[at].gpus = gpus;
    alike->rated[at] = true;
    return true;
}

static int rate_all(struct ground *ground, uint32_t busy, struct tccl_place *places, int n,
                    struct tccl_error *err)
{
    size_t masks = (size_t)1 << ground->source->machine->n_gpus;
    cleanup_free int *at = calloc(masks, sizeof(*at));
    cleanup_free bool *rated = calloc((size_t)n + 1, sizeof(*rated));
    struct alike alike = {ground, busy, places, at, rated, 0, false};
    struct tccl_launched step, first;
    if (!at || !rated)
        return tccl_fail(err, "out of memory");
    for (int i = 0; i < n; i++)
        at[places[i].gpus] = i + 1;
    if (!ground->alone && launch(ground, busy, &ground->running, &step, &first, err) != 0)
        return -1;
    const struct tccl_place_source *source = ground->source;
    for (int i = 0; i < n; i++) {
        struct tccl_place *place = &alike.places[i];
        alike.from = i;
        alike.begun = false;
        if (source->progress)
            source->progress(source->context, i, n);
        if (alike.rated[i])
            continue;
        if (rate(ground, place, err) != 0)
            return -1;
        alike.rated[i] = true;
        if (ground->tables && by_model(ground, place->gpus) &&
            by_model(ground, ground->free & ~place->gpus))
            tccl_symmetry_images(source->symmetry, place->gpus, hand_on, &alike);
    }
    return 0;
}

int tccl_place_rank(const struct tccl_place_source *source, uint32_t busy, int k, double noise,
                    struct tccl_place **places, int *n, struct tccl_error *err)
{
    const struct tccl_model *model = source->model;
    struct ground ground = {
        .source = source,
        .free = ((UINT32_C(1) << source->machine->n_gpus) - 1) & ~busy,
        .alone = !model && !source->together,
        .running = {.model = model, .machine = source->machine, .together = source->together}};
    *places = list_places(ground.free, k, n);
    ground.tables = model ? tccl_model_tables_new(model, source->symmetry) : NULL;
    int status = *places && (ground.tables || !model) ? rate_all(&ground, busy, *places, *n, err)
                                                      : tccl_fail(err, "out of memory");
    tccl_model_tables_free(ground.tables);
    if (status != 0)
        free(tccl_steal(*places));
    else
        tccl_places_sort(*places, *n, noise);
    return status;
}
