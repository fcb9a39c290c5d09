/* Profiles measured with noise, against the model behind it: each ends whole; what is promised is
 * what there is; nobody gets less than with NCCL alone; and it costs little more. */
#include "fill/fill.h"
#include "machines.h"
#include "nccl/baseline.h"
#include "owned.h"
#include "random-model.h"
#include "ring/reach.h"
#include "ring/ring.h"

static char cache[64];

/* ---- a run ---- */

struct run {
    const char *path; /* of the model */
    const char *gpus;
    double noise;
    unsigned long seed;
    long measured;
    struct tccl_backend *backend;
    struct tccl_profile *profile;
};

static void run_end(struct run *run)
{
    tccl_profile_close(run->profile);
    tccl_backend_close(run->backend);
    check_remove(cache);
}

/* Fills a profile: all of its tables are there. */
static void run_begin(struct run *run, const char *backend)
{
    struct tccl_backend_options options = {
        .model = run->path, .noise = run->noise, .seed = run->seed};
    struct tccl_fill_progress end;
    cleanup_free uint32_t *sets = NULL;
    CHECK_OK(tccl_backend_open(backend, &options, &run->backend, ERR));
    CHECK_INT(tccl_profile_create(cache, run->backend->machine, backend, run->backend->model,
                                  &run->profile, ERR),
              0);
    int gpus = run->backend->machine->n_gpus;
    int n = tccl_gpusets_parse(run->gpus, gpus, &sets, ERR);
    const struct tccl_fill_options what = {
        .sets = sets, .n_sets = n, .gap = 0.03, .budget = 5000, .pairs = 16};
    int rc = tccl_fill(run->backend, run->profile, &what, &end, ERR);
    CHECK_INT(rc, TCCL_FILL_DONE);
    CHECK_STR(check_err.text, "");
    run->measured = end.measured;
    for (int i = 0; i < n; i++)
        CHECK(tccl_profile_table(run->profile, sets[i], ERR) != NULL);
    if (check_failures)
        fprintf(stderr, "%s, GPUs %s, noise %g, seed %lu: %s\n", run->path, run->gpus, run->noise,
                run->seed, check_err.text);
}

/* ---- what comes of it ---- */

struct verdict {
    double promised, truth;   /* of the ring, GB/s; 0: left to NCCL */
    double own, own_promised; /* NCCL's own */
    double alone;             /* what the step has in truth: the ring's, or NCCL's own */
};

static double rate(const struct tccl_model *model, const struct tccl_set *set)
{
    double gbps = 0;
    CHECK_INT(tccl_model_slowest(model, set->transfers, set->count, &gbps, NULL), 0);
    return gbps;
}

static double truth_of(const struct tccl_model *model, const struct tccl_ring_set *rings)
{
    const struct tccl_machine *machine = tccl_model_machine(model);
    int in[TCCL_MAX_NICS] = {0}, out[TCCL_MAX_NICS] = {0};
    struct tccl_side side = {0};
    double gbps = 0;
    tccl_ring_set_side(rings, &side);
    CHECK_INT(tccl_model_slowest(model, side.transfers, side.count, &gbps, NULL), 0);
    for (int i = 0; i < rings->n && !rings->rings[0].closed; i++) {
        in[rings->rings[i].entry.nic]++;
        out[rings->rings[i].exit.nic]++;
    }
    for (int i = 0; i < machine->n_nics; i++) {
        int most = in[i] > out[i] ? in[i] : out[i];
        gbps = most ? fmin(gbps, machine->nics[i].gbps / most) : gbps;
    }
    return rings->n * gbps;
}

/* As a step of so many equal nodes gets it. False: none of them has a choice. */
static bool judge(const struct run *run, const struct tccl_model *model, uint32_t gpus, int nodes,
                  struct verdict *verdict)
{
    const struct tccl_table *table = tccl_profile_table(run->profile, gpus, ERR);
    const struct tccl_machine *machine = tccl_profile_machine(run->profile);
    const struct tccl_baseline *own = &table->baselines[nodes == 1][TCCL_NEWEST];
    cleanup_class struct tccl_node_class *class =
        tccl_node_class_from_table(table, machine, TCCL_VIEW_JOB);
    struct tccl_run runs = {class, nodes};
    cleared_by(tccl_ring_clear) struct tccl_ring ring = {0};
    struct tccl_set set;
    int best;
    bool some =
        own->set.n > 0 && tccl_ring_choose(&runs, 1, nodes == 1 ? 1 : 8, &ring, &best, ERR) == 0;
    *verdict = (struct verdict){0};
    if (some) {
        CHECK_INT(tccl_baseline_set(own, &set, NULL), 0);
        verdict->own = verdict->alone = own->set.n * rate(model, &set);
        if (nodes > 1)
            verdict->own = verdict->alone =
                fmin(verdict->own, tccl_baseline_hop(class, class, TCCL_NEWEST));
        verdict->own_promised = ring.baseline_gbps[TCCL_NEWEST];
    }
    if (some && tccl_ring_gains(&ring, TCCL_NEWEST)) {
        verdict->promised = ring.gbps;
        verdict->truth = INFINITY;
        for (int i = 0; i < nodes; i++) {
            struct tccl_ring_set rings;
            tccl_ring_set_of(&ring, class, i, &rings);
            verdict->truth = fmin(verdict->truth, truth_of(model, &rings));
        }
        verdict->alone = verdict->truth;
    }
    return some;
}

