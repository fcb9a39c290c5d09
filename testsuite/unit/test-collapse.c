/* test-collapse.c: on a machine where posted writes of two GPUs of a switch to two roots collapse
 * (turin-pex890) no plan has such a pair: rings, rings at once, chains between nodes and the trees
 * beside them, steps one after the other, by the model and as measured. The machine's rule is
 * written here once more, by its owners' words. */
#include "fill/fill.h"
#include "fill/run-meter.h"
#include "profiles.h"
#include "ring/groups.h"
#include "ring/neighbours.h"
#include "ring/ring.h"
#include "rough.h"
#include "search/model-table.h"

OWNED(backend, struct tccl_backend, tccl_backend_close)
OWNED(tables, struct tccl_model_tables, tccl_model_tables_free)
OWNED(groups, struct tccl_groups, tccl_groups_free)

enum {
    GPUS = 8,
    ALL = 0xff,
    ROOTS = GPUS / 2 + 2,
    MOST = 4 * TCCL_MAX_SIDE,
    ROUNDS = CHECK_ROUNDS(300)
};

static int plans, several, trees, grouped, left;

/* Two GPUs or more of a switch write at the same time to the other socket's GPUs, behind two roots
 * or more; or, with P2P off, to its memory. */
static bool collapses(const tccl_transfer *transfers, int n)
{
    for (int root = 0; root < GPUS / 2; root++) {
        bool writes[2][ROOTS] = {{false}};
        for (int i = 0; i < n; i++) {
            const struct tccl_device who = tccl_transfer_initiator(transfers[i]),
                                     whom = tccl_transfer_target(transfers[i]);
            const int to = whom.kind == TCCL_GPU ? whom.index / 2 : GPUS / 2 + whom.index;
            const int socket = to < GPUS / 2 ? to / 2 : to - GPUS / 2;
            if (who.kind == TCCL_GPU && who.index / 2 == root && whom.kind != TCCL_NIC &&
                !tccl_transfer_reads(transfers[i]) && socket != root / 2)
                writes[who.index % 2][to] = true;
        }
        for (int a = 0; a < GPUS / 2; a++)
            for (int b = 0; b < GPUS / 2; b++)
                if (a != b && writes[0][a] && writes[1][b])
                    return true;
        for (int memory = GPUS / 2; memory < ROOTS; memory++)
            if (writes[0][memory] && writes[1][memory])
                return true;
    }
    return false;
}

/* The rule is the model's: any two writes, together. */
TEST(rule)
{
    const struct tccl_model *model = load_machine("turin-pex890");
    const struct tccl_machine *machine = tccl_model_machine(model);
    int found = 0;
    for (int a = 0; a < TCCL_TRANSFERS; a++)
        for (int b = a + 1; b < TCCL_TRANSFERS; b++) {
            const tccl_transfer both[] = {(tccl_transfer)a, (tccl_transfer)b};
            double gbps;
            if (tccl_machine_allows(machine, both[0], NULL) != 0 ||
                tccl_machine_allows(machine, both[1], NULL) != 0)
                continue;
            CHECK_INT(tccl_model_slowest(model, both, 2, &gbps, ERR), 0);
            CHECK((gbps < 3) == collapses(both, 2));
            found += gbps < 3;
        }
    CHECK_INT(found, 36);
}

static void check_side(const struct tccl_side *side)
{
    CHECK(!collapses(side->transfers, side->count));
    plans++;
    several += side->rings > 1;
}

/* Up and down at the same time, between neighbours of the tree, and to the NIC. */
static void check_tree(const struct tccl_machine *machine, const struct tccl_chain *chain,
                       const struct tccl_tree *tree)
{
    struct tccl_tree_ways ways;
    tccl_transfer all[MOST];
    int n = 0;
    if (!(tree->gbps > 0))
        return;
    tccl_tree_ways(machine, chain, &ways);
    for (int i = 0; i + 1 < chain->n_gpus; i++)
        n += tccl_tree_edge(&ways, tree->gpus[i], tree->gpus[i + 1], all + n);
    for (int i = 0; i < 2; i++)
        n += tccl_tree_end(&ways, tree->nic, tree->gpus[i], all + n);
    CHECK(!collapses(all, n));
    trees++;
}

