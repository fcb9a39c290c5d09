/* NCCL's log as the shim reads it: lines in the formats of 2.21 to 2.32 (those of 2.29.7 recorded,
 * the others after the formats in its source), cut and senseless ones, and where the log is. */
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "check.h"
#include "verify/verify.h"

enum { PID = 1000 };

static tccl_bus bus(const char *text)
{
    tccl_bus number = 0;
    CHECK_INT(tccl_bus_parse(text, &number), 0);
    return number;
}

static void take(const char *text)
{
    CHECK_INT(shim_nccllog_take(text, strlen(text), PID), strlen(text));
}

/* ---- one line ---- */

static struct shim_line read_line(const char *text)
{
    struct shim_line line;
    shim_line_read(text, text + strlen(text), &line);
    return line;
}

struct init_line {
    const char *text;
    int kind, rank, ranks;
    const char *gpu;
};

static const struct init_line init_lines[] = {
    /* 2.21 */
    {"n1:1000:1007 [0] NCCL INFO ncclCommInitRank comm 0x55d0c0ffee rank 1 nranks 2 cudaDev 0 "
     "nvmlDev 0 busId af010 commId 0x1 - Init START",
     SHIM_LINE_START, 1, 2, "0000:af:01.0"},
    {"n1:1000:1007 [0] NCCL INFO ncclCommSplit comm 0x55d0c0ffee rank 1 nranks 2 cudaDev 0 nvmlDev "
     "0 busId af000 parent 0x55d0c0ff00 color 1 key 3 commId 0x1 - Init COMPLETE",
     SHIM_LINE_COMPLETE, 1, 2, "0000:af:00.0"},
    /* 2.24: one space is missing */
    {"n1:1000:1007 [0] NCCL INFO ncclCommSplit comm 0x55d0c0ffee rank 1 nranks 2 cudaDev 0 nvmlDev "
     "0 busId 1000af000 parent 0x55d0c0ff00 splitCount 1 color 1 key -3- Init START",
     SHIM_LINE_START, 1, 2, "1000:af:00.0"},
    /* 2.29.7 */
    {"vm:1000:1007 [0] NCCL INFO [Rank 0] ncclCommInitRank comm 0x55d0c0ffee rank 0 nranks 16 "
     "cudaDev 0 nvmlDev 0 busId 1a000 commId 0x69ee47307a49de33 - Init START",
     SHIM_LINE_START, 0, 16, "0000:1a:00.0"},
    /* 2.31 */
    {"n1:1000:1007 [0] NCCL INFO ncclCommSplit comm 0x55d0c0ffee rank 1 nranks 2 cudaDev 0 nvmlDev "
     "0 busId af000 commId 0x1 parent 0x55d0c0ff00 childCount 1 color 1 key -3 - Init START",
     SHIM_LINE_START, 1, 2, "0000:af:00.0"},
    /* with a time, from 2.26 on */
    {"[2026-11-21 15:00:01] n1:1000:1007 [-1] NCCL INFO ncclCommInitRankConfig comm 0x55d0c0ffee "
     "rank 0 nranks 16 cudaDev 0 nvmlDev 0 busId 1a000 commId 0x6 - Init COMPLETE",
     SHIM_LINE_COMPLETE, 0, 16, "0000:1a:00.0"},
    {"<15:00> fe80::1:1000:1007 [0] NCCL INFO ncclCommInitAll comm 0x55d0c0ffee rank 0 nranks 16 "
     "cudaDev 0 nvmlDev 0 busId 1a000 commId 0x6 - Init COMPLETE",
     SHIM_LINE_COMPLETE, 0, 16, "0000:1a:00.0"},
};

TEST(init_lines)
{
    for (size_t i = 0; i < COUNT(init_lines); i++) {
        const struct init_line *expected = &init_lines[i];
        struct shim_line line = read_line(expected->text);
        CHECK_INT(line.kind, expected->kind);
        CHECK_INT(line.rank, expected->rank);
        CHECK_INT(line.ranks, expected->ranks);
        CHECK_INT(line.comm, 0x55d0c0ffee);
        CHECK_INT(line.gpu, bus(expected->gpu));
        CHECK_INT(line.pid, PID);
        CHECK_INT(line.tid, 1007);
    }
}

TEST(ring_lines)
{
    struct shim_line line = read_line("vm:1000:1007 [0] NCCL INFO Ring 03 : 8 -> 0 -> 12");
    CHECK_INT(line.kind, SHIM_LINE_RING);
    CHECK(line.channel == 3 && line.prev == 8 && line.rank == 0 && line.next == 12);
    line = read_line("vm:1000:1007 [0] NCCL INFO Channel 01/04 :  0  8  9 10");
    CHECK_INT(line.kind, SHIM_LINE_OTHER);
    line = read_line("vm:1000:1007 [0] NCCL INFO Channel 01/04 :    0   1");
    CHECK_INT(line.kind, SHIM_LINE_OTHER);
    line = read_line("vm:1000:1007 [0] NCCL INFO Trees [0] 1/-1/-1->0->-1 [1] 1/-1/-1->0->-1");
    CHECK_INT(line.kind, SHIM_LINE_OTHER);
}

struct edge_line {
    const char *text;
    int channel, from, to;
    bool send, receive, p2p;
    const char *via;
};

