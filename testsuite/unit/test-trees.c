/* test-trees.c: the tree found beside a chain is the best of all that NCCL could build there, in
 * every order and over every NIC. How trees go beside a ring is written again here. */
#include "chain/tree.h"
#include "enumerate.h"
#include "machines.h"
#include "owned.h"
#include "random-model.h"

struct trees {
    const struct tccl_model *model;
    const struct tccl_chain *chain;
    int order[TCCL_MAX_GPUS], nic;
    double best;
    long count;
};

static int edge_into(const struct tccl_chain *chain, int gpu)
{
    for (int i = 1; i < chain->n_gpus; i++)
        if (chain->gpus[i] == gpu)
            return i - 1;
    return -1;
}

/* One memory for all that a process receives: the ring's. */
static int buffers_of(const struct trees *trees, int gpu)
{
    const struct tccl_chain *chain = trees->chain;
    int edge = edge_into(chain, gpu);
    if (edge < 0 && chain->entry.via.kind == TCCL_MEMORY)
        return chain->entry.via.index;
    if (edge >= 0 && chain->edges[edge].kind == TCCL_BOUNCE)
        return chain->edges[edge].memory;
    if (edge == chain->n_gpus - 2 && chain->exit.via.kind == TCCL_MEMORY)
        return chain->exit.via.index;
    return tccl_model_machine(trees->model)->gpus[gpu].numa;
}

static bool same_switch(const struct trees *trees, struct tccl_device a, struct tccl_device b)
{
    return tccl_machine_path(tccl_model_machine(trees->model), a, b) == TCCL_PATH_SWITCH;
}

/* Neighbours with P2P in the ring; others below one switch, if the ring goes from one to the other
 * by P2P only. */
static bool by_p2p(const struct trees *trees, int a, int b)
{
    const struct tccl_chain *chain = trees->chain;
    const struct tccl_machine *machine = tccl_model_machine(trees->model);
    int from = edge_into(chain, a) + 1, to = edge_into(chain, b) + 1;
    int low = from < to ? from : to, high = from < to ? to : from, bounces = 0;
    for (int i = low; i < high; i++)
        bounces += chain->edges[i].kind == TCCL_BOUNCE;
    return bounces == 0 && machine->p2p[a][b] && machine->p2p[b][a] &&
           (high == low + 1 ||
            same_switch(trees, enumerate_device(TCCL_GPU, a), enumerate_device(TCCL_GPU, b)));
}

static bool by_gpudirect(const struct trees *trees, int gpu)
{
    const struct tccl_chain *chain = trees->chain;
    if (gpu == chain->gpus[0] && trees->nic == chain->entry.nic)
        return chain->entry.via.kind == TCCL_GPU;
    if (gpu == chain->gpus[chain->n_gpus - 1] && trees->nic == chain->exit.nic)
        return chain->exit.via.kind == TCCL_GPU;
    return tccl_model_machine(trees->model)->gpudirect[trees->nic][gpu] &&
           same_switch(trees, enumerate_device(TCCL_GPU, gpu),
                       enumerate_device(TCCL_NIC, trees->nic));
}

static void add_end(const struct trees *trees, int gpu, struct tccl_set *set)
{
    struct tccl_device nic = enumerate_device(TCCL_NIC, trees->nic);
    struct tccl_device itself = enumerate_device(TCCL_GPU, gpu), place = itself;
    if (!by_gpudirect(trees, gpu)) {
        place = enumerate_device(TCCL_MEMORY, buffers_of(trees, gpu));
        enumerate_add(set, itself, true, place);
        enumerate_add(set, itself, false, place);
    }
    enumerate_add(set, nic, false, place);
    enumerate_add(set, nic, true, place);
}

static double measure(const struct trees *trees)
{
    struct tccl_set set = {0};
    double gbps = 0;
    for (int i = 0; i + 1 < trees->chain->n_gpus; i++) {
        int a = trees->order[i], b = trees->order[i + 1];
        bool p2p = by_p2p(trees, a, b);
        enumerate_edge(&set, a, b, p2p ? 0 : 2 + buffers_of(trees, b));
        enumerate_edge(&set, b, a, p2p ? 0 : 2 + buffers_of(trees, a));
    }
    add_end(trees, trees->order[0], &set);
    add_end(trees, trees->order[1], &set);
    CHECK_INT(tccl_model_measure(trees->model, &set, &gbps, NULL, NULL, NULL), 0);
    return gbps;
}

