/* test-baseline.c: the baseline: the rings that NCCL builds by itself, all of their transfers
 * together, and what chain tables keep of it. That NCCL builds these is shown where there is an
 * NCCL (testsuite/nccl/check-baseline); here are answers that it gave. */
#include "nccl/baseline.h"

#include "chain/chain.h"
#include "machines.h"
#include "owned.h"
#include "random-model.h"
#include "ring/ring.h"
#include "sample.h"

static void check_chain(const struct tccl_machine *machine, const struct tccl_baseline *baseline,
                        int i, const char *expected)
{
    char text[TCCL_CHAIN_TEXT];
    tccl_chain_format(&baseline->set.rings[i], machine, text);
    CHECK_STR(text, expected);
}

/* The baseline is these chains, second NULL: one. */
static void check_baseline(const struct tccl_machine *machine, uint32_t gpus, bool closed,
                           const char *first, const char *second)
{
    struct tccl_baseline baseline;
    CHECK_OK(tccl_baseline_find(machine, gpus, closed, TCCL_NEWEST, &baseline, ERR));
    CHECK_INT(baseline.set.n, second ? 2 : 1);
    check_chain(machine, &baseline, 0, first);
    if (baseline.set.n == 2 && second)
        check_chain(machine, &baseline, 1, second);
}

/* Built by NCCL 2.29.7 on these machines. */
TEST(machines)
{
    const struct tccl_machine *machines[4];
    for (int i = 0; i < 4; i++)
        machines[i] = machine_of(machine_names[i]);
    check_baseline(machines[0], 0xf, true, "0 -m0> 3 -m1> 1 -m1> 2 -m3> 0", NULL);
    check_baseline(machines[0], 0xf, false, "mlx5_0 -m0> 3 -m3> 0 -m1> 2 -m1> 1 -m1> mlx5_0", NULL);
    check_baseline(machines[0], 0x9, true, "0 -w> 3 -w> 0", NULL);
    check_baseline(machines[1], 0xf, true, "0 -m0> 1 -m2> 2 -m2> 3 -m0> 0", NULL);
    check_baseline(machines[1], 0xf, false, "mlx5_0 -m0> 0 -m2> 2 -m2> 3 -m0> 1 -m0> mlx5_0", NULL);
    check_baseline(machines[2], 0xff, false,
                   "mlx5_0 -g> 0 -w> 1 -m0> 2 -w> 3 -m1> 7 -w> 6 -m1> 5 -w> 4 -g> mlx5_1",
                   "mlx5_1 -g> 4 -w> 5 -m1> 7 -w> 6 -m0> 2 -w> 3 -m0> 1 -w> 0 -g> mlx5_0");
    check_baseline(machines[3], 0xff, true,
                   "0 -m2> 1 -m0> 3 -m6> 5 -m4> 7 -m1> 2 -m7> 4 -m5> 6 -m3> 0", NULL);
}

/* GPUs with NICs of their own, in two sockets: the NICs are faster, and NCCL takes them, as 2.23.4,
 * 2.27.7, 2.29.7, 2.31.2 and 2.32.3 say in their logs, but not 2.30.7. On h100-8gpu it leaves a
 * socket by the NIC by which it came. */
TEST(by_network)
{
    static const char quad[] = "0 -w> 1 -w> 2 -w> 3 -n0n1> 4 -w> 5 -w> 6 -w> 7 -n1n0> 0",
                      h100[] = "0 -w> 1 -m0> 2 -w> 3 -m0n0n2> 4 -w> 5 -m1> 6 -w> 7 -m1n2n0> 0";
    const struct tccl_machine *dual = machine_of("dual-8gpu");
    struct tccl_baseline baseline;
    check_baseline(dual, 0x11, true, "0 -n0n1> 4 -n1n0> 0", NULL);
    check_baseline(dual, 0x3, true, "0 -w> 1 -w> 0", NULL);
    check_baseline(machine_of("quad-8gpu"), 0xff, true, quad, NULL);
    check_baseline(machine_of("h100-8gpu"), 0xff, true, h100, NULL);
    for (int i = 0; i < TCCL_GENERATIONS; i++) {
        CHECK_INT(tccl_baseline_find(dual, 0x11, true, i, &baseline, NULL), 0);
        CHECK_INT(baseline.set.n, 1);
        CHECK_INT(tccl_chain_by_nics(&baseline.set.rings[0]), i != TCCL_NCCL_2_30);
    }
}