static const struct edge_line edge_lines[] = {
    {"Channel 00/0 : 0[0] -> 1[1] via P2P/IPC", 0, 0, 1, false, false, false, "P2P/IPC"},
    {"Channel 02 : 10[2] -> 11[3] via SHM/direct/direct", 2, 10, 11, false, false, false,
     "SHM/direct/direct"},
    {"Channel 12/0 : 7[7] -> 8[0] [send] via NET/IB/1(5)/GDRDMA/Shared", 12, 7, 8, true, false,
     false, "NET/IB/1(5)/GDRDMA/Shared"},
    {"Channel 00/0 : 0[0] -> 1[1] via P2P/direct pointer/read", 0, 0, 1, false, false, false,
     "P2P/direct pointer/read"},
    {"Channel 01/1 : 0[0] -> 1[1] via P2P/CUMEM/CE", 1, 0, 1, false, false, true, "P2P/CUMEM/CE"},
    {"Channel 01/0 : 0[0] -> 1[1] via P2P/indirect/2[2]/read", 1, 0, 1, false, false, false,
     "P2P/indirect/2[2]/read"},
    {"Channel 03/0 : 0[0] -> 8[0] [send] via NET/IB/0/GDRDMA(PCI)", 3, 0, 8, true, false, false,
     "NET/IB/0/GDRDMA(PCI)"},
    {"Channel 02/0 : 8[0] -> 0[0] [receive] via NET/Socket/0", 2, 8, 0, false, true, false,
     "NET/Socket/0"},
    {"Channel 02 : 8[0] -> 0[0] via SHM/direct", 2, 8, 0, false, false, false, "SHM/direct"},
};

TEST(edge_lines)
{
    char text[256];
    for (size_t i = 0; i < COUNT(edge_lines); i++) {
        const struct edge_line *expected = &edge_lines[i];
        snprintf(text, sizeof(text), "n1.x:1000:1007 [0] NCCL INFO %s", expected->text);
        struct shim_line line = read_line(text);
        CHECK_INT(line.kind, SHIM_LINE_EDGE);
        CHECK_INT(line.channel, expected->channel);
        CHECK_INT(line.from, expected->from);
        CHECK_INT(line.to, expected->to);
        CHECK(line.send == expected->send && line.receive == expected->receive);
        CHECK_INT(line.p2p, expected->p2p);
        CHECK_INT(line.end - line.text, strlen(expected->via));
        CHECK(strncmp(line.text, expected->via, strlen(expected->via)) == 0);
    }
}

TEST(senseless_lines)
{
    static const char *const lines[] = {
        "",
        "NCCL INFO ",
        "NCCL INFO Ring 00 : 0 -> 1 -> 2",
        "[0] NCCL INFO Ring 00 : 0 -> 1 -> 2",
        "n1:x:1 [0] NCCL INFO Ring 00 : 0 -> 1 -> 2",
        "n1:1:99999999999 [0] NCCL INFO Ring 00 : 0 -> 1 -> 2",
        "n1:1:1 [0] NCCL INFO Ring 00 : 0 -> 1 -> ",
        "n1:1:1 [0] NCCL INFO Ring 00 : 0 -> 1 -> -2",
        "n1:1:1 [0] NCCL INFO Ring 99999999999 : 0 -> 1 -> 2",
        "n1:1:1 [0] NCCL INFO Channel 00/0 : 0[0 -> 1[1] via P2P/IPC",
        "n1:1:1 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1]",
        "n1:1:1 [0] NCCL INFO Channel 05/04 : 0 1 2",
        "n1:1:1 [0] NCCL INFO comm 0x1 rank 0 nranks 2 - Init START",
        "n1:1:1 [0] NCCL INFO comm 0x rank 0 nranks 2 busId 1000 - Init START",
        "n1:1:1 [0] NCCL WARN Ring 00 : 0 -> 1 -> 2",
    };
    for (size_t i = 0; i < COUNT(lines); i++)
        CHECK_INT(read_line(lines[i]).kind, SHIM_LINE_OTHER);
}

/* ---- communicators ---- */

