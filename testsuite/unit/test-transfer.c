/* test-transfer.c: numbers and notation of transfers, and sets of them. */
#include "check.h"
#include "machine/transfer.h"

static tccl_transfer one(const char *text)
{
    struct tccl_set set;
    CHECK_INT(tccl_set_parse(text, &set, ERR), 0);
    CHECK_INT(set.count, 1);
    return set.transfers[0];
}

/* Every number: valid ones come back from their parts and from their notation, and there are as
 * many as the definition says. */
TEST(numbers)
{
    int valid = 0;
    char text[12];
    for (int i = 0; i < 2 * TCCL_TRANSFERS; i++) {
        tccl_transfer transfer = (tccl_transfer)i;
        if (!tccl_transfer_valid(transfer))
            continue;
        valid++;
        struct tccl_device from = tccl_transfer_initiator(transfer);
        struct tccl_device to = tccl_transfer_target(transfer);
        CHECK_INT(tccl_transfer_make(from, tccl_transfer_reads(transfer), to), transfer);
        CHECK(from.kind != TCCL_MEMORY && to.kind != TCCL_NIC);
        tccl_transfer_format(transfer, text);
        CHECK_INT(one(text), transfer);
    }
    /* read and write: GPU with another GPU, GPU with memory, NIC with GPU, NIC with memory */
    CHECK_INT(valid, 2 * (16 * 15 + 3 * 16 * 16));
}

TEST(impossible)
{
    struct tccl_device gpu = {TCCL_GPU, 0}, memory = {TCCL_MEMORY, 0}, nic = {TCCL_NIC, 0};
    struct tccl_device far = {TCCL_GPU, 16}, strange = {7, 0};
    CHECK(!tccl_transfer_valid(tccl_transfer_make(memory, false, gpu)));
    CHECK(!tccl_transfer_valid(tccl_transfer_make(gpu, false, nic)));
    CHECK(!tccl_transfer_valid(tccl_transfer_make(nic, true, nic)));
    CHECK(!tccl_transfer_valid(tccl_transfer_make(gpu, true, gpu)));
    CHECK(!tccl_transfer_valid(tccl_transfer_make(gpu, true, far)));
    CHECK(!tccl_transfer_valid(tccl_transfer_make(strange, true, gpu)));
    CHECK(!tccl_transfer_valid(tccl_transfer_make(gpu, true, strange)));
}

TEST(flow)
{
    tccl_transfer write = one("g1>m2"), read = one("g3<g4");
    CHECK(!tccl_transfer_reads(write));
    CHECK_INT(tccl_transfer_source(write).kind, TCCL_GPU);
    CHECK_INT(tccl_transfer_source(write).index, 1);
    CHECK_INT(tccl_transfer_sink(write).kind, TCCL_MEMORY);
    CHECK(tccl_transfer_reads(read));
    CHECK_INT(tccl_transfer_source(read).index, 4);
    CHECK_INT(tccl_transfer_sink(read).index, 3);
}

static void check_refused(const char *text, const char *why)
{
    struct tccl_set set;
    CHECK_FAILS(tccl_set_parse(text, &set, ERR), why);
}

TEST(parse)
{
    static const char hint[] = "is no transfer; write g0>g1, g1<g0, g0>m2, n0<m1";
    static const char *const bad[] = {"g0",    "g0>g0",  "g0>g16", "g16>g0",  "m0>g0",
                                      "n0>n1", "g0->g1", "g0>n0",  "x0>g0",   "g>g1",
                                      "g0>",   "g0=g1",  "g0>g1x", "g0001>g1"};
    struct tccl_set set;
    char text[TCCL_SET_TEXT];
    CHECK_INT(tccl_set_parse(" g1>g0,g0>g1\n n0<m1,\tn15>g15 ", &set, NULL), 0);
    tccl_set_format(&set, text);
    CHECK_STR(text, "g0>g1 g1>g0 n15>g15 n0<m1");
    CHECK_INT(tccl_set_parse("", &set, NULL), 0);
    CHECK_INT(set.count, 0);
    for (size_t i = 0; i < COUNT(bad); i++) {
        check_refused(bad[i], check_printf("\"%s\" %s", bad[i], hint));
    }
    check_refused("g0>g1 g2<m0 g0>g1", "\"g0>g1\" is there twice");
}

/* One that runs several times stands there as often, wherever it is named. */
TEST(repeats)
{
    struct tccl_set set = {0}, other;
    char text[TCCL_SET_TEXT];
    CHECK_INT(tccl_set_parse_repeats("g1>g0 g0>g1 g1>g0", &set, NULL), 0);
    CHECK_INT(set.count, 3);
    CHECK(tccl_set_repeats(&set));
    CHECK_INT(tccl_set_parse_repeats("g1>g0 g1>g0 g0>g1", &other, NULL), 0);
    CHECK(tccl_set_equal(&set, &other));
    tccl_set_format(&set, text);
    CHECK_STR(text, "g0>g1 g1>g0 g1>g0");
    CHECK_INT(tccl_set_parse("g1>g0 g0>g1", &other, NULL), 0);
    CHECK(!tccl_set_repeats(&other) && !tccl_set_equal(&set, &other));
    CHECK(tccl_set_contains(&set, &other) && !tccl_set_contains(&other, &set));
    CHECK_INT(tccl_set_add_again(&other, one("g1>g0")), 0);
    CHECK(tccl_set_equal(&set, &other) && tccl_set_contains(&other, &set));
    CHECK_INT(tccl_set_add(&other, one("g1>g0")), 1);
    CHECK_INT(other.count, 3);
}

TEST(full)
{
    struct tccl_set set = {0};
    char text[TCCL_SET_TEXT + 16];
    for (int i = 0; i < TCCL_MAX_SET; i++) {
        struct tccl_device gpu = {TCCL_GPU, (uint8_t)(i / 16)}, memory = {TCCL_MEMORY, i % 16};
        CHECK_INT(tccl_set_add(&set, tccl_transfer_make(gpu, false, memory)), 0);
    }
    CHECK_INT(tccl_set_add(&set, one("g0>m0")), 1);
    CHECK_INT(tccl_set_add(&set, one("g9>m0")), -1);
    CHECK_INT(set.count, TCCL_MAX_SET);
    tccl_set_format(&set, text);
    CHECK_INT(tccl_set_parse(text, &set, NULL), 0);
    strcat(text, " g9>m0");
    check_refused(text, "more than 144 transfers");
}

/* Sets against plain arrays of flags. */
TEST(sets)
{
    for (int round = 0; round < 500; round++) {
        bool flags[TCCL_TRANSFERS] = {false};
        struct tccl_set a = {0}, b = {0};
        for (int i = 0; i < 40; i++) {
            tccl_transfer transfer = (tccl_transfer)(rand() % 80);
            CHECK_INT(tccl_set_add(&a, transfer), flags[transfer] ? 1 : 0);
            flags[transfer] = true;
            if (rand() % 4 == 0)
                tccl_set_add(&b, transfer);
        }
        for (int i = 0; i < 80; i++)
            CHECK_INT(tccl_set_has(&a, (tccl_transfer)i), flags[i]);
        for (int i = 1; i < a.count; i++)
            CHECK(a.transfers[i - 1] < a.transfers[i]);
        CHECK(tccl_set_contains(&a, &b));
        CHECK_INT(tccl_set_contains(&b, &a), a.count == b.count);
        CHECK_INT(tccl_set_equal(&a, &b), a.count == b.count);
        CHECK(tccl_set_equal(&a, &a));
        tccl_set_add(&b, 4000);
        CHECK(!tccl_set_contains(&a, &b));
    }
}