static void check_refused(struct tccl_machine *machine, uint32_t gpus, bool closed, const char *why)
{
    struct tccl_baseline baseline;
    CHECK_FAILS(tccl_baseline_find(machine, gpus, closed, TCCL_NEWEST, &baseline, ERR), why);
}

TEST(errors)
{
    const struct tccl_model *amd = load_machine("amd-4gpu");
    struct tccl_machine machine = *tccl_model_machine(amd);
    check_refused(&machine, 0, false, "no GPU, or one that the machine doesn't have");
    check_refused(&machine, 0x10, true, "no GPU, or one that the machine doesn't have");
    check_refused(&machine, 2, true, "one GPU makes no ring");
    machine.n_nics = 0;
    check_refused(&machine, 2, false, "the machine has no NIC");
}

static int pick_switch(unsigned long *state, const struct tccl_machine *machine)
{
    return random_below(state, machine->n_switches + 1) - 1;
}

static void place(unsigned long *state, const struct tccl_machine *machine, int *numa, int *parent)
{
    *parent = pick_switch(state, machine);
    *numa =
        *parent < 0 ? random_below(state, machine->n_memories) : machine->switches[*parent].numa;
}

/* Any tree of switches, any devices. */
static void make_machine(unsigned long *state, struct tccl_machine *machine)
{
    static const int sms[] = {0, 70, 80, 90, 100};
    memset(machine, 0, sizeof(*machine));
    machine->cpu = (enum tccl_cpu)random_below(state, TCCL_CPU_YONGFENG + 1);
    machine->n_memories = 1 + random_below(state, 4);
    int switches = random_below(state, 5), sm = sms[random_below(state, 5)];
    for (; machine->n_switches < switches; machine->n_switches++) {
        struct tccl_switch *new = &machine->switches[machine->n_switches];
        place(state, machine, &new->numa, &new->parent);
    }
    machine->n_gpus = 1 + random_below(state, 8);
    for (int i = 0; i < machine->n_gpus; i++) {
        snprintf(machine->gpus[i].busid, TCCL_BUSID, "0000:%02x:00.0", 8 * i + 8);
        machine->gpus[i].sm = sm;
        place(state, machine, &machine->gpus[i].numa, &machine->gpus[i].parent);
        for (int other = 0; other < i; other++)
            machine->p2p[i][other] = machine->p2p[other][i] = random_below(state, 4) != 0;
    }
    machine->n_nics = random_below(state, 5);
    for (int i = 0; i < machine->n_nics; i++) {
        snprintf(machine->nics[i].name, TCCL_NAME, "mlx5_%d", i);
        snprintf(machine->nics[i].busid, TCCL_BUSID, "0000:%02x:00.0",
                 8 * random_below(state, 12) + 9 + i);
        machine->nics[i].gbps = 1 + random_below(state, 60);
        place(state, machine, &machine->nics[i].numa, &machine->nics[i].parent);
        for (int gpu = 0; gpu < machine->n_gpus; gpu++)
            machine->gpudirect[i][gpu] = random_below(state, 4) != 0;
    }
}

static uint32_t gpus_of(const struct tccl_chain *chain)
{
    uint32_t mask = 0;
    for (int i = 0; i < chain->n_gpus; i++)
        mask |= UINT32_C(1) << chain->gpus[i];
    return mask;
}

/* Each chain is possible on the machine, has all of the GPUs, and is there once. */
static void check_chains(const struct tccl_machine *machine, const struct tccl_baseline *baseline,
                         uint32_t gpus, bool closed)
{
    CHECK(baseline->set.n >= 1 && baseline->set.n <= TCCL_MAX_CHANNELS);
    for (int i = 0; i < baseline->set.n; i++) {
        const struct tccl_chain *chain = &baseline->set.rings[i];
        CHECK_OK(tccl_chain_check(chain, machine, ERR));
        CHECK_INT(gpus_of(chain), gpus);
        CHECK_INT(chain->closed, closed);
        CHECK(!closed || !(gpus & ((UINT32_C(1) << chain->gpus[0]) - 1)));
        CHECK(!tccl_chain_by_nics(chain) || tccl_expressible(machine, chain, 1, NULL) != 0);
        for (int other = 0; other < i; other++)
            CHECK(memcmp(chain, &baseline->set.rings[other], sizeof(*chain)) != 0);
    }
}

