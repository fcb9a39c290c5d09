/* The verdict on what NCCL built: every single difference from a chain is found, and said. */
#include "check.h"
#include "verify/verdict.h"

enum { N = 4 };

static shim_bus bus(int i)
{
    return (shim_bus)(0x41 + 0x20 * i) << 8; /* 41, 61, 81, a1 */
}

static struct shim_chain make_chain(bool closed)
{
    static const int order[N] = {0, 3, 1, 2};
    struct shim_chain chain = {.path = {.n_gpus = N, .closed = closed}};

    for (int i = 0; i < N; i++) {
        chain.path.gpus[i] = bus(order[i]);
        chain.path.edges[i] =
            (struct tccl_named_edge){(uint8_t)(i % 3), i % 3 == TCCL_BOUNCE ? 1 : -1};
    }
    strcpy(chain.path.entry.nic, "mlx5_0");
    strcpy(chain.path.exit.nic, "mlx5_1");
    chain.path.entry.gpudirect = true;
    return chain;
}

/* Ranks are 10 + the number of the GPU. */
static void make_members(struct shim_member members[N])
{
    memset(members, 0, N * sizeof(*members));
    for (int i = 0; i < N; i++) {
        members[i].gpu = bus(i);
        members[i].rank = 10 + i;
    }
}

static int number_of(shim_bus gpu)
{
    for (int i = 0; i < N; i++)
        if (bus(i) == gpu)
            return i;
    return -1;
}

static struct shim_reach reach_of(const struct shim_chain *chain, int i)
{
    struct shim_reach reach = {.way = SHIM_WAY_P2P, .nic = -1};

    reach.read = chain->path.edges[i].kind == TCCL_P2P_READ;
    if (chain->path.edges[i].kind == TCCL_BOUNCE)
        reach.way = SHIM_WAY_SHM;
    return reach;
}

/* What NCCL builds at place i if all is as planned. Of the chain's ends, ranks 3 and 40 are on
 * other nodes. */
static struct shim_built as_planned(const struct shim_chain *chain, int i)
{
    int prev = (i + N - 1) % N, next = (i + 1) % N;
    struct shim_built built = {
        .ranks = 50, .channels = 2, .same = true, .complete = true, .connected = true};

    built.rank = 10 + number_of(chain->path.gpus[i]);
    built.prev = 10 + number_of(chain->path.gpus[prev]);
    built.next = 10 + number_of(chain->path.gpus[next]);
    built.send = reach_of(chain, i);
    built.receive = (struct shim_reach){.way = SHIM_WAY_UNKNOWN, .nic = -1};
    if (chain->path.closed)
        return built;
    if (i == 0) {
        built.prev = 3;
        built.receive = (struct shim_reach){.way = SHIM_WAY_NET, .nic = 5, .gdr = true};
    }
    if (i == N - 1) {
        built.next = 40;
        built.send = (struct shim_reach){.way = SHIM_WAY_NET, .nic = 6};
    }
    return built;
}

static void expect(const struct shim_chain *chain, int i, const struct shim_built *built,
                   enum shim_verdict verdict, const char *text)
{
    struct shim_member members[N];
    char said[256];

    make_members(members);
    CHECK_INT(shim_verdict_of(chain, members, N, chain->path.gpus[i], built, 5, 6, said), verdict);
    CHECK_STR(said, text);
}

static void test_as_planned(void)
{
    for (int closed = 0; closed < 2; closed++) {
        struct shim_chain chain = make_chain(closed);
        for (int i = 0; i < N; i++) {
            struct shim_built built = as_planned(&chain, i);
            expect(&chain, i, &built, SHIM_APPLIED, "");
        }
    }
}

static void test_order(void)
{
    struct shim_chain chain = make_chain(true);
    struct shim_built built = as_planned(&chain, 1);

    built.next = 12;
    expect(&chain, 1, &built, SHIM_DIFFERS, "order 41 a1 81 in place of 41 a1 61");
    built = as_planned(&chain, 1);
    built.prev = 49;
    expect(&chain, 1, &built, SHIM_DIFFERS, "order another node a1 61 in place of 41 a1 61");
    chain = make_chain(false);
    built = as_planned(&chain, 0);
    built.prev = 12; /* not out of the node */
    expect(&chain, 0, &built, SHIM_DIFFERS, "order 81 41 a1 in place of another node 41 a1");
    built = as_planned(&chain, 3);
    built.next = 10;
    expect(&chain, 3, &built, SHIM_DIFFERS, "order 61 81 41 in place of 61 81 another node");
    built.same = false;
    expect(&chain, 3, &built, SHIM_DIFFERS, "not all channels have the same ring");
}

/* Some channels are, others not so far: that says nothing of the ways, but the order stands. */
static void test_not_connected(void)
{
    struct shim_chain chain = make_chain(true);
    struct shim_built built = as_planned(&chain, 0);

    built.connected = false;
    built.send.way = SHIM_WAY_MIXED;
    expect(&chain, 0, &built, SHIM_UNKNOWN, "NCCL has not connected it so far");
    built.next = 11;
    expect(&chain, 0, &built, SHIM_DIFFERS, "order 81 41 61 in place of 81 41 a1");
}

