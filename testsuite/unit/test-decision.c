/* test-decision.c: are planned rings worth taking: properties of random cases, with times from a
 * recurrence over all hops. */
#include "random-model.h"
#include "ring/decision.h"
#include "ring/latency.h"

enum { ROUNDS = 20000 };

static double amount(unsigned long *state, double least, double most)
{
    return least + (most - least) * random_below(state, 10001) / 10000;
}

/* ---- times ---- */

/* GPU i gets its k-th piece from the one before it when that has had its own (k - 1)-th one. */
static double by_recurrence(const double *hops, int n)
{
    double before[64] = {0}, now[64];
    double last = 0;
    for (int step = 0; step < 2 * (n - 1); step++) {
        for (int i = 0; i < n; i++)
            now[i] = before[(i + n - 1) % n] + hops[(i + n - 1) % n];
        memcpy(before, now, sizeof(now));
    }
    for (int i = 0; i < n; i++)
        last = fmax(last, before[i]);
    return last;
}

/* On one node, each way through memory anywhere in the ring: nearly as if they were spread. */
TEST(latency)
{
    unsigned long seed = check_seed();
    for (int round = 0; round < 2000; round++) {
        unsigned long state = seed + round;
        int n = 2 + random_below(&state, 15), bounces = 0;
        double hops[16];
        for (int i = 0; i < n; i++) {
            bool bounce = random_below(&state, 2);
            bounces += bounce;
            hops[i] = 1.0 + bounce * TCCL_BOUNCE_US;
        }
        struct tccl_pace pace = {1, n, 1e9, bounces}, direct = {1, n, 1e9, 0};
        double base = tccl_latency_time(&direct, TCCL_LL, 8) - 2 * (n - 1);
        double told = tccl_latency_time(&pace, TCCL_LL, 8) - base;
        CHECK(fabs(told - by_recurrence(hops, n)) <= 2 * TCCL_BOUNCE_US + 1e-6);
    }
}

TEST(sizes)
{
    char text[16];
    CHECK(tccl_latency_size(0) == 8 << 10 &&
          tccl_latency_size(TCCL_LATENCY_SIZES - 1) == UINT64_C(1) << 30);
    tccl_latency_format_size(tccl_latency_size(4), text);
    CHECK_STR(text, "128 KiB");
    tccl_latency_format_size(tccl_latency_size(17), text);
    CHECK_STR(text, "1 GiB");
}

/* Large ones take what the bandwidth says, small ones take longer with more bounces. */
TEST(ends)
{
    struct tccl_pace slow = {1, 4, 10, 0}, fast = {1, 4, 20, 4};
    double large = tccl_latency_time(&slow, TCCL_SIMPLE, UINT64_C(1) << 30);
    CHECK(fabs(large / (1.5 * (double)(UINT64_C(1) << 30) / 10000) - 1) < 0.001);
    CHECK(tccl_latency_time(&fast, TCCL_LL, 8192) > tccl_latency_time(&slow, TCCL_LL, 8192));
    CHECK(tccl_latency_protocol(&slow, 8192) == TCCL_LL &&
          tccl_latency_protocol(&slow, UINT64_C(1) << 30) == TCCL_SIMPLE);
}

TEST(bounces)
{
    struct tccl_chain chains[2] = {
        {.n_gpus = 3, .gpus = {0, 1, 2}, .edges = {{TCCL_BOUNCE, 0}, {TCCL_P2P_WRITE, 0}}},
        {.n_gpus = 3, .closed = true, .gpus = {0, 1, 2}, .edges = {{TCCL_BOUNCE, 0}}}};
    chains[0].entry.via.kind = chains[0].exit.via.kind = TCCL_MEMORY;
    CHECK_INT(tccl_bounces(chains, 1), 3);
    CHECK_INT(tccl_bounces(chains + 1, 1), 1);
    CHECK_INT(tccl_bounces(chains, 2), 3);
    CHECK_INT(tccl_bounces(chains, 0), 0);
}

/* ---- decisions ---- */

static struct tccl_decision_case random_case(unsigned long *state)
{
    int nodes = 1 + random_below(state, 3), gpus = nodes * (1 + random_below(state, 8));
    gpus = gpus < 2 ? 2 : gpus;
    struct tccl_decision_case asked = {
        .ours = {.gbps = amount(state, 4, 24), .share = 1, .rings = 1 + random_below(state, 4)},
        .nccl = {.gbps = amount(state, 4, 24), .share = 1},
        .nodes = nodes,
        .gpus = gpus,
        .noise = random_below(state, 2) ? amount(state, 0, 0.1) : 0,
        .measured = random_below(state, 2)};
    if (random_below(state, 2)) { /* people are told more, of both */
        asked.ours.told = asked.ours.gbps * amount(state, 1, 1.5);
        asked.nccl.told = asked.nccl.gbps * amount(state, 1, 1.5);
    }
    asked.min_gain = random_below(state, 4) ? 0 : amount(state, 1, 2);
    asked.ours.bounces = random_below(state, gpus + nodes + 1);
    asked.nccl.bounces = random_below(state, gpus + nodes + 1);
    if (random_below(state, 2)) { /* nobody runs beside them; or somebody does */
        asked.alone = asked.ours.gbps * (random_below(state, 2) ? 1 : amount(state, 1, 2));
        asked.ours.share = asked.alone > asked.ours.gbps ? amount(state, 0.3, 1) : 1;
        asked.nccl.share = asked.alone > asked.ours.gbps ? amount(state, 0.3, 1) : 1;
    }
    return asked;
}

static bool takes(const struct tccl_decision_case *asked)
{
    return tccl_decide(asked).decided == TCCL_TAKE;
}