/* Nothing that NCCL doesn't look at matters. */
static void check_same_when_renamed(struct tccl_machine machine,
                                    const struct tccl_baseline *baseline, uint32_t gpus,
                                    bool closed)
{
    struct tccl_baseline again;
    snprintf(machine.name, sizeof(machine).name, "other");
    for (int i = 0; i < machine.n_gpus; i++)
        machine.gpus[i].minor = 7 - i;
    for (int i = 0; i < machine.n_nics; i++)
        snprintf(machine.nics[i].fabric, TCCL_NAME, "f%d", i);
    CHECK_INT(tccl_baseline_find(&machine, gpus, closed, TCCL_NEWEST, &again, NULL), 0);
    CHECK_INT(baseline->set.n, again.set.n);
    CHECK(memcmp(baseline->set.rings, again.set.rings, sizeof(again.set.rings)) == 0);
}

/* All generations at once, where what two have alike is searched once, are as each by itself. */
static void check_generations(const struct tccl_machine *machine, uint32_t gpus, bool closed,
                              int *changes)
{
    struct tccl_baseline all[TCCL_GENERATIONS], one;
    CHECK_INT(tccl_baseline_find_all(machine, gpus, closed, all, NULL), 0);
    for (int i = 0; i < TCCL_GENERATIONS; i++) {
        CHECK_INT(tccl_baseline_find(machine, gpus, closed, i, &one, NULL), 0);
        CHECK(tccl_baseline_equal(&all[i], &one));
        CHECK(one.ring.pattern == 4 && one.ring.channels >= one.set.n && one.ring.intra > 0);
        CHECK(one.tree.pattern != 4 && one.tree.channels > 0 && one.tree.inter > 0);
        *changes += i > 0 && !tccl_baseline_equal(&all[i], &all[i - 1]);
    }
}

TEST(random_generations)
{
    unsigned long start = check_seed(), *state = &start;
    int changes = 0;
    for (int round = 0; round < 12; round++) {
        struct tccl_machine machine;
        make_machine(state, &machine);
        uint32_t all = (UINT32_C(1) << machine.n_gpus) - 1;
        if (machine.n_nics > 0)
            check_generations(&machine, all, false, &changes);
        if (machine.n_gpus > 1)
            check_generations(&machine, all, true, &changes);
    }
    CHECK(changes > 0);
}

TEST(random)
{
    unsigned long start = check_seed(), *state = &start;
    struct tccl_machine machine;
    struct tccl_baseline baseline;
    for (int round = 0; round < 60; round++) {
        make_machine(state, &machine);
        uint32_t gpus = (uint32_t)random_below(state, (1 << machine.n_gpus) - 1) + 1;
        bool closed = machine.n_nics == 0 || random_below(state, 2);
        if (closed && (gpus & (gpus - 1)) == 0)
            continue;
        CHECK_INT(tccl_baseline_find(&machine, gpus, closed, TCCL_NEWEST, &baseline, NULL), 0);
        check_chains(&machine, &baseline, gpus, closed);
        check_same_when_renamed(machine, &baseline, gpus, closed);
    }
}

/* A closed ring over GPUs 0 to n - 1, all edges through one memory. */
static struct tccl_chain ring_through(int n, int memory, bool backwards)
{
    struct tccl_chain chain = {.n_gpus = n, .closed = true};
    for (int i = 0; i < n; i++) {
        chain.gpus[i] = backwards ? n - 1 - i : i;
        chain.edges[i] = (struct tccl_edge){.kind = TCCL_BOUNCE, .memory = memory};
    }
    return chain;
}

TEST(set)
{
    struct tccl_baseline baseline = {.set.n = 3};
    struct tccl_set set;
    baseline.set.rings[0] = ring_through(4, 0, false);
    baseline.set.rings[1] = ring_through(4, 1, false);
    baseline.set.rings[2] = ring_through(4, 1, true); /* makes them once more */
    CHECK_INT(tccl_baseline_set(&baseline, &set, ERR), 0);
    CHECK_INT(set.count, 24);
    CHECK(tccl_set_repeats(&set) && baseline.set.n * 2.5 == 7.5);
    for (int i = 0; i < TCCL_MAX_CHANNELS; i++)
        baseline.set.rings[i] = ring_through(16, i, false);
    baseline.set.n = 4;
    CHECK_INT(tccl_baseline_set(&baseline, &set, ERR), 0);
    CHECK_INT(set.count, 128);
    baseline.set.n = 5;
    CHECK_SAYS(tccl_baseline_set(&baseline, &set, ERR) == -1,
               "the 5 rings of the baseline make more than 144 transfers at once");
}

