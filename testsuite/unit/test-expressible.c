/* test-expressible.c: which chains a stock NCCL can be made to build, against an oracle that tries
 * all that NCCL may decide. */

#include "chain/ring-set.h"
#include "machines.h"
#include "random-model.h"

static struct tccl_chain parse(const struct tccl_machine *machine, const char *text)
{
    struct tccl_chain chain;
    CHECK_OK(tccl_chain_parse(text, machine, &chain, ERR));
    return chain;
}

static void check_expressible(const struct tccl_machine *machine, const char *text, bool good)
{
    struct tccl_chain chain = parse(machine, text);
    CHECK_INT(tccl_expressible(machine, &chain, 1, ERR), good ? 0 : -1);
    CHECK_INT(check_err.text[0] == '\0', good);
}

/* why: NULL if it can be built. */
static void check_rings(const struct tccl_machine *machine, const char *text, const char *why)
{
    struct tccl_ring_set set;
    char printed[TCCL_RINGS_TEXT];
    CHECK_OK(tccl_ring_set_parse(text, machine, &set, ERR));
    tccl_ring_set_format(&set, machine, printed);
    CHECK_STR(printed, text);
    CHECK_INT(tccl_expressible(machine, set.rings, set.n, ERR), why ? -1 : 0);
    CHECK_STR(check_err.text, why ? why : "");
    /* In any order, and twice, it is the same. */
    struct tccl_ring_set twice = {.n = 2 * set.n};
    for (int i = 0; i < set.n && twice.n <= TCCL_CHAIN_RINGS; i++)
        twice.rings[i] = twice.rings[2 * set.n - 1 - i] = set.rings[set.n - 1 - i];
    if (twice.n <= TCCL_CHAIN_RINGS)
        CHECK_INT(tccl_expressible(machine, twice.rings, twice.n, NULL), why ? -1 : 0);
}

/* On amd-4gpu, whose GPUs are of compute capability 7.0. */
static void check_old(const struct tccl_machine *amd)
{
    check_expressible(amd, "0 -w> 1 -w> 2 -w> 0", true);
    check_expressible(amd, "0 -r> 1 -r> 2 -r> 0", true);
    check_expressible(amd, "0 -w> 1 -r> 2 -w> 0", false);
    check_expressible(amd, "0 -w> 1 -w> 2 -m0> 0", false);
    check_expressible(amd, "0 -w> 1 -m1> 2 -m0> 0", true);
    check_expressible(amd, "0 -m0> 1 -w> 0", false);
    check_expressible(amd, "mlx5_0 -g> 0 -w> 1 -m1> 2 -m1> mlx5_0", true);
    check_expressible(amd, "mlx5_0 -g> 0 -g> mlx5_0", true);
    check_expressible(amd, "mlx5_0 -g> 0 -m1> mlx5_0", false);
    check_expressible(amd, "mlx5_0 -m1> 0 -m1> mlx5_0", true);
    check_expressible(amd, "mlx5_0 -m1> 0 -m2> mlx5_0", false);
    check_expressible(amd, "mlx5_0 -g> 0 -m1> 1 -m1> mlx5_0", true);
    check_expressible(amd, "mlx5_0 -g> 0 -m1> 1 -m0> mlx5_0", false);
    check_expressible(amd, "mlx5_0 -m3> 0 -m1> 1 -w> 2 -m0> mlx5_0", true);
    check_rings(amd, "mlx5_0 -g> 0 -w> 1 -m0> mlx5_0", NULL);
    check_rings(amd, "mlx5_0 -g> 0 -w> 1 -g> mlx5_0",
                "GPU 1 can't send by GPUDirect: its compute capability is below 8.0");
}

/* On dual-8gpu, which has two NICs, and GPUs of compute capability 8.6. */
static void check_new(const struct tccl_machine *dual)
{
    check_expressible(dual, "mlx5_0 -g> 1 -w> 0 -g> mlx5_0", true);
    check_expressible(dual, "mlx5_0 -g> 1 -m0> 0 -g> mlx5_0", false);
    check_expressible(dual, "mlx5_0 -g> 1 -m0> 2 -m0> 0 -g> mlx5_0", true);
    check_expressible(dual, "mlx5_0 -g> 0 -w> 1 -m1> 2 -g> mlx5_0", false);
    check_expressible(dual, "mlx5_0 -g> 0 -w> 1 -r> 2 -g> mlx5_0", false);
    check_expressible(dual, "mlx5_0 -g> 1 -m0> 4 -g> mlx5_1", true);
    check_expressible(dual, "mlx5_1 -m0> 0 -g> mlx5_1", false);
    check_expressible(dual, "mlx5_0 -m0> 0 -m1> mlx5_1", false);
    check_expressible(dual, "mlx5_0 -m0> 0 -w> 4 -m1> mlx5_1", true);
}