/* Of 2.29.7 on the model dual-8gpu, two nodes; what is not read is shortened. */
static const char recorded[] =
    "vm:1000:1000 [0] NCCL INFO NCCL version 2.29.7+cuda13.0\n"
    "vm:1000:1000 [0] NCCL INFO NET/IB : Made virtual device [0] name=mlx5_0 speed=200000 "
    "ndevs=1\n"
    "vm:1000:1000 [0] NCCL INFO NET/IB : Made virtual device [1] name=mlx5_1 speed=200000 "
    "ndevs=1\n"
    "vm:1000:1000 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB ; OOB "
    "lo:127.0.0.1<0>\n"
    "vm:1000:1000 [0] NCCL INFO Using network IB\n"
    "vm:1000:1000 [0] NCCL INFO [Rank 0] ncclCommInitRank comm 0x7fe5b31fa010 rank 0 nranks 16 "
    "cudaDev 0 nvmlDev 0 busId 1a000 commId 0x69ee47307a49de33 - Init START\n"
    "vm:1000:1000 [0] NCCL INFO Channel 00/04 :  0  1  2  3  7  6  5  4 12 13 15 14 10 11  9  8\n"
    "vm:1000:1000 [0] NCCL INFO Channel 01/04 :  0  8  9 10 11 15 14 13 12  4  5  7  6  2  3  1\n"
    "vm:1000:1000 [0] NCCL INFO Ring 00 : 8 -> 0 -> 1\n"
    "vm:1000:1000 [0] NCCL INFO Ring 01 : 1 -> 0 -> 8\n"
    "vm:1000:1000 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/IPC\n"
    "vm:1000:14966 [0] NCCL INFO [Proxy Service] Device 0 CPU core 0\n"
    "vm:1000:1000 [0] NCCL INFO Channel 00/0 : 8[0] -> 0[0] [receive] via NET/IB/0/GDRDMA\n"
    "vm:1000:1000 [0] NCCL INFO Channel 01/0 : 0[0] -> 8[0] [send] via NET/IB/0/GDRDMA\n"
    "vm:1000:1000 [0] NCCL INFO [Rank 0] ncclCommInitRank comm 0x7fe5b31fa010 rank 0 nranks 16 "
    "cudaDev 0 nvmlDev 0 busId 1a000 commId 0x69ee47307a49de33 - Init COMPLETE\n";

TEST(recorded)
{
    struct shim_built built;
    take(recorded);
    CHECK_INT(shim_nccllog_built(NULL, bus("0000:1a:00.0"), 0, 8, true, &built), -1);
    CHECK_INT(shim_nccllog_built(NULL, bus("0000:1b:00.0"), 0, 16, true, &built), -1);
    CHECK_INT(shim_nccllog_built((void *)0x7fe5b31fa011, bus("0000:1a:00.0"), 0, 16, true, &built),
              -1);
    CHECK_INT(shim_nccllog_built((void *)0x7fe5b31fa010, bus("0000:1a:00.0"), 0, 16, true, &built),
              0);
    CHECK(built.complete && built.connected && built.channels == 2);
    CHECK(built.parts[0].prev == 8 && built.parts[0].next == 1);
    CHECK(built.parts[1].prev == 1 && built.parts[1].next == 8);
    CHECK(built.parts[0].send.way == SHIM_WAY_P2P && !built.parts[0].send.gdr);
    CHECK(built.parts[0].receive.way == SHIM_WAY_NET && built.parts[0].receive.gdr);
    CHECK(built.parts[1].send.way == SHIM_WAY_NET && built.parts[1].send.gdr);
    CHECK_INT(built.parts[1].receive.way, SHIM_WAY_UNKNOWN);
    CHECK_INT(shim_nccllog_built(NULL, bus("0000:1a:00.0"), 0, 16, true, &built), -1);
}

static void say(char *text, int thread, const char *line)
{
    sprintf(text + strlen(text), "n1:%d:%d [0] NCCL INFO %s\n", PID, thread, line);
}

static void say_init(char *text, int thread, int rank, int ranks, int gpu, const char *what)
{
    say(text, thread,
        check_printf("comm 0x%x rank %d nranks %d cudaDev 0 busId %x000 commId 0x1 - Init %s",
                     0x1000 + thread, rank, ranks, gpu, what));
}

/* Two threads make communicators at the same time; the first one makes a second one afterwards. */
TEST(threads)
{
    char text[8192] = "";
    struct shim_built built;
    int rank, ranks;
    tccl_bus gpu;
    say_init(text, 1, 0, 4, 0x11, "START");
    say_init(text, 2, 1, 4, 0x12, "START");
    say(text, 1, "Ring 00 : 3 -> 0 -> 1");
    say(text, 2, "Ring 00 : 0 -> 1 -> 2");
    say(text, 1, "Ring 01 : 3 -> 0 -> 1");
    say(text, 2, "Ring 01 : 0 -> 1 -> 2");
    say(text, 1, "Ring 63 : 3 -> 0 -> 1");
    say(text, 1, "Ring 64 : 3 -> 0 -> 2");
    say(text, 2, "Channel 00/0 : 1[1] -> 2[2] via P2P/IPC/read");
    say(text, 1, "Channel 00 : 0[0] -> 1[1] via SHM/direct/direct");
    say(text, 1, "Channel 01 : 0[0] -> 1[1] via SHM/direct/direct");
    say(text, 2, "Channel 01/0 : 1[1] -> 2[2] via P2P/IPC/read");
    say(text, 2, "Channel 01/0 : 1[1] -> 3[3] via SHM/direct/direct");      /* a tree's */
    say(text, 2, "Channel 00/1 : 1[1] -> 2[2] via SHM/direct/direct");      /* ncclSend's */
    say(text, 2, "Channel 00/0 : 1[1] -> 2[2] [send] via NET/IB/0/GDRDMA"); /* too late */
    say(text, 3, "Channel 00/0 : 1[1] -> 2[2] [send] via NET/IB/0/GDRDMA"); /* nobody's */
    take(text);
    CHECK_INT(shim_nccllog_joining(2, &rank, &ranks, &gpu), 0);
    CHECK(rank == 1 && ranks == 4 && gpu == bus("0000:12:00.0"));
    CHECK_INT(shim_nccllog_joining(3, &rank, &ranks, &gpu), -1);
    text[0] = '\0';
    say_init(text, 1, 0, 4, 0x11, "COMPLETE");
    say_init(text, 2, 1, 4, 0x12, "COMPLETE");
    say_init(text, 1, 0, 2, 0x11, "START");
    say(text, 1, "Ring 00 : 1 -> 0 -> 1");
    take(text);
    CHECK_INT(shim_nccllog_joining(2, &rank, &ranks, &gpu), -1);
    CHECK_INT(shim_nccllog_built(NULL, bus("0000:12:00.0"), 1, 4, true, &built), 0);
    CHECK(built.complete && built.channels == 2);
    for (int i = 0; i < 2; i++) {
        const struct shim_part *part = &built.parts[i];
        CHECK(part->prev == 0 && part->next == 2);
        CHECK(part->send.way == SHIM_WAY_P2P && part->send.read && part->send.nic == -1);
        CHECK_INT(part->receive.way, SHIM_WAY_UNKNOWN);
    }
    CHECK_INT(shim_nccllog_built(NULL, bus("0000:11:00.0"), 0, 4, true, &built), 0);
    CHECK_INT(built.channels, 64);
    CHECK_INT(built.parts[30].next, -1); /* most of them were never told of */
    CHECK_INT(shim_nccllog_built(NULL, bus("0000:11:00.0"), 0, 2, true, &built), 0);
    CHECK(!built.complete && built.parts[0].send.way == SHIM_WAY_UNKNOWN);
}

