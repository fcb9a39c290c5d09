/* test-reach.c: what an all-reduce reaches, against a run of NCCL's blocks, step by step: each rank
 * of each ring does what runRing does, a chunk at a time, as its neighbours and its buffers let it,
 * and what is under way at a moment shares the model's capacities. */
#include "machines.h"
#include "owned.h"
#include "random-model.h"
#include "ring/neighbours.h"
#include "ring/reach.h"
#include "search/model-table.h"

enum { SLOTS = 2, ROUNDS = 40, FIRST = 20, RANKS = 16, RINGS = 8, JOBS = 4 };

/* A rank of a ring. */
struct rank {
    tccl_transfer send, receive; /* of its own; TCCL_NO_TRANSFER: the other end's, or none */
    int step;                    /* since the beginning; a round has 2n - 1 */
    int sent, received;          /* chunks, done */
    double to_send, to_receive;  /* of the chunk under way, what is left */
    bool busy;
    double ends[ROUNDS]; /* of each round of the first all-reduce */
};

/* Rings of one job or several, which don't wait for each other: one all-reduce of each job after
 * the other, as long as somebody is at the first. */
struct run {
    const struct tccl_model *model;
    double noise; /* of each copy's size, as a part */
    unsigned long state;
    int rings, n[JOBS * RINGS], job[JOBS * RINGS]; /* of each ring: ranks */
    struct rank ranks[JOBS * RINGS][RANKS];
};

static bool sends(int n, int step)
{
    return step % (2 * n - 1) != 2 * n - 2;
}

static bool receives(int n, int step)
{
    return step % (2 * n - 1) != 0;
}

static void add_ring(struct run *run, const struct tccl_chain *ring, int job)
{
    const int n = ring->n_gpus;
    struct rank *ranks = run->ranks[run->rings];
    run->job[run->rings] = job;
    run->n[run->rings++] = n;
    for (int i = 0; i < n; i++)
        ranks[i] = (struct rank){.send = TCCL_NO_TRANSFER, .receive = TCCL_NO_TRANSFER};
    for (int i = 0; i < n; i++) {
        int next = (i + 1) % n;
        tccl_transfer way[2];
        int count = tccl_edge_transfers(ring->edges[i], ring->gpus[i], ring->gpus[next], way);
        if (ring->edges[i].kind != TCCL_P2P_READ)
            ranks[i].send = way[0];
        if (ring->edges[i].kind != TCCL_P2P_WRITE)
            ranks[next].receive = way[count - 1];
    }
}

static int rounds_of(const struct run *run, int r, int rank)
{
    return run->ranks[r][rank].step / (2 * run->n[r] - 1);
}

/* What a copy takes is never the same. */
static double chunk(struct run *run)
{
    return 1 + run->noise * (random_below(&run->state, 2001) / 1000.0 - 1);
}

/* Is an all-reduce over that another rank of the job is still at? */
static bool waits(const struct run *run, int r, int rank)
{
    int rounds = rounds_of(run, r, rank);
    bool waits = false;
    if (run->ranks[r][rank].step % (ROUNDS * (2 * run->n[r] - 1)))
        return false;
    for (int k = 0; k < run->rings; k++)
        for (int i = 0; i < run->n[k]; i++)
            waits |= run->job[k] == run->job[r] && rounds_of(run, k, i) < rounds;
    return waits;
}

/* Begins steps that may begin: the chunk is there, and so is room for that of this step. */
static void begin(struct run *run, int r)
{
    const int n = run->n[r];
    for (int i = 0; i < n; i++) {
        struct rank *own = &run->ranks[r][i], *next = &run->ranks[r][(i + 1) % n];
        const struct rank *before = &run->ranks[r][(i + n - 1) % n];
        if (own->busy || waits(run, r, i) ||
            (receives(n, own->step) && before->sent <= own->received) ||
            (sends(n, own->step) && own->sent - next->received >= SLOTS))
            continue;
        own->busy = true;
        own->to_send = (sends(n, own->step) && own->send != TCCL_NO_TRANSFER) * chunk(run);
        own->to_receive = (receives(n, own->step) && own->receive != TCCL_NO_TRANSFER) * chunk(run);
    }
}

static bool finish(int n, struct rank *own, double now)
{
    if (!own->busy || own->to_send > 1e-9 || own->to_receive > 1e-9)
        return false;
    own->sent += sends(n, own->step);
    own->received += receives(n, own->step);
    own->busy = false;
    if (++own->step % (2 * n - 1) == 0 && own->step / (2 * n - 1) <= ROUNDS)
        own->ends[own->step / (2 * n - 1) - 1] = now;
    return true;
}