static void check_ring_sets(const struct tccl_machine *dual)
{
    static const char island[] =
        "the edge from GPU %d to GPU %d goes through memory, but NCCL uses "
        "P2P there: P2P edges or GPUDirect to one NIC join the two";
    static const char near[] =
        "GPU %d can't use a NIC through memory: a GPU that P2P edges join it "
        "with has GPUDirect to this NIC";
    char why[200];
    check_rings(dual, "0 -w> 1 -w> 0 | 1 -w> 0 -w> 1", NULL);
    check_rings(dual, "0 -w> 1 -r> 0",
                "some P2P edges read and others write, but NCCL has one setting for all of them");
    check_rings(dual, "0 -w> 1 -w> 0 | 0 -r> 1 -r> 0",
                "some P2P edges read and others write, but NCCL has one setting for all of them");
    check_rings(dual, "0 -r> 1 -r> 0 | 1 -r> 0 -r> 1", NULL);
    /* One transport for a pair, also by way of others. */
    check_rings(dual, "0 -w> 1 -m0> 2 -m0> 0 | 0 -w> 1 -m0> 2 -m0> 0", NULL);
    snprintf(why, sizeof(why), island, 1, 2);
    check_rings(dual, "0 -w> 1 -m0> 2 -m0> 0 | 0 -m0> 1 -w> 2 -m0> 0", why);
    check_rings(dual, "0 -w> 1 -m0> 2 -w> 3 -m0> 0 | 0 -m0> 2 -w> 1 -w> 3 -m0> 0", why);
    /* One memory for all buffers of a GPU. */
    check_rings(dual, "0 -m1> 1 -m0> 2 -m1> 0 | 0 -m1> 2 -m1> 1 -m1> 0",
                "GPU 2 can't have buffers in memory 0 and in memory 1");
    check_rings(dual, "0 -m1> 1 -m0> 2 -m1> 0 | 0 -m0> 2 -m1> 1 -m1> 0", NULL);
    check_rings(dual,
                "mlx5_0 -g> 0 -w> 1 -m0> 2 -m0> mlx5_0 | mlx5_1 -m1> 2 -m0> 0 -w> 1 -m0> mlx5_1",
                "GPU 2 can't have buffers in memory 0 and in memory 1");
    /* GPUDirect is a process's own choice. */
    check_rings(dual, "mlx5_0 -g> 0 -w> 1 -m0> mlx5_0 | mlx5_1 -m0> 1 -w> 0 -m1> mlx5_1",
                "GPU 0 can't have GPUDirect in one ring only");
    check_rings(dual, "mlx5_0 -g> 0 -w> 1 -m0> mlx5_1 | mlx5_1 -m0> 1 -w> 0 -g> mlx5_0", NULL);
    /* A NIC that is near a GPU is near all that P2P joins it with. */
    snprintf(why, sizeof(why), near, 1);
    check_rings(dual, "mlx5_0 -g> 0 -w> 1 -m0> mlx5_0 | mlx5_1 -m0> 1 -w> 0 -g> mlx5_0", why);
    check_rings(dual, "mlx5_0 -g> 0 -w> 1 -m0> mlx5_1 | mlx5_0 -m0> 1 -w> 0 -g> mlx5_0", why);
    check_rings(dual, "mlx5_0 -g> 0 -m0> 1 -m0> mlx5_0 | mlx5_1 -m0> 1 -m0> 0 -g> mlx5_1", NULL);
    check_rings(dual, "mlx5_0 -m0> 1 -w> 0 -g> mlx5_0", why);
    check_rings(dual, "mlx5_0 -g> 0 -w> 1 -m0> mlx5_0", why);
    /* Who is near to one NIC is near to each other. */
    check_rings(dual,
                "mlx5_0 -g> 0 -m0> 1 -m0> 2 -m0> mlx5_1 | mlx5_0 -g> 0 -m0> 1 -m0> 2 -m0> mlx5_1",
                NULL);
    snprintf(why, sizeof(why), island, 0, 1);
    check_rings(dual,
                "mlx5_0 -g> 0 -m0> 1 -m0> 2 -m0> mlx5_1 | mlx5_0 -g> 1 -m0> 2 -m0> 0 -g> mlx5_1",
                why);
}