/* A communicator of one rank over GPU 1f, whose handle is 0x1000 + number. */
static void begin_comm(int number, int rank, int next)
{
    char text[1024] = "";
    say_init(text, number, rank, 4, 0x1f, "START");
    for (int channel = 0; channel < 2; channel++) {
        say(text, number,
            check_printf("Ring %02d : %d -> %d -> %d", channel, (rank + 3) % 4, rank, next));
    }
    say_init(text, number, rank, 4, 0x1f, "COMPLETE");
    take(text);
}

static void *comm(int number)
{
    return (void *)(0x1000L + number);
}

static struct shim_built built_of(int number)
{
    struct shim_built built = {.complete = false};
    CHECK_INT(shim_nccllog_built(comm(number), bus("0000:1f:00.0"), -1, 4, false, &built), 0);
    return built;
}

/* "Channel 00/0 : 1[1] -> 2[2] via P2P/CUMEM" of both channels, or the first one only. */
static void connect_edges(int thread, int from, int to, int channels, const char *way)
{
    char text[1024] = "";
    for (int channel = 0; channel < channels; channel++) {
        say(text, thread,
            check_printf("Channel %02d/0 : %d[0] -> %d[1] via %s", channel, from, to, way));
    }
    take(text);
}

/* With cuMem NCCL connects at the first collective, in any thread. */
TEST(connected_later)
{
    struct shim_built built;
    begin_comm(10, 1, 2);
    CHECK(!built_of(10).connected);
    connect_edges(77, 1, 2, 1, "P2P/CUMEM");
    built = built_of(10);
    CHECK(!built.connected && !built.trees && !built.unclear);
    CHECK_INT(built.parts[0].send.way, SHIM_WAY_P2P);
    CHECK_INT(built.parts[1].send.way, SHIM_WAY_UNKNOWN);
    connect_edges(77, 2, 3, 2, "SHM/direct/direct"); /* of another rank of this process */
    connect_edges(77, 1, 0, 2, "SHM/direct/direct"); /* a tree's */
    connect_edges(77, 1, 2, 2, "P2P/CUMEM");
    built = built_of(10);
    CHECK(built.connected && built.parts[0].send.way == SHIM_WAY_P2P);
}

/* Communicators alike: the lines belong to that whose collective is under way. */
TEST(connected_alike)
{
    begin_comm(11, 1, 2);
    begin_comm(12, 1, 2);
    connect_edges(78, 1, 2, 2, "SHM/direct/direct"); /* nobody has begun a collective */
    CHECK(!built_of(11).connected && !built_of(12).connected);
    CHECK(!built_of(11).unclear && !built_of(12).unclear);
    shim_nccllog_expect(comm(12));
    connect_edges(78, 1, 2, 2, "P2P/CUMEM");
    CHECK(built_of(12).connected && !built_of(11).connected);
    shim_nccllog_expect_no_more();
    shim_nccllog_expect(comm(11));
    connect_edges(78, 1, 2, 2, "SHM/direct/direct");
    CHECK(built_of(11).connected && built_of(11).parts[0].send.way == SHIM_WAY_SHM);
    CHECK(built_of(12).parts[0].send.way == SHIM_WAY_P2P);
    shim_nccllog_expect_no_more();
}

/* Both in one group: neither is known, and both say so. */
TEST(connected_at_once)
{
    begin_comm(13, 2, 3);
    begin_comm(14, 2, 3);
    shim_nccllog_expect(comm(13));
    shim_nccllog_expect(comm(14));
    connect_edges(79, 2, 3, 2, "SHM/direct/direct");
    CHECK(built_of(13).unclear && built_of(14).unclear);
    CHECK(!built_of(13).connected && !built_of(14).connected);
    shim_nccllog_expect_no_more();
}