enum { MOST = 1024 };
struct summary {
    double promises[MOST], owns[MOST]; /* promised / true */
    int n, n_own;
    double gain;  /* of all steps, against NCCL's own */
    double worst; /* against NCCL's own */
    int below;
};

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int n)
{
    qsort(values, (size_t)n, sizeof(*values), compare);
    return n ? values[n / 2] : 1;
}

static void look_at(const struct run *run, struct summary *summary)
{
    owned(model) struct tccl_model *model = NULL;
    cleanup_free uint32_t *masks = NULL;
    int count = tccl_profile_tables(run->profile, &masks, ERR);
    CHECK_INT(tccl_model_read(run->path, &model, ERR), 0);
    *summary = (struct summary){.worst = INFINITY};
    for (int i = 0; i < count && !check_failures; i++)
        for (int nodes = 1; nodes <= 2; nodes++) {
            struct verdict verdict;
            if (!judge(run, model, masks[i], nodes, &verdict) || summary->n == MOST)
                continue;
            if (verdict.promised > 0)
                summary->promises[summary->n++] = verdict.promised / verdict.truth;
            summary->owns[summary->n_own++] = verdict.own_promised / verdict.own;
            summary->gain += verdict.alone / verdict.own - 1;
            summary->worst = fmin(summary->worst, verdict.alone / verdict.own);
            summary->below += verdict.alone < verdict.own * (1 - 1e-9);
            if (getenv("TCCL_NOISY_ALL"))
                printf("    %05x %d nodes: promised %.3f, true %.3f; NCCL's own %.3f, true %.3f\n",
                       masks[i], nodes, verdict.promised, verdict.truth, verdict.own_promised,
                       verdict.own);
        }
}

static void show(const char *name, const struct run *run, struct summary *summary)
{
    double middle = median(summary->promises, summary->n);
    double own = median(summary->owns, summary->n_own);
    printf("%-18s %4.1f %4lu %6ld sets  promised/true %.3f (%.3f to %.3f)  NCCL's %.3f (%.3f to "
           "%.3f)  gain %7.2f  worst %.3f, %d below NCCL's\n",
           name, 100 * run->noise, run->seed, run->measured, middle,
           summary->n ? summary->promises[0] : 1,
           summary->n ? summary->promises[summary->n - 1] : 1, own,
           summary->n_own ? summary->owns[0] : 1,
           summary->n_own ? summary->owns[summary->n_own - 1] : 1, summary->gain, summary->worst,
           summary->below);
    fflush(stdout);
}

/* ---- tests ---- */

enum { ROUNDS = CHECK_ROUNDS(12) };

/* Random machines: each profile ends whole, with noise and without. */
TEST(whole)
{
    unsigned long seed = check_seed();
    for (int round = 0; round < ROUNDS && !check_failures; round++) {
        unsigned long state = seed + (unsigned long)round;
        bool noisy = round % 4 == 1;
        int gpus = noisy ? 2 + random_below(&state, 2) : 4;
        char path[96];
        cleanup_free char *text = random_model_text(&state, gpus, 1 + random_below(&state, 4),
                                                    random_below(&state, noisy ? 2 : 3));
        snprintf(path, sizeof(path), "%s.json", cache);
        FILE *file = fopen(path, "w");
        CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0);
        struct run run = {.path = path,
                          .gpus = "all",
                          .noise = noisy ? 0.03 : 0,
                          .seed = seed + (unsigned long)round};
        run_begin(&run, noisy ? "noisy" : "model");
        if (check_failures)
            fprintf(stderr, "round %d: %s\n", round, text);
        run_end(&run);
        unlink(path);
    }
}

/* Rings that were measured above what was proven became the table's. */
TEST(above_bounds)
{
    static const unsigned long seeds[] = {2, 6, 8};
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s", machine_file("amd-4gpu"));
    for (size_t i = 0; i < COUNT(seeds); i++) {
        struct run run = {.path = path, .gpus = "0,2 0,3 1,3", .noise = 0.03, .seed = seeds[i]};
        run_begin(&run, "noisy");
        run_end(&run);
    }
}

