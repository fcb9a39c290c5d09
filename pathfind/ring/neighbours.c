/* neighbours.c: what chains are worth beside others, and the best ones of a table there. */
#include "ring/neighbours.h"

#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "machine/sides.h"
#include "ring/reach.h"
#include "ring/ring.h"

/* Transfers of sides whose ends are looked for at once, counted as often as a side is: of single
 * rings or chains, and of sets of these. It is on tccld's event loop. A thousand take half a
 * millisecond. */
enum { WORK = 1000 };

int tccl_beside_worth(const struct tccl_beside *beside, const struct tccl_side *side,
                      struct tccl_worth *worth, struct tccl_error *err)
{
    const struct tccl_side *sides[TCCL_MAX_SIDES] = {side};
    double gbps[TCCL_MAX_SIDES];
    for (int i = 0; i < beside->n; i++)
        sides[i + 1] = beside->others[i];
    const struct tccl_rates rates = {.model = beside->model, .together = beside->together};
    if (tccl_rates_sides(&rates, sides, beside->n + 1, gbps, &worth->basis, err) != 0)
        return -1;
    worth->gbps = gbps[0];
    worth->least = worth->sum = gbps[0] / beside->own;
    worth->left = 1;
    for (int i = 0; i < beside->n; i++) {
        double share = fmin(gbps[i + 1] / beside->alone[i], 1);
        worth->others[i] = gbps[i + 1];
        if (beside->selfish)
            continue;
        worth->least = fmin(worth->least, share);
        worth->sum += share;
        if (i < beside->n - beside->mates)
            worth->left = fmin(worth->left, share);
    }
    worth->least = fmin(worth->least, 1);
    return 0;
}

int tccl_beside_ends(const struct tccl_beside *beside, const struct tccl_side *side,
                     const struct tccl_worth *worth, uint8_t ends[static TCCL_MAX_SIDES],
                     struct tccl_error *err)
{
    const struct tccl_side *sides[TCCL_MAX_SIDES] = {side};
    double reached[TCCL_MAX_SIDES];
    for (int i = 0; i < beside->n; i++)
        sides[i + 1] = beside->others[i];
    if (!beside->model || beside->n == 0)
        return 0;
    if (tccl_model_rounds(beside->model, sides, beside->n + 1, reached, err) != 0)
        return -1;
    for (int i = 0; i <= beside->n; i++)
        if (sides[i]->ranks > 1)
            ends[i] = tccl_ends_reached(sides[i]->ranks, i ? worth->others[i - 1] : worth->gbps,
                                        reached[i]);
    return 0;
}

/* What each ring of all sides has where they only share, but for what is no noise. */
static double fair(const struct tccl_beside *beside, const struct tccl_side *side)
{
    double time = side->rings / side->alone;
    for (int i = 0; i < beside->n; i++)
        time += beside->others[i]->rings / beside->alone[i];
    return TCCL_COLLAPSED / time;
}

bool tccl_beside_held_up(const struct tccl_beside *beside, const struct tccl_side *side,
                         const struct tccl_worth *worth)
{
    return worth->basis != TCCL_BASIS_BOUNDS && worth->gbps < fair(beside, side) * side->rings;
}

bool tccl_beside_collapses(const struct tccl_beside *beside, const struct tccl_side *side,
                           const struct tccl_worth *worth)
{
    bool any = tccl_beside_held_up(beside, side, worth);
    for (int i = 0; i < beside->n; i++)
        any = any || worth->others[i] < fair(beside, side) * beside->others[i]->rings;
    return any && worth->basis != TCCL_BASIS_BOUNDS;
}

bool tccl_worth_better(const struct tccl_worth *a, const struct tccl_worth *b, double noise)
{
    noise = fmax(noise, 1e-9);
    if (fmax(a->least, b->least) > fmin(a->least, b->least) * (1 + noise))
        return a->least > b->least;
    return a->sum > b->sum * (1 + noise);
}

