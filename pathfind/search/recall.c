/* recall.c: a meter that measures nothing, and a search by it. */
#include "search/recall.h"

#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "ring/reach.h"
#include "search/bounds.h"
#include "search/foretell.h"
#include "search/model-table.h"
#include "search/oddity.h"
#include "search/rings.h"

#define GAP 0.03
#define CLOSE 0.01                           /* to what ring sets have at most */
static const double BLUR = 3;                /* deviations that two sets can't be told apart by, */
static const double LEAST_NOISE = 0.01;      /* and what is taken for noise at least */
static const double GUESSED[] = {0.9, 0.98}; /* what counts of a guess, */
static const double SEVERAL = 0.75;          /* of that where several rings are, */
static const double DIRECT = 0.85;           /* and of two without bounces */
static const double SLOWER = 1.05; /* limits do not explain a set that is slower by that */
static const double AVOIDED = 0.1; /* what bounces have where they are not wanted */
/* Loads that a search asks for, of one ring and of ring sets, and how often it is begun anew; pairs
 * of ports searched to the end; the largest that limit others; looks at sets between two questions
 * whether to go on; sets at which it is looked how good guesses are. */
enum { BUDGET = 5000, PAIRS = 16, SETS = 4000, TRIES = 4, MEMBERS = 6, BETWEEN = 64, LOOKS = 256 };

struct recall {
    struct tccl_setmap *sets;
    const struct tccl_narrowed *narrowed;
    struct tccl_symmetry *symmetry; /* of the machine while all links were whole */
    struct tccl_bounds *bounds;
    struct tccl_foretell *foretell;
    int (*progress)(void *context, const struct tccl_search_progress *progress);
    void *context;
    int looks;
    bool stopped;
    double guessed; /* what counts of a guess */
    bool direct;    /* ring sets without bounces */
};

int tccl_recall_note(void *sets, const struct tccl_set *set, const struct tccl_measurement *value)
{
    const struct tccl_setmap *map = sets;
    if (value->marks != 0 || (map->count >= TCCL_RECALL_SETS && !tccl_setmap_find(map, set)))
        return 0;
    return tccl_setmap_note(sets, set, value) ? 0 : -1;
}

static int go_on(struct recall *recall, struct tccl_error *err)
{
    const struct tccl_search_progress none = {0};
    recall->stopped =
        recall->stopped || (recall->looks++ % BETWEEN == 0 && recall->progress &&
                            recall->progress(recall->context, &none) == TCCL_SEARCH_STOP);
    return recall->stopped ? tccl_fail(err, "stopped") : 0;
}

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
    *gbps = recall->guessed *
            fmin(most, tccl_bounds_of(recall->bounds, each.transfers, each.count, most));
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

/* What each transfer has of a ring set: a tccl_rings_rater's. direct: bounces have next to nothing,
 * so that the search leaves them. */
static int rate(void *context, const tccl_transfer *transfers, int count, double *gbps,
                struct tccl_error *err)
{
    struct recall *recall = context;
    struct tccl_measurement all;
    struct tccl_set set = {0};
    for (int i = 0; i < count; i++)
        if (tccl_set_add_again(&set, transfers[i]) != 0)
            return 1;
    if (go_on(recall, err) != 0 || measure(recall, &set, &all, err) != 0)
        return -1;
    if (tccl_foretell_each(recall->foretell, transfers, count, gbps) != 0)
        return tccl_fail(err, "out of memory");
    tccl_rings_known(gbps, count, all.gbps);
    for (int i = 0; i < count && count > 1 && recall->direct; i++)
        if (tccl_transfer_target(transfers[i]).kind == TCCL_MEMORY)
            gbps[i] *= AVOIDED;
    return all.failed;
}

/* Small sets first: what those explain is no limit of its own. What a further transfer makes faster
 * limits nothing. */
static int add_limits(struct recall *recall, struct tccl_error *err)
{
    const struct tccl_setmap *sets = recall->sets;
    for (int count = 1; count <= MEMBERS; count++)
        for (size_t i = 0; i < sets->count; i++) {
            if (go_on(recall, err) != 0)
                return -1;
            const struct tccl_set set = sets->entries[i].set;
            const double gbps = sets->entries[i].gbps, more = gbps * (1 + LEAST_NOISE);
            if (set.count == count && gbps > 0 && !tccl_set_repeats(&set) &&
                !tccl_bounds_excepted(recall->bounds, &set) &&
                tccl_bounds_of(recall->bounds, set.transfers, count, more) > more &&
                tccl_bounds_limit(recall->bounds, &set, gbps) != 0)
                return tccl_fail(err, "out of memory");
        }
    return 0;
}