/* The log has no lines of rings (NCCL_DEBUG_SUBSYS without GRAPH). */
static void begin_plain(int number, int rank)
{
    char text[512] = "";
    say_init(text, number, rank, 4, 0x1f, "START");
    say(text, number, "2 coll channels, 2 collnet channels, 0 nvls channels, 2 p2p channels");
    say_init(text, number, rank, 4, 0x1f, "COMPLETE");
    take(text);
}

static void say_one(int thread, const char *line)
{
    char text[256] = "";
    say(text, thread, line);
    take(text);
}

TEST(by_edges)
{
    struct shim_built built;
    begin_plain(21, 1);
    shim_nccllog_expect(comm(21));
    connect_edges(81, 1, 3, 1, "SHM/direct/direct"); /* an ncclSend's, by another thread */
    connect_edges(82, 1, 2, 1, "P2P/CUMEM");
    say_one(82, "Channel 01/0 : 0[0] -> 1[1] [receive] via NET/IB/0");
    connect_edges(82, 1, 2, 2, "P2P/CUMEM");
    CHECK(!built_of(21).connected);
    say_one(82, "Connected all rings, use ring PXN 0 GDR 0");
    connect_edges(82, 1, 0, 2, "SHM/direct/direct");
    say_one(82, "Connected all trees");
    built = built_of(21);
    CHECK(built.connected && built.trees && !built.unclear && built.channels == 2);
    CHECK(built.parts[0].next == 2 && built.parts[0].prev == -1 && built.parts[1].prev == 0);
    CHECK_INT(built.parts[0].send.way, SHIM_WAY_P2P);
    shim_nccllog_expect_no_more();
    /* What trees have connected before is not told of the ring again. */
    begin_plain(22, 1);
    shim_nccllog_expect(comm(22));
    connect_edges(83, 1, 0, 2, "SHM/direct/direct");
    say_one(83, "Connected all trees");
    built = built_of(22);
    CHECK(!built.unclear && built.trees && !built.connected && built.parts[0].next == -1);
    connect_edges(83, 1, 2, 2, "P2P/CUMEM");
    say_one(83, "Connected all rings");
    CHECK(built_of(22).unclear && !built_of(22).connected);
    shim_nccllog_expect_no_more();
}

TEST(trees)
{
    char text[256] = "";
    begin_comm(15, 3, 0);
    begin_comm(16, 0, 1);
    say(text, 80, "Connected all trees"); /* whose? */
    take(text);
    CHECK(!built_of(15).trees && !built_of(16).trees);
    shim_nccllog_expect(comm(15));
    take(text);
    CHECK(built_of(15).trees && !built_of(15).connected && !built_of(16).trees);
    shim_nccllog_expect_no_more();
    connect_edges(80, 0, 1, 2, "P2P/CUMEM");
    take(text);
    CHECK(built_of(16).trees && built_of(16).connected);
}

TEST(ends)
{
    char text[4096] = "";
    struct shim_built built;
    say_init(text, 5, 2, 4, 0x15, "START");
    say(text, 5, "Ring 00 : 1 -> 2 -> 3");
    say(text, 5, "Ring 01 : 1 -> 2 -> 3");
    say(text, 5, "Channel 00/0 : 1[3] -> 2[0] [receive] via NET/IB/3");
    say(text, 5, "Channel 01/0 : 1[3] -> 2[0] [receive] via NET/IB/3/GDRDMA");
    say(text, 5, "Channel 00/0 : 2[0] -> 3[0] [send] via NET/IB/12/GDRDMA(PCI)");
    say(text, 5, "Channel 01/0 : 2[0] -> 3[0] [send] via NET/IB/12(3)/GDRDMA/Shared");
    say_init(text, 5, 2, 4, 0x15, "COMPLETE");
    take(text);
    CHECK_INT(shim_nccllog_built(NULL, bus("0000:15:00.0"), 2, 4, true, &built), 0);
    CHECK(built.parts[0].receive.way == SHIM_WAY_NET && built.parts[0].receive.nic == 3 &&
          !built.parts[0].receive.gdr && !built.parts[0].receive.pxn);
    CHECK(built.parts[0].send.way == SHIM_WAY_NET && built.parts[0].send.nic == 12 &&
          built.parts[0].send.gdr && !built.parts[0].send.pxn);
    CHECK(built.parts[1].receive.gdr && built.parts[1].send.gdr && built.parts[1].send.pxn);
}

/* Of the same GPU and rank the newest; with more communicators than are remembered, too. */
TEST(many)
{
    char text[1024];
    struct shim_built built;
    for (int i = 0; i < 300; i++) {
        text[0] = '\0';
        say_init(text, 100 + i, 0, 9, 0x21, "START");
        snprintf(text + strlen(text), 64, "n1:%d:%d [0] NCCL INFO Ring 00 : 1 -> 0 -> %d\n", PID,
                 100 + i, i);
        take(text);
    }
    CHECK_INT(
        shim_nccllog_built((void *)(0x1000L + 100 + 290), bus("0000:21:00.0"), 0, 9, true, &built),
        0);
    CHECK_INT(built.parts[0].next, 290);
    CHECK_INT(shim_nccllog_built(NULL, bus("0000:21:00.0"), 0, 9, true, &built), 0);
    CHECK_INT(built.parts[0].next, 299);
    CHECK_INT(
        shim_nccllog_built((void *)(0x1000L + 100 + 5), bus("0000:21:00.0"), 0, 9, true, &built),
        -1);
}

