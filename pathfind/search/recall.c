/* recall.c: a meter that measures nothing, and a search by it. */
#include "search/recall.h"

#include <math.h>

#include "base/cleanup.h"
#include "ring/reach.h"
#include "search/bounds.h"
#include "search/foretell.h"
#include "search/model-table.h"

#define GAP 0.03
static const double ALIKE = 2.5;        /* deviations that sets that are alike may be off by, */
static const double BLUR = 3;           /* that two sets can't be told apart by, */
static const double LEAST_NOISE = 0.01; /* and what is taken for noise at least */
static const double GUESSED = 0.9;      /* what counts of a guess */
/* Loads that a search asks for, of one ring and of ring sets; the largest that limit others. */
enum { BUDGET = 5000, SETS = 1000, MEMBERS = 6 };

struct recall {
    struct tccl_setmap *sets;
    const struct tccl_narrowed *narrowed;
    struct tccl_symmetry *symmetry; /* of the machine while all links were whole */
    struct tccl_bounds *bounds;
    struct tccl_foretell *foretell;
};

/* ---- what a set has ---- */

/* While all links were whole: as it, or one like it, was measured; else what its limits have room
 * for, and no more than a part of it had. Returns 0, or -1 without memory. */
static int recall_set(const struct recall *recall, const struct tccl_set *set, double *gbps)
{
    double least, most;
    struct tccl_known known;
    struct tccl_set each = {0};
    if (!tccl_set_repeats(set) && tccl_bounds_find(recall->bounds, set, &known) && !known.failed) {
        *gbps = known.gbps;
        return 0;
    }
    if (tccl_foretell_alone(recall->foretell, set, &least, &most) != 0)
        return -1;
    for (int i = 0; i < set->count; i++)
        tccl_set_add(&each, set->transfers[i]);
    least = fmin(least, most);
    *gbps =
        GUESSED * fmin(least, tccl_bounds_of(recall->bounds, each.transfers, each.count, least));
    return 0;
}

/* As it is now: a tccl_measure. */
static int measure(void *context, const struct tccl_set *set, struct tccl_measurement *out,
                   struct tccl_error *err)
{
    const struct recall *recall = context;
    struct tccl_side side = {0};
    double gbps;
    *out = (struct tccl_measurement){.failed = true};
    if (tccl_side_add(&side, set) != 0)
        return 0;
    if (recall_set(recall, set, &gbps) != 0)
        return tccl_fail(err, "out of memory");
    gbps = fmin(gbps, tccl_narrowed_limit(recall->narrowed, &side, NULL));
    if (gbps > 0 && isfinite(gbps))
        *out = (struct tccl_measurement){.gbps = gbps};
    return 0;
}

/* For symmetries: what was measured. */
static int look_up(void *context, const struct tccl_set *set, struct tccl_measurement *out,
                   struct tccl_error *err UNUSED)
{
    const struct recall *recall = context;
    const struct tccl_setmap_entry *entry = tccl_setmap_find(recall->sets, set);
    *out = entry ? entry->best : (struct tccl_measurement){.failed = true};
    return 0;
}

/* Small sets first: what those explain is no limit of its own. */
static int add_limits(struct recall *recall)
{
    const struct tccl_setmap *sets = recall->sets;
    for (int count = 1; count <= MEMBERS; count++)
        for (size_t i = 0; i < sets->count; i++) {
            const struct tccl_set set = sets->entries[i].set;
            const double gbps = sets->entries[i].gbps, more = gbps * (1 + LEAST_NOISE);
            if (set.count == count && gbps > 0 && !tccl_set_repeats(&set) &&
                tccl_bounds_of(recall->bounds, set.transfers, count, more) > more &&
                tccl_bounds_limit(recall->bounds, &set, gbps) != 0)
                return -1;
        }
    return 0;
}

static int learn(struct recall *recall, const struct tccl_machine *machine, struct tccl_error *err)
{
    const struct tccl_setmap *sets = recall->sets;
    const double deviation = tccl_setmap_deviation(sets, NULL, 0);
    const struct tccl_meter meter = {.measure = look_up, .context = recall};
    int rc = 0;
    recall->symmetry =
        tccl_symmetry_of_machine(machine, &meter, fmax(LEAST_NOISE, ALIKE * deviation), err);
    if (!recall->symmetry)
        return -1;
    recall->foretell = tccl_foretell_of(machine, recall->symmetry, deviation, sets);
    recall->bounds = tccl_bounds_new(machine, recall->symmetry, recall->sets);
    if (!recall->foretell || !recall->bounds)
        return tccl_fail(err, "out of memory");
    tccl_bounds_set_blur(recall->bounds, BLUR * deviation);
    for (size_t i = 0; i < sets->count && rc == 0; i++) {
        const struct tccl_set set = sets->entries[i].set;
        if (sets->entries[i].measured > 0 && !tccl_set_repeats(&set))
            rc = tccl_bounds_add(recall->bounds, &set, sets->entries[i].best.gbps);
    }
    return rc == 0 && add_limits(recall) == 0 ? 0 : tccl_fail(err, "out of memory");
}

/* ---- the search ---- */

/* The search takes all GPUs for as slow as the slowest one. */
static void find_ends(const struct recall *recall, struct tccl_table *table)
{
    for (int i = 0; i < table->n_results; i++) {
        struct tccl_result *own = &table->results[i];
        const struct tccl_chain *rings = own->set ? own->set->rings : &own->chain;
        const int n = own->set ? own->set->n : own->chain.n_gpus > 0;
        struct tccl_side side = {0};
        struct tccl_set set;
        double gbps;
        for (int k = 0; k < n; k++)
            tccl_side_add_chain(&side, &rings[k]);
        if (n == 0 || !own->chain.closed || side.count > TCCL_MAX_SET)
            continue;
        set = tccl_set_sorted(side.transfers, side.count);
        const uint8_t ends = recall_set(recall, &set, &gbps) == 0
                                 ? tccl_narrowed_ends(recall->narrowed, rings, n, gbps)
                                 : 0;
        if (ends && ends < tccl_result_ends(own))
            own->ends = ends;
    }
}

struct tccl_table *tccl_recall_table(const struct tccl_machine *machine, struct tccl_setmap *sets,
                                     const struct tccl_narrowed *narrowed, uint32_t gpus,
                                     int (*progress)(void *context,
                                                     const struct tccl_search_progress *progress),
                                     void *context, struct tccl_error *err)
{
    struct recall recall = {.sets = sets, .narrowed = narrowed};
    const struct tccl_meter meter = {.measure = measure, .context = &recall};
    const struct tccl_search_options options = {.gap = GAP,
                                                .budget = BUDGET,
                                                .others = TCCL_TABLE_OTHERS,
                                                .reads = true,
                                                .sets = SETS,
                                                .alone = true,
                                                .settle = 1,
                                                .progress = progress,
                                                .context = context};
    struct tccl_table *table = NULL;
    struct tccl_search *search = NULL;
    if (learn(&recall, machine, err) == 0) {
        table = tccl_table_new(machine, gpus);
        search = tccl_search_new(machine, meter, NULL);
        if (!table || !search)
            tccl_fail(err, "out of memory");
        if (!table || !search || tccl_search_table(search, table, &options, err) < 0)
            tccl_table_free(tccl_steal(table));
        else
            find_ends(&recall, table);
    }
    tccl_search_free(search);
    tccl_foretell_free(recall.foretell);
    tccl_bounds_free(recall.bounds);
    tccl_symmetry_free(recall.symmetry);
    return table;
}
