/* test-robust.c: rings that jobs get by a model lose little to NCCL's own if all of its capacities
 * are wrong. */
#include "altered.h"

enum { SEEDS = 8, BUDGET = 300, PARTS = 4 };

#define WRONG_BY 0.10
#define LEAST 0.97

static int taken, left, below; /* left: for what is required, though promised to be faster */

/* Of those that are left some would have been below. */
static void check_planned(const char *name, uint32_t gpus, int nodes, const struct planned *planned,
                          unsigned long seed)
{
    const struct tccl_ring *ring = &planned->ring;
    double promised = ring->gbps / ring->baseline_gbps[TCCL_NEWEST], worst = 10;
    for (int i = 0; i < SEEDS; i++) {
        unsigned long state = seed + (unsigned long)i;
        worst = fmin(worst, alter_ratio(name, WRONG_BY, false, planned, &state));
    }
    taken += planned->taken;
    left += !planned->taken && promised > 1 + 1e-6;
    below += !planned->taken && promised > 1 + 1e-6 && worst < LEAST;
    if (planned->taken && worst < LEAST)
        fprintf(stderr, "%d %s, GPUs %02x: promised %.3f, %.3f\n", nodes, name, gpus, promised,
                worst);
    CHECK(!planned->taken || worst >= LEAST);
}

static void check_gpus(const struct tccl_model *model, const char *name, uint32_t gpus,
                       unsigned long seed)
{
    owned(table) struct tccl_table *table = plan_table(model, gpus, BUDGET);
    for (int nodes = 1; nodes <= 2; nodes++) {
        struct planned planned;
        if (plan_nodes(model, table, nodes, &planned) == 0 && planned.nccl.count > 0)
            check_planned(name, gpus, nodes, &planned, seed);
    }
}

TEST(plans)
{
    unsigned long seed = check_seed(), state = seed;
    for (int i = 0; i < MACHINE_NAMES; i++) {
        const struct tccl_model *model = load_machine(machine_names[i]);
        uint32_t all = (UINT32_C(1) << tccl_model_machine(model)->n_gpus) - 1;
        check_gpus(model, machine_names[i], all, seed);
        for (int part = 0; part < PARTS; part++) {
            uint32_t gpus = (uint32_t)random_below(&state, (int)all) + 1;
            if (__builtin_popcount(gpus) > 1)
                check_gpus(model, machine_names[i], gpus, seed);
        }
    }
    printf("%d plans are taken, %d that promise more are left, of which %d may be below %.2f\n",
           taken, left, below, LEAST);
    CHECK(taken > 0 && left > 0);
}
