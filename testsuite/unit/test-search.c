/* test-search.c: searched chains and rings equal exhaustive enumeration; bounds hold when stopped.
 */
#include "search/search.h"
#include "search/setmap.h"

#include "enumerate.h"
#include "machines.h"
#include "owned.h"
#include "random-model.h"

struct counter {
    struct tccl_meter meter;
    long calls;
};

static int counted(void *context, const struct tccl_set *set, struct tccl_measurement *out,
                   struct tccl_error *err)
{
    struct counter *counter = context;
    counter->calls++;
    return counter->meter.measure(counter->meter.context, set, out, err);
}

static bool is_near(double a, double b)
{
    return fabs(a - b) <= 1e-9 * fmax(1, fabs(b));
}

/* The chain found has the bandwidth that it is said to have, and is what it should be. */
static void check_best(const struct tccl_model *model, const struct tccl_result *result,
                       double best, bool any)
{
    struct tccl_set set;
    double gbps;
    CHECK(is_near(result->gbps, best) && is_near(result->bound, best));
    if (result->chain.n_gpus == 0)
        return;
    tccl_chain_set(&result->chain, &set);
    CHECK(tccl_chain_check(&result->chain, tccl_model_machine(model), ERR) == 0);
    CHECK(any || tccl_expressible(tccl_model_machine(model), &result->chain, 1, ERR) == 0);
    CHECK(tccl_model_measure(model, &set, &gbps, NULL, NULL, ERR) == 0);
    CHECK(is_near(gbps, result->gbps));
    if (check_err.text[0])
        fprintf(stderr, "%s\n", check_err.text);
}

/* Tasks that see only their own GPUs: the best of all chains without P2P, for each pair of NICs,
 * and the best such ring. Returns how many of them are not the best of all. */
static int check_hosts(const struct tccl_model *model, const struct tccl_table *table)
{
    const struct tccl_machine *machine = tccl_model_machine(model);
    struct tccl_node_class *host = tccl_node_class_from_table(table, machine, TCCL_VIEW_HIDDEN);
    cleanup_class struct tccl_node_class *whole =
        tccl_node_class_from_table(table, machine, TCCL_VIEW_JOB);
    struct tccl_set p2p = {0};
    int n = table->n_ports, worse = 0;
    for (int a = 0; a < machine->n_gpus; a++)
        for (int b = 0; b < machine->n_gpus; b++)
            if (a != b)
                enumerate_edge(&p2p, a, b, 0);
    for (int cell = 0; cell < host->n_nics * host->n_nics; cell++) {
        double best = 0;
        for (int i = 0; i < n * n; i++)
            if (table->ports[i / n].nic * host->n_nics + table->ports[i % n].nic == cell)
                best = fmax(best, enumerate_pair(model, table, i, false, &p2p));
        const struct tccl_seen *own = &host->seen[cell];
        CHECK(!tccl_chain_has_p2p(&own->set.rings[0]));
        CHECK(own->gbps == 0 ||
              own->set.rings[0].entry.nic * host->n_nics + own->set.rings[0].exit.nic == cell);
        struct tccl_result result = {
            .gbps = own->gbps, .bound = fmax(own->bound, own->gbps), .chain = own->set.rings[0]};
        if (own->set.n)
            check_best(model, &result, best, false);
        else
            CHECK(best == 0);
        worse += own->gbps < whole->seen[cell].gbps * (1 - 1e-9);
    }
    if (host->n_gpus > 1) {
        const struct tccl_seen *ring = tccl_class_ring(host);
        struct tccl_result result = {
            .gbps = ring->gbps, .bound = ring->bound, .chain = ring->set.rings[0]};
        CHECK(!tccl_chain_has_p2p(&ring->set.rings[0]));
        check_best(model, &result, enumerate_ring(model, table->gpus, false, &p2p), false);
        worse += ring->gbps < tccl_class_ring(whole)->gbps * (1 - 1e-9);
    }
    tccl_node_class_free(host);
    return worse;
}

