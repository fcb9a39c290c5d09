/* test-reach.c: what an all-reduce reaches, against a run of NCCL's blocks, step by step: each rank
 * of each ring does what runRing does, a chunk at a time, as its neighbours and its buffers let it,
 * and what is under way at a moment shares the model's capacities. */
#include "machines.h"
#include "owned.h"
#include "random-model.h"
#include "ring/reach.h"
#include "search/model-table.h"

enum { SLOTS = 2, ROUNDS = 40, FIRST = 20, RANKS = 16, RINGS = 8 };

/* A rank of a ring. */
struct rank {
    tccl_transfer send, receive; /* of its own; TCCL_NO_TRANSFER: the other end's, or none */
    int step;                    /* since the beginning; a round has 2n - 1 */
    int sent, received;          /* chunks, done */
    double to_send, to_receive;  /* of the chunk under way, what is left */
    bool busy;
    double ends[ROUNDS]; /* of each round */
};

struct run {
    const struct tccl_model *model;
    int n, rings;
    struct rank ranks[RINGS][RANKS];
};

static bool sends(const struct run *run, int step)
{
    return step % (2 * run->n - 1) != 2 * run->n - 2;
}

static bool receives(const struct run *run, int step)
{
    return step % (2 * run->n - 1) != 0;
}

static void set_up(struct run *run, const struct tccl_chain *rings)
{
    for (int r = 0; r < run->rings; r++)
        for (int i = 0; i < run->n; i++)
            run->ranks[r][i].send = run->ranks[r][i].receive = TCCL_NO_TRANSFER;
    for (int r = 0; r < run->rings; r++)
        for (int i = 0; i < run->n; i++) {
            const struct tccl_chain *ring = &rings[r];
            int next = (i + 1) % run->n;
            tccl_transfer way[2];
            int count = tccl_edge_transfers(ring->edges[i], ring->gpus[i], ring->gpus[next], way);
            if (ring->edges[i].kind != TCCL_P2P_READ)
                run->ranks[r][i].send = way[0];
            if (ring->edges[i].kind != TCCL_P2P_WRITE)
                run->ranks[r][next].receive = way[count - 1];
        }
}

/* Begins steps that may begin: the chunk is there, and so is room for that of this step. */
static void begin(struct run *run)
{
    for (int r = 0; r < run->rings; r++)
        for (int i = 0; i < run->n; i++) {
            struct rank *own = &run->ranks[r][i], *next = &run->ranks[r][(i + 1) % run->n];
            const struct rank *before = &run->ranks[r][(i + run->n - 1) % run->n];
            if (own->busy || own->step == ROUNDS * (2 * run->n - 1) ||
                (receives(run, own->step) && before->sent <= own->received) ||
                (sends(run, own->step) && own->sent - next->received >= SLOTS))
                continue;
            own->busy = true;
            own->to_send = sends(run, own->step) && own->send != TCCL_NO_TRANSFER;
            own->to_receive = receives(run, own->step) && own->receive != TCCL_NO_TRANSFER;
        }
}

static bool finish(struct run *run, struct rank *own, double now)
{
    if (!own->busy || own->to_send > 1e-9 || own->to_receive > 1e-9)
        return false;
    own->sent += sends(run, own->step);
    own->received += receives(run, own->step);
    own->busy = false;
    if (++own->step % (2 * run->n - 1) == 0)
        own->ends[own->step / (2 * run->n - 1) - 1] = now;
    return true;
}

/* The copies under way, up to where the first one ends. */
static double advance(struct run *run)
{
    tccl_transfer members[2 * RINGS * RANKS];
    double *left[2 * RINGS * RANKS], rates[2 * RINGS * RANKS], time = INFINITY;
    int count = 0;
    for (int r = 0; r < run->rings; r++)
        for (int i = 0; i < run->n; i++) {
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

/* What an all-reduce of many rounds reaches, GB/s of all rings. */
static double run_rings(const struct tccl_model *model, const struct tccl_chain *rings, int n)
{
    static struct run run;
    double now = 0, slowest = INFINITY;
    run = (struct run){.model = model, .n = rings[0].n_gpus, .rings = n};
    set_up(&run, rings);
    for (bool more = true; more;) {
        bool done = false;
        begin(&run);
        for (int r = 0; r < n; r++)
            for (int i = 0; i < run.n; i++)
                done |= finish(&run, &run.ranks[r][i], now);
        if (!done)
            now += advance(&run);
        more = false;
        for (int r = 0; r < n; r++)
            for (int i = 0; i < run.n; i++)
                more |= run.ranks[r][i].step < ROUNDS * (2 * run.n - 1);
    }
    for (int r = 0; r < n; r++)
        for (int i = 0; i < run.n; i++)
            slowest = fmin(
                slowest, (ROUNDS - FIRST) * (2 * run.n - 2) /
                             (run.ranks[r][i].ends[ROUNDS - 1] - run.ranks[r][i].ends[FIRST - 1]));
    return n * slowest;
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
