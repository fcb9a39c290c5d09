/* search-meter.c: measuring for the search, and explaining what was measured. */
#include "search/search-meter.h"

#include "search/oddity.h"

#include <math.h>

enum {
    MAX_TRIES = 4,  /* of explaining a set, where second measurements refute the first */
    MISMATCHES = 3, /* of sets with symmetric ones, before the symmetry is given up */
};

static bool used_up(const struct tccl_search_meter *meter)
{
    return meter->budget > 0 && meter->measured >= meter->budget;
}

/* What was measured of the set, or is in the store, counts from now on. */
static int keep(struct tccl_search_meter *meter, const struct tccl_set *walk, double gbps,
                const struct tccl_measurement *measured, struct tccl_error *err)
{
    double upper = gbps * (measured->noisy ? 1 + measured->spread : 1);
    return tccl_bounds_add(meter->bounds, walk, upper) != 0 ? tccl_fail(err, "out of memory") : 0;
}

/* Asks the meter; where that remembers nothing, the answer is noted here. */
static int ask(struct tccl_search_meter *meter, tccl_measure *measure, const struct tccl_set *set,
               struct tccl_measurement *out, struct tccl_error *err)
{
    *out = (struct tccl_measurement){0};
    if (measure(meter->source.context, set, out, err) < 0)
        return -1;
    if (out->failed)
        out->gbps = 0;
    if (!meter->source.sets && !tccl_setmap_note(meter->sets, set, out))
        return tccl_fail(err, "out of memory");
    meter->measured++;
    meter->failed += out->failed;
    if (meter->poll && meter->poll(meter->context) != 0)
        meter->stopped = true;
    return 0;
}

/* Measures, or looks into the store. Returns as tccl_search_meter_measure. */
static int measure_set(struct tccl_search_meter *meter, const struct tccl_set *set,
                       struct tccl_measurement *measurement, struct tccl_error *err)
{
    const struct tccl_setmap_entry *entry = tccl_setmap_find(meter->sets, set);
    bool known = entry && entry->measured > 0;
    *measurement = (struct tccl_measurement){0};
    if (meter->stopped || (!known && used_up(meter)) ||
        (meter->most_asked > 0 && meter->asked >= meter->most_asked)) /* as the first run did */
        return 1;
    if (known)
        *measurement = entry->best;
    else if (ask(meter, meter->source.measure, set, measurement, err) != 0)
        return -1;
    meter->asked++;
    return 0;
}

int tccl_search_meter_measure_repeats(struct tccl_search_meter *meter, const struct tccl_set *set,
                                      double *gbps, struct tccl_error *err)
{
    struct tccl_measurement measurement;
    int status = measure_set(meter, set, &measurement, err);
    *gbps = measurement.gbps;
    return status;
}

int tccl_search_meter_settle(struct tccl_search_meter *meter, const struct tccl_set *set, int times,
                             double *gbps, struct tccl_error *err)
{
    struct tccl_measurement measurement;
    const struct tccl_meter *source = &meter->source;
    tccl_measure *again = source->settle ? source->settle : source->again;
    const struct tccl_setmap_entry *entry = tccl_setmap_find(meter->sets, set);
    for (int i = entry ? entry->measured : 0; i <= times; i++) {
        if (meter->stopped)
            return 1;
        if (ask(meter, i > 0 && again ? again : source->measure, set, &measurement, err) != 0)
            return -1;
    }
    entry = tccl_setmap_find(meter->sets, set);
    /* Two that differ by more than measurements do: one was disturbed. */
    if (times < TCCL_VALUES - 1 && entry && entry->measured > 1 &&
        fabs(entry->values[0] - entry->values[1]) >
            fmax(meter->noise, meter->blur) * fmax(entry->values[0], entry->values[1]))
        return tccl_search_meter_settle(meter, set, TCCL_VALUES - 1, gbps, err);
    *gbps = entry ? tccl_setmap_later(entry, times) : 0;
    return 0;
}

static int measure_now(struct tccl_search_meter *meter, const struct tccl_set *walk, double *gbps,
                       struct tccl_error *err)
{
    struct tccl_measurement measurement;
    struct tccl_set set = tccl_set_sorted(walk->transfers, walk->count);
    int status = measure_set(meter, &set, &measurement, err);
    if (status != 0)
        return status;
    struct tccl_known known;
    if (keep(meter, walk, measurement.gbps, &measurement, err) != 0)
        return -1;
    tccl_bounds_find(meter->bounds, walk, &known);
    *gbps = known.gbps;
    return 0;
}

int tccl_search_meter_measure(struct tccl_search_meter *meter, const struct tccl_set *walk,
                              double *gbps, struct tccl_error *err)
{
    struct tccl_known known;
    if (!tccl_bounds_find(meter->bounds, walk, &known))
        return measure_now(meter, walk, gbps, err);
    meter->shared += known.symmetric;
    *gbps = known.gbps;
    return 0;
}

