/* test-spared.c: nobody who runs on a node has less beside a step that begins than beside NCCL's
 * own choice for it: on random models and on the testsuite's machines; rings, sets, chains of
 * several nodes, groups; by a model, and by what was measured. Rates are those of all transfers in
 * one list (tccl_model_rates, which test-model.c compares with its definition). */
#include "machines.h"
#include "owned.h"
#include "random-model.h"
#include "ring/groups.h"
#include "ring/neighbours.h"
#include "ring/ring.h"
#include "search/beside.h"
#include "search/model-table.h"

OWNED(groups, struct tccl_groups, tccl_groups_free)
OWNED(together, struct tccl_together, tccl_together_free)

enum { ROUNDS = CHECK_ROUNDS(60), MOST = 4, SPLITS = 4, TRANSFERS = 1024 };

/* All that runs, the newcomer last. */
struct node {
    const struct tccl_model *model;
    bool measured; /* what each pair of steps reaches is measured, and there is no model */
    int n;
    struct tccl_side sides[MOST];
    struct tccl_table *tables[MOST];
};

static int cases, taken; /* taken: with planned rings */

static struct tccl_table *make_table(const struct tccl_model *model, uint32_t gpus, bool across,
                                     long budget)
{
    struct tccl_machine machine = *tccl_model_machine(model);
    const struct tccl_search_options options = {.gap = 0.03, .budget = budget, .others = 100};
    const struct tccl_table_sets_options sets = {.gap = 0.03, .budget = 100};
    machine.n_nics = across ? machine.n_nics : 0;
    struct tccl_table *table = tccl_table_new(&machine, gpus);
    owned(search) struct tccl_search *search =
        tccl_search_new(&machine, tccl_model_meter(model), NULL);
    CHECK(tccl_search_table(search, table, &options, ERR) >= 0); /* 1: the budget is used up */
    CHECK_OK(tccl_beside_replies(model, table, &options, ERR));
    CHECK_OK(tccl_table_find_sets(model, table, &sets, ERR));
    return table;
}

/* What each side has while all run, transfer by transfer. */
static void rate_all(const struct node *node, const struct tccl_side *new, int n_new,
                     double gbps[static MOST])
{
    static tccl_transfer all[TRANSFERS];
    double rates[TRANSFERS];
    int count = 0, at = 0;
    for (int i = 0; i < node->n; i++)
        for (int k = 0; k < node->sides[i].count; k++)
            all[count++] = node->sides[i].transfers[k];
    for (int i = 0; i < n_new; i++)
        for (int k = 0; k < new[i].count; k++)
            all[count++] = new[i].transfers[k];
    CHECK_INT(tccl_model_rates(node->model, all, count, rates, NULL, NULL), 0);
    for (int i = 0; i < node->n; i++) {
        double least = INFINITY;
        for (int k = 0; k < node->sides[i].count; k++)
            least = fmin(least, rates[at++]);
        gbps[i] = node->sides[i].rings * least;
    }
}

/* With the new sides, and with NCCL's own in their place. */
static void check_spared(const struct node *node, const struct tccl_side *new,
                         const struct tccl_side *own, int n_new, double noise, const char *what)
{
    double with[MOST], without[MOST];
    rate_all(node, new, n_new, with);
    rate_all(node, own, n_new, without);
    for (int i = 0; i < node->n; i++) {
        bool less = with[i] < without[i] * (1 - noise) * (1 - 1e-6);
        if (less)
            printf("%s: step %d of %d has %.3f GB/s, beside NCCL's own %.3f\n", what, i, node->n,
                   with[i], without[i]);
        CHECK(!less);
    }
}

/* Of two sides and of all that run, as if measured. */
static void measure(const struct node *node, const struct tccl_side *new,
                    struct tccl_together *together)
{
    struct tccl_joint joint = {.n = node->n + 1};
    const struct tccl_side *sides[MOST + 1];
    for (int i = 0; i <= node->n; i++) {
        joint.sides[i] = i < node->n ? node->sides[i] : *new;
        sides[i] = &joint.sides[i];
    }
    CHECK_INT(tccl_model_sides(node->model, sides, joint.n, joint.gbps, NULL), 0);
    CHECK_INT(tccl_together_add(together, &joint), 0);
}