void tccl_floor_raise(struct tccl_floor *floor, const struct tccl_beside *beside,
                      const struct tccl_worth *own)
{
    for (int i = 0; i < beside->n; i++) {
        double bounds = own ? own->others[i] : beside->alone[i];
        double known = own && own->basis < TCCL_BASIS_BOUNDS ? bounds : beside->alone[i];
        floor->bounds[i] = fmax(floor->bounds[i], fmin(bounds, beside->alone[i]));
        floor->known[i] = fmax(floor->known[i], fmin(known, beside->alone[i]));
    }
}

bool tccl_floor_harms(const struct tccl_floor *floor, const struct tccl_beside *beside,
                      const struct tccl_worth *worth, double noise)
{
    const double *least = worth->basis == TCCL_BASIS_BOUNDS ? floor->bounds : floor->known;
    for (int i = 0; i < beside->n; i++)
        if (worth->others[i] < least[i] * (1 - noise) * (1 - 1e-9))
            return true;
    return false;
}

void tccl_seen_take(struct tccl_seen *seen, const struct tccl_result *result,
                    const struct tccl_worth *worth, bool harms)
{
    const double gbps = fmin(worth->gbps, result->gbps), part = gbps / result->gbps;
    *seen = (struct tccl_seen){.gbps = gbps,
                               .bound = fmax(seen->bound, result->gbps),
                               .alone = result->gbps,
                               .share = worth->left,
                               .harms = harms,
                               .basis = worth->basis,
                               .ends = tccl_result_ends(result),
                               .set = {1, {result->chain}},
                               .tree = result->tree};
    if (result->set)
        seen->set = *result->set;
    seen->tree.gbps *= part;
    seen->tree.along *= part;
}

/* No share is larger than what a chain has alone, so the rest can't be better once the list has
 * come down to the least share of the best. */
int tccl_choose(const struct tccl_beside *beside, const struct tccl_candidates *candidates,
                struct tccl_choice *best, struct tccl_error *err)
{
    const double room = candidates->machine ? TCCL_MOST_FOR_ROOM : 0;
    struct tccl_choice *rated = malloc(sizeof(*rated) * ((size_t)candidates->n + 1));
    int n = 0, status = rated ? 0 : tccl_fail(err, "out of memory");
    for (int i = 0; i < candidates->n && status == 0; i++) {
        const struct tccl_result *result = candidates->list[i];
        struct tccl_side side = {.alone = result->gbps};
        if (best->result &&
            ((!best->harms && result->gbps < (1 - room) * beside->own * best->worth.least) ||
             (candidates->work && *candidates->work <= 0)))
            break;
        if (tccl_result_side(result, &side) != 0)
            continue;
        if (candidates->work)
            *candidates->work -= side.count + candidates->cost;
        rated[n].result = result;
        status = tccl_beside_worth(beside, &side, &rated[n].worth, err);
        rated[n].harms =
            status == 0 && candidates->floor &&
            tccl_floor_harms(candidates->floor, beside, &rated[n].worth, candidates->noise);
        if (status == 0 && (!best->result || (rated[n].harms != best->harms
                                                  ? best->harms
                                                  : tccl_worth_better(&rated[n].worth, &best->worth,
                                                                      candidates->noise))))
            *best = rated[n];
        n++;
    }
    if (status == 0 && best->result && candidates->machine) {
        /* Of those that are as good as the best one, but for a little, the one that leaves the
         * memories of other GPUs to these: others end, and steps come. */
        const struct tccl_machine *machine = candidates->machine;
        const struct tccl_worth most = best->worth;
        int fewest = tccl_chain_far(machine, &best->result->chain);
        for (int i = 0; i < n && fewest > 0; i++) {
            int far = tccl_chain_far(machine, &rated[i].result->chain);
            if (far < fewest && rated[i].harms == best->harms &&
                rated[i].worth.basis <= best->worth.basis &&
                !tccl_worth_better(&most, &rated[i].worth, TCCL_MOST_FOR_ROOM)) {
                fewest = far;
                *best = rated[i];
            }
        }
    }
    free(rated);
    return status;
}