/* All GPUs of two machines at 3 %, against the same without noise. */
TEST(promises)
{
    enum { SEEDS = CHECK_ROUNDS(3) };
    static const char *const names[] = {"amd-4gpu", "intel-4gpu"};
    static double promises[MOST];
    char path[PATH_MAX];
    int n = 0;
    for (size_t i = 0; i < COUNT(names) && !check_failures; i++) {
        double gain = 0, exact_gain = 0, sets = 0, exact_sets = 0;
        snprintf(path, sizeof(path), "%s", machine_file(names[i]));
        for (unsigned long seed = 0; seed <= SEEDS && !check_failures; seed++) {
            struct run run = {
                .path = path, .gpus = "0-3", .noise = seed ? 0.03 : 1e-9, .seed = seed};
            struct summary summary;
            run_begin(&run, "noisy");
            look_at(&run, &summary);
            run_end(&run);
            show(names[i], &run, &summary);
            *(seed ? &gain : &exact_gain) += summary.gain;
            *(seed ? &sets : &exact_sets) += (double)run.measured;
            CHECK(summary.worst >= 1 - 1e-9);
            for (int k = 0; k < summary.n && seed; k++)
                promises[n++] = summary.promises[k];
        }
        CHECK(sets <= 1.5 * SEEDS * exact_sets && gain >= 0.9 * SEEDS * exact_gain);
    }
    double middle = median(promises, n);
    printf("%d promises: median %.3f of what there is, %.3f to %.3f\n", n, middle, promises[0],
           promises[n - 1]);
    CHECK(fabs(middle - 1) <= 0.02);
}

/* By hand: MACHINE|all [GPUS [NOISE [SEEDS]]]; seed 0 is without noise. */
static int explore(char **args, int n)
{
    const char *gpus = n > 1 ? args[1] : "all";
    double noise = n > 2 ? atof(args[2]) : 0.03;
    int seeds = n > 3 ? atoi(args[3]) : 3;
    char path[PATH_MAX];
    for (size_t i = 0; i < MACHINE_NAMES; i++) {
        if (strcmp(args[0], "all") != 0 && !strstr(args[0], machine_names[i]))
            continue;
        snprintf(path, sizeof(path), "%s", machine_file(machine_names[i]));
        for (int seed = 0; seed <= seeds; seed++) {
            struct run run = {.path = path,
                              .gpus = gpus,
                              .noise = seed ? noise : 1e-9,
                              .seed = (unsigned long)seed};
            struct summary summary;
            run_begin(&run, "noisy");
            look_at(&run, &summary);
            show(machine_names[i], &run, &summary);
            run_end(&run);
        }
    }
    return check_result();
}

SETUP
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    snprintf(cache, sizeof(cache), "%s", check_at("cache"));
    if (check_args[1]) {
        int count = 0;
        while (check_args[1 + count])
            count++;
        exit(explore(check_args + 1, count));
    }
}

/* ---- what an all-reduce reaches ---- */

/* Of rings with so many GPUs: as the model behind the noise says, or less where GPUs differ. */
static void compare_ends(const struct tccl_model *model, const struct tccl_chain *rings, int n,
                         uint8_t ends, int *compared)
{
    int gpus = rings[0].n_gpus * (rings[0].closed ? 1 : 2);
    double able = tccl_reach(tccl_ends(model, rings, n), gpus), told = tccl_reach(ends, gpus);
    CHECK(told < able * 1.05 && told > able * 0.93);
    if (!(told < able * 1.05 && told > able * 0.93))
        fprintf(stderr, "%d rings of %d GPUs: ends %d, %d by the model\n", n, gpus, ends,
                tccl_ends(model, rings, n));
    *compared += ends > TCCL_ENDS_LEAST && ends < TCCL_ENDS_MOST;
}

/* The ends of a round are measured, of NCCL's own and of ours, and hardly cost anything. */
TEST(ends)
{
    static const struct {
        const char *name, *gpus;
    } cases[] = {{"amd-4gpu", "0-3 1-2"}, {"intel-4gpu", "0-3 0-1"}, {"epyc-8gpu", "0-3"}};
    char path[PATH_MAX];
    unsigned long seed = check_seed() % 1000 + 1;
    int compared = 0;
    for (size_t i = 0; i < COUNT(cases) && !check_failures; i++) {
        owned(model) struct tccl_model *model = NULL;
        cleanup_free uint32_t *masks = NULL;
        snprintf(path, sizeof(path), "%s", machine_file(cases[i].name));
        CHECK_INT(tccl_model_read(path, &model, ERR), 0);
        struct run run = {.path = path, .gpus = cases[i].gpus, .noise = 0.02, .seed = seed};
        run_begin(&run, "noisy");
        int count = tccl_profile_tables(run.profile, &masks, ERR);
        for (int k = 0; k < count; k++) {
            const struct tccl_table *table = tccl_profile_table(run.profile, masks[k], ERR);
            const struct tccl_result *ring = tccl_table_ring((struct tccl_table *)table);
            CHECK(ring->ends > 0 && table->baselines[1][TCCL_NEWEST].ends > 0);
            compare_ends(model, &ring->chain, 1, ring->ends, &compared);
            for (int closed = 0; closed < 2; closed++) {
                const struct tccl_baseline *own = &table->baselines[closed][TCCL_NEWEST];
                if (own->set.n > 0)
                    compare_ends(model, own->set.rings, own->set.n, own->ends, &compared);
            }
        }
        run_end(&run);
    }
    CHECK(compared >= 8);
}
