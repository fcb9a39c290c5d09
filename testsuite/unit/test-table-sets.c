/* The ring sets of chain tables: what is kept is possible, as fast as the model says of all of its
 * transfers at once, no slower than what the search began with, and the same each time. */

#include "base/fileio.h"
#include "entries.h"
#include "machines.h"
#include "owned.h"
#include "search/model-table.h"
#include "search/setmap.h"

static struct tccl_table *make_table(const struct tccl_model *model, uint32_t gpus)
{
    const struct tccl_search_options options = {.gap = 0.05, .pairs = 4, .budget = 300};
    return table_of(model, gpus, false, &options);
}

/* Of all rings together: transfers by the model, and what the lines leave. */
static double rate(const struct tccl_model *model, const struct tccl_ring_set *set)
{
    const struct tccl_machine *machine = tccl_model_machine(model);
    tccl_transfer all[TCCL_CHAIN_RINGS * 40];
    int count = 0, lines[2][TCCL_MAX_NICS] = {{0}};
    double gbps;
    for (int i = 0; i < set->n; i++) {
        struct tccl_set one;
        tccl_chain_set(&set->rings[i], &one);
        memcpy(all + count, one.transfers, one.count * sizeof(*all));
        count += one.count;
        lines[0][set->rings[i].entry.nic]++;
        lines[1][set->rings[i].exit.nic]++;
    }
    CHECK_INT(tccl_model_slowest(model, all, count, &gbps, NULL), 0);
    for (int i = 0; i < TCCL_MAX_NICS && !set->rings[0].closed; i++)
        for (int k = 0; k < 2; k++)
            if (lines[k][i])
                gbps = fmin(gbps, machine->nics[i].gbps / lines[k][i]);
    return set->n * gbps;
}

static double best_of(const struct tccl_table *table, bool closed, int rings)
{
    double best = 0;
    for (const struct tccl_result *own = NULL; (own = tccl_table_next(table, own, TCCL_SETS));)
        if (own->chain.closed == closed && (!rings || own->set->n == rings))
            best = fmax(best, own->gbps);
    return best;
}

/* Do as many rings come in by each fabric as leave by it? Else they don't close between equal
 * nodes.
 */
static bool meets_itself(const struct tccl_machine *machine, const struct tccl_ring_set *set)
{
    for (int i = 0; i < machine->n_nics && !set->rings[0].closed; i++) {
        int balance = 0;
        for (int k = 0; k < set->n; k++)
            balance += (strcmp(machine->nics[set->rings[k].entry.nic].fabric,
                               machine->nics[i].fabric) == 0) -
                       (strcmp(machine->nics[set->rings[k].exit.nic].fabric,
                               machine->nics[i].fabric) == 0);
        if (balance != 0)
            return false;
    }
    return true;
}

/* bounded: by the model, proven. */
static void check_sets_of(const struct tccl_model *model, const struct tccl_table *table,
                          bool bounded)
{
    const struct tccl_machine *machine = tccl_model_machine(model);
    struct tccl_ring_set starts[TCCL_TABLE_STARTS];
    CHECK_INT(tccl_table_check(table, machine, NULL), 0);
    for (const struct tccl_result *own = NULL; (own = tccl_table_next(table, own, TCCL_SETS));) {
        CHECK_INT(tccl_expressible(machine, own->set->rings, own->set->n, NULL), 0);
        CHECK(fabs(own->gbps - rate(model, own->set)) < 1e-6 * own->gbps);
        CHECK(own->bound >= own->gbps && (!bounded || isfinite(own->bound)));
    }
    for (int closed = 0; closed < 2; closed++) {
        int n = tccl_table_starts(table, closed, false, starts);
        CHECK(n > 0);
        for (int i = 0; i < n; i++)
            if (starts[i].n > 1 &&
                tccl_expressible(machine, starts[i].rings, starts[i].n, NULL) == 0 &&
                meets_itself(machine, &starts[i]))
                CHECK(best_of(table, closed, 0) >= rate(model, &starts[i]) * (1 - 1e-9));
    }
}

static void check_sets(const struct tccl_model *model, const struct tccl_table *table)
{
    check_sets_of(model, table, true);
}

static bool same_sets(const struct tccl_table *a, const struct tccl_table *b)
{
    bool same = entries(a, TCCL_SETS) == entries(b, TCCL_SETS);
    for (int i = 0; same && i < entries(a, TCCL_SETS); i++) {
        const struct tccl_result *x = entry(a, TCCL_SETS, i), *y = entry(b, TCCL_SETS, i);
        same = x->gbps == y->gbps && x->set->n == y->set->n;
        for (int k = 0; same && k < x->set->n; k++)
            same = tccl_chain_equal(&x->set->rings[k], &y->set->rings[k]);
    }
    return same;
}

static void test_model(const char *name, uint32_t gpus)
{
    const struct tccl_table_sets_options options = {.gap = 0.03, .budget = 1000};
    const struct tccl_model *model = load_machine(name);
    owned(table) struct tccl_table *table = make_table(model, gpus),
                                   *again = make_table(model, gpus);
    CHECK_OK(tccl_table_find_sets(model, table, &options, ERR));
    CHECK(best_of(table, false, 2) > 0 && best_of(table, false, 4) > 0);
    check_sets(model, table);
    CHECK_INT(tccl_table_find_sets(model, again, &options, NULL), 0);
    CHECK(same_sets(table, again));
}