static int compare_machine(struct tccl_model *model, uint32_t gpus, bool symmetric, bool any)
{
    const struct tccl_machine *machine = tccl_model_machine(model);
    const struct tccl_search_options options = {.any = any, .hosts = 100000};
    struct tccl_table *table = table_of(model, gpus, symmetric, &options);
    int worse;
    for (int i = 0; i < tccl_table_pairs(table); i++)
        check_best(model, &table->results[i], enumerate_pair(model, table, i, any, NULL), any);
    if (__builtin_popcount(gpus) > 1)
        check_best(model, tccl_table_ring(table), enumerate_ring(model, gpus, any, NULL), any);
    CHECK_INT(tccl_table_check(table, machine, ERR), 0);
    worse = any ? 0 : check_hosts(model, table);
    tccl_table_free(table);
    return worse;
}

TEST(equals_enumeration)
{
    unsigned long seed = check_seed();
    int worse = 0;
    for (int round = 0; round < 40 && !check_failures; round++) {
        unsigned long state = seed + round;
        int gpus = 1 + random_below(&state, round % 20 == 0 ? 5 : 4);
        int memories = 1 + random_below(&state, gpus == 5 ? 2 : 3);
        int nics = gpus == 5 ? 1 : random_below(&state, 3);
        owned(model) struct tccl_model *model = random_model(&state, gpus, memories, nics);
        uint32_t mask = (1u << gpus) - 1;
        if (gpus > 2 && random_below(&state, 3) == 0)
            mask &= ~(1u << random_below(&state, gpus));
        bool any = random_below(&state, 4) == 0;
        worse += compare_machine(model, mask, random_below(&state, 3) > 0, any);
        if (check_failures)
            fprintf(stderr, "round %d: %d GPUs (mask %x), %d memories, %d NICs, any %d\n", round,
                    gpus, mask, memories, nics, any);
    }
    printf("without P2P, %d best chains and rings are slower\n", worse);
    CHECK(worse > 0);
}

/* Rings of five GPUs and three memories: 24 orders, 5^5 ways. */
TEST(five_gpu_rings)
{
    unsigned long seed = check_seed();
    for (int round = 0; round < 20 && !check_failures; round++) {
        unsigned long state = seed + 1000 + round;
        owned(model) struct tccl_model *model = random_model(&state, 5, 3, 0);
        owned(symmetry) struct tccl_symmetry *symmetry = tccl_symmetry_of_model(model);
        owned(search) struct tccl_search *search =
            tccl_search_new(tccl_model_machine(model), tccl_model_meter(model), symmetry);
        struct tccl_search_options options = {0};
        struct tccl_result result;
        CHECK_INT(tccl_search_ring(search, 31, &options, &result, NULL), 0);
        check_best(model, &result, enumerate_ring(model, 31, false, NULL), false);
    }
}

/* Stopped by its budget, every bound still holds, and no more is measured than allowed. */
TEST(budget)
{
    unsigned long seed = check_seed();
    for (int round = 0; round < 20 && !check_failures; round++) {
        unsigned long state = seed + 2000 + round;
        owned(model) struct tccl_model *model = random_model(&state, 4, 2, 1);
        struct counter counter = {tccl_model_meter(model), 0};
        owned(search) struct tccl_search *search =
            tccl_search_new(tccl_model_machine(model),
                            (struct tccl_meter){.measure = counted, .context = &counter}, NULL);
        struct tccl_search_options options = {.budget = 1 + random_below(&state, 120),
                                              .pairs = random_below(&state, 5)};
        owned(table) struct tccl_table *table = tccl_table_new(tccl_model_machine(model), 15);
        CHECK(tccl_search_table(search, table, &options, NULL) >= 0);
        CHECK(counter.calls <= options.budget + 2);
        CHECK(counter.calls <= tccl_search_measured(search) + 2);
        for (int i = 0; i < tccl_table_pairs(table); i++) {
            double best = enumerate_pair(model, table, i, false, NULL);
            CHECK(table->results[i].gbps <= best + 1e-9);
            CHECK(table->results[i].bound >= best - 1e-9);
        }
    }
}

/* One resource that nearly all transfers share: only sets of several members are slow, so bounds
 * creep. */