/* What all chains reach together by the model, a transfer of several as often. */
static double rate_all(const struct tccl_model *model, const struct tccl_baseline *baseline)
{
    tccl_transfer all[TCCL_MAX_CHANNELS * 40];
    struct tccl_set one;
    double gbps;
    int count = 0;
    for (int i = 0; i < baseline->set.n; i++) {
        tccl_chain_set(&baseline->set.rings[i], &one);
        memcpy(all + count, one.transfers, one.count * sizeof(*all));
        count += one.count;
    }
    CHECK_INT(tccl_model_slowest(model, all, count, &gbps, NULL), 0);
    return baseline->set.n * gbps;
}

static bool nearly(double a, double b)
{
    return fabs(a - b) <= 1e-9 * b;
}

/* What the search finds of it, against the model asked for all transfers at once. */
static void test_search(const char *name, bool several)
{
    const struct tccl_model *model = load_machine(name);
    const struct tccl_machine *machine = tccl_model_machine(model);
    uint32_t gpus = (UINT32_C(1) << machine->n_gpus) - 1;
    const struct tccl_search_options options = {.gap = 0.05, .pairs = 1, .budget = 500};
    owned(table) struct tccl_table *table = table_of(model, gpus, true, &options);
    struct tccl_baseline baseline;
    struct tccl_set one;
    double gbps;
    CHECK_INT(tccl_baseline_find(machine, gpus, false, TCCL_NEWEST, &baseline, NULL), 0);
    CHECK((baseline.set.n > 1) == several);
    CHECK(nearly(table->baselines[0][TCCL_NEWEST].gbps, rate_all(model, &baseline)));
    if (several) /* dual-8gpu's two rings meet on g2<m0 and g7<m1 */
        CHECK(fabs(table->baselines[0][TCCL_NEWEST].gbps - 22.78) < 0.01);
    cleanup_class struct tccl_node_class *class =
        tccl_node_class_from_table(table, machine, TCCL_VIEW_JOB);
    CHECK(class->baselines[TCCL_NEWEST].gbps[0] == table->baselines[0][TCCL_NEWEST].gbps);
    CHECK_INT(class->baselines[TCCL_NEWEST].n_chains, baseline.set.n);
    /* Each chain alone is one of those that may be taken. */
    for (int i = 0; i < baseline.set.n; i++) {
        const struct tccl_chain *chain = &baseline.set.rings[i];
        tccl_chain_set(chain, &one);
        CHECK_INT(tccl_model_measure(model, &one, &gbps, NULL, NULL, NULL), 0);
        CHECK(class->seen[chain->entry.nic * class->n_nics + chain->exit.nic].gbps >=
              gbps * (1 - 1e-9));
    }
}

/* What the table says of the baseline is what NCCL's search finds, and as fast as the model is with
 * all of it at once; also when it has been on disk. */
static void check_kept(const struct tccl_model *model, const struct tccl_table *table, bool closed,
                       int generation)
{
    const struct tccl_machine *machine = tccl_model_machine(model);
    const struct tccl_baseline *kept = &table->baselines[closed][generation];
    struct tccl_baseline found;
    if (tccl_baseline_find(machine, table->gpus, closed, generation, &found, NULL) != 0) {
        CHECK_INT(kept->set.n, 0);
        CHECK(kept->gbps == 0);
        return;
    }
    CHECK_INT(kept->set.n, found.set.n);
    CHECK(nearly(kept->gbps, rate_all(model, &found)));
    CHECK(memcmp(kept->set.rings, found.set.rings, sizeof(found.set.rings)) == 0);
    found.gbps = kept->gbps;
    CHECK(tccl_baseline_equal(kept, &found));
}

static void test_tables(const char *name, const char *path)
{
    const struct tccl_model *model = load_machine(name);
    const struct tccl_machine *machine = tccl_model_machine(model);
    const struct tccl_search_options options = {
        .gap = 100, .pairs = 1, .budget = 100, .every_nccl = machine->n_gpus <= 4};
    for (uint32_t gpus = 1; gpus >> machine->n_gpus == 0; gpus++) {
        owned(table) struct tccl_table *table = table_of(model, gpus, true, &options), *copy = NULL;
        CHECK_INT(tccl_table_write(table, path, NULL), 0);
        CHECK_INT(tccl_table_read(path, machine, &copy, NULL), 0);
        for (int closed = 0; copy && closed < 2; closed++)
            for (int i = options.every_nccl ? 0 : TCCL_NEWEST; i < TCCL_GENERATIONS; i++)
                check_kept(model, copy, closed, i);
    }
}

TEST(searches)
{
    const char *path = check_at("table.chains");
    test_search("intel-4gpu", false);
    test_search("dual-8gpu", true);
    for (int i = 0; i < 4; i++) /* the others differ in bandwidths only */
        test_tables(machine_names[i], path);
    unlink(path);
    check_nothing_left();
}