/* ---- a table seen beside the others ---- */

/* What NCCL builds, of each generation. */
struct own {
    int known; /* 0; 1: it is not */
    struct tccl_worth worth;
    uint8_t ends;
};

/* The ends of the side's own rounds there. Where none of its GPUs both sends and receives nothing
 * is lost, which takes no time. */
static int tell_ends(const struct tccl_beside *beside, const struct tccl_side *side,
                     const struct tccl_ring_set *set, double gbps, uint8_t *told,
                     struct tccl_error *err)
{
    const struct tccl_worth worth = {.gbps = gbps};
    uint8_t ends[TCCL_MAX_SIDES] = {*told};
    if (tccl_ends_most(set->rings, set->n) > TCCL_ENDS_LEAST &&
        tccl_beside_ends(beside, side, &worth, ends, err) != 0)
        return -1;
    *told = ends[0];
    return 0;
}

/* Returns 0; 1: it is not known; -1 with err. */
static int rate_own(struct tccl_beside *beside, const struct tccl_baseline *baseline,
                    struct own *own, struct tccl_error *err)
{
    struct tccl_side side = {.alone = baseline->gbps};
    if (tccl_ring_set_side(&baseline->set, &side) != 0 || !side.count || !(baseline->gbps > 0))
        return 1;
    beside->own = side.alone;
    own->ends = tccl_baseline_ends(baseline);
    return tccl_beside_worth(beside, &side, &own->worth, err) != 0
               ? -1
               : tell_ends(beside, &side, &baseline->set, own->worth.gbps, &own->ends, err);
}

/* Nobody is to get less than beside any of them. */
static int rate_generations(struct tccl_beside *beside, const struct tccl_baseline *baselines,
                            struct own own[static TCCL_GENERATIONS], struct tccl_floor *floor,
                            struct tccl_error *err)
{
    for (int i = 0; i < TCCL_GENERATIONS; i++) {
        if (i > 0 && tccl_baseline_equal(&baselines[i], &baselines[i - 1])) {
            own[i] = own[i - 1];
            continue;
        }
        own[i].known = rate_own(beside, &baselines[i], &own[i], err);
        if (own[i].known < 0)
            return -1;
        tccl_floor_raise(floor, beside, own[i].known == 0 ? &own[i].worth : NULL);
    }
    return 0;
}

/* Where chains are known better than by bounds, what NCCL builds has to be, too. */
static void take_generations(const struct own own[static TCCL_GENERATIONS], bool closed,
                             struct tccl_node_class *class)
{
    bool sure = false;
    for (int i = 0; i < tccl_class_first_set(class); i++)
        sure |= (i == tccl_class_pairs(class)) == closed && class->seen[i].gbps > 0 &&
                class->seen[i].basis < TCCL_BASIS_BOUNDS;
    for (int i = 0; i < TCCL_GENERATIONS; i++) {
        struct tccl_class_baseline *to = &class->baselines[i];
        if (own[i].known != 0 || (sure && own[i].worth.basis == TCCL_BASIS_BOUNDS))
            continue;
        to->gbps[closed] = fmin(to->gbps[closed], own[i].worth.gbps);
        to->share[closed] = own[i].worth.left;
        to->told_ends[closed] = own[i].ends;
    }
}

/* In the table's order where they are as fast. */
static int by_gbps(const void *a, const void *b)
{
    const struct tccl_result *x = *(const struct tccl_result *const *)a;
    const struct tccl_result *y = *(const struct tccl_result *const *)b;
    return x->gbps != y->gbps ? (x->gbps < y->gbps ? 1 : -1) : (x > y) - (x < y);
}

