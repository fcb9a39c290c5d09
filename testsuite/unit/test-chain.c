/* test-chain.c: chains, what they transfer, and what is possible. */
#include "chain/chain.h"
#include "machines.h"

static struct tccl_chain parse(const struct tccl_machine *machine, const char *text)
{
    struct tccl_chain chain;
    CHECK_OK(tccl_chain_parse(text, machine, &chain, ERR));
    return chain;
}

static void check_set(const struct tccl_machine *machine, const char *chain_text,
                      const char *expected)
{
    struct tccl_chain chain = parse(machine, chain_text);
    struct tccl_set set, wanted = parse_set(expected);
    tccl_chain_set(&chain, &set);
    CHECK(tccl_set_equal(&set, &wanted));
}

static void check_refused(const struct tccl_machine *machine, const struct tccl_chain *chain,
                          const char *why)
{
    CHECK_FAILS(tccl_chain_check(chain, machine, ERR), why);
}

static void check_bad(const struct tccl_machine *amd)
{
    const struct tccl_chain good = parse(amd, "mlx5_0 -g> 0 -w> 1 -m0> 2 -g> mlx5_0");
    struct tccl_chain bad = good;
    bad.gpus[1] = 0;
    check_refused(amd, &bad, "GPU 0 is in the chain twice");
    bad.gpus[1] = 4;
    check_refused(amd, &bad, "GPU 4 does not exist: the machine has 4");
    bad = good;
    bad.edges[0].kind = 4;
    check_refused(amd, &bad, "the edge from GPU 0 to GPU 1 is of an unknown kind");
    bad.edges[0].kind = TCCL_BY_NICS; /* its ports are at GPU 0, both */
    check_refused(amd, &bad, "the way from a NIC is at GPU 0, but the chain's end there is GPU 1");
    bad.edges[0].to = (struct tccl_port){1, {TCCL_MEMORY, 0}};
    check_refused(amd, &bad, "n1>m0: no such transfer: the machine has 4 GPUs, 4 memories, 1 NICs");
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

static struct tccl_port random_port(int end)
{
    bool direct = roll(2);
    return (struct tccl_port){
        (uint8_t)roll(3),
        {direct ? TCCL_GPU : TCCL_MEMORY, (uint8_t)(direct ? end : (int)roll(4))}};
}

/* A chain is possible just where each of its transfers is. */
static void check_random_chains(void)
{
    static struct tccl_machine machine;
    int possible = 0, missing = 0;
    for (int round = 0; round < 20000; round++) {
        if (round % 100 == 0) {
            machine = *machine_of("epyc-8gpu");
            machine.n_memories = 1 + (int)roll(3);
            machine.n_nics = (int)roll(3);
            for (int i = 0; i < 8 * 8; i++) {
                machine.p2p[i / 8][i % 8] = roll(4) > 0;
                machine.gpudirect[i / 8][i % 8] = roll(4) > 0;
            }
        }
        struct tccl_chain chain = {.closed = roll(2), .n_gpus = 2};
        chain.gpus[0] = (uint8_t)roll(8);
        chain.gpus[1] = (uint8_t)((chain.gpus[0] + 1 + (int)roll(7)) % 8);
        for (int i = 0; i < 2; i++)
            chain.edges[i] =
                (struct tccl_edge){(uint8_t)roll(4), (uint8_t)roll(4), random_port(chain.gpus[i]),
                                   random_port(chain.gpus[1 - i])};
        chain.entry = random_port(chain.gpus[0]);
        chain.exit = random_port(chain.gpus[1]);
        struct tccl_set walk;
        bool all = true;
        tccl_chain_walk(&chain, &walk);
        for (int i = 0; i < walk.count; i++)
            all = all && tccl_machine_allows(&machine, walk.transfers[i], NULL) == 0;
        CHECK_INT(tccl_chain_check(&chain, &machine, NULL), all ? 0 : -1);
        possible += all;
        missing += !all;
    }
    CHECK(possible > 500 && missing > 500);
}

TEST(chain)
{
    const struct tccl_machine *amd = machine_of("amd-4gpu");
    check_set(amd, "0 -w> 1 -r> 2 -m2> 0", "g0>g1 g2<g1 g2>m2 g0<m2");
    check_set(amd, "0 -w> 1 -w> 0", "g0>g1 g1>g0");
    check_set(amd, "1 -m0> 0 -m0> 1", "g1>m0 g0<m0 g0>m0 g1<m0");
    check_set(amd, "mlx5_0 -g> 3 -w> 0 -g> mlx5_0", "n0>g3 g3>g0 n0<g0");
    check_set(amd, "mlx5_0 -m1> 3 -w> 0 -m2> mlx5_0", "n0>m1 g3<m1 g3>g0 g0>m2 n0<m2");
    check_set(amd, "mlx5_0 -m0> 2 -g> mlx5_0", "n0>m0 g2<m0 n0<g2");
    check_set(amd, "1 -m2n0n0> 0 -w> 1", "g1>m2 n0<m2 n0>g0 g0>g1");
    check_set(amd, "1 -n0n0m3> 0 -w> 1", "n0<g1 n0>m3 g0<m3 g0>g1");
    struct tccl_chain nics = parse(amd, "1 -n0n0> 0 -w> 1");
    CHECK(tccl_chain_by_nics(&nics));
    CHECK_FAILS(tccl_expressible(amd, &nics, 1, ERR),
                "an edge by NICs leads from GPU 1 to GPU 0, which only NCCL's own rings have");
    struct tccl_chain none = {0};
    struct tccl_set set = {.count = 3};
    tccl_chain_set(&none, &set);
    CHECK_INT(set.count, 0);
    CHECK_INT(tccl_chain_edges(&none), 0);
    check_bad(amd);
    check_random_chains();
}