/* The copies under way, up to where the first one ends. */
static double advance(struct run *run)
{
    tccl_transfer members[2 * JOBS * RINGS * RANKS];
    double *left[2 * JOBS * RINGS * RANKS], rates[2 * JOBS * RINGS * RANKS], time = INFINITY;
    int count = 0;
    for (int r = 0; r < run->rings; r++)
        for (int i = 0; i < run->n[r]; i++) {
            struct rank *own = &run->ranks[r][i];
            if (own->to_send > 1e-9)
                members[count] = own->send, left[count++] = &own->to_send;
            if (own->to_receive > 1e-9)
                members[count] = own->receive, left[count++] = &own->to_receive;
        }
    if (count == 0)
        return 0;
    CHECK_INT(tccl_model_rates(run->model, members, count, rates, NULL, NULL), 0);
    for (int i = 0; i < count; i++)
        time = fmin(time, *left[i] / rates[i]);
    for (int i = 0; i < count; i++)
        *left[i] -= time * rates[i];
    return time;
}

static void run_all(struct run *run)
{
    double now = 0;
    for (bool more = true; more;) {
        bool done = false;
        more = false;
        for (int r = 0; r < run->rings; r++)
            begin(run, r);
        for (int r = 0; r < run->rings; r++)
            for (int i = 0; i < run->n[r]; i++)
                done |= finish(run->n[r], &run->ranks[r][i], now);
        if (!done)
            now += advance(run);
        for (int r = 0; r < run->rings; r++)
            for (int i = 0; i < run->n[r]; i++)
                more |= rounds_of(run, r, i) < ROUNDS;
    }
}

/* Of n rings from this one on, GB/s of all. */
static double reached(const struct run *run, int first, int n)
{
    double slowest = INFINITY;
    for (int r = first; r < first + n; r++)
        for (int i = 0; i < run->n[r]; i++) {
            const double *ends = run->ranks[r][i].ends;
            slowest = fmin(slowest, (ROUNDS - FIRST) * (2 * run->n[r] - 2) /
                                        (ends[ROUNDS - 1] - ends[FIRST - 1]));
        }
    return n * slowest;
}

/* What all-reduces of many rounds reach, of each job; who is faster goes on until all are done. */
static void run_jobs(const struct tccl_model *model, const struct tccl_ring_set *const *jobs, int n,
                     double noise, double *gbps)
{
    static struct run run;
    run.model = model;
    run.noise = noise;
    run.state = 1;
    run.rings = 0;
    for (int job = 0; job < n; job++)
        for (int r = 0; r < jobs[job]->n; r++)
            add_ring(&run, &jobs[job]->rings[r], job);
    run_all(&run);
    for (int job = 0, first = 0; job < n; first += jobs[job++]->n)
        gbps[job] = reached(&run, first, jobs[job]->n);
}

static double run_rings(const struct tccl_model *model, const struct tccl_chain *rings, int n)
{
    struct tccl_ring_set set = {.n = n};
    const struct tccl_ring_set *jobs[] = {&set};
    double gbps;
    memcpy(set.rings, rings, (size_t)n * sizeof(*rings));
    run_jobs(model, jobs, 1, 0, &gbps);
    return gbps;
}

static double foretold(const struct tccl_model *model, const struct tccl_chain *rings, int n)
{
    struct tccl_ring_set set = {.n = n};
    struct tccl_side side;
    memcpy(set.rings, rings, (size_t)n * sizeof(*rings));
    tccl_ring_set_side(&set, &side);
    return side_gbps(model, &side) * tccl_reach(tccl_ends(model, rings, n), rings[0].n_gpus);
}

/* Told and run, as a ratio. */
static double compare(const struct tccl_model *model, const struct tccl_chain *rings, int n)
{
    return foretold(model, rings, n) / run_rings(model, rings, n);
}

static int compared;

static void check_close(const struct tccl_model *model, const struct tccl_chain *rings, int n)
{
    double ratio = compare(model, rings, n);
    if (!(ratio > 0.93 && ratio < 1.07))
        fprintf(stderr, "%s: %g\n", tccl_model_machine(model)->name, ratio);
    CHECK(ratio > 0.93 && ratio < 1.07);
    compared++;
}