/* The fewer measured sets are slower than limits explain, the more guesses count. */
static int weigh_guesses(struct recall *recall, double deviation, struct tccl_error *err)
{
    const struct tccl_setmap *sets = recall->sets;
    int slower = 0, all = 0;
    double least, most;
    for (size_t i = 0; i < sets->count; i += 1 + sets->count / LOOKS) {
        const struct tccl_setmap_entry *own = &sets->entries[i];
        if (own->measured == 0 || own->set.count < 3)
            continue;
        if (go_on(recall, err) != 0)
            return -1;
        if (tccl_foretell_alone(recall->foretell, &own->set, &least, &most) != 0)
            return tccl_fail(err, "out of memory");
        slower += least > (SLOWER + deviation) * own->best.gbps;
        all++;
    }
    recall->guessed =
        all ? fmin(GUESSED[1], fmax(GUESSED[0], 1 - (double)slower / all)) : GUESSED[0];
    return 0;
}

static int learn(struct recall *recall, const struct tccl_machine *machine, struct tccl_error *err)
{
    const struct tccl_setmap *sets = recall->sets;
    const double deviation = tccl_setmap_deviation(sets, NULL, 0);
    struct tccl_oddity odd[TCCL_MAX_ODDITIES];
    recall->symmetry = tccl_symmetry_of_sets(machine, sets, LEAST_NOISE, deviation, err);
    if (go_on(recall, err) != 0 || !recall->symmetry)
        return -1;
    if (!(recall->bounds = tccl_bounds_new(machine, recall->symmetry, recall->sets)))
        return tccl_fail(err, "out of memory");
    tccl_bounds_set_blur(recall->bounds, BLUR * deviation);
    for (size_t i = 0; i < sets->count; i++) {
        const struct tccl_set set = sets->entries[i].set;
        if (go_on(recall, err) != 0)
            return -1;
        if (sets->entries[i].measured > 0 && !tccl_set_repeats(&set) &&
            tccl_bounds_add(recall->bounds, &set, sets->entries[i].best.gbps) != 0)
            return tccl_fail(err, "out of memory");
    }
    for (int i = tccl_oddity_list(sets, odd) - 1; i >= 0; i--)
        if (tccl_bounds_except(recall->bounds, &odd[i].part->set) != 0)
            return tccl_fail(err, "out of memory");
    recall->foretell = tccl_foretell_of(machine, recall->symmetry, deviation, sets, recall->bounds);
    if (!recall->foretell)
        return tccl_fail(err, "out of memory");
    return add_limits(recall, err) != 0 ? -1 : weigh_guesses(recall, deviation, err);
}

/* ---- the search ---- */

/* The search takes all GPUs for as slow as the slowest one. 0: not known. */
static uint8_t ends_of(const struct recall *recall, const struct tccl_chain *rings, int n)
{
    struct tccl_side side;
    struct tccl_set set;
    double gbps;
    tccl_rings_side(rings, n, &side);
    return tccl_side_set(&side, &set) == 0 && recall_set(recall, &set, &gbps) == 0
               ? tccl_narrowed_ends(recall->narrowed, rings, n, gbps)
               : 0;
}

static void find_ends(const struct recall *recall, struct tccl_table *table)
{
    for (int i = 0, n; i < table->n_results; i++) {
        struct tccl_result *own = &table->results[i];
        const struct tccl_chain *rings = tccl_result_rings(own, &n);
        const uint8_t ends = n > 0 ? ends_of(recall, rings, n) : 0;
        if (ends && ends < tccl_result_ends(own))
            own->ends = ends;
    }
}

/* What an all-reduce reaches, of so much by the rings. */
static double reached(const struct recall *recall, const struct tccl_table *table,
                      const struct tccl_chain *rings, int n, double gbps)
{
    return gbps * tccl_reach(ends_of(recall, rings, n),
                             __builtin_popcount(table->gpus) * (rings->closed ? 1 : 2));
}

/* No ring of a set is faster than a single one; or so it is taken, where the search had no time to
 * prove it. *most: what the best one reaches. */
static double find_single(const struct recall *recall, const struct tccl_machine *machine,
                          const struct tccl_table *table, bool closed, double *most)
{
    double single = 0;
    *most = 0;
    for (struct tccl_result *own = NULL; (own = tccl_table_next(table, own, 1 << TCCL_BEST));) {
        const struct tccl_ring_set set = {1, {own->chain}};
        if (own->chain.closed != closed)
            continue;
        single = fmax(single, isfinite(own->bound) ? own->bound : own->gbps);
        *most = fmax(*most, reached(recall, table, &own->chain, 1,
                                    fmin(own->gbps, tccl_ring_set_line(&set, machine))));
    }
    return single;
}

/* Others were not measured, and nothing follows for them. */
static uint32_t known_nics(const struct tccl_machine *machine, const struct tccl_table *before)
{
    uint32_t nics = 0;
    for (int i = 0; i < machine->n_nics; i++)
        nics |= (uint32_t)(tccl_table_best(before, i, -1) != NULL) << i;
    return nics;
}

/* What sets of a kind have at most: what they had while all links were whole, and what links leave
 * to any (as they were judged); infinite: none was measured. *enough: a guess of that much is. */
