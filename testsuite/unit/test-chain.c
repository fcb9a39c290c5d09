/* test-chain.c: chains, what they transfer, and what is possible. */
#include "chain/chain.h"
#include "chain/ring-set.h"
#include "machines.h"

static struct tccl_chain parse(const struct tccl_machine *machine, const char *text)
{
    struct tccl_chain chain;
    struct tccl_error err = {0};

    CHECK_INT(tccl_chain_parse(text, machine, &chain, &err), 0);
    CHECK_STR(err.text, "");
    return chain;
}

static void check_set(const struct tccl_machine *machine, const char *chain_text,
                      const char *expected)
{
    struct tccl_chain chain = parse(machine, chain_text);
    struct tccl_set set, wanted;

    tccl_chain_set(&chain, &set);
    CHECK_INT(tccl_set_parse(expected, &wanted, NULL), 0);
    CHECK(tccl_set_equal(&set, &wanted));
}

static void check_sets(const struct tccl_machine *amd)
{
    check_set(amd, "0 -w> 1 -r> 2 -m2> 0", "g0>g1 g2<g1 g2>m2 g0<m2");
    check_set(amd, "0 -w> 1 -w> 0", "g0>g1 g1>g0");
    check_set(amd, "1 -m0> 0 -m0> 1", "g1>m0 g0<m0 g0>m0 g1<m0");
    check_set(amd, "mlx5_0 -g> 3 -w> 0 -g> mlx5_0", "n0>g3 g3>g0 n0<g0");
    check_set(amd, "mlx5_0 -m1> 3 -w> 0 -m2> mlx5_0", "n0>m1 g3<m1 g3>g0 g0>m2 n0<m2");
    check_set(amd, "mlx5_0 -m0> 2 -g> mlx5_0", "n0>m0 g2<m0 n0<g2");

    struct tccl_chain none = {0};
    struct tccl_set set = {.count = 3};
    tccl_chain_set(&none, &set);
    CHECK_INT(set.count, 0);
    CHECK_INT(tccl_chain_edges(&none), 0);
}

static void check_refused(const struct tccl_machine *machine, const struct tccl_chain *chain,
                          const char *why)
{
    struct tccl_error err = {0};

    CHECK_INT(tccl_chain_check(chain, machine, &err), -1);
    CHECK_STR(err.text, why);
}

static void check_bad(const struct tccl_machine *amd)
{
    const struct tccl_chain good = parse(amd, "mlx5_0 -g> 0 -w> 1 -m0> 2 -g> mlx5_0");
    struct tccl_chain bad = good;

    bad.gpus[1] = 0;
    check_refused(amd, &bad, "GPU 0 stands in the chain twice");
    bad.gpus[1] = 4;
    check_refused(amd, &bad, "GPU 4 does not exist: the machine has 4");
    bad = good;
    bad.edges[0].kind = 3;
    check_refused(amd, &bad, "the edge from GPU 0 to GPU 1 is of no known kind");
    bad = good;
    bad.edges[1].memory = 4;
    check_refused(amd, &bad, "g1>m4: no such transfer: the machine has 4 GPUs, 4 memories, 1 NICs");
    bad = good;
    bad.edges[1].memory = 16;
    CHECK_INT(tccl_chain_check(&bad, amd, NULL), -1);
    bad = good;
    bad.entry.via.index = 2;
    check_refused(amd, &bad, "the entry is at GPU 2, but the chain's end there is GPU 0");
    bad = good;
    bad.exit.via.kind = TCCL_NIC;
    check_refused(amd, &bad, "the exit goes through a NIC in place of a GPU or a memory");
    bad = good;
    bad.exit.nic = 1;
    check_refused(amd, &bad, "n1<g2: no such transfer: the machine has 4 GPUs, 4 memories, 1 NICs");
    bad = good;
    bad.n_gpus = 17;
    check_refused(amd, &bad, "the chain has no GPU, or more than 16");
    bad = good;
    bad.closed = true;
    bad.n_gpus = 1;
    check_refused(amd, &bad, "a ring needs at least two GPUs");
}

static void check_expressible(const struct tccl_machine *amd, const char *text, bool good)
{
    struct tccl_chain chain = parse(amd, text);
    struct tccl_error err = {0};

    CHECK_INT(tccl_chain_expressible(&chain, &err), good ? 0 : -1);
    CHECK_INT(err.text[0] == '\0', good);
}