/* Those of another process in the same file, and lines that are not ended. */
TEST(pieces)
{
    static const char start[] = "n1:1001:7 [0] NCCL INFO comm 0x1 rank 0 nranks 3 cudaDev 0 busId "
                                "31000 commId 0x1 - Init START\n"
                                "n1:1000:7 [0] NCCL INFO comm 0x1 rank";
    struct shim_built built;
    CHECK_INT(shim_nccllog_take(start, sizeof(start) - 1, PID),
              (long)(strchr(start, '\n') + 1 - start));
    CHECK_INT(shim_nccllog_built(NULL, bus("0000:31:00.0"), 0, 3, true, &built), -1);
    CHECK_INT(shim_nccllog_take("", 0, PID), 0);
}

/* ---- where the log is ---- */

/* A test in a process whose environment says nothing of NCCL's log. */
static void in_child(void (*test)(void))
{
    unsetenv("NCCL_DEBUG");
    unsetenv("NCCL_DEBUG_LEVELS");
    unsetenv("NCCL_DEBUG_SUBSYS");
    unsetenv("NCCL_DEBUG_FILE");
    check_in_child(test);
}

#define TEST_IN_CHILD(name)                                                                        \
    static void name##_in_child(void);                                                             \
    TEST(name)                                                                                     \
    {                                                                                              \
        in_child(name##_in_child);                                                                 \
    }                                                                                              \
    static void name##_in_child(void)

static int nic(const char *name, char why[static 256])
{
    int count, number = shim_nccllog_nic(name, &count, ERR);
    memcpy(why, check_err.text, 256);
    return number;
}

static void print(FILE *file, const char *text)
{
    char line[4096];
    snprintf(line, sizeof(line), "n1:%d:77 [0] NCCL INFO %s\n", getpid(), text);
    CHECK(fwrite(line, 1, strlen(line), file) == strlen(line));
}

/* As NCCL does: asks for the level, the subsystems and the file, and opens it. */
static FILE *ask_and_open(void)
{
    const char *name;
    FILE *file;
    CHECK_STR(shim_nccllog_answer("NCCL_DEBUG", 22907), "INFO");
    CHECK(!shim_nccllog_there());
    CHECK_STR(shim_nccllog_answer("NCCL_DEBUG_SUBSYS", 22907), "INIT,GRAPH,P2P,SHM,NET");
    name = shim_nccllog_answer("NCCL_DEBUG_FILE", 22907);
    CHECK(name && shim_nccllog_there());
    file = fopen(name ? name : "/dev/null", "w");
    CHECK(file);
    setbuf(file, NULL);
    return file;
}

static long kib_of(const char *name)
{
    struct stat status;
    return stat(name, &status) == 0 ? (long)status.st_blocks / 2 : -1;
}

TEST_IN_CHILD(memory_file)
{
    char path[64], why[256];
    FILE *file = ask_and_open();
    CHECK(shim_nccllog_answer("NCCL_DEBUG", 22907) == NULL); /* a second NCCL */
    shim_nccllog_read();
    CHECK_INT(nic("mlx5_0", why), -1);
    CHECK_STR(why, "NCCL's log does not say which network it uses");
    print(file, "NET/IB : Using [0]mlx5_1:1/IB [1]mlx5_0:1/RoCE [RO]; OOB lo:127.0.0.1<0>");
    print(file, "Using network IB");
    shim_nccllog_read();
    CHECK_INT(nic("mlx5_0", why), 1);
    CHECK_INT(nic("mlx5_1", why), 0);
    CHECK_INT(nic("mlx5", why), -1);
    CHECK_STR(why, "NCCL leaves out the NIC mlx5");
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fileno(file));
    for (int i = 0; i < 20000; i++)
        print(file, "a line that the shim does not care for");
    CHECK(kib_of(path) > 1000);
    shim_nccllog_read();
    CHECK(kib_of(path) < 16); /* given back */
    print(file, "NET/IB : Made virtual device [2] name=mlx5_0+mlx5_1 speed=400000 ndevs=2");
    shim_nccllog_read();
    CHECK_INT(nic("mlx5_0", why), -1);
    CHECK_STR(why, "NCCL has merged NICs");
}

/* NCCL from 2.30.7 on asks for the subsystems last. */
TEST_IN_CHILD(subsystems_last)
{
    CHECK_STR(shim_nccllog_answer("NCCL_DEBUG", 23203), "INFO");
    CHECK(shim_nccllog_answer("NCCL_DEBUG_FILE", 23203));
    CHECK(!shim_nccllog_answer("NCCL_DEBUG", 23203)); /* a second NCCL */
    CHECK_STR(shim_nccllog_answer("NCCL_DEBUG_SUBSYS", 23203), "INIT,GRAPH,P2P,SHM,NET");
    CHECK(!shim_nccllog_answer("NCCL_DEBUG_SUBSYS", 23203));
    CHECK(!shim_nccllog_answer("NCCL_DEBUG_FILE", 23203));
}

