/* bench-groups.c: the groups of one job, all at once: what the slowest of them reaches, and all
 * together, with NCCL's own rings, with each group's chain planned as if it were alone, and
 * jointly. By models. */
#include <math.h>

#include "bench.h"
#include "machines.h"
#include "nccl/baseline.h"
#include "ring/groups.h"
#include "search/beside.h"

enum { BUDGET = 1000, OTHERS = 150, SETS = 1 << 8, LOOKS = 5 };

static const char *const names[] = {"amd-4gpu",  "intel-4gpu",        "epyc-8gpu",
                                    "dual-8gpu", "epyc-8gpu-unequal", "dual-8gpu-unequal"};

/* How a job divides a node's GPUs, by the first group. */
static const struct layout {
    int gpus; /* of a node */
    uint32_t first;
    bool closed; /* groups within the node; else each has the same GPUs of several nodes */
    const char *what;
} layouts[] = {
    {4, 0x1, false, "each GPU with its like: TP 4 x DP, FSDP hybrid (replicas)"},
    {4, 0x5, false, "2 of each node: TP 2 x DP; EP 2's data"},
    {4, 0x3, false, "neighbours of all nodes: EP 2 across nodes"},
    {4, 0x3, true, "pairs within the node: TP 2, ZeRO hpZ 2"},
    {4, 0x5, true, "every other one within the node: DP of TP 2"},
    {8, 0x01, false, "each GPU with its like: TP 8 x DP, FSDP hybrid (replicas), MiCS"},
    {8, 0x11, false, "2 of each node: TP 4 x DP; EP 4's data"},
    {8, 0x55, false, "4 of each node: TP 2 x DP; EP 2's data"},
    {8, 0x03, false, "pairs of all nodes: EP 2 across nodes"},
    {8, 0x0f, false, "halves of all nodes: EP 4 across nodes; two stages"},
    {8, 0x03, true, "pairs within the node: TP 2"},
    {8, 0x0f, true, "halves within the node: TP 4, ZeRO hpZ 4, EP 4"},
    {8, 0x11, true, "2 within the node: DP of TP 4"},
    {8, 0x55, true, "every other one within the node: DP of TP 2"},
};

struct node {
    const struct tccl_model *model;
    const struct tccl_machine *machine;
    struct tccl_search *search;
    struct tccl_table *tables[SETS]; /* those that were needed */
};

/* What all groups reach: the slowest, and together, GB/s. */
struct rates {
    double least, sum;
};

/* As tccl-profile run makes it. */
static const struct tccl_table *table_of(struct node *node, uint32_t gpus)
{
    int n = __builtin_popcount(gpus);
    struct tccl_search_options options = {
        .gap = n > 2 ? 0.03 : 0, .budget = BUDGET, .others = OTHERS};
    if (node->tables[gpus])
        return node->tables[gpus];
    struct tccl_table *table = tccl_table_new(node->machine, gpus);
    MUST(!table || tccl_search_table(node->search, table, &options, ERR) < 0);
    MUST(n > 1 && tccl_beside_replies(node->model, table, &options, ERR));
    return node->tables[gpus] = table;
}

static struct node open_node(const char *name)
{
    struct node node = {.model = load_machine(name)};
    node.machine = tccl_model_machine(node.model);
    node.search = tccl_search_new(node.machine, tccl_model_meter(node.model), NULL);
    return node;
}

static void close_node(struct node *node)
{
    for (int i = 0; i < SETS; i++)
        tccl_table_free(node->tables[i]);
    tccl_search_free(node->search);
}

static struct rates rate(const struct node *node, const struct tccl_side *sides, int n)
{
    const struct tccl_side *list[TCCL_MAX_SIDES] = {NULL};
    double gbps[TCCL_MAX_SIDES];
    struct rates rates = {.least = INFINITY};
    for (int i = 0; i < n; i++)
        list[i] = &sides[i];
    MUST(tccl_model_sides(node->model, list, n, gbps, ERR) < 0);
    for (int i = 0; i < n; i++) {
        rates.least = fmin(rates.least, gbps[i]);
        rates.sum += gbps[i];
    }
    return rates;
}

/* The best one of all pairs of NICs, or the ring, as if nobody else ran. */
static const struct tccl_result *best_alone(const struct tccl_table *table, bool closed)
{
    const struct tccl_result *best = tccl_table_ring(table);
    for (int i = 0; !closed && i < tccl_table_pairs(table); i++)
        if (best == tccl_table_ring(table) || table->results[i].gbps > best->gbps)
            best = &table->results[i];
    return best;
}

static const struct tccl_baseline *own_of(const struct tccl_table *table, bool closed)
{
    return &table->baselines[closed][TCCL_NEWEST];
}

static void put_chain(struct tccl_side *side, const struct tccl_chain *chain)
{
    *side = (struct tccl_side){0};
    tccl_side_add_chain(side, chain);
}