/* NCCL's own rings, and all that tables have for a node alone. */
TEST(models)
{
    const char *const names[] = {"amd-4gpu",  "intel-4gpu", "dual-8gpu",
                                 "epyc-8gpu", "quad-8gpu",  "lopsided-8gpu"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        const struct tccl_model *model = load_machine(names[i]);
        const uint32_t gpus = (UINT32_C(1) << tccl_model_machine(model)->n_gpus) - 1;
        struct tccl_model_tables *tables = tccl_model_tables_new(model, NULL);
        const struct tccl_table *table = tccl_model_tables_get(tables, gpus, ERR);
        const struct tccl_result *own = NULL;
        CHECK(table != NULL);
        check_close(model, table->baselines[1][TCCL_NEWEST].set.rings,
                    table->baselines[1][TCCL_NEWEST].set.n);
        while ((own = tccl_table_next(table, own, TCCL_SINGLES | TCCL_SETS)))
            if (own->chain.closed) {
                CHECK_INT(own->ends, tccl_ends(model, own->set ? own->set->rings : &own->chain,
                                               own->set ? own->set->n : 1));
                check_close(model, own->set ? own->set->rings : &own->chain,
                            own->set ? own->set->n : 1);
            }
        tccl_model_tables_free(tables);
    }
    CHECK(compared > 20);
}

/* By bounces alone, of which each is as fast in both directions at once: 6 of 7. */
TEST(bounces)
{
    struct tccl_chain ring = {.n_gpus = 4, .closed = true, .gpus = {0, 1, 2, 3}};
    for (int i = 0; i < 4; i++)
        ring.edges[i] = (struct tccl_edge){TCCL_BOUNCE, (uint8_t)(i % 2)};
    CHECK_INT(tccl_ends_most(&ring, 1), 200);
    CHECK(fabs(tccl_reach(200, 4) - 6.0 / 7) < 1e-12 && tccl_reach(100, 4) == 1);
    CHECK(tccl_reach(0, 4) == 1 && tccl_reach(200, 1) == 1);
    for (int i = 0; i < 4; i++)
        ring.edges[i] = (struct tccl_edge){TCCL_P2P_WRITE, 0};
    CHECK_INT(tccl_ends_most(&ring, 1), 100);
    ring.edges[1].kind = TCCL_P2P_READ; /* GPU 2 reads, and writes to GPU 3 */
    CHECK_INT(tccl_ends_most(&ring, 1), 200);
}

/* A NIC that all goes through twice is the slowest part: GPUs have time for their ends. */
TEST(by_nics)
{
    const struct tccl_model *model = load_machine("dual-8gpu");
    struct tccl_chain ring;
    CHECK_OK(
        tccl_chain_parse("0 -m0n0n0m0> 1 -m0n0n0m0> 0", tccl_model_machine(model), &ring, ERR));
    CHECK_INT(tccl_ends(model, &ring, 1), 100);
}

static struct tccl_chain random_ring(unsigned long *state, const struct tccl_machine *machine)
{
    struct tccl_chain ring = {.n_gpus = (uint8_t)machine->n_gpus, .closed = true};
    int memory = random_below(state, 2), p2p = random_below(state, 3);
    for (int i = 0; i < machine->n_gpus; i++)
        ring.gpus[i] = (uint8_t)i;
    for (int i = machine->n_gpus - 1; i > 0; i--) {
        int k = random_below(state, i + 1);
        uint8_t gpu = ring.gpus[i];
        ring.gpus[i] = ring.gpus[k];
        ring.gpus[k] = gpu;
    }
    for (int i = 0; i < machine->n_gpus; i++) {
        bool direct = random_below(state, 3) < p2p;
        ring.edges[i] = (struct tccl_edge){
            direct ? random_below(state, 2) ? TCCL_P2P_WRITE : TCCL_P2P_READ : TCCL_BOUNCE,
            direct   ? 0
            : memory ? (uint8_t)random_below(state, machine->n_memories)
                     : 0};
    }
    return ring;
}

/* Whatever the ring: hardly more is told than it reaches, and seldom much less, as where rules hold
 * for what seldom runs at once. */
TEST(random_models)
{
    unsigned long state = check_seed();
    int n = 0, less = 0;
    for (int i = 0; i < 400; i++) {
        struct tccl_model *model = random_model(&state, 4, 2, 0);
        const struct tccl_machine *machine = tccl_model_machine(model);
        struct tccl_chain rings[2] = {random_ring(&state, machine), random_ring(&state, machine)};
        if (tccl_chain_check(&rings[0], machine, NULL) == 0 &&
            tccl_chain_check(&rings[1], machine, NULL) == 0) {
            double ratio = compare(model, rings, 1 + random_below(&state, 2));
            if (ratio > 1.12)
                fprintf(stderr, "round %d: %g\n", i, ratio);
            CHECK(ratio <= 1.12);
            less += ratio < 0.9;
            n++;
        }
        tccl_model_free(model);
    }
    CHECK(n > 100 && less < n / 8);
}