/* What nobody reads does not grow for ever. */
TEST_IN_CHILD(bound)
{
    FILE *file = ask_and_open();
    bool failed = false;
    print(file, "Using network IB");
    shim_nccllog_read();
    for (int i = 0; i < 1000000 && !failed; i++)
        failed =
            fprintf(file, "n1:1:77 [0] NCCL INFO a line of the usual length, more or less\n") < 0;
    CHECK(failed && kib_of(check_printf("/proc/self/fd/%d", fileno(file))) <= 33 << 10);
    for (int i = 0; i < 10 && shim_nccllog_there(); i++)
        shim_nccllog_read();
    CHECK(!shim_nccllog_there());
}

TEST_IN_CHILD(old_version)
{
    CHECK(!shim_nccllog_answer("NCCL_DEBUG", 22105) && !shim_nccllog_answer("NCCL_DEBUG", 0));
    CHECK(!shim_nccllog_answer("NCCL_DEBUG_FILE", 22105) && !shim_nccllog_there());
    shim_nccllog_missing(ERR);
    CHECK(check_err.text[0] && !shim_nccllog_answer("NCCL_DEBUGGER", 22907));
    CHECK(!shim_nccllog_answer("NCCL_DEBUG_TIMESTAMP_LEVELS", 22907));
    CHECK_STR(shim_nccllog_answer("NCCL_DEBUG", 22203), "INFO");
}

TEST_IN_CHILD(file_limit)
{
    struct rlimit limit = {1 << 20, 1 << 20};
    CHECK_INT(setrlimit(RLIMIT_FSIZE, &limit), 0);
    CHECK(!shim_nccllog_answer("NCCL_DEBUG", 22907));
    CHECK(!shim_nccllog_answer("NCCL_DEBUG_FILE", 22907));
}

TEST_IN_CHILD(no_descriptors)
{
    struct rlimit limit = {3, 3};
    CHECK_INT(setrlimit(RLIMIT_NOFILE, &limit), 0);
    CHECK(!shim_nccllog_answer("NCCL_DEBUG", 22907));
}

/* Rings and trees are a communicator's where its init connects them, or where it is alone. */
TEST_IN_CHILD(connected)
{
    enum { BOTH = SHIM_CONNECTED_RINGS | SHIM_CONNECTED_TREES };
    char text[1024] = "";
    shim_nccllog_answer("NCCL_DEBUG", 22907); /* what was read before is the parent's */
    CHECK_INT(shim_nccllog_connected(comm(31)), 0);
    begin_comm(31, 1, 2);
    say_one(81, "Connected all rings");
    CHECK_INT(shim_nccllog_connected(comm(31)), SHIM_CONNECTED_RINGS);
    say_one(81, "Connected all trees");
    CHECK_INT(shim_nccllog_connected(comm(31)), BOTH);
    begin_comm(32, 1, 2); /* from now on they may be anybody's */
    CHECK_INT(shim_nccllog_connected(comm(31)), 0);
    CHECK_INT(shim_nccllog_connected(comm(32)), 0);
    say_init(text, 33, 1, 4, 0x1f, "START");
    say(text, 33, "Connected all rings");
    say(text, 33, "Connected all trees");
    say_init(text, 33, 1, 4, 0x1f, "COMPLETE");
    take(text);
    CHECK_INT(shim_nccllog_connected(comm(33)), BOTH);
    CHECK_INT(shim_nccllog_connected(comm(31)), 0);
}

/* The child of a process with a log has none, and does not disturb it. */
TEST_IN_CHILD(fork)
{
    FILE *file = ask_and_open();
    char why[256];
    pid_t pid;
    print(file, "Using network Socket");
    if ((pid = fork()) == 0) {
        shim_nccllog_read();
        _exit(shim_nccllog_there() || nic("mlx5_0", why) != -1 || strstr(why, "Socket"));
    }
    CHECK_INT(check_exit(pid), 0);
    shim_nccllog_read();
    CHECK_INT(nic("mlx5_0", why), -1);
    CHECK_STR(why, "NCCL uses the network Socket");
}

static void users(const char *level, const char *subsystems, const char *file)
{
    if (level)
        setenv("NCCL_DEBUG", level, 1);
    if (subsystems)
        setenv("NCCL_DEBUG_SUBSYS", subsystems, 1);
    if (file)
        setenv("NCCL_DEBUG_FILE", file, 1);
    CHECK(!shim_nccllog_answer("NCCL_DEBUG", 22105));
    CHECK(!shim_nccllog_answer("NCCL_DEBUG_SUBSYS", 22105));
    CHECK(!shim_nccllog_answer("NCCL_DEBUG_FILE", 22105));
}

static void expect_why(const char *expected)
{
    CHECK(!shim_nccllog_there());
    shim_nccllog_missing(ERR);
    CHECK_STR(check_err.text, expected);
}
static const char too_little[] =
    "with the user's NCCL_DEBUG NCCL does not log what it connects (INFO, INIT)";
static const char not_opened[] = "NCCL has not opened its log where the shim sees it";

TEST_IN_CHILD(user_warn)
{
    users("WARN", NULL, NULL);
    expect_why(too_little);
}

TEST_IN_CHILD(user_only_file)
{
    users(NULL, NULL, "/tmp/nothing");
    expect_why(too_little);
}

TEST_IN_CHILD(user_without_init)
{
    users("INFO", "^ENV,INIT", "/tmp/nothing");
    expect_why(too_little);
}