/* why: NULL if it can be built. */
static void check_rings(const struct tccl_machine *machine, const char *text, const char *why)
{
    struct tccl_ring_set set;
    struct tccl_error err = {0};
    char printed[TCCL_RINGS_TEXT];

    CHECK_INT(tccl_ring_set_parse(text, machine, &set, &err), 0);
    CHECK_STR(err.text, "");
    tccl_ring_set_format(&set, machine, printed);
    CHECK_STR(printed, text);
    CHECK_INT(tccl_ring_set_expressible(&set, &err), why ? -1 : 0);
    CHECK_STR(err.text, why ? why : "");
    /* In any order, and twice, it is the same. */
    struct tccl_ring_set twice = {.n = 2 * set.n};
    for (int i = 0; i < set.n && twice.n <= TCCL_CHAIN_RINGS; i++)
        twice.rings[i] = twice.rings[2 * set.n - 1 - i] = set.rings[set.n - 1 - i];
    if (set.n > 1 && twice.n <= TCCL_CHAIN_RINGS)
        CHECK_INT(tccl_ring_set_expressible(&twice, NULL), why ? -1 : 0);
}

/* On dual-8gpu, which has two NICs. */
static void check_ring_sets(const struct tccl_machine *dual)
{
    static const char island[] = "an edge through memory leads from GPU %d to GPU %d, which P2P "
                                 "edges or GPUDirect to one NIC join";
    static const char near[] = "GPU %d can't use a NIC through memory to which a GPU has GPUDirect "
                               "that P2P edges join it with";
    char why[200];

    check_rings(dual, "0 -w> 1 -w> 0 | 1 -w> 0 -w> 1", NULL);
    check_rings(dual, "0 -w> 1 -r> 0",
                "a P2P edge reads, but then those of other communicators would, too");
    check_rings(dual, "0 -w> 1 -w> 0 | 0 -w> 1 -r> 0",
                "ring 2 of the set: a P2P edge reads, but then those of other communicators would, "
                "too");
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
    check_rings(dual, "mlx5_0 -g> 0 -w> 1 -m0> mlx5_0", NULL); /* as older GPUs have to */
    /* Who is near to one NIC is near to each other. */
    check_rings(dual,
                "mlx5_0 -g> 0 -m0> 1 -m0> 2 -m0> mlx5_1 | mlx5_0 -g> 0 -m0> 1 -m0> 2 -m0> mlx5_1",
                NULL);
    snprintf(why, sizeof(why), island, 0, 1);
    check_rings(dual,
                "mlx5_0 -g> 0 -m0> 1 -m0> 2 -m0> mlx5_1 | mlx5_0 -g> 1 -m0> 2 -m0> 0 -g> mlx5_1",
                why);
}

int main(void)
{
    struct tccl_model *model = load_machine("amd-4gpu");
    const struct tccl_machine *amd = tccl_model_machine(model);

    check_sets(amd);
    check_bad(amd);
    check_expressible(amd, "0 -w> 1 -w> 2 -w> 0", true);
    check_expressible(amd, "0 -r> 1 -r> 2 -r> 0", false);
    check_expressible(amd, "0 -w> 1 -r> 2 -w> 0", false);
    check_expressible(amd, "0 -w> 1 -w> 2 -m0> 0", false);
    check_expressible(amd, "0 -w> 1 -m1> 2 -m0> 0", true);
    check_expressible(amd, "0 -m0> 1 -w> 0", false);
    check_expressible(amd, "mlx5_0 -g> 0 -w> 1 -m1> 2 -g> mlx5_0", false);
    check_expressible(amd, "mlx5_0 -g> 0 -w> 1 -m1> 2 -m1> mlx5_0", true);
    check_expressible(amd, "mlx5_0 -g> 0 -w> 1 -r> 2 -g> mlx5_0", false);
    check_expressible(amd, "mlx5_0 -g> 0 -g> mlx5_0", true);
    check_expressible(amd, "mlx5_0 -g> 0 -m1> mlx5_0", false);
    check_expressible(amd, "mlx5_0 -m1> 0 -m1> mlx5_0", true);
    check_expressible(amd, "mlx5_0 -m1> 0 -m2> mlx5_0", false);
    check_expressible(amd, "mlx5_0 -g> 0 -m1> 1 -m1> mlx5_0", true);
    check_expressible(amd, "mlx5_0 -g> 0 -m1> 1 -m0> mlx5_0", false);
    check_expressible(amd, "mlx5_0 -m3> 0 -m1> 1 -w> 2 -m0> mlx5_0", true);
    tccl_model_free(model);
    model = load_machine("dual-8gpu");
    const struct tccl_machine *dual = tccl_model_machine(model);
    check_expressible(dual, "mlx5_0 -g> 1 -m0> 0 -g> mlx5_0", false);
    check_expressible(dual, "mlx5_0 -g> 1 -m0> 2 -m0> 0 -g> mlx5_0", true);
    check_expressible(dual, "mlx5_0 -g> 1 -m0> 4 -g> mlx5_1", true);
    check_expressible(dual, "mlx5_1 -m0> 0 -g> mlx5_1", false);
    check_expressible(dual, "mlx5_0 -m0> 0 -m1> mlx5_1", false);
    check_expressible(dual, "mlx5_0 -m0> 0 -w> 4 -m1> mlx5_1", true);
    check_ring_sets(dual);
    tccl_model_free(model);
    return check_result();
}