static void all_orders(struct trees *trees, int depth, uint32_t used)
{
    if (depth == trees->chain->n_gpus) {
        double gbps = measure(trees);
        trees->best = gbps > trees->best ? gbps : trees->best;
        trees->count++;
        return;
    }
    for (int i = 0; i < trees->chain->n_gpus; i++) {
        int gpu = trees->chain->gpus[i];
        if (used >> gpu & 1)
            continue;
        trees->order[depth] = gpu;
        all_orders(trees, depth + 1, used | 1u << gpu);
    }
}

static bool is_near(double a, double b)
{
    return fabs(a - b) <= 1e-9 * fmax(1, fabs(b));
}

/* What was found is what it says, and no tree is better by more than the gap. Returns how many
 * there are. */
static long check_tree(const struct tccl_model *model, const struct tccl_result *result, double gap)
{
    struct trees trees = {.model = model, .chain = &result->chain, .nic = result->tree.nic};
    for (int i = 0; i < result->chain.n_gpus; i++)
        trees.order[i] = result->tree.gpus[i];
    CHECK(is_near(measure(&trees), result->tree.gbps));
    for (int i = 0; i < result->chain.n_gpus; i++)
        trees.order[i] = result->chain.gpus[i];
    trees.nic = result->chain.entry.nic;
    CHECK(is_near(measure(&trees), result->tree.along));
    for (trees.nic = 0; trees.nic < tccl_model_machine(model)->n_nics; trees.nic++)
        all_orders(&trees, 0, 0);
    CHECK(result->tree.gbps >= trees.best / (1 + gap) * (1 - 1e-9));
    CHECK(result->tree.gbps <= trees.best * (1 + 1e-9));
    return trees.count;
}

/* Fills the table of the GPUs. Returns how many trees it has; *better: how many of them are better
 * than the one along the chain. */
static int check_model(const struct tccl_model *model, uint32_t gpus, double gap, int pairs,
                       long *better)
{
    const struct tccl_search_options options = {.gap = gap, .pairs = pairs, .trees = true};
    owned(table) struct tccl_table *table = table_of(model, gpus, true, &options);
    int count = 0;
    CHECK_INT(tccl_table_check(table, tccl_model_machine(model), ERR), 0);
    for (int i = 0; i < tccl_table_pairs(table); i++) {
        const struct tccl_result *result = &table->results[i];
        if (result->tree.gbps == 0)
            continue;
        check_tree(model, result, gap);
        *better += result->tree.gbps > result->tree.along;
        count++;
    }
    return count;
}

TEST(random_models)
{
    unsigned long seed = check_seed();
    long better = 0;
    int trees = 0;
    for (int round = 0; round < 60 && !check_failures; round++) {
        unsigned long state = seed + (unsigned long)round;
        int gpus = 2 + random_below(&state, 3), nics = gpus < 4 ? 1 + random_below(&state, 2) : 1;
        owned(model) struct tccl_model *model =
            random_model(&state, gpus, 1 + random_below(&state, 3), nics);
        int found = check_model(model, (1u << gpus) - 1, round % 2 ? 0.03 : 0, 0, &better);
        CHECK(found >= 1 && found <= nics * nics);
        trees += found;
        if (check_failures)
            fprintf(stderr, "round %d: %d GPUs, %d NICs\n", round, gpus, nics);
    }
    printf("%d trees, %ld better than along the chain\n", trees, better);
    CHECK(better > 0);
}

/* Four GPUs of each model, some below one switch. */
TEST(machines)
{
    long better = 0;
    for (int i = 0; i < 3; i++) {
        const struct tccl_model *model = load_machine(machine_names[i]);
        CHECK(check_model(model, 15, 0.03, 16, &better) > 0);
    }
}

/* A ring of a single node, a single GPU and NICs on two fabrics have no tree. */
TEST(none)
{
    unsigned long seed = check_seed();
    unsigned long state = seed;
    long better = 0;
    for (int nics = 0; nics < 2; nics++) {
        owned(model) struct tccl_model *model = random_model(&state, nics ? 1 : 3, 2, nics);
        CHECK_INT(check_model(model, nics ? 1 : 7, 0, 0, &better), 0);
    }
}
