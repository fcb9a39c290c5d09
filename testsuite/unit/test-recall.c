/* test-recall.c: rings of measured profiles, with noise and without, on links that carry less than
 * when they were measured: what was measured then is judged again, and searched again, against a
 * fresh search on the machine as it is now, which nobody here has seen. */
#include "fill/fill.h"
#include "narrow-links.h"
#include "profile/measured.h"
#include "ring/ring.h"
#include "search/model-table.h"
#include "search/recall.h"

OWNED(tables, struct tccl_model_tables, tccl_model_tables_free)

#define WANTED 0.95
enum { LINKS = 3 /* of each machine and noise, drawn */ };

static char cache[64];

static double known(void *context, const struct tccl_set *set)
{
    struct tccl_measurement value;
    return tccl_measured_ask(context, set, &value) == TCCL_NO_ANSWER || value.failed ? 0
                                                                                     : value.gbps;
}

static struct tccl_profile *fill(const char *name, const uint32_t *gpus, int n, double noise,
                                 unsigned long seed)
{
    struct tccl_backend_options options = {
        .model = machine_file(name), .noise = noise, .seed = seed};
    const struct tccl_fill_options what = {
        .sets = gpus, .n_sets = n, .gap = 0.03, .budget = 5000, .pairs = 4};
    struct tccl_backend *backend;
    struct tccl_profile *profile;
    struct tccl_fill_progress end;
    MUST(tccl_backend_open("noisy", &options, &backend, ERR));
    MUST(tccl_profile_create(cache, backend->machine, "noisy", NULL, &profile, ERR));
    CHECK_INT(tccl_fill(backend, profile, &what, &end, ERR), TCCL_FILL_DONE);
    tccl_backend_close(backend);
    return profile;
}

/* A machine, its profile, and one link of it that carries less. */
struct trial {
    const char *name;
    double noise, noisy;
    const struct tccl_model *model, *now; /* as it was measured, and is */
    struct tccl_model_tables *fresh;
    struct tccl_profile *profile;
    struct tccl_measured measured;
    const struct link *link;
    double part;
};

static struct {
    int cases, judged, below;
    double least;
} sum;
static int all_cases, all_below; /* with noise */

/* What the ring, or the rings, reach in truth that a table promises most of. */
static double reach_of_best(const struct tccl_model *model, const struct tccl_table *table)
{
    double most = 0, reaches = 0;
    for (int i = 0; i < table->n_results; i++) {
        const struct tccl_result *own = &table->results[i];
        const struct tccl_chain *rings = own->set ? own->set->rings : &own->chain;
        const int n = own->set ? own->set->n : own->chain.n_gpus > 0,
                  gpus = __builtin_popcount(table->gpus);
        struct tccl_side side = {0};
        const struct tccl_side *sides[] = {&side};
        double gbps;
        if (n == 0 || !own->chain.closed || own->gbps * tccl_reach(own->ends, gpus) <= most)
            continue;
        for (int k = 0; k < n; k++)
            tccl_side_add_chain(&side, &rings[k]);
        MUST(tccl_model_sides(model, sides, 1, &gbps, ERR));
        most = own->gbps * tccl_reach(own->ends, gpus);
        reaches = gbps * tccl_reach(tccl_ends(model, rings, n), gpus);
    }
    return reaches;
}

/* What was measured with noise is no better than what it had on the whole machine; NCCL's own is
 * none of it, which may have gone by a link that carries less now. */
static void compare(struct trial *trial, uint32_t gpus)
{
    const struct tccl_narrowed narrowed = {.n = 1, .links = {trial->link->narrow}};
    const struct tccl_machine *machine = tccl_model_machine(trial->now);
    const struct tccl_table *before = tccl_profile_table(trial->profile, gpus, ERR);
    const struct tccl_table *fresh = tccl_model_tables_get(trial->fresh, gpus, ERR);
    uint32_t felt;
    double told, retold, ignored;
    owned(table) struct tccl_table *ours =
        tccl_narrowed_table(before, machine, &narrowed, NULL, &felt);
    const double could = fmin(reach_of(trial->now, fresh, &ignored),
                              reach_of_best(trial->model, before)),
                 judged = reach_of(trial->now, ours, &told);
    if (!tccl_narrowed_suffices(before, ours, false, WANTED)) {
        owned(table) struct tccl_table *found =
            tccl_recall_table(machine, &trial->measured.sets, &narrowed, before, NULL, NULL, ERR);
        CHECK(found != NULL);
        if (found)
            tccl_narrowed_add(ours, found, NULL);
    }
    const double has = reach_of(trial->now, ours, &retold);
    /* With noise several rings have to gain more over one, so that now and then one is taken which
     * has less: WANTED is of most then. */
    const double least = trial->noise > 0 ? trial->noisy : WANTED;
    const bool fine = has >= least * could && has >= WANTED * judged && retold >= told;
    CHECK(fine);
    if (trial->noise > 0) {
        all_cases++;
        all_below += has < WANTED * could;
    }
    sum.cases++;
    sum.judged += judged < WANTED * could;
    sum.below += has < WANTED * could;
    sum.least = fmin(sum.least, has / could);
    if (getenv("TCCL_VERBOSE") || !fine)
        printf("%s %08x %sx%g: judged %.2f (told %.2f), now %.2f (told %.2f) of %.2f: %.3f, %.3f\n",
               trial->name, gpus, trial->link->prefix, trial->part, judged, told, has, retold,
               could, judged / could, has / could);
}

