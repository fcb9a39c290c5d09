/* test-reads.c: rings that read, against all rings tried, on random models; and that there are none
 * where something would lose by it, which is worked out here once more. */
#include "enumerate.h"
#include "machines.h"
#include "nccl/baseline.h"
#include "owned.h"
#include "random-model.h"
#include "search/model-table.h"

enum { ROUNDS = CHECK_ROUNDS(100), OTHERS = 100000 };

static int refused, read_better, wrote_better;

/* The slowest of what runs at once, each as often as it is there; reads: P2P by reading. */
static double slowest(const struct tccl_model *model, const tccl_transfer *transfers, int n,
                      bool reads)
{
    tccl_transfer all[TCCL_MAX_SIDE] = {0};
    double rates[TCCL_MAX_SIDE], least = INFINITY;
    for (int i = 0; i < n; i++) {
        struct tccl_device a = tccl_transfer_source(transfers[i]),
                           b = tccl_transfer_sink(transfers[i]);
        bool p2p = a.kind == TCCL_GPU && b.kind == TCCL_GPU;
        all[i] = p2p && reads ? tccl_transfer_make(b, true, a) : transfers[i];
    }
    CHECK_INT(tccl_model_rates(model, all, n, rates, NULL, NULL), 0);
    for (int i = 0; i < n; i++)
        least = fmin(least, rates[i]);
    return least;
}

static bool slower(const struct tccl_model *model, const tccl_transfer *transfers, int n)
{
    return slowest(model, transfers, n, true) < slowest(model, transfers, n, false);
}

/* Adds what NCCL builds over these GPUs. */
static void add_own(const struct tccl_model *model, uint32_t gpus, struct tccl_side *side)
{
    struct tccl_baseline own;
    CHECK_INT(tccl_baseline_find(tccl_model_machine(model), gpus, true, TCCL_NEWEST, &own, NULL),
              0);
    for (int i = 0; i < own.set.n; i++)
        CHECK_INT(tccl_side_add_chain(side, &own.set.rings[i]), 0);
}

static bool groups_lose(const struct tccl_model *model, const int *gpus, int a, int b, int c, int d)
{
    struct tccl_side side = {0};
    add_own(model, 1u << gpus[a] | 1u << gpus[b], &side);
    add_own(model, 1u << gpus[c] | 1u << gpus[d], &side);
    return slower(model, side.transfers, side.count);
}

static bool would_lose(const struct tccl_model *model, uint32_t mask)
{
    const struct tccl_machine *machine = tccl_model_machine(model);
    struct tccl_side own = {0};
    tccl_transfer near[TCCL_MAX_GPUS * TCCL_MAX_GPUS];
    int gpus[TCCL_MAX_GPUS], n = 0, n_near = 0;
    for (int i = 0; i < machine->n_gpus; i++)
        if (mask >> i & 1)
            gpus[n++] = i;
    add_own(model, mask, &own);
    if (slower(model, own.transfers, own.count))
        return true;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < n; k++) {
            struct tccl_device from = {TCCL_GPU, (uint8_t)gpus[i]},
                               to = {TCCL_GPU, (uint8_t)gpus[k]};
            tccl_transfer one = tccl_transfer_make(from, false, to);
            if (i == k || !machine->p2p[gpus[i]][gpus[k]])
                continue;
            if (slower(model, &one, 1))
                return true;
            if (tccl_machine_path(machine, from, to) == TCCL_PATH_SWITCH)
                near[n_near++] = one;
        }
    return (n_near && slower(model, near, n_near)) ||
           (n == 4 &&
            (groups_lose(model, gpus, 0, 1, 2, 3) || groups_lose(model, gpus, 0, 2, 1, 3)));
}

static double best(const struct tccl_model *model, uint32_t gpus, bool reads)
{
    return enumerate_all(
        &(struct optimum_kind){.model = model, .gpus = gpus, .closed = true, .reads = reads});
}

/* What a step sees of the table, and that it has no chain that it may not have. */
static double seen(const struct tccl_table *table, const struct tccl_machine *machine,
                   enum tccl_view view)
{
    cleanup_class struct tccl_node_class *class = tccl_node_class_from_table(table, machine, view);
    CHECK(class != NULL);
    const struct tccl_seen *ring = tccl_class_ring(class);
    for (int i = 0; i < ring->set.n; i++)
        CHECK(tccl_view_allows(view, &ring->set.rings[i]));
    return ring->gbps;
}