static const char shared_model[] =
    "{'format':'tccl-model','version':1,'name':'shared','machine':{'name':'shared','memories'"
    ":3,'switches':[{'name':'s0','numa':2,'parent':null},{'name':'s1','numa':2,'parent':'s0'}"
    "],'gpus':[{'busid':'0000:10:00.0','model':'A','sm':80,'minor':0,'numa':0,'parent':null},"
    "{'busid':'0000:17:00.0','model':'A','sm':80,'minor':1,'numa':0,'parent':null},{'busid':'"
    "0000:1e:00.0','model':'A','sm':80,'minor':2,'numa':2,'parent':'s0'},{'busid':'0000:25:00"
    ".0','model':'A','sm':80,'minor':3,'numa':2,'parent':'s1'}],'nics':[{'name':'mlx5_0','bus"
    "id':'0001:00:00.0','gbps':10.89,'fabric':'ib0','numa':1,'parent':null},{'name':'mlx5_1',"
    "'busid':'0001:01:00.0','gbps':12.43,'fabric':'ib0','numa':2,'parent':'s0'}],'p2p':true,'"
    "gpudirect':[['mlx5_0',0],['mlx5_0',1],['mlx5_1',0],['mlx5_1',1],['mlx5_1',2]]},'resource"
    "s':[{'name':'g0 out','gbps':8.312,'users':['g0->*',{'of':'*<g0','weight':1.08}]},{'name'"
    ":'g1 out','gbps':8.725,'users':['g1->*',{'of':'*<g1','weight':1.08}]},{'name':'g2 out','"
    "gbps':7.701,'users':['g2->*',{'of':'*<g2','weight':1.08}]},{'name':'g3 out','gbps':7.483"
    ",'users':['g3->*',{'of':'*<g3','weight':1.08}]},{'name':'n0 rx','gbps':10.89,'users':['n"
    "0>*']},{'name':'n1 rx','gbps':12.43,'users':['n1>*']},{'name':'r0','gbps':8.397,'users':"
    "['!n1 -> !m@0',{'of':'!m2 > @1','weight':0.5}]}],'rules':[]}";

/* Learning never costs more than measuring all chains would (it once cost minutes, and 80,000
 * sets). */
TEST(shared_resource)
{
    owned(model) struct tccl_model *model = NULL;
    cleanup_free char *text = strdup(shared_model);
    for (char *quote = text; (quote = strchr(quote, '\'')); quote++)
        *quote = '"';
    cleanup_json json_t *json = json_loads(text, 0, NULL);
    MUST(tccl_model_from_json(json, &model, ERR));
    owned(search) struct tccl_search *search =
        tccl_search_new(tccl_model_machine(model), tccl_model_meter(model), NULL);
    struct tccl_search_options options = {0};
    owned(table) struct tccl_table *table = tccl_table_new(tccl_model_machine(model), 7);
    CHECK_INT(tccl_search_table(search, table, &options, ERR), 0);
    long pairs = tccl_table_pairs(table);
    for (int i = 0; i < pairs; i++)
        check_best(model, &table->results[i], enumerate_pair(model, table, i, false, NULL), false);
    /* 6 orders, 3 memories or P2P for each of 2 edges, P2P that writes or reads */
    CHECK(tccl_search_measured(search) <= pairs * 6 * 4 * 4 * 2);
}

/* With a gap, results are as near to the best as they say. */
TEST(gap)
{
    unsigned long seed = check_seed();
    for (int round = 0; round < 20 && !check_failures; round++) {
        unsigned long state = seed + 3000 + round;
        owned(model) struct tccl_model *model = random_model(&state, 4, 3, 1);
        const struct tccl_search_options options = {.gap = 0.1};
        owned(table) struct tccl_table *table = table_of(model, 15, true, &options);
        for (int i = 0; i < tccl_table_pairs(table); i++) {
            const struct tccl_result *result = &table->results[i];
            double best = enumerate_pair(model, table, i, false, NULL);
            CHECK(result->gbps <= best + 1e-9 && result->bound >= best - 1e-9);
            CHECK(result->bound <= result->gbps * 1.1 + 1e-9);
        }
    }
}

static int know(void *context, const struct tccl_set *set, struct tccl_measurement *out,
                struct tccl_error *err)
{
    struct counter *counter = context;
    counter->calls++;
    return tccl_fail(err, "nothing may be measured again");
}

/* What was measured before is not measured again. */
struct log {
    struct tccl_meter meter;
    struct tccl_setmap sets;
};

static int logged(void *context, const struct tccl_set *set, struct tccl_measurement *out,
                  struct tccl_error *err)
{
    struct log *log = context;
    int status = log->meter.measure(log->meter.context, set, out, err);
    CHECK(tccl_setmap_note(&log->sets, set, out));
    return status;
}