/* Those between the NICs of a pair, or rings. */
static void list_candidates(struct tccl_candidates *candidates, const struct tccl_table *table,
                            const struct tccl_node_class *class, int pair, enum tccl_view view)
{
    bool closed = pair == tccl_class_pairs(class);
    candidates->n = 0;
    for (const struct tccl_result *own = NULL; (own = tccl_table_next(table, own, TCCL_SINGLES));) {
        const struct tccl_chain *chain = &own->chain;
        if (chain->closed == closed && own->gbps > 0 &&
            (closed || chain->entry.nic * class->n_nics + chain->exit.nic == pair) &&
            tccl_view_allows(view, chain))
            candidates->list[candidates->n++] = own;
    }
    qsort(candidates->list, (size_t)candidates->n, sizeof(*candidates->list), by_gbps);
}

/* For each pair of NICs, or the ring, the best one of the table; the sets, which the class has as
 * they are alone, where they harm nobody. */
static int choose_all(struct tccl_beside *beside, const struct tccl_floor *floor,
                      const struct tccl_table *table, bool closed, enum tccl_view view,
                      const struct tccl_machine *machine, struct tccl_node_class *class,
                      struct tccl_error *err)
{
    cleanup_free const struct tccl_result **list = calloc((size_t)table->n_results, sizeof(*list));
    struct tccl_candidates candidates = {
        .list = list, .noise = table->noise, .floor = floor, .machine = machine};
    int pairs = tccl_class_pairs(class), n = class->n_seen;
    if (!list)
        return tccl_fail(err, "out of memory");
    class->n_seen = tccl_class_first_set(class);
    for (int i = 0; i < n; i++) {
        const bool several = i >= tccl_class_first_set(class);
        struct tccl_seen *seen = &class->seen[several ? class->n_seen : i];
        struct tccl_ring_set set = class->seen[i].set;
        const struct tccl_result alone = {.gbps = class->seen[i].alone,
                                          .chain = set.rings[0],
                                          .set = &set,
                                          .ends = class->seen[i].ends};
        struct tccl_choice best = {.result = NULL};
        *seen = class->seen[i];
        class->n_seen += several;
        if ((several ? set.rings[0].closed : i == pairs) != closed)
            continue;
        if (several)
            candidates.n = 1, list[0] = &alone;
        else
            list_candidates(&candidates, table, class, i, view);
        beside->own = candidates.n ? list[0]->gbps : 0;
        if (tccl_choose(beside, &candidates, &best, err) != 0)
            return -1;
        if (best.result)
            tccl_seen_take(seen, best.result, &best.worth, best.harms);
        class->n_seen -= several && best.harms;
        if (several && !best.harms)
            tccl_class_drop_twin(class);
    }
    return 0;
}

/* What is there first where it is as fast. */
static int by_seen(const void *a, const void *b)
{
    const struct tccl_seen *x = *(struct tccl_seen *const *)a, *y = *(struct tccl_seen *const *)b;
    return x->gbps != y->gbps ? (x->gbps < y->gbps ? 1 : -1) : (x > y) - (x < y);
}

/* Of the fastest n of these, as far as WORK goes. */
static int tell_fastest(const struct tccl_beside *beside, bool closed, struct tccl_seen *first,
                        int n, struct tccl_error *err)
{
    cleanup_free struct tccl_seen **list = calloc((size_t)n + 1, sizeof(*list));
    int count = 0, others = 0, work = WORK;
    if (!list)
        return tccl_fail(err, "out of memory");
    for (int i = 0; i < beside->n; i++)
        others += beside->others[i]->count;
    for (int i = 0; i < n; i++)
        if (first[i].gbps > 0 && first[i].set.n && first[i].set.rings[0].closed == closed)
            list[count++] = &first[i];
    qsort(list, (size_t)count, sizeof(*list), by_seen);
    for (int i = 0; i < count && work > 0; i++) {
        struct tccl_side side;
        uint8_t told = list[i]->ends;
        tccl_ring_set_side(&list[i]->set, &side);
        if (tell_ends(beside, &side, &list[i]->set, list[i]->gbps, &told, err) != 0)
            return -1;
        list[i]->told_ends = told;
        work -= side.count + others;
    }
    return 0;
}