static void try_link(struct trial *trial, struct link *link, const uint32_t *sets, int n)
{
    owned(model) struct tccl_model *now = cut(trial->name, link, trial->part);
    if (!now)
        return;
    tccl_narrow_rate(&link->narrow, tccl_model_machine(now), trial->part, known, &trial->measured);
    owned(tables) struct tccl_model_tables *fresh = tccl_model_tables_new(now, NULL);
    trial->now = now;
    trial->fresh = fresh;
    trial->link = link;
    for (int i = 0; i < n; i++)
        compare(trial, sets[i]);
}

/* noisy: what is wanted of each case with noise. */
static void try_machine(const char *name, double noise, double noisy)
{
    struct trial trial = {
        .name = name, .noise = noise, .noisy = noisy, .model = load_machine(name)};
    const struct tccl_machine *machine = tccl_model_machine(trial.model);
    const uint32_t all = (UINT32_C(1) << machine->n_gpus) - 1;
    const uint32_t sets[] = {all, all >> machine->n_gpus / 2, all & 0x5555,
                             1 | UINT32_C(1) << machine->n_gpus / 2};
    struct link links[TCCL_MAX_GPUS + TCCL_MAX_NICS + TCCL_MAX_SWITCHES];
    const int n = list_links(machine, links);
    trial.profile = fill(name, sets, COUNT(sets), noise, (unsigned long)rand());
    MUST(tccl_measured_load(trial.profile, &trial.measured, ERR) == 0 ? 0 : -1);
    sum.cases = sum.judged = sum.below = 0;
    sum.least = INFINITY;
    for (int i = 0; i < LINKS; i++) {
        trial.part = rand() % 2 ? 0.5 : 0.125;
        try_link(&trial, &links[rand() % n], sets, COUNT(sets));
    }
    printf("%s, noise %g: %d cases; judged %d below %g, searched %d; least %.3f\n", name, noise,
           sum.cases, sum.judged, WANTED, sum.below, sum.least);
    tccl_measured_clear(&trial.measured);
    tccl_profile_close(trial.profile);
    check_remove(cache);
}

TEST(rings)
{
    static const struct {
        const char *name;
        double noisy;
    } machines[] = {{"quad-8gpu", 0.8},
                    {"amd-4gpu", 0.8},
                    {"intel-4gpu", 0.8},
                    {"dual-8gpu", 0.8},
                    {"h100-8gpu", 0.8},
                    {"epyc-nps4-4a100", 0.8},
                    /* Two rings that read are best where a switch is left by another one of its
                     * chip only. Noise may have it that reading loses; then one that writes. */
                    {"turin-pex890", 0.7}};
    static const double noises[] = {0, 0.03};
    /* The same cases each time (with clang and sanitizers the same third): this seed has one on
     * turin-pex890 where two rings that read are best, and such that write are guessed to have a
     * little more. With others and noise one of some 250 there has 0.5. */
    srand(getenv("TCCL_SEED") ? (unsigned)check_seed() : 1795832699);
    snprintf(cache, sizeof(cache), "%s", check_at("cache"));
    for (size_t i = (size_t)rand() % CHECK_PART; i < COUNT(machines) * COUNT(noises);
         i += CHECK_PART)
        try_machine(machines[i % COUNT(machines)].name, noises[i / COUNT(machines)],
                    machines[i % COUNT(machines)].noisy);
    printf("with noise %d of %d below %g\n", all_below, all_cases, WANTED);
    CHECK(all_below * 20 <= all_cases || CHECK_PART > 1);
}

