/* Congested loads: which are listed. */
#include "profile/measured.h"
#include "profiles.h"
#include "report/report.h"

static const double threshold = 0.9;

static void know_gbps(struct tccl_measured *measured, const char *text, double gbps)
{
    know(measured, text, (struct tccl_measurement){.gbps = gbps});
}

static struct tccl_congested *find(const struct tccl_measured *measured, long *count)
{
    struct tccl_congested *list = NULL;
    *count = tccl_congestion_find(measured, threshold, &list, ERR);
    CHECK_STR(check_err.text, "");
    return list;
}

/* What is explained by a smaller set, not far enough below, within the spread, or failed. */
TEST(left_out)
{
    cleared_by(tccl_measured_clear) struct tccl_measured measured = {.lines = 0};
    long count;
    know_gbps(&measured, "g0>m1", 12);
    know_gbps(&measured, "g1>m1", 12);
    know_gbps(&measured, "g2<m0", 12);
    know_gbps(&measured, "g2>m1", 12);
    know_gbps(&measured, "g0>m1 g1>m1", 7);
    know_gbps(&measured, "g0>m1 g1>m1 g2<m0", 6.9);
    know_gbps(&measured, "g0>m1 g1>m1 g2>m1", 5);
    know_gbps(&measured, "g0>m1 g2<m0", 11.5);
    know(&measured, "g1>m1 g2<m0", (struct tccl_measurement){.gbps = 9, .spread = 0.4});
    know(&measured, "g2>m1 g2<m0", (struct tccl_measurement){.failed = true});
    cleanup_free struct tccl_congested *list = find(&measured, &count);
    CHECK_INT(count, 2);
    if (count == 2) {
        CHECK(list[0].gbps == 5 && list[0].set.count == 3);
        CHECK(list[1].gbps == 7 && list[1].hides == 1);
    }
}

/* A member that was never alone reaches at least what it did with others. */
TEST(at_least)
{
    cleared_by(tccl_measured_clear) struct tccl_measured measured = {.lines = 0};
    long count;
    know_gbps(&measured, "g0>m1 g3>m0", 11);
    know_gbps(&measured, "g1>m1 g3>m0", 12);
    know_gbps(&measured, "g0>m1 g1>m1", 5.5);
    cleanup_free struct tccl_congested *list = find(&measured, &count);
    CHECK_INT(count, 1);
    if (count == 1)
        CHECK(list[0].at_least && list[0].alone == 11 && fabs(list[0].ratio - 5.5 / 11) < 1e-9);
}

/* By definition: is the set congested? Counts only sets whose members were all measured alone. */
static bool congested(const struct tccl_measured *measured, size_t i)
{
    const struct tccl_set *set = &measured->sets.entries[i].set;
    const struct tccl_measurement *value = &measured->sets.entries[i].best;
    double least = INFINITY, spread = 0;
    for (int j = 0; j < set->count; j++) {
        struct tccl_set one = {.count = 1, .transfers = {set->transfers[j]}};
        struct tccl_measurement alone;
        CHECK_INT(tccl_measured_ask(measured, &one, &alone), TCCL_ANSWER_MEASURED);
        least = fmin(least, alone.gbps);
        spread = fmax(spread, alone.spread);
    }
    return set->count > 1 && !value->failed && value->gbps < threshold * least &&
           value->gbps * (1 + value->spread) < least * (1 - spread);
}

static bool listed(const struct tccl_congested *list, long count, const struct tccl_set *set,
                   double gbps)
{
    for (long i = 0; i < count; i++)
        if (tccl_set_contains(set, &list[i].set) && list[i].gbps <= gbps * 1.03 + 1e-9)
            return true;
    return false;
}

/* Random sets over few transfers, so that many are parts of others: what is congested is listed, or
 * holds what is; nothing in the list explains another; worst first. */
TEST(random)
{
    for (int round = 0; round < 50; round++) {
        const struct tccl_machine machine = sample_machine();
        cleared_by(tccl_measured_clear) struct tccl_measured measured = {.lines = 0};
        tccl_transfer transfers[8];
        long count;
        for (int i = 0; i < 8; i++) {
            transfers[i] = random_transfer(&machine);
            struct tccl_set one = {.count = 1, .transfers = {transfers[i]}};
            tccl_setmap_note(&measured.sets, &one,
                             &(struct tccl_measurement){.gbps = 10 + rand() % 4, .spread = 0.01});
        }
        for (int i = 0; i < 120; i++) {
            struct tccl_set set = {0};
            for (int j = 2 + rand() % 4; j > 0; j--)
                tccl_set_add(&set, transfers[rand() % 8]);
            struct tccl_measurement value = {.gbps = 3 + rand() % 80 / 10.0,
                                             .spread = rand() % 5 / 100.0};
            if (set.count > 1)
                tccl_setmap_note(&measured.sets, &set, &value);
        }
        cleanup_free struct tccl_congested *list = find(&measured, &count);
        for (size_t i = 0; i < measured.sets.count; i++)
            if (congested(&measured, i))
                CHECK(listed(list, count, &measured.sets.entries[i].set,
                             measured.sets.entries[i].best.gbps));
        for (long i = 0; i < count; i++) {
            const struct tccl_setmap_entry *entry = tccl_setmap_find(&measured.sets, &list[i].set);
            CHECK(entry && congested(&measured, (size_t)(entry - measured.sets.entries)));
            CHECK(i == 0 || list[i - 1].ratio <= list[i].ratio);
            for (long j = 0; j < count; j++)
                CHECK(i == j || !tccl_set_contains(&list[i].set, &list[j].set) ||
                      list[j].gbps > list[i].gbps * 1.03 - 1e-9);
        }
    }
}