/* Does a set keep to the NICs of the mask? */
static bool keeps_to(const struct tccl_ring_set *set, uint32_t nics)
{
    bool within = !set->rings[0].closed;
    for (int i = 0; i < set->n && within; i++)
        within = (nics >> set->rings[i].entry.nic & 1) && (nics >> set->rings[i].exit.nic & 1);
    return within;
}

/* NICs on two fabrics: sets for nodes that have one of them alone, too. */
TEST(fabrics)
{
    const struct tccl_table_sets_options options = {.gap = 0.03, .budget = 1000};
    cleanup_json json_t *json = tccl_read_json(machine_file("dual-8gpu"), 1 << 20, NULL);
    json_t *nics = json_object_get(json_object_get(json, "machine"), "nics");
    owned(model) struct tccl_model *model = NULL;
    bool first = false, second = false;
    CHECK_INT(json_array_size(nics), 2);
    json_object_set_new(json_array_get(nics, 1), "fabric", json_string("other"));
    CHECK_INT(tccl_model_from_json(json, &model, NULL), 0);
    owned(table) struct tccl_table *table = make_table(model, 0xf);
    CHECK_INT(tccl_table_find_sets(model, table, &options, NULL), 0);
    check_sets(model, table);
    for (const struct tccl_result *own = NULL; (own = tccl_table_next(table, own, TCCL_SETS));) {
        first = first || keeps_to(own->set, 1);
        second = second || keeps_to(own->set, 2);
    }
    CHECK(first && second);
}

/* One GPU has no ring of its own, but rings over nodes. */
TEST(one_gpu)
{
    const struct tccl_table_sets_options options = {.gap = 0.03, .budget = 300};
    const struct tccl_model *model = load_machine("dual-8gpu");
    owned(table) struct tccl_table *table = make_table(model, 4);
    CHECK_INT(tccl_table_find_sets(model, table, &options, NULL), 0);
    CHECK(best_of(table, true, 0) == 0 && best_of(table, false, 2) > 0);
}

/* A meter that asks a model, remembers what it said, and counts. */
struct counter {
    struct tccl_meter model;
    struct tccl_setmap sets;
    long asked;
};

static int count_measure(void *context, const struct tccl_set *set, struct tccl_measurement *out,
                         struct tccl_error *err)
{
    struct counter *counter = context;
    counter->asked++;
    if (counter->model.measure(counter->model.context, set, out, err) != 0)
        return -1;
    return tccl_setmap_note(&counter->sets, set, out) ? 0 : -1;
}

static struct tccl_table *measure_table(const struct tccl_model *model, struct counter *counter,
                                        uint32_t gpus, long sets)
{
    const struct tccl_machine *machine = tccl_model_machine(model);
    const struct tccl_meter meter = {
        .measure = count_measure, .context = counter, .sets = &counter->sets};
    owned(symmetry) struct tccl_symmetry *symmetry = tccl_symmetry_of_model(model);
    owned(search) struct tccl_search *search = tccl_search_new(machine, meter, symmetry);
    struct tccl_table *table = tccl_table_new(machine, gpus);
    const struct tccl_search_options options = {
        .gap = 0.03, .pairs = 16, .budget = 5000, .sets = sets};
    CHECK(tccl_search_table(search, table, &options, NULL) >= 0);
    return table;
}

/* By measuring, as if the model were hardware: no more sets than chains took, but for a few, none
 * slower than NCCL's own or the model, and a run that is resumed asks nothing again. */
static void test_measured(const char *name, uint32_t gpus, double least_closed, double least)
{
    const struct tccl_model *model = load_machine(name);
    struct counter counter = {.model = tccl_model_meter(model)};
    owned(table) struct tccl_table *chains = measure_table(model, &counter, gpus, 0);
    long singles = counter.asked;
    CHECK_INT(entries(chains, TCCL_SETS), 0);
    owned(table) struct tccl_table *table = measure_table(model, &counter, gpus, 1000);
    long all = counter.asked;
    printf("%s: %ld sets for chains, %ld with ring sets: %.2f and %.2f GB/s\n", name, singles, all,
           best_of(table, true, 0), best_of(table, false, 0));
    CHECK(all > singles && all <= 2 * singles + 8);
    check_sets_of(model, table, false);
    CHECK(best_of(table, true, 0) >= least_closed && best_of(table, false, 0) >= least);
    owned(table) struct tccl_table *again = measure_table(model, &counter, gpus, 1000);
    CHECK_INT(counter.asked, all);
    CHECK(same_sets(table, again));
    tccl_setmap_clear(&counter.sets);
}

static int stop_at_once(void *context)
{
    ++*(int *)context;
    return 1;
}

TEST(stopped)
{
    int called = 0;
    const struct tccl_table_sets_options options = {
        .budget = 1000, .progress = stop_at_once, .context = &called};
    const struct tccl_model *model = load_machine("amd-4gpu");
    owned(table) struct tccl_table *table = make_table(model, 0xf);
    CHECK_INT(tccl_table_find_sets(model, table, &options, NULL), 1);
    CHECK_INT(called, 1);
    CHECK_INT(entries(table, TCCL_SETS), 0);
}

TEST(models)
{
    test_model("amd-4gpu", 0xf);
    test_model("dual-8gpu", 0xff);
    test_model("dual-8gpu", 0x11);
}

TEST(machines)
{
    test_measured("amd-4gpu", 0xf, 11.45, 11.7);  /* the best chain has 10.4 */
    test_measured("dual-8gpu", 0xff, 23.3, 23.6); /* NCCL's own two have 19.0 and 22.78 */
    test_measured("quad-8gpu", 0xff, 22.7, 23.6);
    test_measured("dual-8gpu", 0x3, 0, 23.6);
}
