/* Warm-up, repeats, median, spread, further rounds: with members whose rates are known. */
#include "machines.h"
#include "puppet.h"

static const struct tccl_repeat_options options = {
    .window = 0.02, .repeats = 5, .rounds = 3, .spread = 0.05};

/* By counting: half of the values at most are less than the median, and half at most are more. */
TEST(statistics)
{
    for (int i = 0; i < 1000; i++) {
        double values[51], low = INFINITY, high = 0;
        int n = 1 + rand() % 51, less = 0, more = 0;
        for (int k = 0; k < n; k++) {
            values[k] = 1 + rand() % 20;
            low = fmin(low, values[k]);
            high = fmax(high, values[k]);
        }
        double median = tccl_median(values, n), spread = tccl_spread(values, n);
        for (int k = 0; k < n; k++) {
            less += values[k] < median;
            more += values[k] > median;
            CHECK(k == 0 || values[k - 1] <= values[k]);
        }
        CHECK(less <= n / 2 && more <= n / 2 && fabs(spread - (high - low) / median) < 1e-12);
    }
    double zeros[3] = {0, 0, 0};
    CHECK(tccl_spread(zeros, 3) == 0);
}

static struct tccl_workers *workers;

static int repeat(const char *text, struct tccl_measurement *out, struct tccl_error *err)
{
    struct tccl_set set = parse_set(text);
    *out = (struct tccl_measurement){.marks = TCCL_MARK_MIG};
    return tccl_repeat(workers, &options, &set, out, err);
}

static const double PATIENCE = 120; /* seconds */

static bool is_steady(const struct tccl_measurement *out, double rate, int runs)
{
    return fabs(out->gbps / rate - 1) < 0.1 && runs >= 6 && runs <= 5 + 3 * 10;
}

static int runs_of(const char *text, struct tccl_measurement *out)
{
    int before = puppet->runs[0];
    CHECK_INT(repeat(text, out, NULL), 0);
    return puppet->runs[0] - before;
}

/* Rates of very different size: each run takes about the time it should. The first run that is long
 * enough ends the warm-up. Members that are not let run are not steady: tried again. */
static void check_steady(void)
{
    static const double rates[] = {0.1, 3, 300};
    struct tccl_measurement out;
    int runs;
    for (int i = 0; i < 3; i++) {
        double until = tccl_seconds() + PATIENCE;
        puppet->gbps[0] = rates[i];
        puppet->gbps[1] = 10 * rates[i];
        do {
            runs = runs_of("g0>m0 g1>m0", &out);
            printf("steady: %d runs, %.4g GB/s, spread %.4f\n", runs, out.gbps, out.spread);
        } while (!is_steady(&out, rates[i], runs) && tccl_seconds() < until);
        CHECK(is_steady(&out, rates[i], runs) && out.overlap > 0 && out.overlap <= 1);
        CHECK(out.skew >= 0);
        CHECK_INT(out.marks, TCCL_MARK_MIG);
        CHECK(!out.failed);
    }
    puppet->gbps[0] = puppet->gbps[1] = 1;
}

/* Each second run is half as fast again: all rounds are made, and it stays noisy. */
static void check_noisy(void)
{
    struct tccl_measurement out;
    double until = tccl_seconds() + PATIENCE;
    bool as_told;
    puppet->wobble[0] = 50;
    do {
        int runs = runs_of("g0>m0", &out);
        printf("noisy: %d runs, %.4g GB/s, spread %.4f\n", runs, out.gbps, out.spread);
        CHECK(runs >= 16 && out.noisy);
        as_told = out.spread > 0.25 && out.spread < 0.6 && out.gbps > 0.9 && out.gbps < 1.65;
    } while (!as_told && tccl_seconds() < until);
    CHECK(as_told);
    puppet->wobble[0] = 0;
}

/* Runs in which the members never were together are made again, as others that were disturbed; a
 * set whose members never are together, however often it is tried, has failed. */
static void check_never_together(void)
{
    struct tccl_measurement out;
    puppet->alone[0] = 2;
    CHECK_INT(repeat("g0>m0 g1>m0", &out, NULL), 0);
    CHECK_INT(puppet->alone[0], 0);
    CHECK(out.gbps > 0.5 && out.overlap > 0);
    puppet->alone[0] = 1000;
    CHECK_INT(repeat("g0>m0 g1>m0", &out, ERR), 1);
    CHECK_STR(check_err.text, "its transfers hardly run at the same time here");
    puppet->alone[0] = 0;
}

static void check_failure(void)
{
    struct tccl_measurement out;
    puppet->act[1] = PUPPET_DIES;
    CHECK_INT(repeat("g0>m0 g1>m0", &out, ERR), 1);
    CHECK_STR(check_err.text, "g1>m0: its worker was killed by signal 9");
    puppet->act[1] = PUPPET_MOVES;
    CHECK_INT(repeat("g0>m0 g1>m0", &out, NULL), 0);
}

TEST(repeats)
{
    const struct tccl_workspace_settings settings = {.region = 1 << 20};
    const struct tccl_workers_options pool = {
        .gpu = &puppet_mover, .prepare_limit = 60, .run_limit = 60};
    alarm(900);
    puppet_make();
    struct tccl_workspace *workspace = tccl_workspace_new(puppet_site(2), &settings, NULL);
    workers = workspace ? tccl_workers_new(workspace, &pool, NULL) : NULL;
    CHECK(workers);
    if (workers) {
        check_steady();
        check_noisy();
        /* Members that are never together for long: not good, however steady they are. */
        struct tccl_measurement out;
        puppet->late[1] = 0.1;
        CHECK_INT(repeat("g0>m0 g1>m0", &out, NULL), 0);
        CHECK(out.noisy && out.overlap < 0.95 && out.skew > 90000);
        puppet->late[1] = 0;
        check_never_together();
        check_failure();
    }
    tccl_workers_free(workers);
    tccl_workspace_free(workspace);
    CHECK_INT(waitpid(-1, NULL, WNOHANG), -1);
}
