/* test-place.c: which GPUs a step should get, on random models: every set rated against all rings
 * of it tried, with and without symmetries, and the order against its definition. */
#include <math.h>
#include <stdlib.h>

#include "enumerate.h"
#include "machines.h"
#include "random-model.h"
#include "search/place.h"

enum { ROUNDS = 120 };

static double alone(const struct tccl_model *model, uint32_t gpus)
{
    const struct tccl_port none = {0};
    return enumerate_best(model, gpus, true, none, none, false);
}

/* What a ring is worth beside one that runs already: the least share of both. */
struct pair {
    const struct tccl_model *model;
    const struct tccl_side *other;
    double own, others;
    double most, fewest; /* bandwidths of the best rings themselves */
    double best;
};

static double least_share(void *context, const struct tccl_set *set)
{
    struct pair *pair = context;
    struct tccl_side side = {0};
    const struct tccl_side *sides[] = {&side, pair->other};
    double gbps[2];
    CHECK_INT(tccl_side_add(&side, set), 0);
    CHECK_INT(tccl_model_sides(pair->model, sides, 2, gbps, NULL), 0);
    double least = fmin(gbps[0] / pair->own, gbps[1] / pair->others);
    bool better = least > pair->best * (1 + 1e-9);
    if (better || (least >= pair->best * (1 - 1e-9) && gbps[0] > pair->most))
        pair->most = gbps[0];
    if (better || (least >= pair->best * (1 - 1e-9) && gbps[0] < pair->fewest))
        pair->fewest = gbps[0];
    pair->best = fmax(pair->best, least);
    return least;
}

static bool near(double a, double b)
{
    return fabs(a - b) < 1e-6 * fmax(1, fabs(b));
}

/* The ring that runs on the busy GPUs: the one that place takes, too. */
static double begin_busy(const struct tccl_model *model, uint32_t busy, struct tccl_side *side)
{
    const struct tccl_search_options exact = {0};
    struct tccl_beside nobody = {.model = model};
    struct tccl_result best;
    struct tccl_worth worth;
    struct tccl_set set;
    CHECK_INT(tccl_beside_ring(&nobody, busy, &exact, &best, &worth, NULL), 0);
    tccl_chain_set(&best.chain, &set);
    CHECK_INT(tccl_side_add(side, &set), 0);
    return best.gbps;
}

/* No other GPUs are left over that would have a ring: what stands there is of the step and of what
 * runs. */
static void check_place(const struct tccl_model *model, uint32_t busy,
                        const struct tccl_place *place)
{
    struct tccl_side side = {0};
    if (!busy) {
        CHECK(near(place->gbps, alone(model, place->gpus)));
        return;
    }
    struct pair pair = {
        .model = model, .other = &side, .own = alone(model, place->gpus), .fewest = INFINITY};
    pair.others = begin_busy(model, busy, &side);
    CHECK(near(pair.others, alone(model, busy)));
    struct enumeration all = {
        .model = model, .closed = true, .rate = least_share, .context = &pair};
    enumerate_all(&all, place->gpus);
    CHECK(near(place->least, pair.best));
    CHECK(place->gbps <= pair.most * (1 + 1e-6) && place->gbps >= pair.fewest * (1 - 1e-6));
}

/* Is a before b by the definition? Values are equal within 1e-9. */
static int before(const struct tccl_place *a, const struct tccl_place *b)
{
    const double x[] = {a->gbps, a->least, a->rest, a->nccl};
    const double y[] = {b->gbps, b->least, b->rest, b->nccl};
    for (int i = 0; i < 4; i++) {
        if (isnan(x[i]) && isnan(y[i]))
            continue;
        if (isnan(x[i]) || isnan(y[i]))
            return isnan(y[i]) ? 1 : -1;
        if (fabs(x[i] - y[i]) > 1e-6 * x[i])
            return x[i] > y[i] ? 1 : -1;
    }
    for (int i = 0; i < TCCL_MAX_GPUS; i++)
        if ((a->gpus ^ b->gpus) >> i & 1)
            return a->gpus >> i & 1 ? 1 : -1;
    return 0;
}

static bool equal_value(double a, double b)
{
    return isnan(a) ? isnan(b) : near(a, b);
}

static bool equal_values(const struct tccl_place *a, const struct tccl_place *b)
{
    return equal_value(a->gbps, b->gbps) && equal_value(a->least, b->least) &&
           equal_value(a->rest, b->rest) && equal_value(a->nccl, b->nccl);
}

