/* test-rings.c: the best ring sets against all sets of two rings tried, on random models
 * (bench/optimum-sets.c). */
#include <math.h>

#include "machines.h"
#include "optimum-sets.h"
#include "owned.h"
#include "random-model.h"
#include "search/rings.h"

enum { ROUNDS = 300, ANY_EACH = 8 };

struct trial {
    const struct tccl_model *model;
    const struct tccl_machine *machine;
    int n;
    bool closed, reads; /* P2P edges read, else they write */
};

/* What the best set of so many rings reaches; found: a set that is said to reach that. If there is
 * one, one is as fast. any: also of those that NCCL can't build. */
static double best_of(const struct trial *trial, int rings, bool any, double found)
{
    const struct optimum_kind kind = {
        .model = trial->model, .closed = trial->closed, .reads = trial->reads && !any, .any = any};
    long looked = 0;
    bool late;
    double best = optimum_of(&kind, rings, found * (1 - 1e-6), INFINITY, &looked, &late);
    CHECK(!late && looked > 0);
    return best;
}

/* What is said of a set is true of it. */
static void check_set(const struct trial *trial, const struct tccl_rings_result *result)
{
    struct tccl_side side;
    CHECK_OK(tccl_ring_set_check(&result->set, trial->machine, ERR));
    CHECK_OK(tccl_expressible(trial->machine, result->set.rings, result->set.n, ERR));
    tccl_ring_set_side(&result->set, &side);
    CHECK(side_gbps(trial->model, &side) > result->gbps * (1 - 1e-9));
}

/* Of some of the set's rings together, told by a mask. */
static double some_of(const struct tccl_model *model, const struct tccl_ring_set *set,
                      uint32_t mask)
{
    const struct tccl_machine *machine = tccl_model_machine(model);
    struct tccl_ring_set some = {0};
    struct tccl_side side;
    for (int i = 0; i < set->n; i++)
        if (mask >> i & 1)
            some.rings[some.n++] = set->rings[i];
    tccl_ring_set_side(&some, &side);
    double gbps = side_gbps(model, &side);
    for (int i = 0; i < some.n && !some.rings[0].closed; i++) {
        int in = 0, out = 0;
        for (int j = 0; j < some.n; j++) {
            in += some.rings[j].entry.nic == some.rings[i].entry.nic;
            out += some.rings[j].exit.nic == some.rings[i].exit.nic;
        }
        gbps = fmin(gbps, some.n * machine->nics[some.rings[i].entry.nic].gbps / in);
        gbps = fmin(gbps, some.n * machine->nics[some.rings[i].exit.nic].gbps / out);
    }
    return gbps;
}

/* No ring after the first k would be better in the place of the last of these; and, where any
 * number will do, none of them are as fast without the others. */
static void check_order(const struct tccl_model *model, const struct tccl_ring_set *set, bool any)
{
    double all = some_of(model, set, (1u << set->n) - 1);
    for (int k = 1; k <= set->n; k++) {
        uint32_t before = (1u << (k - 1)) - 1;
        double first = some_of(model, set, before | 1u << (k - 1));
        for (int i = k; i < set->n; i++)
            CHECK(first >= some_of(model, set, before | 1u << i) * (1 - 1e-8));
        CHECK(!any || k == set->n || first < all);
    }
}

static void check_rings(const struct trial *trial, int rings)
{
    struct tccl_rings_options options = {.rings = rings, .reads = trial->reads, .seed = 1};
    struct tccl_rings_result result;
    double bounds[3] = {0};
    uint32_t gpus = (1u << trial->n) - 1;
    CHECK_OK(tccl_rings_bounds(trial->model, gpus, trial->closed, trial->reads, false, rings, rings,
                               0, bounds, ERR));
    double bound = bounds[rings];
    CHECK_OK(tccl_rings_find(trial->model, gpus, trial->closed, &options, NULL, 0, &result, ERR));
    double best = best_of(trial, rings, false, result.gbps);
    if (best > bound * (1 + 1e-6) || fabs(result.gbps - best) > 1e-6 * best ||
        result.bound < best * (1 - 1e-9)) {
        fprintf(stderr,
                "%d GPUs, %d NICs, %s, %d rings: found %g, proven %g, bound %g; the best has %g\n",
                trial->n, trial->machine->n_nics, trial->closed ? "closed" : "open", rings,
                result.gbps, result.bound, bound, best);
        CHECK(false);
    }
    if (best > 0)
        check_order(trial->model, &result.set, false);
    if (best > 0)
        check_set(trial, &result);
    else
        CHECK(result.set.n == 0);
}