static void measure_all(const struct node *node, const struct tccl_table *table,
                        struct tccl_together *together)
{
    const unsigned parts = TCCL_OTHERS | TCCL_SETS;
    struct tccl_side side = {0};
    tccl_side_add_chain(&side, &tccl_table_ring(table)->chain);
    if (side.count > 0)
        measure(node, &side, together);
    side = (struct tccl_side){0};
    if (tccl_ring_set_side(&table->baselines[1][TCCL_NEWEST].set, &side) == 0 && side.count > 0)
        measure(node, &side, together);
    for (const struct tccl_result *own = NULL; (own = tccl_table_next(table, own, parts));) {
        side = (struct tccl_side){0};
        if (own->set)
            tccl_ring_set_side(own->set, &side);
        else
            tccl_side_add_chain(&side, &own->chain);
        measure(node, &side, together);
    }
}

static struct tccl_beside beside_of(const struct node *node, struct tccl_together *together)
{
    struct tccl_beside beside = {.model = node->measured ? NULL : node->model,
                                 .machine = tccl_model_machine(node->model),
                                 .together = together,
                                 .n = node->n};
    for (int i = 0; i < node->n; i++) {
        beside.others[i] = &node->sides[i];
        beside.alone[i] = node->sides[i].alone;
    }
    return beside;
}

/* One more step of this node alone; it runs then. */
static void begin_ring(struct node *node, struct tccl_table *table)
{
    owned(together) struct tccl_together *together = node->measured ? tccl_together_new() : NULL;
    struct tccl_beside beside = beside_of(node, together);
    struct tccl_side own = {0};
    struct tccl_launched got;
    if (together)
        measure_all(node, table, together);
    CHECK_OK(tccl_launch_choose(&beside, table, TCCL_CHAIN_RINGS, &got, ERR));
    if (got.ours && tccl_ring_set_side(&table->baselines[1][TCCL_NEWEST].set, &own) == 0 &&
        own.count > 0) {
        check_spared(node, &got.side, &own, 1, table->noise,
                     node->measured ? "a ring, measured" : "a ring");
        taken += node->n > 0;
    }
    cases += node->n > 0;
    if (got.side.count > 0)
        node->sides[node->n++] = got.side;
}

/* A step of two nodes that are like this one in all. */
static void begin_chain(struct node *node, struct tccl_table *table)
{
    struct tccl_beside beside = beside_of(node, NULL);
    cleanup_class struct tccl_node_class *class =
        tccl_beside_class(&beside, table, false, false, ERR);
    const struct tccl_run run = {.class = class, .count = 2};
    struct tccl_ring ring;
    struct tccl_ring_set set;
    struct tccl_side new, own;
    int rings;
    CHECK(class != NULL);
    if (tccl_ring_choose(&run, 1, TCCL_CHAIN_RINGS, &ring, &rings, ERR) != 0)
        tccl_ring_clear(&ring); /* clears its bandwidth, too */
    cases++;
    for (int i = 0; i < TCCL_GENERATIONS && ring.gbps > 0; i++) {
        own = (struct tccl_side){0};
        if (!tccl_ring_gains(&ring, i) ||
            tccl_ring_set_side(&table->baselines[0][i].set, &own) != 0 || !own.count)
            continue;
        taken += i == TCCL_NEWEST;
        for (int k = 0; k < 2; k++) {
            tccl_ring_set_of(&ring, class, k, &set);
            tccl_ring_set_side(&set, &new);
            check_spared(node, &new, &own, 1, table->noise, "a chain of several nodes");
        }
    }
    if (ring.gbps > 0)
        tccl_ring_clear(&ring);
}

