/* neighbours.c: what chains are worth beside others, and the best ones of a table there. */
#include "ring/neighbours.h"

#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "ring/room.h"

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
        worth->left = fmin(worth->left, share);
        worth->sum += share;
    }
    worth->least = fmin(worth->least, worth->left);
    return 0;
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

int tccl_side_add_baseline(struct tccl_side *side, const struct tccl_baseline *baseline)
{
    const struct tccl_side before = *side;
    for (int i = 0; i < baseline->n_chains; i++)
        if (tccl_side_add_chain(side, &baseline->chains[i]) != 0) {
            *side = before;
            return -1;
        }
    return 0;
}

/* A chain that may be taken, and what it is worth beside the others once that is known. */
struct candidate {
    const struct tccl_result *result;
    struct tccl_worth worth;
    bool harms;
};

/* Those for one cell of a class, the fastest first. */
struct candidates {
    struct candidate *list;
    int n;
};

static void cleanup_class_(struct tccl_node_class **class)
{
    tccl_node_class_free(*class);
}
#define cleanup_class __attribute__((cleanup(cleanup_class_)))

static int by_gbps(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    return (x->result->gbps < y->result->gbps) - (x->result->gbps > y->result->gbps);
}

/* Those between these NICs, or rings. */
static void list_candidates(struct candidates *candidates, const struct tccl_table *table,
                            int entry, int exit, bool closed, bool hidden)
{
    candidates->n = 0;
    for (const struct tccl_result *own = NULL; (own = tccl_table_next(table, own, TCCL_SINGLES));) {
        const struct tccl_chain *chain = &own->chain;
        if (chain->closed == closed && own->gbps > 0 &&
            (closed || (chain->entry.nic == entry && chain->exit.nic == exit)) &&
            !(hidden && tccl_chain_has_p2p(chain)))
            candidates->list[candidates->n++] = (struct candidate){.result = own};
    }
    qsort(candidates->list, (size_t)candidates->n, sizeof(*candidates->list), by_gbps);
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
                               .set = {1, {result->chain}},
                               .tree = result->tree};
    seen->tree.gbps *= part;
    seen->tree.along *= part;
}

/* Does a come before b, which may be NULL? */
static bool is_better(const struct candidate *a, const struct candidate *b, double noise)
{
    if (!b || a->harms != b->harms)
        return !b || b->harms;
    return tccl_worth_better(&a->worth, &b->worth, noise);
}

/* Rates the candidates beside the others, and moves those that are rated to the front. *best: the
 * best one, of those that harm nobody if there are some; -1: there is none. No share is larger than
 * what a chain has alone, so the rest can't be better once the list has come down to the least
 * share of the best. */
static int rate_candidates(struct tccl_beside *beside, const struct tccl_floor *floor,
                           struct candidates *candidates, double noise, int *best,
                           struct tccl_error *err)
{
    int n = candidates->n;
    candidates->n = 0;
    *best = -1;
    beside->own = n ? candidates->list[0].result->gbps : 0;
    for (int i = 0; i < n; i++) {
        struct candidate *now = &candidates->list[i], *rated = &candidates->list[candidates->n];
        struct tccl_side side = {.alone = now->result->gbps};
        if (*best >= 0 && !candidates->list[*best].harms &&
            now->result->gbps <
                (1 - TCCL_MOST_FOR_ROOM) * beside->own * candidates->list[*best].worth.least)
            break;
        if (tccl_side_add_chain(&side, &now->result->chain) != 0)
            continue;
        if (tccl_beside_worth(beside, &side, &now->worth, err) != 0)
            return -1;
        *rated = *now;
        rated->harms = tccl_floor_harms(floor, beside, &rated->worth, noise);
        if (is_better(rated, *best < 0 ? NULL : &candidates->list[*best], noise))
            *best = candidates->n;
        candidates->n++;
    }
    return 0;
}

/* Of those that are as good as the best one, but for a little, the one that leaves the memories of
 * other GPUs to these: others end, and steps come. */
static const struct candidate *leave_room(const struct candidates *candidates, int best,
                                          const struct tccl_machine *machine)
{
    const struct candidate *least = &candidates->list[best];
    int fewest = tccl_chain_far(machine, &least->result->chain);
    for (int i = 0; i < candidates->n && fewest > 0; i++) {
        const struct candidate *now = &candidates->list[i];
        int far = tccl_chain_far(machine, &now->result->chain);
        if (far < fewest && now->harms == least->harms && now->worth.basis <= least->worth.basis &&
            !tccl_worth_better(&candidates->list[best].worth, &now->worth, TCCL_MOST_FOR_ROOM)) {
            fewest = far;
            least = now;
        }
    }
    return least;
}

static int choose(struct tccl_beside *beside, const struct tccl_floor *floor,
                  struct candidates *candidates, double noise, const struct tccl_machine *machine,
                  struct tccl_seen *seen, struct tccl_error *err)
{
    int best;
    if (rate_candidates(beside, floor, candidates, noise, &best, err) != 0)
        return -1;
    if (best < 0)
        return 0;
    const struct candidate *taken = leave_room(candidates, best, machine);
    tccl_seen_take(seen, taken->result, &taken->worth, taken->harms);
    return 0;
}

/* Returns 0; 1: it is not known; -1 with err. */
static int rate_own(struct tccl_beside *beside, const struct tccl_baseline *baseline,
                    struct tccl_worth *worth, struct tccl_error *err)
{
    struct tccl_side side = {.alone = baseline->gbps};
    if (tccl_side_add_baseline(&side, baseline) != 0 || !side.count || !(baseline->gbps > 0))
        return 1;
    beside->own = side.alone;
    return tccl_beside_worth(beside, &side, worth, err);
}