/* The best set of each kind is in the table, and a step sees those that it may have. */
static void check_sets(const char *name, uint32_t gpus, bool may_read, double least)
{
    static const enum tccl_view views[] = {TCCL_VIEW_WRITES, TCCL_VIEW_READS, TCCL_VIEW_ALL};
    const struct tccl_model *model = load_machine(name);
    const struct tccl_machine *machine = tccl_model_machine(model);
    const struct tccl_search_options chains = {
        .gap = 0.03, .others = OTHERS, .reads = true, .alone = true};
    const struct tccl_table_sets_options options = {.gap = 0.03, .budget = 1000, .alone = true};
    owned(search) struct tccl_search *search =
        tccl_search_new(machine, tccl_model_meter(model), NULL);
    owned(table) struct tccl_table *table = tccl_table_new(machine, gpus);
    double best[2] = {0};
    CHECK(tccl_search_table(search, table, &chains, ERR) >= 0);
    CHECK_OK(tccl_table_find_sets(model, table, &options, ERR));
    CHECK_OK(tccl_table_check(table, machine, ERR));
    for (const struct tccl_result *own = NULL; (own = tccl_table_next(table, own, TCCL_SETS));) {
        tccl_transfer all[TCCL_MAX_SIDE];
        double rates[TCCL_MAX_SIDE], slow = INFINITY;
        bool reads = false, writes = false;
        int n = 0;
        for (int i = 0; i < own->set->n; i++) {
            const struct tccl_chain *chain = &own->set->rings[i];
            struct tccl_set one;
            tccl_chain_set(chain, &one);
            for (int k = 0; k < one.count; k++)
                all[n++] = one.transfers[k];
            for (int k = 0; k < chain->n_gpus; k++) {
                reads |= chain->edges[k].kind == TCCL_P2P_READ;
                writes |= chain->edges[k].kind == TCCL_P2P_WRITE;
            }
        }
        CHECK_INT(tccl_model_rates(model, all, n, rates, NULL, NULL), 0);
        for (int i = 0; i < n; i++)
            slow = fmin(slow, rates[i]);
        CHECK(fabs(own->gbps - own->set->n * slow) < 1e-6 * own->gbps);
        CHECK(!(reads && writes) && (may_read || !reads));
        best[reads] = fmax(best[reads], own->gbps);
    }
    for (int v = 0; v < 3; v++) {
        double most = 0, wanted = v < 2 ? best[v] : fmax(best[0], best[1]);
        cleanup_class struct tccl_node_class *class =
            tccl_node_class_from_table(table, machine, views[v]);
        for (int i = tccl_class_first_set(class); i < class->n_seen; i++) {
            for (int k = 0; k < class->seen[i].set.n; k++)
                CHECK(tccl_view_allows(views[v], &class->seen[i].set.rings[k]));
            most = fmax(most, class->seen[i].gbps);
        }
        CHECK(most >= wanted || gpus != (1u << machine->n_gpus) - 1);
    }
    CHECK(best[1] >= least * tccl_table_ring(table)->gbps);
}

static void check_table(const struct tccl_model *model, uint32_t gpus)
{
    const struct tccl_machine *machine = tccl_model_machine(model);
    const struct tccl_search_options options = {.others = OTHERS, .reads = true, .alone = true};
    owned(search) struct tccl_search *search =
        tccl_search_new(machine, tccl_model_meter(model), NULL);
    owned(table) struct tccl_table *table = tccl_table_new(machine, gpus);
    double writes = best(model, gpus, false), reads = best(model, gpus, true);
    CHECK_OK(tccl_search_table(search, table, &options, ERR));
    CHECK_OK(tccl_table_check(table, machine, ERR));
    bool any = false;
    for (const struct tccl_result *own = NULL; (own = tccl_table_next(table, own, TCCL_SINGLES));)
        any |= tccl_chain_reads(&own->chain);
    CHECK(fabs(seen(table, machine, TCCL_VIEW_WRITES) - writes) < 1e-6 * writes);
    if (would_lose(model, gpus)) {
        CHECK(!any && fabs(tccl_table_ring(table)->gbps - writes) < 1e-6 * writes);
        refused++;
        return;
    }
    CHECK(fabs(tccl_table_ring(table)->gbps - fmax(writes, reads)) < 1e-6 * writes);
    CHECK(tccl_table_ring(table)->bound >= tccl_table_ring(table)->gbps);
    CHECK(fabs(seen(table, machine, TCCL_VIEW_JOB) - fmax(writes, reads)) < 1e-6 * writes);
    if (reads > 0.31 * fmax(writes, reads)) /* others are kept from there on */
        CHECK(fabs(seen(table, machine, TCCL_VIEW_READS) - reads) < 1e-6 * writes);
    read_better += reads > writes * (1 + 1e-6);
    wrote_better += writes > reads * (1 + 1e-6);
}

TEST(random)
{
    unsigned long start = check_seed(), *state = &start;
    /* On few machines writes are better where reading loses nothing: until one was drawn. */
    for (int round = 0; round < ROUNDS || (!wrote_better && round < 20 * ROUNDS); round++) {
        owned(model) struct tccl_model *model =
            random_model(state, 4, 1 + random_below(state, 3), 0);
        for (uint32_t gpus = 3; gpus < 16; gpus++)
            if (__builtin_popcount(gpus) > 1)
                check_table(model, gpus);
    }
    CHECK(refused > 0 && read_better > 0 && wrote_better > 0);
    printf("%d refused, %d better by reading, %d by writing\n", refused, read_better, wrote_better);
}

/* least: what the best set that reads has at least, as a part of the best single ring. */
TEST(sets)
{
    check_sets("turin-pex890", 0xff, true, 1.25);
    check_sets("turin-pex890", 0x55, true, 0);
    check_sets("amd-4gpu", 0xf, false, 0);
    check_sets("dual-8gpu", 0xff, false, 0);
}