/* 2.21 writes its version to the standard output once more where it logs to a file. */
TEST_IN_CHILD(user_old)
{
    users("INFO", NULL, NULL);
    expect_why(not_opened);
    CHECK(!shim_nccllog_opened("/tmp/nothing", NULL));
}

static FILE *opened(const char *path)
{
    FILE *file = fopen(path, "w");
    return shim_nccllog_opened(path, file);
}

static void with_levels(const char *levels)
{
    setenv("NCCL_DEBUG", "WARN", 1);
    setenv("NCCL_DEBUG_FILE", "/dev/null", 1);
    setenv("NCCL_DEBUG_LEVELS", levels, 1);
    CHECK(!shim_nccllog_answer("NCCL_DEBUG", 23203));
    CHECK(!shim_nccllog_answer("NCCL_DEBUG_LEVELS", 23203));
}

TEST_IN_CHILD(user_levels)
{
    with_levels("ATTN,INFO");
    FILE *file = opened("/dev/null");
    CHECK(shim_nccllog_there());
    fclose(file);
}

TEST_IN_CHILD(user_other_levels)
{
    with_levels("ATTN,TRACE");
    expect_why(too_little);
}

/* What goes to his own file is read along. */
TEST_IN_CHILD(users_file)
{
    char pattern[128], path[320], why[256], host[128] = "";
    gethostname(host, sizeof(host) - 1);
    host[strcspn(host, ".")] = '\0';
    snprintf(pattern, sizeof(pattern), "%s/%%h.%%p.%%%%.%%x", check_folder());
    snprintf(path, sizeof(path), "%s/%s.%d.%%.%%x", check_folder(), host, getpid());
    users("info", NULL, pattern);
    expect_why(not_opened);
    cleanup_file FILE *other = opened("/dev/null"), *file = opened(path);
    CHECK(shim_nccllog_there());
    print(other, "Using network Socket");
    print(file, "NET/IB : Using [0]={[0] mlx5_0:1/IB, [1] mlx5_1:1/IB} [1]mlx5_2:1/IB ; OOB lo:");
    print(file, "Using network IB");
    CHECK_INT(nic("mlx5_2", why), -1);
    CHECK(strstr(why, "merged"));
    print(file, "NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_0:2/IB [2]mlx5_2:1:0:3/IB ; OOB lo:");
    CHECK_INT(nic("mlx5_2", why), 2);
    CHECK_INT(nic("mlx5_0", why), -1);
    CHECK_STR(why, "the NIC mlx5_0 has several ports");
    unlink(path);
}

/* Nothing that goes through the shim is held back, changed, or in another place than without it. */
TEST_IN_CHILD(users_output)
{
    char expected[1 << 16], found[sizeof(expected)], line[3000];
    size_t size = 0;
    fflush(stdout);
    const char *path = check_at("output");
    CHECK(freopen(path, "w", stdout));
    setenv("NCCL_DEBUG", "INFO", 1);
    CHECK(!shim_nccllog_answer("NCCL_DEBUG", 22907));
    FILE *file = opened(shim_nccllog_answer("NCCL_DEBUG_FILE", 22907));
    CHECK(file && shim_nccllog_there());
    for (int i = 0; file && size < sizeof(expected) - sizeof(line); i++) {
        int length = rand() % (int)sizeof(line);
        for (int j = 0; j < length; j++)
            line[j] = (char)(rand() % 100 ? 'a' + rand() % 26 : rand() % 256);
        bool ours = rand() % 2; /* NCCL's are whole lines */
        if (ours && length > 0)
            line[length - 1] = '\n';
        CHECK(fwrite(line, 1, (size_t)length, ours ? file : stdout) == (size_t)length);
        memcpy(expected + size, line, (size_t)length);
        size += (size_t)length;
    }
    if (file)
        fclose(file);
    CHECK(fputs("after", stdout) >= 0 && fflush(stdout) == 0);
    memcpy(expected + size, "after", 5);
    int fd = open(path, O_RDONLY);
    CHECK_INT(read(fd, found, sizeof(found)), size + 5);
    CHECK(memcmp(found, expected, size + 5) == 0);
    unlink(path);
}

/* The program closes all descriptors, and gets the number for a file of its own. */
TEST_IN_CHILD(reused)
{
    struct stat status;
    const char *path = check_at("own");
    int own = open(path, O_RDWR | O_CREAT, 0600);
    CHECK(own >= 0 && dprintf(own, "n:%d:7 [0] NCCL INFO Using network IB\n", getpid()) > 0);
    unlink(path);
    CHECK(ftruncate(own, 33L << 20) == 0);
    shim_nccllog_answer("NCCL_DEBUG", 22907);
    shim_nccllog_answer("NCCL_DEBUG_SUBSYS", 22907);
    const char *name = shim_nccllog_answer("NCCL_DEBUG_FILE", 22907);
    CHECK(name && shim_nccllog_there());
    if (!name)
        return;
    CHECK(dup2(own, atoi(strrchr(name, '/') + 1)) >= 0);
    shim_nccllog_read();
    CHECK(!shim_nccllog_there() && fstat(own, &status) == 0 && status.st_size == 33L << 20);
    CHECK(dup(atoi(strrchr(name, '/') + 1)) >= 0);
}
