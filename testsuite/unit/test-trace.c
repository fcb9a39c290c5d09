/* Traces of members and the window in which all ran, against sums over every nanosecond. */
#include "check.h"
#include "measure/pool/pool-run.h"
#include "measure/pool/workers.h"

enum { SPAN = 4000, MEMBERS = 5 };

/* A member whose rate (bytes per nanosecond) changes at random; it says what it moved at those
 * moments and at others. */
struct member {
    int start, end;
    unsigned rate[SPAN]; /* in each nanosecond; 0 outside */
    struct tccl_trace trace;
};

static struct member members[MEMBERS];

static void make_member(struct member *member)
{
    unsigned rate = 0;
    uint64_t total = 0;
    memset(member, 0, sizeof(*member));
    member->start = rand() % (SPAN / 4);
    member->end = SPAN / 2 + rand() % (SPAN / 2);
    tccl_trace_begin(&member->trace, rand() % 2 ? member->start : 0);
    tccl_trace_add(&member->trace, member->start, 0);
    for (int t = member->start; t < member->end; t++) {
        bool changes = t == member->start || rand() % 50 == 0;
        if (t > member->start && (changes || rand() % 40 == 0))
            tccl_trace_add(&member->trace, t, total);
        if (changes)
            rate = 1 + (unsigned)rand() % 1000;
        member->rate[t] = rate;
        total += rate;
    }
    tccl_trace_add(&member->trace, member->end, total);
}

static double brute_bytes(const struct member *member, int from, int to)
{
    double sum = 0;
    for (int t = from; t < to; t++)
        sum += member->rate[t];
    return sum;
}

static bool close_to(double a, double b)
{
    return fabs(a - b) <= 1e-9 * (fabs(a) + fabs(b)) + 1e-12;
}

static void check_run(int n)
{
    const struct tccl_trace *traces[MEMBERS];
    struct tccl_run_result run;
    double slowest = INFINITY;
    int from, to, first = SPAN, last_start = 0, last = 0;
    for (int i = 0; i < n; i++) {
        make_member(&members[i]);
        traces[i] = &members[i].trace;
        first = members[i].start < first ? members[i].start : first;
        last_start = members[i].start > last_start ? members[i].start : last_start;
        last = members[i].end > last ? members[i].end : last;
    }
    /* The window by its definition: the nanoseconds in which every member moves. */
    from = SPAN;
    to = 0;
    for (int t = 0; t < SPAN; t++) {
        bool all = true;
        for (int i = 0; i < n; i++)
            all &= members[i].rate[t] > 0;
        if (all && t < from)
            from = t;
        if (all)
            to = t + 1;
    }
    CHECK_INT(tccl_trace_run(traces, n, n, &run), 0);
    CHECK(close_to(run.window, (to - from) * 1e-9));
    CHECK(close_to(run.overlap, (double)(to - from) / (last - first)));
    CHECK(close_to(run.skew, (last_start - first) * 1e-3));
    for (int i = 0; i < n; i++) {
        double gbps = brute_bytes(&members[i], from, to) / (to - from);
        CHECK(close_to(run.gbps[i], gbps));
        slowest = gbps < slowest ? gbps : slowest;
    }
    CHECK(close_to(run.slowest, slowest));
}

/* More is said than a trace holds: of a steady member nothing is lost. */
TEST(thinning)
{
    static struct tccl_trace trace;
    int said = 3 * TCCL_TRACE_SAMPLES + rand() % 5000;
    tccl_trace_begin(&trace, 1000);
    for (int i = 1; i <= said; i++)
        tccl_trace_add(&trace, 1000 + i * 10, (uint64_t)i * 70);
    CHECK(trace.count <= TCCL_TRACE_SAMPLES && trace.count >= TCCL_TRACE_SAMPLES / 2);
    CHECK_INT(trace.last.time, 1000 + said * 10);
    for (int i = 0; i < 1000; i++) {
        int64_t time = 1000 + rand() % (said * 10);
        CHECK(close_to(tccl_trace_bytes(&trace, time), (double)(time - 1000) * 7));
    }
    CHECK(close_to(tccl_trace_bytes(&trace, 0), 0));
    CHECK(close_to(tccl_trace_bytes(&trace, INT64_MAX), said * 70.0));
}

/* Of one that changes, what is lost is less than what lies between two samples kept. */
TEST(thinned_steps)
{
    static struct tccl_trace trace;
    static uint64_t truth[4 * TCCL_TRACE_SAMPLES];
    uint64_t total = 0;
    int said = 4 * TCCL_TRACE_SAMPLES;
    tccl_trace_begin(&trace, 0);
    for (int i = 1; i < said; i++) {
        total += (unsigned)rand() % 100;
        truth[i] = total;
        tccl_trace_add(&trace, i, total);
    }
    for (int i = 1; i < said; i++) {
        int before = i - 8 > 0 ? i - 8 : 0, after = i + 8 < said ? i + 8 : said - 1;
        double bytes = tccl_trace_bytes(&trace, i);
        CHECK(bytes >= (double)truth[before] && bytes <= (double)truth[after]);
    }
}

TEST(apart)
{
    static struct tccl_trace a, b;
    const struct tccl_trace *traces[] = {&a, &b};
    struct tccl_run_result run;
    tccl_trace_begin(&a, 0);
    tccl_trace_add(&a, 100, 100);
    tccl_trace_begin(&b, 100);
    tccl_trace_add(&b, 200, 100);
    CHECK_INT(tccl_trace_run(traces, 2, 2, &run), -1);
    tccl_trace_add(&a, 110, 120);
    CHECK_INT(tccl_trace_run(traces, 2, 2, &run), 0);
    CHECK(close_to(run.gbps[0], 2) && close_to(run.gbps[1], 1) && close_to(run.overlap, 0.05));
    CHECK_INT(tccl_trace_run(traces, 2, 1, &run), 0); /* the second one is not rated */
    CHECK(close_to(run.slowest, 2) && run.gbps[1] == 0 && close_to(run.overlap, 0.05));
}

TEST(runs)
{
    for (int i = 0; i < 300; i++)
        check_run(1 + rand() % MEMBERS);
}