/* Two groups of one step. */
static void begin_groups(struct node *node, struct tccl_table *const tables[2], bool closed)
{
    struct tccl_beside beside = beside_of(node, NULL);
    owned(groups) struct tccl_groups *groups =
        tccl_groups_new(tccl_model_machine(node->model), closed, false);
    struct tccl_group_choice choices[2];
    bool chosen = tccl_groups_add(groups, tables[0], ERR) == 0 &&
                  tccl_groups_add(groups, tables[1], ERR) == 0 &&
                  tccl_groups_choose(groups, &beside, choices, ERR) == 0;
    for (int i = 0; i < TCCL_GENERATIONS && chosen; i++) {
        struct tccl_side new[2] = {{0}}, own[2] = {{0}};
        bool known = true;
        for (int k = 0; k < 2; k++) {
            const struct tccl_baseline *nccl = &tables[k]->baselines[closed][i];
            known = known && tccl_ring_set_side(&nccl->set, &own[k]) == 0 && own[k].count > 0;
            if (choices[k].better[i])
                CHECK_INT(tccl_side_add_chain(&new[k], &choices[k].cell.set.rings[0]), 0);
            else
                new[k] = own[k];
        }
        cases++;
        taken += choices[0].better[i] || choices[1].better[i];
        if (known)
            check_spared(node, new, own, 2, fmax(tables[0]->noise, tables[1]->noise), "two groups");
    }
}

/* Steps on the parts of the GPUs, one after the other, and a last one in several shapes. */
static void begin_all(const struct tccl_model *model, const uint32_t *parts, int n, bool measured,
                      long budget)
{
    static struct node node;
    node = (struct node){.model = model, .measured = measured};
    bool nics = tccl_model_machine(model)->n_nics > 0 && !measured;
    struct tccl_table *tables[MOST];
    for (int i = 0; i < n; i++)
        tables[i] = make_table(model, parts[i], nics, budget);
    for (int i = 0; i < n; i++) {
        if (nics && node.n > 0)
            begin_chain(&node, tables[i]);
        if (!measured && node.n > 0 && i + 1 < n)
            for (int closed = !nics; closed < 2; closed++)
                begin_groups(&node, &tables[i], closed);
        if (__builtin_popcount(parts[i]) > 1)
            begin_ring(&node, tables[i]);
    }
    for (int i = 0; i < n; i++)
        tccl_table_free(tables[i]);
}

/* So many parts of at least two GPUs where there are enough, by chance. */
static void split(unsigned long *state, int gpus, uint32_t *parts, int n)
{
    for (int i = 0; i < n; i++)
        parts[i] = 0;
    for (int i = 0; i < gpus; i++) {
        int part = i < 2 * n ? i % n : random_below(state, n);
        parts[part] |= UINT32_C(1) << i;
    }
    for (int i = 0; i < 2 * gpus; i++) { /* change places */
        uint32_t a = UINT32_C(1) << random_below(state, gpus), b = UINT32_C(1)
                                                                   << random_below(state, gpus);
        for (int k = 0; k < n; k++)
            if (!(parts[k] & a) != !(parts[k] & b))
                parts[k] ^= a | b;
    }
}

TEST(spared)
{
    unsigned long seed = check_seed();
    uint32_t parts[MOST];
    for (int i = 0; i < ROUNDS; i++) {
        int gpus = 4 + random_below(&seed, 3);
        owned(model) struct tccl_model *model =
            random_model(&seed, gpus, 2 + random_below(&seed, 2), random_below(&seed, 3));
        int n = 2 + (gpus == 6 && random_below(&seed, 2));
        split(&seed, gpus, parts, n);
        begin_all(model, parts, n, i % 3 == 0, 200);
    }
    for (int i = 0; i < MACHINE_NAMES; i += CHECK_PART) {
        const struct tccl_model *model = load_machine(machine_names[i]);
        int gpus = tccl_model_machine(model)->n_gpus;
        for (int k = 0; k < SPLITS; k++) {
            int n = gpus > 4 && k % 2 ? 4 : 2;
            split(&seed, gpus, parts, n);
            begin_all(model, parts, n, k == 3, gpus > 4 ? 60 : 200);
        }
    }
    printf("%d cases, %d with planned rings\n", cases, taken);
    CHECK(taken > cases / 20);
}