static int find_floor(struct tccl_beside *beside, const struct tccl_table *table, bool closed,
                      struct tccl_floor *floor, struct tccl_error *err)
{
    const struct tccl_baseline *own = closed ? table->baseline_ring : table->baseline_chain;
    for (int i = 0; i < TCCL_GENERATIONS; i++) {
        struct tccl_worth worth;
        if (i > 0 && tccl_baseline_equal(&own[i], &own[i - 1]))
            continue;
        int known = rate_own(beside, &own[i], &worth, err);
        if (known < 0)
            return -1;
        tccl_floor_raise(floor, beside, known == 0 ? &worth : NULL);
    }
    return 0;
}

/* What NCCL builds reaches here. sure: chains that it is compared with are known better than by
 * bounds; then it has to be, too. */
static int rate_baseline(struct tccl_beside *beside, const struct tccl_baseline *baseline,
                         bool sure, double *gbps, double *share, struct tccl_error *err)
{
    struct tccl_worth worth;
    int known = rate_own(beside, baseline, &worth, err);
    if (known != 0)
        return known < 0 ? -1 : 0;
    if (sure && worth.basis == TCCL_BASIS_BOUNDS)
        return 0;
    *gbps = fmin(*gbps, worth.gbps);
    *share = worth.left;
    return 0;
}

static bool any_is_sure(const struct tccl_node_class *class, bool closed)
{
    for (int i = 0; i < tccl_class_first_set(class); i++)
        if ((i == tccl_class_pairs(class)) == closed && class->seen[i].gbps > 0 &&
            class->seen[i].basis < TCCL_BASIS_BOUNDS)
            return true;
    return false;
}

static int rate_baselines(struct tccl_beside *beside, const struct tccl_table *table, bool closed,
                          struct tccl_node_class *class, struct tccl_error *err)
{
    bool sure = any_is_sure(class, closed);
    for (int i = 0; i < TCCL_GENERATIONS; i++) {
        const struct tccl_baseline *own =
            closed ? &table->baseline_ring[i] : &table->baseline_chain[i];
        struct tccl_class_baseline *to = &class->baselines[i];
        if (i > 0 && tccl_baseline_equal(own, own - 1)) {
            to->ring_gbps = to[-1].ring_gbps;
            to->chain_gbps = to[-1].chain_gbps;
            to->ring_share = to[-1].ring_share;
            to->chain_share = to[-1].chain_share;
        } else if (rate_baseline(beside, own, sure, closed ? &to->ring_gbps : &to->chain_gbps,
                                 closed ? &to->ring_share : &to->chain_share, err) != 0) {
            return -1;
        }
    }
    return 0;
}

static int choose_all(struct tccl_beside *beside, const struct tccl_floor *floor,
                      const struct tccl_table *table, bool closed, bool hidden,
                      const struct tccl_machine *machine, struct tccl_node_class *class,
                      struct tccl_error *err)
{
    cleanup_free struct candidate *list = calloc((size_t)table->n_results, sizeof(*list));
    struct candidates candidates = {.list = list};
    int status = 0;
    if (!list)
        return tccl_fail(err, "out of memory");
    for (int i = closed ? tccl_class_pairs(class) : 0;
         i < tccl_class_pairs(class) + closed && status == 0; i++) {
        list_candidates(&candidates, table, closed ? 0 : i / class->n_nics,
                        closed ? 0 : i % class->n_nics, closed, hidden);
        status = choose(beside, floor, &candidates, table->noise, machine, &class->seen[i], err);
    }
    return status;
}

/* The sets of the class, which has them as they are alone. */
static int rate_sets(struct tccl_beside *beside, const struct tccl_floor *floor, bool closed,
                     struct tccl_node_class *class, struct tccl_error *err)
{
    int n = class->n_seen;
    class->n_seen = tccl_class_first_set(class);
    for (int i = class->n_seen; i < n; i++) {
        struct tccl_seen *set = &class->seen[class->n_seen];
        *set = class->seen[i];
        struct tccl_side side;
        struct tccl_worth worth;
        if (set->set.rings[0].closed != closed) {
            class->n_seen++;
            continue;
        }
        tccl_ring_set_side(&set->set, &side);
        beside->own = side.alone = set->alone;
        if (tccl_beside_worth(beside, &side, &worth, err) != 0)
            return -1;
        set->gbps = fmin(worth.gbps, set->alone);
        set->share = worth.left;
        set->basis = worth.basis;
        set->bound = fmax(set->bound, set->alone);
        class->n_seen += !tccl_floor_harms(floor, beside, &worth, class->noise);
    }
    return 0;
}

struct tccl_node_class *tccl_beside_class(struct tccl_beside *beside,
                                          const struct tccl_table *table, bool closed, bool hidden,
                                          struct tccl_error *err)
{
    const struct tccl_machine *machine =
        beside->model ? tccl_model_machine(beside->model) : beside->machine;
    cleanup_class struct tccl_node_class *class =
        tccl_node_class_from_table(table, machine, hidden ? TCCL_VIEW_HIDDEN : TCCL_VIEW_JOB);
    struct tccl_floor floor = {.known = {0}};
    beside->selfish = false;
    if (!class) {
        tccl_fail(err, "out of memory");
        return NULL;
    }
    class->neighbours = beside->n;
    if (find_floor(beside, table, closed, &floor, err) != 0 ||
        choose_all(beside, &floor, table, closed, hidden, machine, class, err) != 0 ||
        rate_sets(beside, &floor, closed, class, err) != 0 ||
        rate_baselines(beside, table, closed, class, err) != 0)
        return NULL;
    return tccl_steal(class);
}