TEST(resume)
{
    const struct tccl_model *model = load_machine("amd-4gpu");
    owned(symmetry) struct tccl_symmetry *symmetry = tccl_symmetry_of_model(model);
    struct counter none = {tccl_model_meter(model), 0};
    struct log log = {.meter = tccl_model_meter(model)};
    const struct tccl_machine *machine = tccl_model_machine(model);
    owned(search) struct tccl_search *first =
        tccl_search_new(machine, (struct tccl_meter){.measure = logged, .context = &log}, symmetry);
    struct tccl_search_options options = {0};
    struct tccl_table *a = tccl_table_new(machine, 15), *b = tccl_table_new(machine, 15);
    CHECK_INT(tccl_search_table(first, a, &options, ERR), 0);
    struct tccl_meter meter = {.measure = know, .context = &none, .sets = &log.sets};
    owned(search) struct tccl_search *second = tccl_search_new(machine, meter, symmetry);
    CHECK_INT(tccl_search_table(second, b, &options, ERR), 0);
    CHECK_INT(none.calls, 0);
    for (int i = 0; i < a->n_ports * a->n_ports; i++)
        CHECK(a->results[i].gbps == b->results[i].gbps);
    tccl_table_free(a);
    tccl_table_free(b);
    tccl_setmap_clear(&log.sets);
}

static int fails(void *context, const struct tccl_set *set, struct tccl_measurement *out,
                 struct tccl_error *err)
{
    struct counter *counter = context;
    if (++counter->calls > 7)
        return tccl_fail(err, "the meter broke");
    return counter->meter.measure(counter->meter.context, set, out, err);
}

/* A meter that fails ends the search with its own words. */
TEST(broken_meter)
{
    const struct tccl_model *model = load_machine("intel-4gpu");
    struct counter counter = {tccl_model_meter(model), 0};
    owned(search) struct tccl_search *search =
        tccl_search_new(tccl_model_machine(model),
                        (struct tccl_meter){.measure = fails, .context = &counter}, NULL);
    struct tccl_search_options options = {0};
    owned(table) struct tccl_table *table = tccl_table_new(tccl_model_machine(model), 15);
    CHECK_FAILS(tccl_search_table(search, table, &options, ERR), "the meter broke");
}

/* Whatever may be exchanged keeps its bandwidth; near exchanges raise it at most by the factor. */
TEST(symmetry)
{
    unsigned long seed = check_seed();
    for (int which = 0; which < MACHINE_NAMES; which++) {
        const struct tccl_model *model = load_machine(machine_names[which]);
        owned(symmetry) struct tccl_symmetry *symmetry = tccl_symmetry_of_model(model);
        const struct tccl_machine *machine = tccl_model_machine(model);
        unsigned long state = seed + which;
        for (int round = 0; round < 200; round++) {
            struct tccl_set set = {0}, image;
            int members = 1 + random_below(&state, 8);
            for (int i = 0; i < members; i++) {
                tccl_transfer transfer = random_below(&state, TCCL_TRANSFERS);
                if (tccl_transfer_valid(transfer) &&
                    tccl_machine_allows(machine, transfer, NULL) == 0)
                    tccl_set_add(&set, transfer);
            }
            if (set.count == 0)
                continue;
            double own, other, factor = tccl_symmetry_factor(symmetry, &set);
            tccl_model_measure(model, &set, &own, NULL, NULL, NULL);
            for (int near = 0; near < 2; near++) {
                for (int e = 0; e < tccl_symmetry_exchanges(symmetry, &set, near); e++) {
                    tccl_symmetry_exchange(symmetry, &set, near, e, &image);
                    CHECK_INT(tccl_model_measure(model, &image, &other, NULL, NULL, NULL), 0);
                    CHECK(near ? other <= own * factor + 1e-9 : is_near(own, other));
                }
            }
            tccl_transfer out[TCCL_MAX_SET];
            tccl_symmetry_relabel(symmetry, set.transfers, set.count, out);
            image.count = 0;
            for (int i = 0; i < set.count; i++)
                tccl_set_add(&image, out[i]);
            CHECK_INT(image.count, set.count);
            tccl_model_measure(model, &image, &other, NULL, NULL, NULL);
            CHECK(is_near(own, other));
        }
    }
}