/* ---- beside others ---- */

enum { OWN = 6 };
#define NOISE 0.05

struct job {
    struct tccl_ring_set set;
    double told, before, ran; /* before: with the ends that it has alone */
};

static bool has_nics(const struct tccl_ring_set *set)
{
    bool any = false;
    for (int r = 0; r < set->n; r++)
        for (int i = 0; i < tccl_chain_edges(&set->rings[r]); i++)
            any |= set->rings[r].edges[i].kind > TCCL_BOUNCE;
    return any;
}

/* NCCL's own, and what the table has. Returns how many. */
static int list_jobs(const struct tccl_table *table, struct job jobs[static OWN])
{
    const struct tccl_result *own = NULL;
    int n = 1;
    jobs[0].set = table->baselines[1][TCCL_NEWEST].set;
    n -= has_nics(&jobs[0].set);
    while (n < OWN && (own = tccl_table_next(table, own, TCCL_SINGLES | TCCL_SETS)))
        if (own->chain.closed)
            jobs[n++].set = own->set ? *own->set : (struct tccl_ring_set){1, {own->chain}};
    return n;
}

/* The first one is told as a step that comes, beside the others. */
static void tell(const struct tccl_model *model, struct job *const *jobs, int n)
{
    struct tccl_beside beside = {.model = model, .own = 1, .n = n - 1};
    struct tccl_side sides[JOBS];
    struct tccl_worth worth;
    uint8_t ends[TCCL_MAX_SIDES];
    const struct tccl_ring_set *sets[JOBS];
    double ran[JOBS];
    for (int i = 0; i < n; i++) {
        tccl_ring_set_side(&jobs[i]->set, &sides[i]);
        sets[i] = &jobs[i]->set;
        if (i > 0)
            beside.others[i - 1] = &sides[i];
        beside.alone[i > 0 ? i - 1 : 0] = 1;
    }
    CHECK_INT(tccl_beside_worth(&beside, &sides[0], &worth, ERR), 0);
    CHECK_INT(tccl_beside_ends(&beside, &sides[0], &worth, ends, ERR), 0);
    run_jobs(model, sets, n, NOISE, ran);
    for (int i = 0; i < n; i++) {
        const int gpus = jobs[i]->set.rings[0].n_gpus;
        double gbps = i ? worth.others[i - 1] : worth.gbps;
        jobs[i]->told = gbps * tccl_reach(ends[i], gpus);
        jobs[i]->before =
            gbps * tccl_reach(tccl_ends(model, jobs[i]->set.rings, jobs[i]->set.n), gpus);
        jobs[i]->ran = ran[i];
    }
}

struct told {
    int n, off, before, less; /* all; by more than a tenth; that before; reached less than told */
};

/* least: what is reached at least of what is told. */
static void count(struct told *told, const struct job *job, double least)
{
    double ratio = job->ran / job->told, before = job->ran / job->before;
    if (ratio < least)
        fprintf(stderr, "told %g, reached %g\n", job->told, job->ran);
    CHECK(ratio >= least);
    told->n++;
    told->off += fabs(ratio - 1) > 0.1;
    told->before += fabs(before - 1) > 0.1;
    told->less += ratio < 0.9;
}

/* Two jobs with half of a machine's GPUs each. Where more is reached, copies that take no time of
 * their block's are at rest for most of it. */
TEST(beside)
{
    struct told told = {0};
    const char *const names[] = {"amd-4gpu",  "intel-4gpu", "dual-8gpu",
                                 "epyc-8gpu", "quad-8gpu",  "lopsided-8gpu"};
    for (size_t m = 0; m < sizeof(names) / sizeof(*names); m++) {
        const struct tccl_model *model = load_machine(names[m]);
        const uint32_t all = (UINT32_C(1) << tccl_model_machine(model)->n_gpus) - 1;
        struct tccl_model_tables *tables = tccl_model_tables_new(model, NULL);
        for (int odd = 0; odd < 2; odd++) {
            const uint32_t half = odd ? 0x5555 & all : all >> tccl_model_machine(model)->n_gpus / 2;
            struct job first[OWN], second[OWN];
            int n = list_jobs(tccl_model_tables_get(tables, half, ERR), first),
                k = list_jobs(tccl_model_tables_get(tables, all & ~half, ERR), second);
            for (int a = 0; a < n; a++)
                for (int b = 0; b < k; b++) {
                    struct job *pair[] = {&first[a], &second[b]};
                    tell(model, pair, 2);
                    count(&told, &first[a], 0.9);
                    count(&told, &second[b], 0.9);
                    for (int i = 0; i < 2; i++)
                        CHECK(fabs(pair[i]->ran / pair[i]->told - 1) <
                              fabs(pair[i]->ran / pair[i]->before - 1) + 0.15);
                }
        }
        tccl_model_tables_free(tables);
    }
    CHECK(told.n > 500 && told.off < told.n / 10 && 4 * told.off < told.before);
}