static void test_edges(void)
{
    struct shim_chain chain = make_chain(true);
    struct shim_built built = as_planned(&chain, 0);

    built.send.way = SHIM_WAY_SHM;
    expect(&chain, 0, &built, SHIM_DIFFERS, "edge 41 -> a1: SHM in place of P2P");
    built.send.way = SHIM_WAY_NET;
    expect(&chain, 0, &built, SHIM_DIFFERS, "edge 41 -> a1: NET in place of P2P");
    built.send.way = SHIM_WAY_MIXED;
    expect(&chain, 0, &built, SHIM_DIFFERS, "edge 41 -> a1: different ways in place of P2P");
    built.send.way = SHIM_WAY_UNKNOWN;
    expect(&chain, 0, &built, SHIM_UNKNOWN, "edge 41 -> a1: NCCL has not connected it so far");
    built.send = (struct shim_reach){.way = SHIM_WAY_P2P, .read = true};
    expect(&chain, 0, &built, SHIM_DIFFERS, "edge 41 -> a1: P2P by reading in place of writing");
    built = as_planned(&chain, 1);
    built.send.read = false;
    expect(&chain, 1, &built, SHIM_DIFFERS, "edge a1 -> 61: P2P by writing in place of reading");
    built = as_planned(&chain, 2);
    built.send.way = SHIM_WAY_P2P;
    expect(&chain, 2, &built, SHIM_DIFFERS, "edge 61 -> 81: P2P in place of SHM");
    built = as_planned(&chain, 3); /* back to the first */
    built.send.way = SHIM_WAY_SHM;
    expect(&chain, 3, &built, SHIM_DIFFERS, "edge 81 -> 41: SHM in place of P2P");
}

static void test_ends(void)
{
    struct shim_chain chain = make_chain(false);
    struct shim_built built = as_planned(&chain, 0);

    built.receive.gdr = false;
    expect(&chain, 0, &built, SHIM_DIFFERS, "network to 41: without GPUDirect");
    built.receive.nic = 6;
    expect(&chain, 0, &built, SHIM_DIFFERS, "network to 41: NCCL's NIC 6 in place of 5 (mlx5_0)");
    built.receive.nic = -1;
    expect(&chain, 0, &built, SHIM_DIFFERS, "network to 41: several NICs in place of mlx5_0");
    built.receive.pxn = true;
    expect(&chain, 0, &built, SHIM_DIFFERS, "network to 41: through another GPU");
    built = as_planned(&chain, 0); /* what is worse is said, of in and out */
    built.receive.way = SHIM_WAY_UNKNOWN;
    expect(&chain, 0, &built, SHIM_UNKNOWN, "network to 41: NCCL has not connected it so far");
    built.send.way = SHIM_WAY_SHM;
    expect(&chain, 0, &built, SHIM_DIFFERS, "edge 41 -> a1: SHM in place of P2P");
    built = as_planned(&chain, 3);
    built.send.gdr = true;
    expect(&chain, 3, &built, SHIM_DIFFERS, "81 to the network: with GPUDirect");
    built.send = (struct shim_reach){.way = SHIM_WAY_SHM, .nic = -1};
    expect(&chain, 3, &built, SHIM_DIFFERS, "81 to the network: SHM in place of NET");
}

static void test_not_compared(void)
{
    struct shim_chain chain = make_chain(false);
    struct shim_built built = as_planned(&chain, 0);
    struct shim_member members[N];
    char text[256];

    make_members(members);
    built.receive.nic = 9;
    CHECK_INT(shim_verdict_of(&chain, members, N, chain.path.gpus[0], &built, -1, -1, text),
              SHIM_APPLIED);
    members[2].rank = -1;
    CHECK_INT(shim_verdict_of(&chain, members, N, chain.path.gpus[0], &built, 5, 6, text),
              SHIM_UNKNOWN);
    CHECK_STR(text, "the ranks of the GPUs are not known");
    CHECK_INT(shim_verdict_of(&chain, members, N, 0x9900, &built, 5, 6, text), SHIM_UNKNOWN);
    built.complete = false;
    expect(&chain, 0, &built, SHIM_UNKNOWN, "NCCL's log does not say what it built");
    built.complete = true;
    built.channels = 0;
    expect(&chain, 0, &built, SHIM_UNKNOWN, "NCCL's log does not say what it built");
}

/* One GPU on the node: head and tail in one. */
static void test_single(void)
{
    struct shim_chain chain = {.path = {.n_gpus = 1, .gpus = {UINT64_C(0x1000003) << 5 | 1}}};
    struct shim_member member = {.gpu = chain.path.gpus[0], .rank = 7};
    struct shim_built built = {.rank = 7,
                               .ranks = 8,
                               .channels = 1,
                               .same = true,
                               .prev = 6,
                               .next = 0,
                               .complete = true,
                               .connected = true};
    char text[256];

    built.send = built.receive = (struct shim_reach){.way = SHIM_WAY_NET, .nic = 0};
    CHECK_INT(shim_verdict_of(&chain, &member, 1, chain.path.gpus[0], &built, 0, 0, text),
              SHIM_APPLIED);
    CHECK_INT(shim_verdict_of(&chain, &member, 1, chain.path.gpus[0], &built, 1, 0, text),
              SHIM_DIFFERS);
    CHECK(strstr(text, "2000:00:0c.1")); /* nothing of the bus id goes without saying */
}

int main(void)
{
    test_as_planned();
    test_order();
    test_not_connected();
    test_edges();
    test_ends();
    test_not_compared();
    test_single();
    return check_result();
}