/* What steps of each kind are given of the table, on so many nodes that are equal. */
static void check_table(const struct tccl_table *table, const struct tccl_machine *machine,
                        int nodes)
{
    static const enum tccl_view views[] = {TCCL_VIEW_JOB, TCCL_VIEW_HIDDEN, TCCL_VIEW_WRITES,
                                           TCCL_VIEW_READS};
    for (size_t v = 0; v < COUNT(views); v++)
        for (int rings = 0; rings < 2; rings++) { /* the best one, and a single one */
            cleanup_class struct tccl_node_class *class =
                tccl_node_class_from_table(table, machine, views[v]);
            const struct tccl_run run = {class, nodes};
            struct tccl_ring ring = {0};
            if (tccl_ring_solve(&run, 1, rings, &ring, NULL) == 0) {
                const struct tccl_decision_case asked = tccl_ring_case(&ring, TCCL_NEWEST, 0);
                for (int i = 0; i < nodes && tccl_decide(&asked).decided == TCCL_TAKE; i++) {
                    struct tccl_ring_set set;
                    struct tccl_side side = {0};
                    tccl_ring_set_of(&ring, class, i, &set);
                    tccl_ring_set_side(&set, &side);
                    check_side(&side);
                    if (set.n == 1 && nodes > 1)
                        check_tree(machine, &set.rings[0], &class->seen[ring.choices[i].seen].tree);
                }
                left += tccl_decide(&asked).decided != TCCL_TAKE;
            }
            tccl_ring_clear(&ring);
        }
}

/* Would a plain ring do so, that writes to every second GPU? */
static bool plain_collapses(uint32_t gpus)
{
    tccl_transfer all[GPUS];
    int list[GPUS], n = 0;
    for (int i = 0; i < GPUS; i++)
        if (gpus >> i & 1)
            list[n++] = i;
    for (int i = 0; i < n; i++)
        all[i] = tccl_transfer_make((struct tccl_device){TCCL_GPU, (uint8_t)list[i]}, false,
                                    (struct tccl_device){TCCL_GPU, (uint8_t)list[(i + 2) % n]});
    return collapses(all, n);
}

/* All groups of a step with all of these GPUs at once, those that are given a chain. */
static void check_groups(struct tccl_model_tables *tables, const struct tccl_model *model,
                         uint32_t step)
{
    const struct tccl_beside nobody = {.model = model};
    for (uint32_t group = step; group; group = (group - 1) & step) {
        struct tccl_group_choice choices[TCCL_MAX_GROUPS];
        uint32_t split[TCCL_MAX_GROUPS];
        tccl_transfer all[MOST];
        int n = tccl_groups_split(step, group, split), count = 0;
        owned(groups) struct tccl_groups *groups =
            tccl_groups_new(tccl_model_machine(model), true, TCCL_VIEW_JOB);
        if (n < 2 || split[0] != group || __builtin_popcount(group) < 2)
            continue;
        for (int i = 0; i < n; i++)
            CHECK_OK(tccl_groups_add(groups, tccl_model_tables_get(tables, split[i], NULL), ERR));
        CHECK_OK(tccl_groups_choose(groups, &nobody, choices, ERR));
        for (int i = 0; i < n; i++) {
            struct tccl_set set;
            if (!choices[i].better[TCCL_NEWEST])
                continue;
            tccl_chain_set(&choices[i].cell.set.rings[0], &set);
            memcpy(all + count, set.transfers, (size_t)set.count * sizeof(*all));
            count += set.count;
            grouped++;
        }
        CHECK(!collapses(all, count));
    }
}

/* All sets of GPUs of one node, and all their groups. */
TEST(alone)
{
    const struct tccl_model *model = load_machine("turin-pex890");
    owned(symmetry) struct tccl_symmetry *symmetry = tccl_symmetry_of_model(model);
    owned(tables) struct tccl_model_tables *tables = tccl_model_tables_new(model, symmetry);
    int could = 0;
    plans = several = left = 0;
    for (uint32_t gpus = 3; gpus <= ALL; gpus++) {
        const struct tccl_table *table =
            __builtin_popcount(gpus) > 1 ? tccl_model_tables_get(tables, gpus, ERR) : NULL;
        if (table)
            check_table(table, tccl_model_machine(model), 1);
        if (table)
            check_groups(tables, model, gpus);
        could += plain_collapses(gpus);
    }
    printf("alone: %d plans, %d of several rings, %d of groups, %d left to NCCL; %d plain rings "
           "collapse\n",
           plans, several, grouped, left, could);
    CHECK(plans > 0 && several > 0 && grouped > 0 && left > 0 && could > 0);
}

/* The machine with a NIC in each socket. */
static struct tccl_model *with_nics(void)
{
    struct tccl_model *model = NULL;
    cleanup_json json_t *json = json_load_file(machine_file("turin-pex890"), 0, NULL);
    json_t *nics = json_object_get(json_object_get(json, "machine"), "nics"),
           *resources = json_object_get(json, "resources");
    for (int i = 0; i < 2; i++) {
        json_array_append_new(nics, json_pack("{s:o, s:o, s:i, s:f, s:s}", "name",
                                              json_sprintf("mlx5_%d", i), "busid",
                                              json_sprintf("0000:%d3:00.0", 2 + 7 * i), "numa", i,
                                              "gbps", 48.0, "fabric", "ib"));
        for (int way = 0; way < 2; way++)
            json_array_append_new(resources,
                                  json_pack("{s:o, s:f, s:[o]}", "name",
                                            json_sprintf("n%d %d", i, way), "gbps", 48.0, "users",
                                            json_sprintf(way ? "*->n%d" : "n%d->*", i)));
    }
    MUST(tccl_model_from_json(json, &model, ERR));
    return model;
}

