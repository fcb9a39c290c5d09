/* test-beside.c: rings beside those of others: what they are worth against all rings tried, by
 * rates that test-model.c compares with their definition. */
#include <math.h>

#include "enumerate.h"
#include "machines.h"
#include "random-model.h"
#include "search/beside.h"

enum { ROUNDS = 300 };

static const struct tccl_search_options exact = {0};

static struct tccl_side side_of(const struct tccl_chain *chain)
{
    struct tccl_side side = {0};
    struct tccl_set set;
    tccl_chain_set(chain, &set);
    CHECK_INT(tccl_side_add(&side, &set), 0);
    return side;
}

/* The least share with this set, worked out here. */
static double least_share(void *context, const struct tccl_set *set)
{
    const struct tccl_beside *beside = context;
    const struct tccl_side *sides[TCCL_MAX_SIDES];
    struct tccl_side own = {0};
    double gbps[TCCL_MAX_SIDES];
    tccl_side_add(&own, set);
    for (int i = 0; i < beside->n; i++)
        sides[i] = beside->others[i];
    sides[beside->n] = &own;
    CHECK_INT(tccl_model_sides(beside->model, sides, beside->n + 1, gbps, NULL), 0);
    double least = gbps[beside->n] / beside->own;
    for (int i = 0; i < beside->n; i++)
        least = fmin(least, gbps[i] / beside->alone[i]);
    return least;
}

static double alone(const struct tccl_model *model, uint32_t gpus)
{
    const struct tccl_port none = {0};
    return enumerate_best(model, gpus, true, none, none, false);
}

/* GPUs 0 and 1 run, 2 and 3 come (and where there are five, the last one with them). */
static void check_random(unsigned long *state)
{
    int gpus = 4 + random_below(state, 2);
    struct tccl_model *model = random_model(state, gpus, 2 + random_below(state, 2), 0);
    struct tccl_beside beside = {.model = model};
    struct tccl_result first, best;
    struct tccl_worth worth;
    struct tccl_error err = {""};
    uint32_t late = (1u << gpus) - 4;
    if (alone(model, 3) > 0 && alone(model, late) > 0) {
        CHECK_INT(tccl_beside_ring(&beside, 3, &exact, &first, &worth, &err), 0);
        CHECK(fabs(first.gbps - alone(model, 3)) < 1e-6);
        struct tccl_side side = side_of(&first.chain);
        beside.n = 1;
        beside.others[0] = &side;
        beside.alone[0] = first.gbps;
        CHECK_INT(tccl_beside_ring(&beside, late, &exact, &best, &worth, &err), 0);
        CHECK(fabs(beside.own - alone(model, late)) < 1e-6);
        struct enumeration all = {
            .model = model, .closed = true, .rate = least_share, .context = &beside};
        double wanted = enumerate_all(&all, late);
        if (fabs(worth.least - wanted) > 1e-6) {
            fprintf(stderr, "least share %g, the best one is %g\n", worth.least, wanted);
            CHECK(false);
        }
        struct tccl_set set;
        tccl_chain_set(&best.chain, &set);
        CHECK(fabs(least_share(&beside, &set) - worth.least) < 1e-6);
        CHECK(worth.gbps >= worth.least * beside.own * (1 - 1e-9));
    }
    tccl_model_free(model);
}

/* Two halves of a node whose memories take one ring each: planned alone both use the same ones. */
static void check_machine(const char *name, double together, double beside_gbps)
{
    struct tccl_model *model = load_machine(name);
    struct tccl_beside nobody = {.model = model}, beside = {.model = model, .n = 1};
    struct tccl_result first, second, best;
    struct tccl_worth worth;
    double gbps[2];
    CHECK_INT(tccl_beside_ring(&nobody, 3, &exact, &first, &worth, NULL), 0);
    CHECK_INT(tccl_beside_ring(&nobody, 12, &exact, &second, &worth, NULL), 0);
    struct tccl_side a = side_of(&first.chain), b = side_of(&second.chain);
    const struct tccl_side *both[] = {&a, &b};
    CHECK_INT(tccl_model_sides(model, both, 2, gbps, NULL), 0);
    CHECK(fabs(gbps[0] - together) < 0.01 && fabs(gbps[1] - together) < 0.01);
    beside.others[0] = &a;
    beside.alone[0] = first.gbps;
    CHECK_INT(tccl_beside_ring(&beside, 12, &exact, &best, &worth, NULL), 0);
    CHECK(fabs(worth.gbps - beside_gbps) < 0.01 && fabs(best.gbps - beside_gbps) < 0.01);
    CHECK(best.bound >= best.gbps * (1 - 1e-9)); /* alone */
    tccl_model_free(model);
}

/* A ring that makes the same transfer twice shares with itself, and several rings add up. */
static void check_rings(void)
{
    struct tccl_model *model = load_machine("amd-4gpu");
    struct tccl_side one = {0}, two = {0};
    const struct tccl_side *alone_one[] = {&one}, *alone_two[] = {&two};
    struct tccl_set set;
    double gbps;
    CHECK_INT(tccl_set_parse("g0>m1 g1<m1", &set, NULL), 0);
    tccl_side_add(&one, &set);
    tccl_side_add(&two, &set);
    tccl_side_add(&two, &set);
    CHECK_INT(two.rings, 2);
    CHECK_INT(tccl_model_sides(model, alone_one, 1, &gbps, NULL), 0);
    CHECK(fabs(gbps - 12.6 / 1.1) < 1e-6);
    CHECK_INT(tccl_model_sides(model, alone_two, 1, &gbps, NULL), 0);
    CHECK(fabs(gbps - 12.6 / 1.1) < 1e-6); /* each half as fast */
    two.count = TCCL_MAX_SET - 1;
    CHECK_INT(tccl_side_add(&two, &set), -1);
    tccl_model_free(model);
}

int main(void)
{
    unsigned long state = check_seed();
    for (int i = 0; i < ROUNDS; i++)
        check_random(&state);
    check_machine("amd-4gpu", 33 / 4.2, 12.6 / 1.1);
    check_machine("intel-4gpu", 32 / 4.2, 12.6 / 1.1);
    check_rings();
    return check_result();
}