/* All of a GPU set that a fresh search finds, between NICs, too. */
static struct tccl_table *search_between(const struct tccl_model *model, uint32_t gpus)
{
    const struct tccl_search_options options = {
        .gap = 0.03, .budget = 5000, .pairs = 16, .others = TCCL_TABLE_OTHERS, .reads = true};
    const struct tccl_table_sets_options sets = {.gap = 0.03, .budget = TCCL_TABLE_RINGS};
    owned(search) struct tccl_search *search =
        tccl_search_new(tccl_model_machine(model), tccl_model_meter(model), NULL);
    struct tccl_table *table = tccl_table_new(tccl_model_machine(model), gpus);
    MUST(tccl_search_table(search, table, &options, ERR) >= 0 ? 0 : -1);
    MUST(tccl_table_find_sets(model, table, &sets, ERR));
    tccl_table_ends(table, model);
    return table;
}

/* What the rings of a step over two such nodes reach in truth. */
static double reach_between(const struct tccl_model *model, const struct tccl_table *table)
{
    cleanup_class struct tccl_node_class *class =
        tccl_node_class_from_table(table, tccl_model_machine(model), TCCL_VIEW_JOB);
    const struct tccl_run run = {class, 2};
    cleared_by(tccl_ring_clear) struct tccl_ring ring = {0};
    int best, in[TCCL_CHAIN_RINGS], out[TCCL_CHAIN_RINGS];
    double least = INFINITY;
    MUST(tccl_ring_choose(&run, 1, TCCL_CHAIN_RINGS, &ring, &best, ERR));
    for (int node = 0; node < 2; node++) {
        struct tccl_ring_set set = {0};
        struct tccl_side side = {0};
        tccl_ring_set_of(&ring, class, node, &set);
        tccl_set_nics(&set, in, out);
        for (int i = 0; i < set.n; i++)
            tccl_side_add_chain(&side, &set.rings[i]);
        const double gbps = fmin(side_gbps(model, &side), tccl_class_hops(class, in, out, set.n)) *
                            tccl_reach(tccl_ends(model, set.rings, set.n), 2 * class->n_gpus);
        least = fmin(least, gbps);
    }
    return least;
}

/* Rings between NICs that come in below a switch's link and leave above it pass it one way only, so
 * that two of them, one each way, have twice as much. With noise no less than judged alone. */
static void try_between(const char *name, const char *prefix, double noise)
{
    const struct tccl_machine *machine = machine_of(name);
    const uint32_t all = (UINT32_C(1) << machine->n_gpus) - 1;
    struct link links[TCCL_MAX_GPUS + TCCL_MAX_NICS + TCCL_MAX_SWITCHES], *link = links;
    struct tccl_profile *profile = fill(name, &all, 1, noise, (unsigned long)rand());
    struct tccl_measured measured = {0};
    uint32_t felt;
    MUST(tccl_measured_load(profile, &measured, ERR) == 0 ? 0 : -1);
    for (list_links(machine, links); strcmp(link->prefix, prefix) != 0; link++)
        ;
    owned(model) struct tccl_model *now = cut(name, link, 0.5);
    tccl_narrow_rate(&link->narrow, machine, 0.5, known, &measured);
    const struct tccl_narrowed narrowed = {.n = 1, .links = {link->narrow}};
    const struct tccl_table *before = tccl_profile_table(profile, all, ERR);
    owned(table) struct tccl_table *fresh = search_between(now, all);
    owned(table) struct tccl_table *ours =
        tccl_narrowed_table(before, machine, &narrowed, NULL, &felt);
    const double could = fmin(reach_between(now, fresh), reach_between(load_machine(name), before)),
                 judged = reach_between(now, ours);
    CHECK(noise > 0 || !tccl_narrowed_suffices(before, ours, true, WANTED));
    owned(table) struct tccl_table *found =
        tccl_recall_table(machine, &measured.sets, &narrowed, before, NULL, NULL, ERR);
    MUST(found ? 0 : -1);
    tccl_narrowed_add(ours, found, NULL);
    const double has = reach_between(now, ours);
    printf("%s %sbetween NICs, noise %g: judged %.3f, now %.3f of %.2f\n", name, prefix, noise,
           judged / could, has / could, could);
    CHECK(noise > 0 ? has >= WANTED * judged : has >= WANTED * could && judged < has);
    tccl_measured_clear(&measured);
    tccl_profile_close(profile);
    check_remove(cache);
}

TEST(between)
{
    srand((unsigned)check_seed());
    snprintf(cache, sizeof(cache), "%s", check_at("between"));
    try_between("h100-8gpu", "sw3 ", 0);
    try_between("epyc-nps4-4a100", "sw3 ", 0);
    try_between("intel-4gpu", "g2 ", 0.03);
}

/* As turin-pex890 is said to be: a write to the memory of another node is slow, but with something
 * beside it. That holds back no ring. */