static void check_order(const struct tccl_place *places, int n, uint32_t free, int k)
{
    CHECK_INT(n, (int)tccl_places_count(free, k));
    for (int i = 0; i < n; i++) {
        CHECK((places[i].gpus & ~free) == 0);
        CHECK_INT(__builtin_popcount(places[i].gpus), k);
        CHECK(i == 0 || before(&places[i - 1], &places[i]) == 1); /* so none is twice, either */
        bool equal = i == 0 || equal_values(&places[i - 1], &places[i]);
        CHECK_INT(places[i].tier, i == 0 ? 0 : places[i - 1].tier + !equal);
    }
}

static void check_symmetric(const struct tccl_model *model, uint32_t busy, int k,
                            const struct tccl_place *places, int n)
{
    const struct tccl_search_options exact = {0};
    struct tccl_symmetry *symmetry = tccl_symmetry_of_model(model);
    struct tccl_place *same = NULL;
    int count;
    CHECK_INT(tccl_place_rank(model, symmetry, busy, k, &exact, &same, &count, NULL), 0);
    CHECK_INT(count, n);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            if (same[i].gpus == places[j].gpus) {
                CHECK(equal_value(same[i].gbps, places[j].gbps));
                CHECK(equal_value(same[i].nccl, places[j].nccl));
            }
    free(same);
    tccl_symmetry_free(symmetry);
}

static void check_random(unsigned long *state)
{
    const struct tccl_search_options exact = {0};
    int gpus = 4 + random_below(state, 2), k = 2 + random_below(state, gpus - 3);
    struct tccl_model *model = random_model(state, gpus, 2, 0);
    uint32_t all = (1u << gpus) - 1, busy = 0;
    if (random_below(state, 2) && k == gpus - 3) /* one free GPU at most is left over */
        busy = 3;
    struct tccl_place *places = NULL;
    int n;
    if (!(alone(model, all) > 0)) {
        tccl_model_free(model);
        return;
    }
    CHECK_INT(tccl_place_rank(model, NULL, busy, k, &exact, &places, &n, NULL), 0);
    check_order(places, n, all & ~busy, k);
    for (int i = 0; i < n; i++)
        check_place(model, busy, &places[i]);
    check_symmetric(model, busy, k, places, n);
    free(places);
    tccl_model_free(model);
}

static void check_first(const char *name, uint32_t busy, int k, uint32_t wanted, double gbps,
                        double least)
{
    const struct tccl_search_options options = {.gap = 0.03, .noise = 0.03, .budget = 5000};
    struct tccl_model *model = load_machine(name);
    struct tccl_symmetry *symmetry = tccl_symmetry_of_model(model);
    struct tccl_place *places = NULL;
    int n;
    CHECK_INT(tccl_place_rank(model, symmetry, busy, k, &options, &places, &n, NULL), 0);
    CHECK_INT(places[0].gpus, wanted);
    CHECK(isnan(gbps) ? isnan(places[0].gbps) : fabs(places[0].gbps - gbps) < 0.01);
    CHECK(fabs(places[0].least - least) < 0.01);
    free(places);
    tccl_symmetry_free(symmetry);
    tccl_model_free(model);
}

/* Values within the noise of the best are one, though they are not all within it of each other. */
static void check_noise(void)
{
    struct tccl_place places[] = {{1, 10.0, 0.5, 1, NAN, 0},
                                  {2, 9.8, 0.9, 1, NAN, 0},
                                  {4, 9.6, 1.0, 1, NAN, 0},
                                  {8, NAN, 1.0, 9, 9, 0}};
    tccl_places_sort(places, 4, 0.03);
    CHECK_INT(places[0].gpus, 2);
    CHECK_INT(places[1].gpus, 1);
    CHECK_INT(places[2].gpus, 4);
    CHECK_INT(places[3].gpus, 8);
    tccl_places_sort(places, 4, 0);
    CHECK_INT(places[0].gpus, 1);
    CHECK_INT(places[1].gpus, 2);
}

int main(void)
{
    unsigned long state = check_seed();
    for (int i = 0; i < ROUNDS; i++)
        check_random(&state);
    check_noise();
    check_first("dual-8gpu", 0, 2, 0x03, 24.6, 1);     /* below one switch */
    check_first("dual-8gpu", 0, 4, 0x0f, 22.78, 1);    /* on one socket */
    check_first("dual-8gpu", 0x03, 4, 0xf0, 22.78, 1); /* on the socket that nobody uses */
    check_first("dual-8gpu", 0x53, 1, 0x04, NAN, 0.62);
    check_first("amd-4gpu", 0x03, 2, 0x0c, 12.6 / 1.1, 1);
    return check_result();
}