/* Through memories, each ring another way around. */
static struct tccl_chain through_memory(const struct tccl_machine *machine, int first, int n, int r)
{
    struct tccl_chain ring = {.closed = true, .n_gpus = (uint8_t)n};
    for (int i = 0; i < n; i++) {
        ring.gpus[i] = (uint8_t)(first + (r % 2 ? n - 1 - i : i));
        ring.edges[i] = (struct tccl_edge){TCCL_BOUNCE, (uint8_t)((i + r) % machine->n_memories)};
    }
    CHECK_INT(tccl_chain_check(&ring, machine, NULL), 0);
    return ring;
}

enum { WORK = 1000, HALF = 8 }; /* as ring/neighbours.c */

/* A JOIN has no time for the ends of all that a class has: the fastest are told. */
TEST(told_fastest)
{
    const struct tccl_model *model = load_machine("wrx90-16gpu");
    const struct tccl_machine *machine = tccl_model_machine(model);
    struct tccl_side other = {0}, side;
    struct tccl_beside beside = {.model = model, .n = 1, .others = {&other}, .alone = {1e-3}};
    struct tccl_ring_set set = {0};
    owned(table) struct tccl_table *table = tccl_table_new(machine, (1u << HALF) - 1);
    for (int r = 0; r < RINGS; r++) {
        const struct tccl_chain ring = through_memory(machine, HALF, HALF, r);
        CHECK_INT(tccl_side_add_chain(&other, &ring), 0);
        set.rings[set.n++] = through_memory(machine, 0, HALF, r);
        if (r == 0)
            *tccl_table_ring(table) =
                (struct tccl_result){.gbps = 100, .bound = 100, .chain = set.rings[0]};
        else
            tccl_table_keep_set(table, &set, 100, 100);
    }
    cleanup_class struct tccl_node_class *class =
        tccl_beside_class(&beside, table, true, TCCL_VIEW_JOB, ERR);
    double least = INFINITY, most = 0;
    int work = 0, told = 0;
    CHECK_STR(check_err.text, "");
    CHECK(class && class->n_seen == RINGS && class->seen[0].told_ends);
    for (int i = 0; class && i < class->n_seen; i++) {
        const struct tccl_seen *seen = &class->seen[i];
        const struct tccl_worth worth = {.gbps = seen->gbps};
        uint8_t ends[TCCL_MAX_SIDES];
        tccl_ring_set_side(&seen->set, &side);
        CHECK_INT(tccl_beside_ends(&beside, &side, &worth, ends, ERR), 0);
        CHECK(!seen->told_ends || seen->told_ends == ends[0]);
        if (i > 0 && seen->told_ends) {
            least = fmin(least, seen->gbps);
            work += side.count + other.count;
            told++;
        } else if (i > 0)
            most = fmax(most, seen->gbps);
    }
    CHECK(told > 1 && told < RINGS - 1 && least >= most);
    CHECK(work > WORK / 2 && work < WORK + 2 * TCCL_MAX_SIDE);
}

/* Two to four jobs of two GPUs each, whatever the ring, on whatever machine. */
TEST(random_beside)
{
    struct told told = {0};
    unsigned long state = check_seed();
    for (int round = 0; round < 200; round++) {
        int n = 2 + random_below(&state, 3);
        struct tccl_model *model = random_model(&state, 2 * n, 2, 0);
        const struct tccl_machine *machine = tccl_model_machine(model);
        struct job jobs[JOBS], *list[JOBS];
        bool good = true;
        for (int i = 0; i < n; i++) {
            struct tccl_chain *ring = &jobs[i].set.rings[0];
            list[i] = &jobs[i];
            jobs[i].set.n = 1;
            *ring = random_ring(&state, machine);
            ring->n_gpus = 2;
            ring->gpus[0] = (uint8_t)(2 * i);
            ring->gpus[1] = (uint8_t)(2 * i + 1);
            good = good && tccl_chain_check(ring, machine, NULL) == 0;
        }
        if (good)
            tell(model, list, n);
        for (int i = 0; i < n && good; i++)
            count(&told, &jobs[i], 0.75);
        tccl_model_free(model);
    }
    CHECK(told.n > 200 && told.less < told.n / 12 && 4 * told.off < 3 * told.before);
}