TEST(odd)
{
    const struct tccl_machine *machine = machine_of("amd-4gpu");
    const uint32_t all = 0xf;
    const struct tccl_narrowed narrowed = {.n = 0};
    struct tccl_measured measured = {0};
    double gbps[2];
    snprintf(cache, sizeof(cache), "%s", check_at("odd"));
    struct tccl_profile *profile = fill("amd-4gpu", &all, 1, 0, 1);
    MUST(tccl_measured_load(profile, &measured, ERR) == 0 ? 0 : -1);
    const struct tccl_table *before = tccl_profile_table(profile, all, ERR);
    for (int odd = 0; odd < 2; odd++) {
        for (size_t i = 0; i < measured.sets.count && odd; i++) {
            struct tccl_setmap_entry *own = &measured.sets.entries[i];
            const tccl_transfer first = own->set.transfers[0];
            if (own->set.count == 1 && tccl_transfer_sink(first).kind == TCCL_MEMORY &&
                tccl_machine_numa(machine, tccl_transfer_source(first)) !=
                    tccl_transfer_sink(first).index)
                own->best.gbps *= 0.2;
            for (own->measured = 0; own->measured < TCCL_VALUES; own->measured++)
                own->values[own->measured] = own->best.gbps;
        }
        owned(table) struct tccl_table *found =
            tccl_recall_table(machine, &measured.sets, &narrowed, before, NULL, NULL, ERR);
        MUST(found ? 0 : -1);
        gbps[odd] = tccl_table_ring(found)->gbps;
    }
    CHECK(gbps[1] >= gbps[0] * (1 - 1e-9));
    tccl_measured_clear(&measured);
    tccl_profile_close(profile);
    check_remove(cache);
}

static struct tccl_set set_at(int i)
{
    struct tccl_set set = {0};
    tccl_set_add(&set, (tccl_transfer)(i / 100));
    tccl_set_add(&set, (tccl_transfer)(200 + i % 100));
    return set;
}

/* So many sets of a profile are kept; those that are known go on. */
TEST(many)
{
    cleared_by(tccl_setmap_clear) struct tccl_setmap sets = {0};
    const struct tccl_measurement value = {.gbps = 1}, marked = {.gbps = 1, .marks = 1};
    for (int i = 0; i < TCCL_RECALL_SETS + 100; i++) {
        const struct tccl_set set = set_at(i);
        CHECK_INT(tccl_recall_note(&sets, &set, &marked), 0);
        CHECK(!tccl_setmap_find(&sets, &set));
        CHECK_INT(tccl_recall_note(&sets, &set, &value), 0);
    }
    const struct tccl_set first = set_at(0);
    CHECK_INT(tccl_recall_note(&sets, &first, &value), 0);
    CHECK_INT(tccl_setmap_find(&sets, &first)->measured, 2);
    CHECK_INT(sets.count, TCCL_RECALL_SETS);
}

static int stop_at(void *context, const struct tccl_search_progress *progress UNUSED)
{
    int *left = context;
    return (*left)-- > 0 ? TCCL_SEARCH_GO_ON : TCCL_SEARCH_STOP;
}

/* Told to stop while it learns, it does so at once; later, it has what was found so far. */
TEST(stopped)
{
    const struct tccl_machine *machine = machine_of("turin-pex890");
    const uint32_t all = 0xff;
    const struct tccl_narrowed narrowed = {.n = 1,
                                           .links = {{.gpus = 3, .gbps = {6.4, 6.7}, .reads = 1}}};
    struct tccl_measured measured = {0};
    snprintf(cache, sizeof(cache), "%s", check_at("stopped"));
    struct tccl_profile *profile = fill("turin-pex890", &all, 1, 0, 1);
    MUST(tccl_measured_load(profile, &measured, ERR) == 0 ? 0 : -1);
    const struct tccl_table *before = tccl_profile_table(profile, all, ERR);
    for (int at = 0; at < 3; at++) {
        int left = at;
        owned(table) struct tccl_table *none =
            tccl_recall_table(machine, &measured.sets, &narrowed, before, stop_at, &left, ERR);
        CHECK(!none);
        CHECK_STR(check_err.text, "stopped");
        CHECK_INT(left, -1);
    }
    int left = 200;
    owned(table) struct tccl_table *some =
        tccl_recall_table(machine, &measured.sets, &narrowed, before, stop_at, &left, ERR);
    CHECK(some && tccl_table_ring(some)->gbps > 0 && left < 0);
    tccl_measured_clear(&measured);
    tccl_profile_close(profile);
    check_remove(cache);
}