struct tccl_node_class *tccl_beside_class(struct tccl_beside *beside,
                                          const struct tccl_table *table, bool closed,
                                          enum tccl_view view, struct tccl_error *err)
{
    const struct tccl_machine *machine =
        beside->model ? tccl_model_machine(beside->model) : beside->machine;
    cleanup_class struct tccl_node_class *class = tccl_node_class_from_table(table, machine, view);
    struct tccl_floor floor = {.known = {0}};
    beside->selfish = false;
    if (!class)
        return tccl_fail_null(err, "out of memory");
    class->neighbours = beside->n;
    struct own own[TCCL_GENERATIONS];
    if (rate_generations(beside, table->baselines[closed], own, &floor, err) != 0 ||
        choose_all(beside, &floor, table, closed, view, machine, class, err) != 0 ||
        tell_fastest(beside, closed, class->seen, tccl_class_first_set(class), err) != 0 ||
        tell_fastest(beside, closed, class->seen + tccl_class_first_set(class),
                     class->n_seen - tccl_class_first_set(class), err) != 0)
        return NULL;
    take_generations(own, closed, class);
    return tccl_steal(class);
}

/* ---- at a launch ---- */

/* Where that is known by bounds only, it is compared by what it has alone, but has so much at
 * least. */
static int take_nccl(struct tccl_beside *beside, const struct tccl_baseline *own, int gpus,
                     struct tccl_launched *launch, struct tccl_error *err)
{
    struct tccl_worth worth;
    uint8_t ends[TCCL_MAX_SIDES] = {tccl_baseline_ends(own)};
    const double reach = tccl_reach(ends[0], gpus);
    launch->gbps = launch->nccl;
    launch->alone = own->gbps * reach;
    if (!(launch->nccl > 0) || tccl_ring_set_side(&own->set, &launch->side) != 0)
        return 0;
    beside->own = launch->side.alone = own->gbps;
    if (beside->n == 0)
        return 0;
    if (tccl_beside_worth(beside, &launch->side, &worth, err) != 0 ||
        tccl_beside_ends(beside, &launch->side, &worth, ends, err) != 0)
        return -1;
    launch->gbps = fmin(launch->gbps, worth.gbps * tccl_reach(ends[0], gpus));
    launch->basis = worth.basis;
    return 0;
}

int tccl_launch_choose(struct tccl_beside *beside, const struct tccl_table *table, int most,
                       struct tccl_launched *launch, struct tccl_error *err)
{
    const struct tccl_machine *machine =
        beside->model ? tccl_model_machine(beside->model) : beside->machine;
    struct tccl_node_class *class = beside->n
                                        ? tccl_beside_class(beside, table, true, TCCL_VIEW_JOB, err)
                                        : tccl_node_class_from_table(table, machine, TCCL_VIEW_JOB);
    const struct tccl_run run = {.class = class, .count = 1};
    struct tccl_ring ring = {0};
    int rings, status = 0;
    *launch = (struct tccl_launched){0};
    if (!class)
        return tccl_fail(err, "out of memory");
    bool found = tccl_ring_choose(&run, 1, most, &ring, &rings, NULL) == 0;
    launch->nccl = tccl_ring_baseline_reach(&ring, TCCL_NEWEST);
    launch->basis = ring.basis;
    if (found && tccl_ring_gains(&ring, TCCL_NEWEST)) {
        struct tccl_ring_set set;
        tccl_ring_set_of(&ring, class, 0, &set);
        tccl_ring_set_side(&set, &launch->side);
        launch->side.alone = ring.alone;
        launch->gbps = tccl_ring_reach(&ring);
        launch->alone = tccl_ring_reach_alone(&ring);
        launch->ours = true;
    } else
        status = take_nccl(beside, &table->baselines[1][TCCL_NEWEST], class->n_gpus, launch, err);
    tccl_ring_clear(&ring);
    tccl_node_class_free(class);
    return status;
}
