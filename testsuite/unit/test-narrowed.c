/* test-narrowed.c: rings of a profile on links that carry less than when it was made, against a
 * fresh search on the machine as it is now: a model whose own capacities for that link were cut. */
#include "narrow-links.h"
#include "search/model-table.h"

OWNED(tables, struct tccl_model_tables, tccl_model_tables_free)

#define WANTED 0.95
/* That P2P may read is not seen where the link was measured slower by reads. */
#define UNREAD 0.93

static double by_model(void *context, const struct tccl_set *set)
{
    double gbps;
    return tccl_model_slowest(context, set->transfers, set->count, &gbps, NULL) == 0 ? gbps : 0;
}

/* With what a search by the product's own model adds. reads: may P2P read by that model? */
static const struct tccl_table *search(const char *name, struct tccl_table *table,
                                       const struct tccl_narrowed *narrowed, bool *reads)
{
    owned(model) struct tccl_model *model = NULL;
    cleanup_json json_t *json = json_load_file(machine_file(name), 0, NULL);
    MUST(tccl_narrowed_model(json, machine_of(name), narrowed, &model, ERR));
    owned(tables) struct tccl_model_tables *tables = tccl_model_tables_new(model, NULL);
    const struct tccl_table *found = tccl_model_tables_get(tables, table->gpus, ERR);
    CHECK(found != NULL);
    *reads = found && tccl_table_reads(found);
    if (found)
        tccl_narrowed_add(table, found, model);
    return table;
}

static double least;
static int cases, below, searched;

static void compare(const char *name, uint32_t gpus, const struct tccl_table *healthy,
                    const struct tccl_model *now, struct tccl_model_tables *fresh,
                    const struct link *link, double part)
{
    const struct tccl_narrowed narrowed = {.n = 1, .links = {link->narrow}};
    uint32_t felt;
    double told, best;
    owned(table) struct tccl_table *ours =
        tccl_narrowed_table(healthy, tccl_model_machine(now), &narrowed, now, &felt);
    const struct tccl_table *wanted = tccl_model_tables_get(fresh, gpus, ERR);
    CHECK(ours && wanted);
    if (!ours || !wanted)
        return;
    double has = reach_of(now, ours, &told), could = reach_of(now, wanted, &best);
    cases++;
    if (could > 0 && has / could < least)
        least = has / could;
    bool suffices = tccl_narrowed_suffices(healthy, ours, false, WANTED);
    bool reads;
    if (!suffices) {
        has = reach_of(now, search(name, ours, &narrowed, &reads), &best);
        CHECK(has >= (!reads && tccl_table_reads(wanted) ? UNREAD : WANTED) * could);
    }
    searched += !suffices;
    below += suffices && has < WANTED * could;
    if (getenv("TCCL_VERBOSE") || (suffices && has < WANTED * could))
        printf("%s %08x %sx%g: %.2f (told %.2f) of %.2f: %.3f\n", name, gpus, link->prefix, part,
               has, told, could, has / could);
}

static void try_machine(const char *name, const double *parts, int n_parts)
{
    const struct tccl_model *model = load_machine(name);
    const struct tccl_machine *machine = tccl_model_machine(model);
    const uint32_t all = (UINT32_C(1) << machine->n_gpus) - 1;
    const uint32_t sets[] = {all, all >> machine->n_gpus / 2, all & 0x5555,
                             1 | UINT32_C(1) << machine->n_gpus / 2};
    struct link links[TCCL_MAX_GPUS + TCCL_MAX_NICS + TCCL_MAX_SWITCHES];
    const int n = list_links(machine, links);
    owned(tables) struct tccl_model_tables *tables = tccl_model_tables_new(model, NULL);
    least = INFINITY, cases = below = searched = 0;
    for (int i = 0; i < n; i++)
        for (int p = 0; p < n_parts; p++) {
            owned(model) struct tccl_model *now = cut(name, &links[i], parts[p]);
            if (!now)
                continue;
            tccl_narrow_rate(&links[i].narrow, machine, parts[p], by_model, (void *)model);
            owned(tables) struct tccl_model_tables *fresh = tccl_model_tables_new(now, NULL);
            for (size_t s = 0; s < COUNT(sets); s++) {
                const struct tccl_table *healthy = tccl_model_tables_get(tables, sets[s], ERR);
                if (healthy)
                    compare(name, sets[s], healthy, now, fresh, &links[i], parts[p]);
            }
        }
    printf("%s: %d cases, least %.3f, to be searched %d, below %g: %d\n", name, cases, least,
           searched, WANTED, below);
    CHECK(cases > 0);
    CHECK_INT(below, 0);
}