/* Where any set counts the search proves none, so some are missed: returns whether the best one of
 * two rings was found. */
static bool check_any(const struct trial *trial)
{
    struct tccl_rings_options options = {.rings = 2, .any = true, .seed = 1};
    struct tccl_rings_result result;
    uint32_t gpus = (1u << trial->n) - 1;
    CHECK_OK(tccl_rings_find(trial->model, gpus, trial->closed, &options, NULL, 0, &result, ERR));
    CHECK(tccl_ring_set_check(&result.set, trial->machine, ERR) == 0);
    double best = best_of(trial, 2, true, result.gbps), built = best_of(trial, 2, false, 0);
    CHECK(result.gbps <= best * (1 + 1e-9) && result.gbps >= built * (1 - 1e-9));
    CHECK(result.bound >= best * (1 - 1e-9));
    return result.gbps >= best * (1 - 1e-6);
}

static int any_tried, any_found;

static void check_random(unsigned long *state, int gpus, int nics)
{
    owned(model) struct tccl_model *model =
        random_model(state, gpus, 1 + random_below(state, 2), nics);
    const struct trial trial = {model, tccl_model_machine(model), gpus, nics == 0,
                                random_below(state, 2)};
    check_rings(&trial, 1);
    check_rings(&trial, 2);
    if (random_below(state, ANY_EACH) == 0) {
        any_tried++;
        any_found += check_any(&trial);
    }
}

/* On a machine: close to the bound in few sets, and better than one ring by this much at least. */
static void check_machine(const char *name, bool closed, double better)
{
    const struct tccl_model *model = load_machine(name);
    uint32_t gpus = (1u << tccl_model_machine(model)->n_gpus) - 1;
    struct tccl_rings_options options = {.gap = 0.05, .seed = 1}, one = options;
    struct tccl_rings_result best, single, again;
    struct trial trial = {.model = model, .machine = tccl_model_machine(model), .closed = closed};
    one.rings = 1;
    CHECK_INT(tccl_rings_find(model, gpus, closed, &options, NULL, 0, &best, NULL), 0);
    CHECK_INT(tccl_rings_find(model, gpus, closed, &one, NULL, 0, &single, NULL), 0);
    if (best.gbps <= better * single.gbps)
        fprintf(stderr, "%s: %g GB/s by one ring, %g by %d\n", name, single.gbps, best.gbps,
                best.set.n);
    CHECK(single.set.n == 1 && best.set.n > 1 && best.gbps > better * single.gbps);
    CHECK(best.gbps >= 0.95 * best.bound && best.rated <= 10000 && single.gbps <= single.bound);
    check_set(&trial, &best);
    check_order(model, &best.set, true);
    /* What is found is a beginning for the same again. */
    CHECK_INT(tccl_rings_find(model, gpus, closed, &options, &best.set, 1, &again, NULL), 0);
    CHECK(again.gbps >= best.gbps && again.rated < best.rated);
}

TEST(random)
{
    unsigned long state = check_seed();
    int rounds = getenv("ROUNDS") ? atoi(getenv("ROUNDS")) : ROUNDS;
    for (int i = 0; i < rounds && !check_failures; i++) {
        int nics = random_below(&state, 3);
        check_random(&state, nics ? 1 + random_below(&state, 3) : 2 + random_below(&state, 3),
                     nics);
    }
    if (any_found < 0.9 * any_tried)
        fprintf(stderr, "any: the best of %d of %d\n", any_found, any_tried);
    CHECK(any_found >= 0.9 * any_tried);
    check_machine("amd-4gpu", false, 1.08);
    check_machine("intel-4gpu", false, 1.08);
    check_machine("dual-8gpu", false, 1.2);
    check_machine("dual-8gpu", true, 1.2);
    check_machine("h100-8gpu", false, 1.2);
    check_machine("h100-8gpu", true, 1.15);
    check_machine("lopsided-8gpu", false, 1.15);
    check_machine("quad-8gpu", true, 1.1);
}