static void put_own(struct tccl_side *side, const struct tccl_table *table, bool closed)
{
    *side = (struct tccl_side){0};
    tccl_ring_set_side(&own_of(table, closed)->set, side);
}

/* What each has alone, taken by itself: its chain, where that is better than NCCL's own. */
static void put_alone(struct tccl_side *side, const struct tccl_table *table, bool closed)
{
    const struct tccl_result *best = best_alone(table, closed);
    if (best->gbps > own_of(table, closed)->gbps * (1 + 1e-9))
        put_chain(side, &best->chain);
    else
        put_own(side, table, closed);
}

static double choose(struct node *node, const uint32_t *masks, int n, bool closed,
                     struct tccl_group_choice *choices)
{
    const struct tccl_beside beside = {.model = node->model};
    double ms[LOOKS];
    for (int i = 0; i < n; i++)
        table_of(node, masks[i]);
    for (int i = 0; i < LOOKS; i++) {
        double start = bench_cpu();
        struct tccl_groups *groups = tccl_groups_new(node->machine, closed, false);
        for (int j = 0; j < n; j++)
            MUST(!groups || tccl_groups_add(groups, table_of(node, masks[j]), ERR));
        MUST(tccl_groups_choose(groups, &beside, choices, ERR));
        tccl_groups_free(groups);
        ms[i] = (bench_cpu() - start) * 1e3;
    }
    return bench_quantile(ms, LOOKS, 0.5);
}

static void print_nics(const struct node *node, const struct tccl_group_choice *choices, int n,
                       char *text)
{
    for (int i = 0; i < n; i++)
        text += sprintf(
            text, "%s%.*s", i ? " " : "", 3,
            !choices[i].better[TCCL_NEWEST] ? "own"
            : choices[i].cell.set.rings[0].closed
                ? "-"
                : strrchr(node->machine->nics[choices[i].cell.set.rings[0].entry.nic].name, '_') +
                      1);
}

static void print_row(const char *name, const struct layout *layout, int n,
                      const struct rates rates[3], double ms, const char *nics)
{
    if (!bench_rows) {
        printf("  %-18s %-68s %2d %7.2f %7.2f %7.2f  %7.2f %7.2f %7.2f %7.2f  %s\n", name,
               layout->what, n, rates[0].least, rates[1].least, rates[2].least, rates[0].sum,
               rates[1].sum, rates[2].sum, ms, nics);
        return;
    }
    json_array_append_new(bench_rows,
                          json_pack("{s:s, s:s, s:b, s:i, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:s}",
                                    "machine", name, "layout", layout->what, "within_node",
                                    layout->closed, "groups", n, "nccl_least_gbps", rates[0].least,
                                    "alone_least_gbps", rates[1].least, "joint_least_gbps",
                                    rates[2].least, "nccl_sum_gbps", rates[0].sum, "alone_sum_gbps",
                                    rates[1].sum, "joint_sum_gbps", rates[2].sum, "choose_ms", ms,
                                    "nics", nics));
}

static void rate_layout(struct node *node, const char *name, const struct layout *layout)
{
    struct tccl_group_choice choices[TCCL_MAX_GROUPS];
    struct tccl_side own[TCCL_MAX_GROUPS], alone[TCCL_MAX_GROUPS], joint[TCCL_MAX_GROUPS];
    uint32_t masks[TCCL_MAX_GROUPS];
    char nics[64] = "";
    int n = tccl_groups_split((1u << node->machine->n_gpus) - 1, layout->first, masks);
    double ms = choose(node, masks, n, layout->closed, choices);
    for (int i = 0; i < n; i++) {
        put_own(&own[i], table_of(node, masks[i]), layout->closed);
        put_alone(&alone[i], table_of(node, masks[i]), layout->closed);
        if (choices[i].better[TCCL_NEWEST])
            put_chain(&joint[i], &choices[i].cell.set.rings[0]);
        else
            joint[i] = own[i];
    }
    const struct rates rates[] = {rate(node, own, n), rate(node, alone, n), rate(node, joint, n)};
    print_nics(node, choices, n, nics);
    print_row(name, layout, n, rates, ms, nics);
}

int main(int argc, char **argv)
{
    bench_begin(argc, argv);
    bench_title("Groups of one job at once: the slowest group's bandwidth, and all together, GB/s; "
                "NICs (own: left to NCCL)");
    if (!bench_rows)
        printf("  %-18s %-68s %2s %7s %7s %7s  %7s %7s %7s %7s\n", "machine", "groups", "n", "NCCL",
               "each", "joint", "NCCL", "each", "joint", "ms");
    for (size_t i = 0; i < COUNT(names); i++) {
        struct node node = open_node(names[i]);
        for (size_t j = 0; j < sizeof(layouts) / sizeof(*layouts); j++)
            if (layouts[j].gpus == node.machine->n_gpus)
                rate_layout(&node, names[i], &layouts[j]);
        close_node(&node);
    }
    return bench_end();
}