static double most_of(const struct recall *recall, const struct tccl_table *before,
                      const struct tccl_table *judged, bool closed, bool reads, double *enough)
{
    double had = 0, left = 0;
    for (int i = 0; i < before->n_results; i++) {
        const struct tccl_result *own = &before->results[i];
        if (!own->set || own->chain.closed != closed || tccl_ring_set_reads(own->set) != reads)
            continue;
        had = fmax(had, own->gbps);
        left = fmax(left, judged->results[i].bound);
    }
    if (!(had > 0))
        had = left = INFINITY;
    *enough = fmin(recall->guessed * had, left);
    return fmin(had, left);
}

/* Ring sets are annealed by what they are guessed to have: any, and two rings without bounces,
 * which reach all of it, and share less that nobody has measured; between NICs also two, and four.
 * What several rings of the node alone gain over one is a guess twice. Between NICs all are kept,
 * since the best one may take what other GPUs need (room.c). Guesses prove nothing. */
static int find_sets(struct recall *recall, const struct tccl_machine *machine,
                     const struct tccl_table *before, const struct tccl_table *judged, bool closed,
                     struct tccl_table *table, struct tccl_error *err)
{
    static const int rings[2][TRIES] = {{2, 4, 0}, {0, 2, 2, 2}};
    bool done[2] = {false}; /* such that write, and read */
    double most, enough;
    const double single = find_single(recall, machine, table, closed, &most);
    cleanup_free struct tccl_ring_set *starts = calloc(TCCL_TABLE_STARTS, sizeof(*starts));
    struct tccl_rings_result best = {.gbps = 0}, found;
    if (!starts)
        return tccl_fail(err, "out of memory");
    for (int i = 0; i < (tccl_table_reads(before) ? 2 : 1) * TRIES && single > 0; i++) {
        const bool reads = i >= TRIES;
        if (done[reads] || (!closed && i % TRIES == TRIES - 1))
            continue;
        const double bound = most_of(recall, before, judged, closed, reads, &enough);
        const struct tccl_rings_rater rater = {rate, recall, machine,
                                               fmin(TCCL_CHAIN_RINGS * single, enough)};
        const int n = tccl_table_starts(before, closed, reads, starts);
        recall->direct = closed && i % TRIES > 0;
        const struct tccl_rings_options options = {.rater = &rater,
                                                   .rings = rings[closed][i % TRIES],
                                                   .reads = reads,
                                                   .gap = CLOSE,
                                                   .budget = SETS,
                                                   .single_bound = single,
                                                   .nics = known_nics(machine, before),
                                                   .seed = (uint64_t)i + 1};
        if (tccl_rings_find(NULL, table->gpus, closed, &options, starts, n, &found, err) != 0)
            return -1;
        /* Two rings that have less than half of one have bounces: that kind is taken to have none
         * that does without. */
        done[reads] = (!closed || recall->direct) &&
                      (found.gbps >= (1 - CLOSE) * enough || (closed && found.gbps < single / 2));
        found.gbps = fmin(found.gbps, bound);
        if (found.set.n < 2)
            continue;
        if (!closed)
            tccl_table_keep_set(table, &found.set, found.gbps, INFINITY);
        const double has = (recall->direct ? DIRECT : SEVERAL) *
                           reached(recall, table, found.set.rings, found.set.n, found.gbps);
        if (closed && has > most) {
            best = found;
            most = has;
        }
    }
    if (best.gbps > 0)
        tccl_table_keep_set(table, &best.set, best.gbps, INFINITY);
    return 0;
}

struct tccl_table *
tccl_recall_table(const struct tccl_machine *machine, struct tccl_setmap *sets,
                  const struct tccl_narrowed *narrowed, const struct tccl_table *before,
                  int (*progress)(void *context, const struct tccl_search_progress *progress),
                  void *context, struct tccl_error *err)
{
    struct recall recall = {
        .sets = sets, .narrowed = narrowed, .progress = progress, .context = context};
    const struct tccl_meter meter = {.measure = measure, .context = &recall};
    const struct tccl_search_options options = {.gap = GAP,
                                                .budget = BUDGET,
                                                .pairs = PAIRS,
                                                .others = TCCL_TABLE_OTHERS,
                                                .reads = true,
                                                .trees = true,
                                                .alone = !known_nics(machine, before),
                                                .settle = 1,
                                                .progress = progress,
                                                .context = context};
    uint32_t felt;
    struct tccl_table *table = NULL;
    cleanup_table struct tccl_table *judged =
        tccl_narrowed_table(before, machine, narrowed, NULL, &felt);
    struct tccl_search *search = NULL;
    if (learn(&recall, machine, err) == 0) {
        table = tccl_table_new(machine, before->gpus);
        search = tccl_search_new(machine, meter, NULL);
        if (!table || !search || !judged)
            tccl_fail(err, "out of memory");
        if (!table || !search || !judged || tccl_search_table(search, table, &options, err) < 0 ||
            ((find_sets(&recall, machine, before, judged, true, table, err) != 0 ||
              find_sets(&recall, machine, before, judged, false, table, err) != 0) &&
             !recall.stopped))
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