/* Measures a known set anew; *known becomes the larger of both: what disturbs only slows down. */
static int measure_again(struct tccl_search_meter *meter, const struct tccl_set *walk,
                         struct tccl_known *known, struct tccl_error *err)
{
    struct tccl_measurement again;
    struct tccl_set set;
    if (meter->stopped || used_up(meter))
        return 1;
    set = tccl_set_sorted(walk->transfers, walk->count);
    if (ask(meter, meter->source.again ? meter->source.again : meter->source.measure, &set, &again,
            err) != 0)
        return -1;
    meter->asked++;
    if (again.failed)
        return 0;
    if ((!again.noisy || again.gbps > known->gbps) &&
        keep(meter, walk, fmax(again.gbps, known->gbps), &again, err) != 0)
        return -1;
    tccl_bounds_confirm(meter->bounds, walk);
    tccl_bounds_find(meter->bounds, walk, known);
    return 0;
}

/* Values that true symmetry can't explain: each of the two is off by the noise at most. */
static bool differ(const struct tccl_search_meter *meter, double low, double high)
{
    return low < high * (1 - fmax(2 * meter->noise, 2 * meter->blur) - 1e-9);
}

/* The set itself was measured: is it what a symmetric one is? */
static int compare(struct tccl_search_meter *meter, const struct tccl_set *walk, double shared,
                   double *gbps, struct tccl_error *err)
{
    struct tccl_known own;
    if (!tccl_bounds_find(meter->bounds, walk, &own) || own.failed)
        return 0;
    if (differ(meter, own.gbps, shared)) {
        int status = measure_again(meter, walk, &own, err);
        if (status != 0)
            return status;
        *gbps = own.gbps;
    }
    bool slower = differ(meter, own.upper, shared);
    meter->mismatches += slower || differ(meter, shared, own.gbps);
    if (!slower && meter->mismatches < MISMATCHES)
        return 0;
    meter->distrusts = true;
    return 0;
}

int tccl_search_meter_measure_itself(struct tccl_search_meter *meter, const struct tccl_set *walk,
                                     double *gbps, struct tccl_error *err)
{
    struct tccl_known known;
    bool found = tccl_bounds_find(meter->bounds, walk, &known);
    if (found && !(known.symmetric && tccl_bounds_assumes(meter->bounds))) {
        *gbps = known.gbps;
        return 0;
    }
    int status = measure_now(meter, walk, gbps, err);
    return status != 0 || !found ? status : compare(meter, walk, known.gbps, gbps, err);
}

/* Measured as often as it takes, and taken up again. */
static int settle_one(struct tccl_search_meter *meter, const struct tccl_set *set,
                      struct tccl_error *err)
{
    double gbps;
    int status =
        tccl_search_meter_settle(meter, set, meter->noise > 0 ? TCCL_VALUES - 1 : 0, &gbps, err);
    if (status == 0 && tccl_bounds_add(meter->bounds, set, gbps) != 0)
        return tccl_fail(err, "out of memory");
    return status;
}

int tccl_search_meter_compare(struct tccl_search_meter *meter, const struct tccl_set *part,
                              const struct tccl_set *whole, bool *slower, struct tccl_error *err)
{
    int status = settle_one(meter, part, err);
    *slower = false;
    if (status == 0)
        status = settle_one(meter, whole, err);
    if (status != 0)
        return status;
    const struct tccl_setmap_entry *a = tccl_setmap_find(meter->sets, part);
    const struct tccl_setmap_entry *b = tccl_setmap_find(meter->sets, whole);
    *slower = meter->noise > 0 ? tccl_oddity_faster(a, b)
                               : a->measured > 0 && a->best.gbps < b->best.gbps * (1 - 1e-6);
    return 0;
}

/* The search for a smallest explanation; subsets of the walk are bit masks. */
struct explain {
    struct tccl_search_meter *meter;
    const struct tccl_set *walk;
    double most;
    struct tccl_error *err;
    int status; /* 0, or why it had to stop */
};

static struct tccl_set part_of(const struct tccl_set *walk, uint64_t mask)
{
    struct tccl_set part = {.count = 0};
    for (int i = 0; i < walk->count; i++)
        if (mask >> i & 1)
            part.transfers[part.count++] = walk->transfers[i];
    return part;
}

/* Does this part reach no more than most? */
static bool is_slow(struct explain *explain, uint64_t mask)
{
    struct tccl_search_meter *meter = explain->meter;
    struct tccl_set part = part_of(explain->walk, mask);
    struct tccl_known known = {0};
    double gbps;
    if (explain->status != 0 || mask == 0 || tccl_bounds_excepted(meter->bounds, &part))
        return false;
    bool found = tccl_bounds_find(meter->bounds, &part, &known);
    /* Of a set and a larger one that is faster, the set is measured wrong. */
    double most = explain->most * (found ? 1 + 1e-9 : 1);
    if (tccl_bounds_floor(meter->bounds, &part) > most)
        return false;
    explain->status = tccl_search_meter_measure(meter, &part, &gbps, explain->err);
    return explain->status == 0 && tccl_bounds_find(meter->bounds, &part, &known) &&
           !known.failed && known.upper <= explain->most;
}