TEST(rings)
{
    static const double parts[] = {0.5, 0.125};
    static const char *const names[] = {"quad-8gpu", "turin-pex890", "amd-4gpu",       "intel-4gpu",
                                        "dual-8gpu", "h100-8gpu",    "epyc-nps4-4a100"};
    for (size_t i = 0; i < COUNT(names); i += CHECK_PART)
        try_machine(names[i], parts, COUNT(parts));
}

static const struct tccl_result *find(const struct tccl_table *table,
                                      const struct tccl_chain *chain)
{
    const struct tccl_result *own = NULL;
    while ((own = tccl_table_next(table, own, TCCL_SINGLES)) &&
           !tccl_chain_equal(&own->chain, chain))
        ;
    return own;
}

/* A guess that is better than the ring that was measured does not take its place: both stay. */
TEST(guessed)
{
    const struct tccl_model *model = load_machine("amd-4gpu");
    const struct tccl_machine *machine = tccl_model_machine(model);
    owned(tables) struct tccl_model_tables *tables = tccl_model_tables_new(model, NULL);
    const struct tccl_narrowed none = {.n = 0};
    uint32_t felt;
    owned(table) struct tccl_table *table =
        tccl_narrowed_table(tccl_model_tables_get(tables, 0xf, ERR), machine, &none, NULL, &felt);
    owned(table) struct tccl_table *found = tccl_table_new(machine, 0xf);
    struct tccl_result *ring = tccl_table_ring(table), *guess = tccl_table_ring(found);
    ring->ends = 120;
    const struct tccl_result before = *ring;
    *guess = before;
    guess->gbps *= 2;
    guess->chain.gpus[0] = before.chain.gpus[1];
    guess->chain.gpus[1] = before.chain.gpus[0];
    tccl_narrowed_add(table, found, NULL);
    CHECK(tccl_chain_equal(&tccl_table_ring(table)->chain, &guess->chain));
    const struct tccl_result *kept = find(table, &before.chain);
    CHECK(kept && kept->gbps == before.gbps && kept->ends == before.ends);
}

/* Of two sets that begin with the same ring each has its own ends. */
TEST(sets)
{
    const struct tccl_model *model = load_machine("amd-4gpu");
    const struct tccl_machine *machine = tccl_model_machine(model);
    owned(tables) struct tccl_model_tables *tables = tccl_model_tables_new(model, NULL);
    const struct tccl_chain ring = tccl_table_ring(tccl_model_tables_get(tables, 0xf, ERR))->chain;
    owned(table) struct tccl_table *table = tccl_table_new(machine, 0xf);
    owned(table) struct tccl_table *found = tccl_table_new(machine, 0xf);
    for (int n = 2; n <= 3; n++) {
        const struct tccl_ring_set set = {.n = n, .rings = {ring, ring, ring}};
        tccl_table_keep_set(found, &set, 7, INFINITY);
    }
    struct tccl_result *own = NULL;
    while ((own = tccl_table_next(found, own, TCCL_SETS)))
        own->ends = (uint8_t)(100 + 10 * own->set->n);
    tccl_narrowed_add(table, found, NULL);
    int sets = 0;
    for (own = NULL; (own = tccl_table_next(table, own, TCCL_SETS)); sets++)
        CHECK_INT(own->ends, 100 + 10 * own->set->n);
    CHECK_INT(sets, 2);
}