/* Chains between nodes, several at once, and the trees beside them. */
TEST(nodes)
{
    static const uint32_t sets[] = {0x11, 0x33, 0x0f, 0x55, 0x5a, 0x3c, 0x77, ALL};
    owned(model) struct tccl_model *model = with_nics();
    const struct tccl_machine *machine = tccl_model_machine(model);
    const struct tccl_search_options options = {
        .gap = 0.05, .pairs = 4, .budget = 600, .others = 300, .reads = true, .trees = true};
    const struct tccl_table_sets_options rings = {.gap = 0.05, .budget = 500};
    plans = several = left = trees = 0;
    for (size_t i = 0; i < COUNT(sets); i++) {
        owned(table) struct tccl_table *table = table_of(model, sets[i], false, &options);
        CHECK_OK(tccl_table_find_sets(model, table, &rings, ERR));
        check_table(table, machine, 3);
        for (const struct tccl_result *own = NULL;
             (own = tccl_table_next(table, own, TCCL_SINGLES));)
            if (!own->chain.closed)
                check_tree(machine, &own->chain, &own->tree);
    }
    printf("nodes: %d plans, %d of several rings, %d trees, %d left to NCCL\n", plans, several,
           trees, left);
    CHECK(plans > 0 && several > 0 && trees > 0);
}

/* Steps on GPUs by chance, one after the other, until one is left to NCCL, whose rings are its own.
 */
TEST(steps)
{
    unsigned long state = check_seed();
    const struct tccl_model *model = load_machine("turin-pex890");
    owned(symmetry) struct tccl_symmetry *symmetry = tccl_symmetry_of_model(model);
    owned(tables) struct tccl_model_tables *tables = tccl_model_tables_new(model, symmetry);
    int beside_others = 0;
    for (int round = 0; round < ROUNDS; round++) {
        struct tccl_launched steps[GPUS / 2];
        struct tccl_beside beside = {.model = model};
        tccl_transfer all[MOST];
        uint32_t busy = 0;
        for (int n = 0, count = 0; n < GPUS / 2; n++) {
            uint32_t gpus = (uint32_t)(random_below(&state, ALL) + 1) & ~busy;
            if (__builtin_popcount(gpus) < 2)
                continue;
            const struct tccl_table *table = tccl_model_tables_get(tables, gpus, ERR);
            struct tccl_launched *own = &steps[beside.n];
            CHECK(table && tccl_launch_choose(&beside, table, TCCL_CHAIN_RINGS, own, ERR) == 0);
            if (!table || !own->ours)
                break;
            memcpy(all + count, own->side.transfers, (size_t)own->side.count * sizeof(*all));
            count += own->side.count;
            CHECK(!collapses(all, count));
            beside.others[beside.n] = &own->side;
            beside.alone[beside.n++] = own->alone;
            beside_others += beside.n > 1;
            busy |= gpus;
        }
    }
    printf("steps: %d with rings beside others\n", beside_others);
    CHECK(beside_others > 0);
}

/* As measured, with noise. */
TEST(measured)
{
    static uint32_t sets[] = {ALL, 0x33, 0x5a, 0x0f, 0x11};
    const struct tccl_fill_options options = {.sets = sets, .n_sets = COUNT(sets), .gap = 0.03};
    struct tccl_fill_progress end;
    struct tccl_profile *created = NULL;
    rough = (struct rough){.machine = "turin-pex890", .noise = 0.02};
    const char *cache = check_at("collapse");
    owned(backend) struct tccl_backend *backend = rough_begin();
    CHECK_INT(tccl_profile_create(cache, backend->machine, "rough", NULL, &created, ERR), 0);
    owned(profile) struct tccl_profile *profile = created;
    CHECK_INT(tccl_profile_claim(profile, backend->conditions, ERR), 0);
    CHECK_INT(tccl_fill(backend, profile, &options, &end, ERR), TCCL_FILL_DONE);
    plans = several = left = 0;
    for (size_t i = 0; i < COUNT(sets); i++)
        check_table(tccl_profile_table(profile, sets[i], ERR), backend->machine, 1);
    printf("measured: %d plans, %d of several rings, %d left to NCCL, %ld measurements\n", plans,
           several, left, rough.calls);
    CHECK(plans > 0);
    check_remove(cache);
}