/* The smallest part of candidates that is slow together with base. added: base has grown since it
 * was last looked at. */
static uint64_t shrink(struct explain *explain, uint64_t base, bool added, uint64_t candidates)
{
    if (explain->status != 0 || (added && is_slow(explain, base)))
        return 0;
    int count = __builtin_popcountll(candidates);
    if (count <= 1)
        return candidates;
    uint64_t left = 0, rest = candidates;
    for (int i = 0; i < count / 2; i++) {
        left |= rest & -rest;
        rest &= rest - 1;
    }
    uint64_t from_rest = shrink(explain, base | left, true, rest);
    uint64_t from_left = shrink(explain, base | from_rest, from_rest != 0, left);
    return from_left | from_rest;
}

/* The smallest slow part of a set that is itself slow. */
static uint64_t smallest_part(struct explain *explain, uint64_t all)
{
    const struct tccl_set *walk = explain->walk;
    uint64_t inside = 0;
    for (int i = 0; i < walk->count; i++)
        if (tccl_transfer_initiator(walk->transfers[i]).kind != TCCL_NIC)
            inside |= 1ULL << i;
    /* What lies inside the node says more: it bounds chains between any ports. */
    bool is_inside = inside != all && is_slow(explain, inside);
    return shrink(explain, 0, false, is_inside ? inside : all);
}

/* Measures the part again if it may be wrong. Returns as measure; *slow: it is still no faster than
 * most. */
static int confirm(struct explain *explain, const struct tccl_set *part, bool *slow)
{
    struct tccl_search_meter *meter = explain->meter;
    struct tccl_known known;
    double gbps;
    int status = tccl_search_meter_measure(meter, part, &gbps, explain->err);
    if (status != 0 || !tccl_bounds_find(meter->bounds, part, &known))
        return status;
    if (meter->noise > 0 && !known.failed && known.upper <= explain->most &&
        !tccl_bounds_confirmed(meter->bounds, part))
        status = measure_again(meter, part, &known, explain->err);
    *slow =
        !known.failed && known.upper <= explain->most && !tccl_bounds_excepted(meter->bounds, part);
    return status;
}

/* Finds a part that is slow for sure; the whole where none is. */
static int find_part(struct explain *explain, struct tccl_set *part)
{
    uint64_t all = explain->walk->count == 64 ? ~0ULL : (1ULL << explain->walk->count) - 1;
    for (int try = 0; try < MAX_TRIES; try++) {
        bool slow = false;
        *part = part_of(explain->walk, smallest_part(explain, all));
        int status = explain->status != 0 ? explain->status : confirm(explain, part, &slow);
        if (status != 0 || slow)
            return status;
    }
    *part = *explain->walk; /* noise: the whole must do */
    return 0;
}

/* Did the part fail? A part of what could be measured is not asked. */
static bool has_failed(struct explain *explain, const struct tccl_set *part)
{
    struct tccl_bounds *bounds = explain->meter->bounds;
    struct tccl_known known;
    double gbps;
    if (explain->status != 0 || part->count == 0 || tccl_bounds_floor(bounds, part) > 0)
        return false;
    explain->status = tccl_search_meter_measure(explain->meter, part, &gbps, explain->err);
    return explain->status == 0 && tccl_bounds_find(bounds, part, &known) && known.failed;
}

/* Of a set that failed, follows the half that fails, too, as long as one does alone. */
static int avoid_part(struct explain *explain)
{
    struct tccl_set part = *explain->walk;
    bool smaller = true;
    while (smaller && part.count > 1) {
        struct tccl_set halves[2] = {{.count = 0}};
        for (int i = 0; i < part.count; i++) {
            struct tccl_set *half = &halves[i >= part.count / 2];
            half->transfers[half->count++] = part.transfers[i];
        }
        smaller = false;
        for (int i = 0; i < 2 && !smaller; i++)
            if ((smaller = has_failed(explain, &halves[i])))
                part = halves[i];
    }
    if (explain->status == 0 && tccl_bounds_avoid(explain->meter->bounds, &part) != 0)
        return tccl_fail(explain->err, "out of memory");
    return explain->status;
}

int tccl_search_meter_explain(struct tccl_search_meter *meter, const struct tccl_set *walk,
                              double most, struct tccl_error *err)
{
    struct explain explain = {meter, walk, most, err, 0};
    struct tccl_set part;
    struct tccl_known known;
    if (tccl_bounds_find(meter->bounds, walk, &known) && known.failed)
        return avoid_part(&explain);
    int status = find_part(&explain, &part);
    if (status != 0 || !tccl_bounds_find(meter->bounds, &part, &known))
        return status;
    if (part.count == 1 && tccl_bounds_excepted(meter->bounds, &part))
        return 0;
    double gbps = known.upper <= most ? known.upper : known.gbps;
    double floor = tccl_bounds_floor(meter->bounds, &part);
    if (floor > gbps * (1 + 1e-9) && floor <= most)
        gbps = floor;
    if (tccl_bounds_limit(meter->bounds, &part, gbps) != 0)
        return tccl_fail(err, "out of memory");
    return 0;
}