/* The largest ratio of times, of these over those. */
static double most_lost(const struct tccl_decision_case *asked, bool ours)
{
    double most = 1;
    for (int i = 0; i < TCCL_LATENCY_SIZES; i++) {
        double mine, own;
        tccl_decision_times(asked, i, &mine, &own);
        most = fmax(most, ours ? mine / own : own / mine);
    }
    return most;
}

/* What is taken gains, loses nowhere more than it wins elsewhere, and stays taken with more
 * bandwidth, or with fewer ways through memory; and what is left says why. */
TEST(properties)
{
    unsigned long seed = check_seed();
    int taken = 0, late = 0, shared = 0, told = 0;
    for (int round = 0; round < ROUNDS && !check_failures; round++) {
        unsigned long state = seed + 100000 + round;
        struct tccl_decision_case asked = random_case(&state), better = asked;
        struct tccl_decision decision = tccl_decide(&asked);
        char why[TCCL_DECISION_TEXT];
        tccl_decision_say(&asked, &decision, why);
        CHECK((*why == '\0') ==
              (decision.decided == TCCL_TAKE || decision.decided == TCCL_BELOW_POLICY));
        const double own = asked.nccl.told > 0 ? asked.nccl.told : asked.nccl.gbps;
        const double ours = asked.ours.told > 0 ? asked.ours.told : asked.ours.gbps;
        if (decision.decided == TCCL_BELOW_POLICY)
            CHECK(ours < own * asked.min_gain);
        if (asked.ours.told > 0 && decision.decided == TCCL_NO_FASTER) {
            struct tccl_decision_case untold = asked;
            untold.ours.told = untold.nccl.told = untold.min_gain = 0;
            told += takes(&untold);
            CHECK(!takes(&untold) || ours < own * 0.99);
        }
        CHECK(decision.required >= 1 + asked.noise && decision.required >= 1.05);
        CHECK(asked.measured || decision.required * 0.9 / 1.1 >= 0.97);
        late += decision.decided == TCCL_SLOWER_SMALL;
        if (decision.decided != TCCL_TAKE)
            continue;
        taken++;
        CHECK(ours >= own * 0.99 && (asked.min_gain <= 1 || ours >= own * asked.min_gain * 0.999));
        bool gains = asked.ours.gbps > asked.nccl.gbps * decision.required;
        CHECK(gains || (asked.ours.gbps >= asked.nccl.gbps * (1 - 1e-9) &&
                        asked.ours.share > asked.nccl.share * (1 + asked.noise)));
        shared += !gains;
        CHECK(most_lost(&asked, true) <= most_lost(&asked, false) * (1 + 1e-9));
        better.ours.gbps *= 1.1;
        better.ours.told *= 1.1;
        better.alone *= 1.1;
        CHECK(takes(&better) || !gains);
        better = asked;
        better.ours.bounces = 0;
        CHECK(takes(&better));
        better = asked;
        better.noise = 0;
        better.ours.rings = 1;
        better.measured = true;
        CHECK(takes(&better) || !gains || asked.noise > 0); /* what is surer needs no more */
    }
    printf("%d of %d are taken, %d for others; %d left for their latency\n", taken, ROUNDS, shared,
           late);
    CHECK(taken > 0 && late > 0 && shared > 0 && told > 0);
}

/* Two GPUs of epyc-8gpu: P2P by NCCL, ways through memory by the model; small messages come first
 * there, and in groups within a node. */
TEST(small_first)
{
    struct tccl_decision_case asked = {.ours = {.gbps = 21.15, .share = 1, .bounces = 2},
                                       .nccl = {.gbps = 20, .share = 1},
                                       .nodes = 1,
                                       .gpus = 2};
    asked.measured = true;
    CHECK_INT(tccl_decide(&asked).decided, TCCL_SLOWER_SMALL);
    asked.ours.gbps = 30; /* wins more at large sizes than it loses at small ones */
    CHECK_INT(tccl_decide(&asked).decided, TCCL_SLOWER_SMALL);
    CHECK(tccl_decide(&asked).loss_at == 8 << 10);
    asked.ours.gbps = 44; /* more than four times as much */
    CHECK(takes(&asked));
    asked.ours.gbps = 30;
    asked.gpus = 8;
    CHECK(takes(&asked));
    asked.small_first = true;
    asked.ours.bounces = 8;
    CHECK(!takes(&asked));
    asked.nccl.bounces = 8;
    CHECK(takes(&asked));
}

/* Several rings cost a graph file. */
TEST(several)
{
    struct tccl_decision_case one = {.ours = {.gbps = 10, .share = 1, .rings = 1},
                                     .nccl = {.gbps = 5, .share = 1},
                                     .nodes = 2,
                                     .gpus = 8},
                              two = one;
    two.ours.rings = 2;
    two.ours.gbps = 10.4;
    CHECK(!tccl_decide_several(&two, &one));
    two.ours.gbps = 12;
    CHECK(tccl_decide_several(&two, &one));
    two.ours.bounces = 1000; /* these would not be taken */
    CHECK(!tccl_decide_several(&two, &one));
    one.nccl.gbps = two.nccl.gbps = 10;
    two.ours.bounces = 0;
    CHECK(tccl_decide_several(&two, &one)); /* the single one is none */
    two = (struct tccl_decision_case){.ours = {.gbps = 15, .share = 0.66, .rings = 2},
                                      .nccl = {.gbps = 15, .share = 0.6},
                                      .alone = 20,
                                      .measured = true};
    /* as fast beside others, to which 1.10 times as much is left */
    CHECK(!takes(&two));
    two.ours.share = 0.661;
    CHECK(takes(&two));
    two.ours.share = 0.61;
    two.ours.rings = 1;
    CHECK(takes(&two));
}