/* ---- the oracle ---- */

/* What NCCL decides, as its sources have it: GPUs are near each other or not, which divides them
 * into islands; a NIC is near one island, or none; each process has its buffers in one memory. All
 * chains come out of that. */
struct decisions {
    const struct tccl_machine *machine;               /* NULL: any */
    bool reads;                                       /* by P2P, else it writes */
    int n, island[TCCL_MAX_GPUS], nic[TCCL_MAX_NICS]; /* by place; nic: the island, -1: none */
};

enum { GPUS = 4, NICS = 2, MEMORIES = 2, SETS = 30000, MOST = 3 };

static bool via_fits(struct tccl_device via, bool direct, int *memory)
{
    if (direct || via.kind == TCCL_GPU)
        return direct && via.kind == TCCL_GPU;
    bool fits = *memory < 0 || *memory == via.index;
    *memory = via.index;
    return fits;
}

/* Which GPUs send directly to a NIC that is near: those that can do, and do. Not known: either. */
static bool exit_fits(const struct decisions *now, const struct tccl_chain *chain, int *memory)
{
    int tail = chain->gpus[chain->n_gpus - 1];
    bool near = now->nic[chain->exit.nic] == now->island[tail];
    int sm = now->machine ? now->machine->gpus[tail].sm : 80;
    if (!now->machine && near && chain->exit.via.kind == TCCL_MEMORY)
        near = false;
    return via_fits(chain->exit.via, near && (sm >= 80 || chain->n_gpus == 1), memory);
}

static bool comes_out(const struct decisions *now, const struct tccl_chain *chains, int n)
{
    int memories[TCCL_MAX_GPUS];
    for (int i = 0; i < GPUS; i++)
        memories[i] = -1;
    for (int k = 0; k < n; k++) {
        const struct tccl_chain *chain = &chains[k];
        for (int i = 0; i < tccl_chain_edges(chain); i++) {
            int from = chain->gpus[i], to = chain->gpus[(i + 1) % chain->n_gpus];
            bool direct = now->island[from] == now->island[to];
            struct tccl_device memory = {TCCL_MEMORY, chain->edges[i].memory};
            int kind = !direct ? TCCL_BOUNCE : now->reads ? TCCL_P2P_READ : TCCL_P2P_WRITE;
            if (chain->edges[i].kind != kind ||
                (!direct && !via_fits(memory, false, &memories[to])))
                return false;
        }
        int head = chain->gpus[0], tail = chain->gpus[chain->n_gpus - 1];
        if (!chain->closed &&
            ((chain->n_gpus == 1 && chain->entry.nic != chain->exit.nic) ||
             !via_fits(chain->entry.via, now->nic[chain->entry.nic] == now->island[head],
                       &memories[head]) ||
             !exit_fits(now, chain, &memories[tail])))
            return false;
    }
    return true;
}

/* All places of the NICs, then of the GPUs: of each the islands so far, and one more. */
static bool try_nics(struct decisions *now, int nic, int islands, const struct tccl_chain *chains,
                     int n)
{
    if (nic == NICS)
        return comes_out(now, chains, n);
    for (now->nic[nic] = -1; now->nic[nic] < islands; now->nic[nic]++)
        if (try_nics(now, nic + 1, islands, chains, n))
            return true;
    return false;
}

static bool try_gpus(struct decisions *now, int gpu, int islands, const struct tccl_chain *chains,
                     int n)
{
    if (gpu == GPUS)
        return try_nics(now, 0, islands, chains, n);
    for (int i = 0; i <= islands; i++) {
        now->island[gpu] = i;
        if (try_gpus(now, gpu + 1, islands + (i == islands), chains, n))
            return true;
    }
    return false;
}

/* A process has GPUDirect in all chains in which it meets a NIC, or in none: more could be built.
 */
