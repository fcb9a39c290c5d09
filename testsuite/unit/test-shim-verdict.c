/* The verdict on what NCCL built: every single difference from a chain is found, and said. */
#include "check.h"
#include "verify/verify.h"

enum { N = 4 };

static tccl_bus bus(int i)
{
    return (tccl_bus)(0x41 + 0x20 * i) << 8; /* 41, 61, 81, a1 */
}

static struct shim_chain make_chain(bool closed)
{
    static const int order[N] = {0, 3, 1, 2};
    struct shim_chain chain = {.rings.n = 1, .rings.chains[0] = {.n_gpus = N, .closed = closed}};
    for (int i = 0; i < N; i++) {
        chain.rings.chains[0].gpus[i] = bus(order[i]);
        chain.rings.chains[0].edges[i] =
            (struct tccl_named_edge){(uint8_t)(i % 3), i % 3 == TCCL_BOUNCE ? 1 : -1};
    }
    strcpy(chain.rings.chains[0].entry.nic, "mlx5_0");
    strcpy(chain.rings.chains[0].exit.nic, "mlx5_1");
    chain.rings.chains[0].entry.gpudirect = true;
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

static int number_of(tccl_bus gpu)
{
    for (int i = 0; i < N; i++)
        if (bus(i) == gpu)
            return i;
    return -1;
}

static struct shim_reach reach_of(const struct tccl_named_chain *ring, int i)
{
    struct shim_reach reach = {.way = SHIM_WAY_P2P, .nic = -1};
    reach.read = ring->edges[i].kind == TCCL_P2P_READ;
    if (ring->edges[i].kind == TCCL_BOUNCE)
        reach.way = SHIM_WAY_SHM;
    return reach;
}

/* What NCCL builds of a ring for the rank at place i if all is as planned. Of the chain's ends,
 * ranks 3 and 40 are on other nodes. */
static struct shim_part part_of(const struct tccl_named_chain *ring, int i, int entry, int exit)
{
    int prev = (i + N - 1) % N, next = (i + 1) % N;
    struct shim_part part = {.prev = 10 + number_of(ring->gpus[prev]),
                             .next = 10 + number_of(ring->gpus[next]),
                             .send = reach_of(ring, i),
                             .receive = {.way = SHIM_WAY_UNKNOWN, .nic = -1}};
    if (!ring->closed && i == 0) {
        part.prev = 3;
        part.receive =
            (struct shim_reach){.way = SHIM_WAY_NET, .nic = entry, .gdr = ring->entry.gpudirect};
    }
    if (!ring->closed && i == N - 1) {
        part.next = 40;
        part.send =
            (struct shim_reach){.way = SHIM_WAY_NET, .nic = exit, .gdr = ring->exit.gpudirect};
    }
    return part;
}

/* The same in one channel, of a chain with one ring. */
static struct shim_built as_planned(const struct shim_chain *chain, int i)
{
    struct shim_built built = {.rank = 10 + number_of(chain->rings.chains[0].gpus[i]),
                               .ranks = 50,
                               .channels = 1,
                               .complete = true,
                               .connected = true};
    built.parts[0] = part_of(&chain->rings.chains[0], i, 5, 6);
    return built;
}

static const int32_t entries[TCCL_CHAIN_RINGS] = {5, 6, 5}, exits[TCCL_CHAIN_RINGS] = {6, 5, 6},
                     not_compared[TCCL_CHAIN_RINGS] = {-1, -1, -1};

/* text: NULL: any. */
static void expect(const struct shim_chain *chain, int i, const struct shim_built *built,
                   enum shim_verdict verdict, const char *text)
{
    struct shim_member members[N];
    char said[256];
    make_members(members);
    CHECK_INT(shim_verdict_of(chain, members, N, chain->rings.chains[0].gpus[i], built, entries,
                              exits, said),
              verdict);
    CHECK_STR(said, text ? text : said);
}

TEST(as_planned)
{
    for (int closed = 0; closed < 2; closed++) {
        struct shim_chain chain = make_chain(closed);
        for (int i = 0; i < N; i++) {
            struct shim_built built = as_planned(&chain, i);
            expect(&chain, i, &built, SHIM_APPLIED, "");
        }
    }
}

TEST(order)
{
    struct shim_chain chain = make_chain(true);
    struct shim_built built = as_planned(&chain, 1);
    built.parts[0].next = 12;
    expect(&chain, 1, &built, SHIM_DIFFERS, "order 41 a1 81 in place of 41 a1 61");
    built = as_planned(&chain, 1);
    built.parts[0].prev = 49;
    expect(&chain, 1, &built, SHIM_DIFFERS, "order another node a1 61 in place of 41 a1 61");
    chain = make_chain(false);
    built = as_planned(&chain, 0);
    built.parts[0].prev = 12; /* not out of the node */
    expect(&chain, 0, &built, SHIM_DIFFERS, "order 81 41 a1 in place of another node 41 a1");
    built = as_planned(&chain, 3);
    built.parts[0].next = 10;
    expect(&chain, 3, &built, SHIM_DIFFERS, "order 61 81 41 in place of 61 81 another node");
    built = as_planned(&chain, 3);
    built.channels = 2;
    built.parts[1] = built.parts[0];
    expect(&chain, 3, &built, SHIM_APPLIED, "");
    built.parts[1].next = 10;
    expect(&chain, 3, &built, SHIM_DIFFERS, "order 61 81 41 in place of 61 81 another node");
}

/* Some channels are, others not so far: that says nothing of the ways, but the order stands. */
TEST(not_connected)
{
    struct shim_chain chain = make_chain(true);
    struct shim_built built = as_planned(&chain, 0);
    built.connected = false;
    built.parts[0].send.way = SHIM_WAY_UNKNOWN;
    expect(&chain, 0, &built, SHIM_UNKNOWN, "NCCL has not connected it so far");
    built.parts[0].next = 11;
    expect(&chain, 0, &built, SHIM_DIFFERS, "order 81 41 61 in place of 81 41 a1");
}

TEST(edges)
{
    struct shim_chain chain = make_chain(true);
    struct shim_built built = as_planned(&chain, 0);
    built.parts[0].send.way = SHIM_WAY_SHM;
    expect(&chain, 0, &built, SHIM_DIFFERS, "edge 41 -> a1: SHM in place of P2P");
    built.parts[0].send.way = SHIM_WAY_NET;
    expect(&chain, 0, &built, SHIM_DIFFERS, "edge 41 -> a1: NET in place of P2P");
    built.parts[0].send.way = SHIM_WAY_UNKNOWN;
    expect(&chain, 0, &built, SHIM_UNKNOWN, "edge 41 -> a1: NCCL has not connected it so far");
    built.parts[0].send = (struct shim_reach){.way = SHIM_WAY_P2P, .read = true};
    expect(&chain, 0, &built, SHIM_DIFFERS, "edge 41 -> a1: P2P by reading in place of writing");
    built = as_planned(&chain, 1);
    built.parts[0].send.read = false;
    expect(&chain, 1, &built, SHIM_DIFFERS, "edge a1 -> 61: P2P by writing in place of reading");
    built = as_planned(&chain, 2);
    built.parts[0].send.way = SHIM_WAY_P2P;
    expect(&chain, 2, &built, SHIM_DIFFERS, "edge 61 -> 81: P2P in place of SHM");
    built = as_planned(&chain, 3); /* back to the first */
    built.parts[0].send.way = SHIM_WAY_SHM;
    expect(&chain, 3, &built, SHIM_DIFFERS, "edge 81 -> 41: SHM in place of P2P");
}

TEST(ends)
{
    struct shim_chain chain = make_chain(false);
    struct shim_built built = as_planned(&chain, 0);
    built.parts[0].receive.gdr = false;
    expect(&chain, 0, &built, SHIM_DIFFERS, "network to 41: without GPUDirect");
    built.parts[0].receive.nic = 6;
    expect(&chain, 0, &built, SHIM_DIFFERS, "network to 41: NCCL's NIC 6 in place of 5 (mlx5_0)");
    built.parts[0].receive.nic = -1;
    expect(&chain, 0, &built, SHIM_DIFFERS, "network to 41: an unknown NIC in place of mlx5_0");
    built.parts[0].receive.pxn = true;
    expect(&chain, 0, &built, SHIM_DIFFERS, "network to 41: through another GPU");
    built = as_planned(&chain, 0); /* what is worse is said, of in and out */
    built.parts[0].receive.way = SHIM_WAY_UNKNOWN;
    expect(&chain, 0, &built, SHIM_UNKNOWN, "network to 41: NCCL has not connected it so far");
    built.parts[0].send.way = SHIM_WAY_SHM;
    expect(&chain, 0, &built, SHIM_DIFFERS, "edge 41 -> a1: SHM in place of P2P");
    built = as_planned(&chain, 3);
    built.parts[0].send.gdr = true;
    expect(&chain, 3, &built, SHIM_DIFFERS, "81 to the network: with GPUDirect");
    built.parts[0].send = (struct shim_reach){.way = SHIM_WAY_SHM, .nic = -1};
    expect(&chain, 3, &built, SHIM_DIFFERS, "81 to the network: SHM in place of NET");
}

TEST(not_compared)
{
    struct shim_chain chain = make_chain(false);
    struct shim_built built = as_planned(&chain, 0);
    struct shim_member members[N];
    char text[256];
    make_members(members);
    built.parts[0].receive.nic = 9;
    CHECK_INT(shim_verdict_of(&chain, members, N, chain.rings.chains[0].gpus[0], &built,
                              not_compared, not_compared, text),
              SHIM_APPLIED);
    members[2].rank = -1;
    CHECK_INT(shim_verdict_of(&chain, members, N, chain.rings.chains[0].gpus[0], &built, entries,
                              exits, text),
              SHIM_UNKNOWN);
    CHECK_STR(text, "the ranks of the GPUs are not known");
    CHECK_INT(shim_verdict_of(&chain, members, N, 0x9900, &built, entries, exits, text),
              SHIM_UNKNOWN);
    built.complete = false;
    expect(&chain, 0, &built, SHIM_UNKNOWN, "NCCL's log does not say what it built");
    built.complete = true;
    built.channels = 0;
    expect(&chain, 0, &built, SHIM_UNKNOWN, "NCCL's log does not say what it built");
}

/* One GPU on the node: head and tail in one. */
TEST(single)
{
    struct shim_chain chain = {
        .rings.n = 1, .rings.chains[0] = {.n_gpus = 1, .gpus = {UINT64_C(0x1000003) << 5 | 1}}};
    struct shim_member member = {.gpu = chain.rings.chains[0].gpus[0], .rank = 7};
    struct shim_reach net = {.way = SHIM_WAY_NET, .nic = 0};
    struct shim_built built = {
        .rank = 7, .ranks = 8, .channels = 1, .complete = true, .connected = true};
    int32_t first[TCCL_CHAIN_RINGS] = {0}, second[TCCL_CHAIN_RINGS] = {1};
    char text[256];
    built.parts[0] = (struct shim_part){.prev = 6, .next = 0, .send = net, .receive = net};
    CHECK_INT(shim_verdict_of(&chain, &member, 1, chain.rings.chains[0].gpus[0], &built, first,
                              first, text),
              SHIM_APPLIED);
    CHECK_INT(shim_verdict_of(&chain, &member, 1, chain.rings.chains[0].gpus[0], &built, second,
                              first, text),
              SHIM_DIFFERS);
    CHECK(strstr(text, "2000:00:0c.1")); /* nothing of the bus id goes without saying */
}

/* Three rings: one, the same the other way round with the NICs exchanged, and the first one with
 * bounces only. */
static struct shim_chain make_set(bool closed)
{
    struct shim_chain chain = make_chain(closed);
    struct tccl_named_chain *back = &chain.rings.chains[1], *third = &chain.rings.chains[2];
    chain.rings.n = 3;
    *back = *third = chain.rings.chains[0];
    for (int i = 0; i < N; i++)
        back->gpus[i] = chain.rings.chains[0].gpus[N - 1 - i];
    strcpy(back->entry.nic, "mlx5_1");
    strcpy(back->exit.nic, "mlx5_0");
    back->entry.gpudirect = false;
    back->exit.gpudirect = true;
    for (int i = 0; i < N; i++)
        third->edges[i] = (struct tccl_named_edge){TCCL_BOUNCE, 1};
    return chain;
}

/* For the GPU at place i of the first ring, in channels with these rings. */
static struct shim_built set_as_planned(const struct shim_chain *chain, int i, const int *rings,
                                        int channels)
{
    tccl_bus gpu = chain->rings.chains[0].gpus[i];
    struct shim_built built = as_planned(chain, i);
    built.channels = channels;
    for (int c = 0; c < channels; c++) {
        const struct tccl_named_chain *ring = &chain->rings.chains[rings[c]];
        built.parts[c] =
            part_of(ring, shim_ring_find(ring, gpu), entries[rings[c]], exits[rings[c]]);
    }
    return built;
}

/* Channels in any order, and as often as NCCL likes, but equally many of each ring. */
TEST(sets)
{
    static const int in_order[] = {0, 1, 2, 0, 1, 2}, mixed[] = {2, 2, 0, 1, 0, 1},
                     uneven[] = {0, 1, 0, 0, 1, 2};
    for (int closed = 0; closed < 2; closed++) {
        struct shim_chain chain = make_set(closed);
        for (int i = 0; i < N; i++) {
            struct shim_built built = set_as_planned(&chain, i, in_order, 6);
            expect(&chain, i, &built, SHIM_APPLIED, "");
            built = set_as_planned(&chain, i, mixed, 6);
            expect(&chain, i, &built, SHIM_APPLIED, "");
            built = set_as_planned(&chain, i, in_order, 4);
            expect(&chain, i, &built, SHIM_DIFFERS,
                   "not all of the plan's rings have equally many channels");
        }
        struct shim_built built = set_as_planned(&chain, 0, uneven, 6);
        CHECK(built.parts[2].send.way != SHIM_WAY_SHM); /* it is not the third one */
        expect(&chain, 0, &built, SHIM_DIFFERS, NULL);
    }
}

/* NCCL has channels for some rings only, and each of them as often as it likes. */
TEST(fewer)
{
    static const int one[] = {0, 0, 0, 0}, two[] = {0, 1, 0, 1}, last[] = {1, 1};
    for (int closed = 0; closed < 2; closed++) {
        struct shim_chain chain = make_set(closed);
        for (int i = 0; i < N; i++) {
            struct shim_built built = set_as_planned(&chain, i, one, 2);
            expect(&chain, i, &built, SHIM_FEWER, "1 of 3 rings");
            built = set_as_planned(&chain, i, one, 4);
            expect(&chain, i, &built, SHIM_FEWER, "1 of 3 rings");
            built = set_as_planned(&chain, i, two, 2); /* a setting allows no more */
            expect(&chain, i, &built, SHIM_FEWER, "2 of 3 rings");
            built = set_as_planned(&chain, i, two, 4);
            expect(&chain, i, &built, SHIM_FEWER, "2 of 3 rings");
            built.connected = false;
            expect(&chain, i, &built, SHIM_UNKNOWN, "NCCL has not connected it so far");
        }
        struct shim_built built = set_as_planned(&chain, 1, last, 2);
        expect(&chain, 1, &built, SHIM_DIFFERS, NULL);
    }
}

/* A difference in one channel is said of the ring that is planned for it. */
TEST(set_differs)
{
    static const int in_order[] = {0, 1, 2};
    struct shim_chain chain = make_set(false);
    struct shim_built built = set_as_planned(&chain, 0, in_order, 3);
    built.parts[1].send.nic = 6; /* the second ring leaves by 5 */
    expect(&chain, 0, &built, SHIM_DIFFERS,
           "41 to the network: NCCL's NIC 6 in place of 5 (mlx5_0)");
    built = set_as_planned(&chain, 1, in_order, 3);
    built.parts[2].send.way = SHIM_WAY_P2P;
    expect(&chain, 1, &built, SHIM_DIFFERS, "edge a1 -> 61: P2P in place of SHM");
    built = set_as_planned(&chain, 2, in_order, 3);
    built.parts[1].next = 12;
    expect(&chain, 2, &built, SHIM_DIFFERS, "order 81 61 81 in place of 81 61 a1");
    built.connected = false;
    expect(&chain, 2, &built, SHIM_DIFFERS, "order 81 61 81 in place of 81 61 a1");
    built = set_as_planned(&chain, 2, in_order, 3);
    built.connected = false;
    expect(&chain, 2, &built, SHIM_UNKNOWN, "NCCL has not connected it so far");
}