static bool one_way(const struct tccl_chain *chains, int n)
{
    int direct[TCCL_MAX_GPUS] = {0}, not [TCCL_MAX_GPUS] = {0};
    for (int k = 0; k < n && !chains[k].closed; k++) {
        int head = chains[k].gpus[0], tail = chains[k].gpus[chains[k].n_gpus - 1];
        *(chains[k].entry.via.kind == TCCL_GPU ? &direct[head] : &not [head]) = 1;
        *(chains[k].exit.via.kind == TCCL_GPU ? &direct[tail] : &not [tail]) = 1;
    }
    for (int i = 0; i < TCCL_MAX_GPUS; i++)
        if (direct[i] && not [i])
            return false;
    return true;
}

static bool can_be_built(const struct tccl_machine *machine, const struct tccl_chain *chains, int n)
{
    struct decisions writes = {.machine = machine}, reads = {.machine = machine, .reads = true};
    return one_way(chains, n) &&
           (try_gpus(&writes, 0, 0, chains, n) || try_gpus(&reads, 0, 0, chains, n));
}

/* ---- random chains ---- */

static struct tccl_port random_port(unsigned long *state, int gpu, int memory)
{
    struct tccl_device itself = {TCCL_GPU, (uint8_t)gpu}, other = {TCCL_MEMORY, (uint8_t)memory};
    return (struct tccl_port){.nic = (uint8_t)random_below(state, NICS),
                              .via = random_below(state, 2) ? itself : other};
}

/* Mostly with one memory for each GPU, or hardly any could be built. */
static void random_chain(unsigned long *state, const int *memories, int n_gpus, bool closed,
                         bool reads, struct tccl_chain *chain)
{
    *chain = (struct tccl_chain){.n_gpus = (uint8_t)n_gpus, .closed = closed};
    for (int i = 0; i < n_gpus; i++) {
        int at = random_below(state, i + 1);
        chain->gpus[i] = chain->gpus[at];
        chain->gpus[at] = (uint8_t)i;
    }
    for (int i = 0; i < tccl_chain_edges(chain); i++) {
        int to = chain->gpus[(i + 1) % n_gpus];
        bool bounces = random_below(state, 2), other = random_below(state, 20) == 0;
        chain->edges[i].kind = bounces ? TCCL_BOUNCE : TCCL_P2P_WRITE;
        if (bounces)
            chain->edges[i].memory = (uint8_t)(other ? 1 - memories[to] : memories[to]);
        else if (reads || random_below(state, 50) == 0)
            chain->edges[i].kind = TCCL_P2P_READ;
    }
    int head = chain->gpus[0], tail = chain->gpus[n_gpus - 1];
    chain->entry = random_port(state, head, memories[head]);
    chain->exit = random_port(state, tail, memories[tail]);
}

/* Each chain alone, too: it is a set of one. A set never can where one of its chains can't. */
TEST(random)
{
    unsigned long start = check_seed(), *state = &start;
    struct tccl_machine machine = {.n_gpus = GPUS, .n_memories = MEMORIES, .n_nics = NICS};
    struct tccl_chain chains[MOST];
    int memories[GPUS], good = 0, sets = 0;
    for (int round = 0; round < SETS; round++) {
        int n = 1 + random_below(state, MOST), n_gpus = 1 + random_below(state, GPUS);
        bool closed = n_gpus > 1 && random_below(state, 3) == 0,
             reads = random_below(state, 3) == 0;
        for (int i = 0; i < GPUS; i++) {
            memories[i] = random_below(state, MEMORIES);
            machine.gpus[i].sm = random_below(state, 3) ? 80 : 70;
        }
        const struct tccl_machine *known = random_below(state, 5) ? &machine : NULL;
        for (int k = 0; k < n; k++)
            if (k > 0 && random_below(state, 2))
                chains[k] = chains[k - 1];
            else
                random_chain(state, memories, n_gpus, closed, reads, &chains[k]);
        bool can = tccl_expressible(known, chains, n, NULL) == 0;
        CHECK_INT(can, can_be_built(known, chains, n));
        good += can;
        sets += can && n > 1;
        for (int k = 0; k < n; k++)
            CHECK(!can || tccl_expressible(known, &chains[k], 1, NULL) == 0);
    }
    CHECK(good > SETS / 20 && sets > SETS / 50);
}

TEST(machines)
{
    const struct tccl_model *model = load_machine("amd-4gpu");
    check_old(tccl_model_machine(model));
    model = load_machine("dual-8gpu");
    check_new(tccl_model_machine(model));
    check_ring_sets(tccl_model_machine(model));
}
