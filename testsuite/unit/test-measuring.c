/* Filling a profile from hardware that is noisy, fails, and is stopped at any moment: nothing that
 * was measured is lost, nothing measured twice, and nothing served that may not be. */
#include <dirent.h>
#include <sys/resource.h>

#include "fill/fill.h"
#include "fill/run-meter.h"
#include "rough.h"
#include "sample.h"
#include "search/setmap.h"

OWNED(backend, struct tccl_backend, tccl_backend_close)
OWNED(profile, struct tccl_profile, tccl_profile_close)

static const char *cache;
static const uint32_t some_sets[] = {0xf, 0x3, 0xc, 0x6, 0x1};
enum { SOME = COUNT(some_sets) };
static struct tccl_error last; /* what the last run had to say */
static long stop_at;           /* measured sets after which it is stopped; 0: never */

static int progress(void *context, const struct tccl_fill_progress *now)
{
    CHECK(now->fraction >= 0 && now->fraction <= 1 + 1e-9);
    return stop_at > 0 && now->measured >= stop_at;
}

static struct tccl_profile *open_profile(struct tccl_backend *backend)
{
    struct tccl_profile *profile;
    CHECK_OK(tccl_profile_create(cache, backend->machine, "rough", NULL, &profile, ERR));
    CHECK_OK(tccl_profile_claim(profile, backend->conditions, ERR));
    return profile;
}

static struct tccl_fill_progress end; /* of the last run */

static int run(double seconds)
{
    owned(backend) struct tccl_backend *backend = rough_begin();
    owned(profile) struct tccl_profile *profile = open_profile(backend);
    const struct tccl_fill_options options = {.sets = some_sets,
                                              .n_sets = SOME,
                                              .gap = 0.05,
                                              .pairs = 2,
                                              .seconds = seconds,
                                              .progress = progress};
    last = (struct tccl_error){0};
    memset(&end, 0xa5, sizeof(end));
    return tccl_fill(backend, profile, &options, &end, &last);
}

static void begin(void)
{
    check_remove(cache);
    rough = (struct rough){.noise = 0.01};
    stop_at = 0;
}

BEFORE
{
    begin();
}

/* ---- what is on disk ---- */

static struct log {
    long lines, good, failed, marked;
    long again; /* of the good ones: for the second time, which is allowed, */
    long twice; /* or more than what is chosen in the end, which is not */
    struct tccl_setmap seen;
} log_;

static int count(void *context, const struct tccl_set *set, const struct tccl_measurement *measured)
{
    log_.lines++;
    log_.failed += measured->failed;
    log_.marked += measured->marks != 0;
    if (measured->failed || measured->marks)
        return 0;
    log_.good++;
    const struct tccl_setmap_entry *entry = tccl_setmap_note(&log_.seen, set, measured);
    if (!entry)
        return -1;
    log_.again += entry->measured == 2;
    log_.twice += entry->measured > TCCL_VALUES;
    return 0;
}

static void read_log(void)
{
    owned(backend) struct tccl_backend *backend = rough_begin();
    owned(profile) struct tccl_profile *profile = open_profile(backend);
    tccl_setmap_clear(&log_.seen);
    log_ = (struct log){0};
    CHECK(tccl_profile_sets(profile, count, NULL, NULL, ERR) >= 0);
    CHECK_STR(check_err.text, "");
}

static double ring_of(uint32_t gpus, double *bound)
{
    owned(backend) struct tccl_backend *backend = rough_begin();
    owned(profile) struct tccl_profile *profile = open_profile(backend);
    const struct tccl_table *table = tccl_profile_table(profile, gpus, ERR);
    double gbps = table ? tccl_table_ring(table)->gbps : -1;
    *bound = table ? tccl_table_ring(table)->bound : -1;
    return gbps;
}

/* Pairs of ports that have a chain, and the largest bound of all. */
static int known_pairs(uint32_t gpus, double *bound)
{
    owned(backend) struct tccl_backend *backend = rough_begin();
    owned(profile) struct tccl_profile *profile = open_profile(backend);
    const struct tccl_table *table = tccl_profile_table(profile, gpus, ERR);
    int known = 0;
    CHECK(table != NULL);
    *bound = 0;
    for (int i = 0; table && i < tccl_table_pairs(table); i++) {
        known += table->results[i].gbps > 0;
        *bound = fmax(*bound, table->results[i].bound);
    }
    return known;
}

static int count_tables(void)
{
    owned(backend) struct tccl_backend *backend = rough_begin();
    owned(profile) struct tccl_profile *profile = open_profile(backend);
    cleanup_free uint32_t *masks = NULL;
    return tccl_profile_tables(profile, &masks, ERR);
}

/* ---- tests ---- */

TEST(first_sets)
{
    cleanup_free struct tccl_set *sets = NULL, *large = NULL;
    struct tccl_machine machine = sample_machine(),
                        big = {.n_gpus = 16, .n_memories = 16, .n_switches = 4};
    const char *const wanted[] = {"g3>m0",       "g3<m0",       "g0>g3",       "g3<g0",
                                  "g0>m0 g0<m0", "g2>m1 g3>m1", "g0<m0 g1<m0", "g0>g1 g1>g0",
                                  "n0>g1",       "n0<m1",       "n0>m0 n0<m0"};
    int n = tccl_first_sets(&machine, &sets, ERR), found = 0;
    /* singles: 4 GPUs x 2 memories, 12 pairs, 2 NICs x 2 memories, 2 GPUDirect; each both ways */
    CHECK_INT(n, 2 * (8 + 12 + 4 + 2) + 4 + 2 + 6 + 4);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++)
            CHECK(!tccl_set_equal(&sets[i], &sets[j]));
    for (size_t j = 0; j < COUNT(wanted); j++) {
        const struct tccl_set one = parse_set(wanted[j]);
        for (int i = 0; i < n; i++)
            found += tccl_set_equal(&sets[i], &one);
    }
    CHECK_INT(found, COUNT(wanted));
    for (int i = 0; i < 16; i++) {
        big.gpus[i].parent = i / 4;
        for (int j = 0; j < 16; j++)
            big.p2p[i][j] = i != j;
    }
    CHECK_INT(tccl_first_sets(&big, &large, ERR), TCCL_FIRST_SETS);
    /* Two ways out of each switch, one of them to each other one, are among them. */
    for (int i = found = 0; i < TCCL_FIRST_SETS; i++)
        found += large[i].count == 2 && tccl_transfer_target(large[i].transfers[0]).kind !=
                                            tccl_transfer_target(large[i].transfers[1]).kind;
    CHECK_INT(found, 4 * 3);
}

/* Ring sets of all GPUs, and what the best one of several nodes reaches. */
static int known_sets(double *best)
{
    owned(backend) struct tccl_backend *backend = rough_begin();
    owned(profile) struct tccl_profile *profile = open_profile(backend);
    const struct tccl_table *table = tccl_profile_table(profile, 0xf, ERR);
    int known = 0;
    *best = 0;
    for (const struct tccl_result *own = NULL;
         table && (own = tccl_table_next(table, own, TCCL_SETS)); known++)
        if (!own->chain.closed)
            *best = fmax(*best, own->gbps);
    return known;
}

/* Stopped when the chains of all GPUs are proven, and ring sets are looked for: these are there in
 * the end. */
TEST(resume_sets)
{
    double best, resumed;
    rough.noise = 0;
    CHECK_INT(run(0), TCCL_FILL_DONE);
    CHECK(known_sets(&best) > 0 && best > 0);
    long all = end.measured;
    begin();
    rough.noise = 0;
    stop_at = 3 * all / 5;
    CHECK_INT(run(0), TCCL_FILL_STOPPED);
    stop_at = 0;
    CHECK_INT(run(0), TCCL_FILL_DONE);
    CHECK_INT(end.proven, SOME);
    CHECK(known_sets(&resumed) > 0 && resumed >= 0.97 * best);
}

/* Stopped again and again; in the end as if it had never been. */
TEST(resume)
{
    long measured = 0;
    int rc;
    do {
        stop_at = 1 + rand() % 200;
        rc = run(0);
        CHECK_INT(end.known, measured);
        measured += end.measured;
    } while (rc == TCCL_FILL_STOPPED);
    CHECK_INT(rc, TCCL_FILL_DONE);
    CHECK_INT(end.proven, SOME);
    read_log();
    CHECK_INT(log_.good, measured);
    CHECK_INT(log_.twice, 0);
    stop_at = 0;
    CHECK_INT(run(0), TCCL_FILL_DONE);
    CHECK_INT(end.measured, 0);
    CHECK_INT(end.kept, SOME);
}

/* Fails now and then: tried again, and nothing is to be seen of it. */
TEST(flaky)
{
    rough.bad = "g1>m1";
    rough.bad_tries = 2;
    CHECK_INT(run(0), TCCL_FILL_DONE);
    CHECK(rough.calls > end.measured);
    CHECK_INT(end.failed, 0);
    CHECK_INT(end.proven, SOME);
    read_log();
    CHECK_INT(log_.failed, 0);
}

/* One transfer never works: its sets are given up, the rest is measured, and the next run tries
 * these sets again, and no others. */
TEST(failed)
{
    rough.bad = "g3<m3";
    CHECK_INT(run(0), TCCL_FILL_DONE);
    CHECK(end.failed > 0);
    CHECK(strstr(end.why.text, "g3<m3") && strstr(end.why.text, "its worker died"));
    CHECK(end.partial >= 2 && end.proven >= 1); /* 0-3 and 2-3; 0-1 has no GPU 3 */
    CHECK_INT(end.proven + end.partial, SOME);
    read_log();
    CHECK_INT(log_.failed, end.failed);
    CHECK_INT(log_.good, end.measured - end.failed);
    long failed = log_.failed, good = log_.good;
    rough.bad = NULL;
    CHECK_INT(run(0), TCCL_FILL_DONE);
    CHECK_INT(end.proven, SOME);
    CHECK_INT(end.failed, 0);
    CHECK(end.measured > 0);
    read_log();
    CHECK_INT(log_.failed, failed);
    CHECK_INT(log_.good, good + end.measured);
    CHECK_INT(log_.twice, 0);
}

/* Without a peer no NIC is measured: rings all the same, pairs of ports stay unknown, nothing
 * counts as failed; with one the next run adds what is missing, and a third one has nothing to do.
 */
TEST(no_nics)
{
    double bound;
    rough.no_nics = true;
    CHECK_INT(run(0), TCCL_FILL_DONE);
    CHECK_INT(end.failed, 0);
    CHECK_INT(end.proven, SOME);
    CHECK(ring_of(0xf, &bound) > 0);
    CHECK_INT(known_pairs(0xf, &bound), 0);
    CHECK(isinf(bound));
    read_log();
    CHECK_INT(log_.failed, 0);
    rough.no_nics = false;
    rough.conditions = "rough copies, TCP";
    CHECK_INT(run(0), TCCL_FILL_DONE);
    CHECK(end.measured > 0 && end.known > 0);
    CHECK_INT(end.proven, SOME);
    CHECK(known_pairs(0xf, &bound) > 0 && isfinite(bound));
    rough.no_nics = true;
    rough.conditions = NULL;
    CHECK_INT(run(0), TCCL_FILL_DONE);
    CHECK_INT(end.measured, 0);
    CHECK(known_pairs(0xf, &bound) > 0);
}

/* Nothing works any more: it ends, and says what is the matter. */
TEST(all_fail)
{
    stop_at = 50;
    CHECK_INT(run(0), TCCL_FILL_STOPPED);
    stop_at = 0;
    rough.bad = "";
    rough.bad_tries = 0;
    CHECK_INT(run(0), -1);
    CHECK(strstr(last.text, "10 loads failed in a row, the last \""));
    CHECK(strstr(last.text, "its worker died: what was measured is kept") && rough.calls < 30);
    read_log();
    CHECK_INT(log_.good, 50);
    rough.bad = NULL;
    rough.dies_at = 20;
    CHECK_INT(run(0), -1);
    CHECK_STR(last.text, "the machine is on fire: what was measured is kept");
    read_log();
    CHECK_INT(log_.good, 70);
    rough.dies_at = 0;
    CHECK_INT(run(0), TCCL_FILL_DONE);
    CHECK_INT(end.proven, SOME);
    CHECK_INT(end.known, 70);
}

/* Under MPS or MIG all is measured and marked, and no chains are written; what was measured so is
 * not known to a run without, nor the other way round. */
TEST(marks)
{
    rough.marks = TCCL_MARK_MPS;
    CHECK_INT(run(0), TCCL_FILL_DONE);
    CHECK(end.measured > 50);
    CHECK_INT(count_tables(), 0);
    CHECK_INT(end.proven + end.partial, 0);
    long measured = end.measured, more = 0;
    /* It may search by another way than the first time, as more is known from the beginning, which
     * ring sets are guessed from: now and then a seventh as much again, once in a hundred times a
     * quarter and more. In the end nothing is left to be measured. */
    for (int runs = 0; runs < 6 && (runs == 0 || end.measured > 0); runs++) {
        CHECK_INT(run(0), TCCL_FILL_DONE);
        CHECK_INT(end.known, measured + more);
        more += end.measured;
    }
    CHECK_INT(end.measured, 0);
    CHECK(more * 4 < measured * 3);
    read_log();
    CHECK_INT(log_.marked, measured + more);
    CHECK_INT(log_.good, 0);
    rough.marks = 0;
    CHECK_INT(run(0), TCCL_FILL_DONE);
    CHECK_INT(end.known, 0);
    CHECK(end.measured > 50);
    CHECK_INT(end.proven, SOME);
    CHECK_INT(count_tables(), SOME);
    begin(); /* marks that the back end didn't know of: those sets count as failed */
    rough.set_marks = TCCL_MARK_BUSY;
    CHECK_INT(run(0), -1);
    CHECK(strstr(last.text, "others used the GPUs"));
    CHECK_INT(count_tables(), 0);
    read_log();
    CHECK_INT(log_.good, 0);
}

/* Opens the profile anew, and asks for the set so often. Returns how often it was measured. */
static long ask_again(int times, double *gbps)
{
    owned(backend) struct tccl_backend *backend = rough_begin();
    owned(profile) struct tccl_profile *profile = open_profile(backend);
    struct tccl_measurement out;
    struct tccl_fill_progress progress = {0};
    struct tccl_run_meter meter;
    struct tccl_set set = parse_set("g0>m0 g1>m0");
    CHECK_OK(tccl_run_meter_open(&meter, backend, profile, &progress, ERR));
    for (int i = 0; i < times; i++)
        CHECK_OK(tccl_run_meter_again(&meter, &set, TCCL_MEASURED_MOST, &out, ERR));
    CHECK_OK(tccl_run_meter_measure(&meter, &set, &out, ERR));
    *gbps = out.gbps;
    long calls = rough.calls;
    tccl_run_meter_clear(&meter);
    return calls;
}

/* A second measurement is made once in all runs, and the larger of both counts. */
TEST(again)
{
    double first, second;
    rough.noise = 0;
    CHECK_INT(ask_again(0, &first), 1);
    rough.scale = 1.1;
    CHECK_INT(ask_again(3, &second), 1);
    CHECK(fabs(second / first - 1.1) < 1e-9);
    CHECK_INT(ask_again(3, &second), 0);
    CHECK(fabs(second / first - 1.1) < 1e-9);
    read_log();
    CHECK_INT(log_.lines, 2);
    begin(); /* both in one run, the second one slower */
    rough.noise = 0;
    CHECK_INT(ask_again(0, &first), 1);
    rough.scale = 0.9;
    CHECK_INT(ask_again(5, &second), 1);
    CHECK(second == first);
    rough.bad = "";
    CHECK_INT(ask_again(1, &second), 0);
    CHECK(second == first);
}

/* Little time: ends in order, each time a bit farther; the bounds are right at any time. (What
 * comes behind a table's chains begins anew each time, from what is measured by then.) */
TEST(time)
{
    double bound, gbps, best = 0;
    int rounds = 0, rc;
    rough.pause = 0.0005;
    while ((rc = run(0.3 + 0.1 * rounds)) == TCCL_FILL_TIME && rounds++ < 200) {
        CHECK(end.left < 0.3 + 0.1 * rounds || end.left >= 0);
        gbps = ring_of(0xf, &bound);
        CHECK(gbps < 0 || bound >= gbps);
        /* what was chosen is measured again, and may have been too high */
        CHECK(gbps >= best * (1 - 2 * rough.noise) - 1e-9 || gbps < 0);
        best = fmax(best, gbps);
    }
    CHECK_INT(rc, TCCL_FILL_DONE);
    CHECK(rounds > 0);
    CHECK_INT(end.proven, SOME);
    read_log();
    CHECK_INT(log_.twice, 0);
}

/* A run that is cut short leaves the better chains of an earlier one. */
TEST(not_worse)
{
    double bound, gbps, after;
    CHECK_INT(run(0), TCCL_FILL_DONE);
    gbps = ring_of(0xf, &bound);
    struct tccl_backend *backend = rough_begin();
    struct tccl_profile *profile = open_profile(backend);
    const struct tccl_fill_options options = {
        .sets = some_sets, .n_sets = 1, .gap = 0, .pairs = 0, .seconds = 0.001};
    CHECK(tccl_fill(backend, profile, &options, &end, ERR) >= 0);
    tccl_profile_close(profile);
    tccl_backend_close(backend);
    after = ring_of(0xf, &bound);
    CHECK(after >= gbps);
}

/* Files that a killed writer left. */
static int left_over(void)
{
    return system(check_printf("test -z \"$(find '%s' -name '*.chains.*')\"", cache));
}

/* Killed at any moment: what was measured before the measurement at work is in the log. */
TEST(kill)
{
    long told = 0;
    for (int round = 0; round < CHECK_ROUNDS(25); round++) {
        int pipe_[2];
        CHECK_INT(pipe(pipe_), 0);
        fflush(NULL);
        pid_t child = fork();
        if (child == 0) {
            rough.tell = pipe_[1];
            close(pipe_[0]);
            run(0);
            _exit(0);
        }
        char byte;
        long begun = 0, n = 1 + rand() % 40;
        close(pipe_[1]);
        while (begun < n && read(pipe_[0], &byte, 1) == 1)
            begun++;
        nanosleep(&(struct timespec){.tv_nsec = rand() % 2000000}, NULL);
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        while (read(pipe_[0], &byte, 1) == 1)
            begun++;
        close(pipe_[0]);
        told += begun > 0 ? begun - 1 : 0; /* the last one may not have come to its end */
        read_log();
        CHECK(log_.lines >= told);
        CHECK_INT(log_.twice, 0);
        told = log_.lines;
    }
    long before = log_.good;
    CHECK_INT(run(0), TCCL_FILL_DONE);
    CHECK_INT(end.known, before);
    read_log();
    CHECK_INT(log_.twice, 0);
    CHECK_INT(log_.good, before + end.measured);
    CHECK_INT(left_over(), 0);
}

/* The disk is full in the middle: one line, and the run goes on when there is room again. */
TEST(full_disk)
{
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        struct rlimit limit = {6000, RLIM_INFINITY};
        signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &limit);
        CHECK_INT(run(0), -1);
        CHECK(strstr(last.text, "sets.jsonl: ") && !strchr(last.text, '\n'));
        _exit(check_result());
    }
    CHECK_INT(check_exit(child), 0);
    read_log();
    CHECK(log_.good > 10);
    long before = log_.good;
    CHECK_INT(run(0), TCCL_FILL_DONE);
    CHECK_INT(end.known, before);
    CHECK_INT(end.proven, SOME);
}

/* ---- does it still hold? ---- */

static enum tccl_drift_verdict check_drift(struct tccl_drift *drift)
{
    owned(backend) struct tccl_backend *backend = rough_begin();
    owned(profile) struct tccl_profile *profile = open_profile(backend);
    const struct tccl_drift_options options = {.sets = 40, .seed = (unsigned)rand()};
    CHECK_OK(tccl_drift_check(backend, profile, &options, drift, ERR));
    return drift->verdict;
}

TEST(drift)
{
    struct tccl_drift drift;
    char link[16];
    int near = machine_of("amd-4gpu")->gpus[2].numa;
    CHECK_INT(run(0), TCCL_FILL_DONE);
    CHECK_INT(check_drift(&drift), TCCL_DRIFT_HOLDS);
    CHECK_INT(drift.count, 40);
    CHECK_STR(drift.sets[0].what, "best ring of GPUs 0-3");
    CHECK(fabs(drift.median - 1) < 0.03);
    tccl_drift_clear(&drift);
    snprintf(link, sizeof(link), "g2<m%d", near); /* one link is worn out */
    rough.slow = link;
    CHECK_INT(check_drift(&drift), TCCL_DRIFT_DRIFTED);
    CHECK(drift.drifted > 0 && drift.drifted < 40);
    for (int i = 0; i < drift.count; i++)
        CHECK(drift.sets[i].drifted == rough_has(&drift.sets[i].set, rough.slow));
    CHECK(rough_has(&drift.sets[drift.worst].set, rough.slow));
    tccl_drift_clear(&drift);
    rough.slow = NULL;
    rough.scale = 1.2; /* all of it is faster */
    CHECK_INT(check_drift(&drift), TCCL_DRIFT_DRIFTED);
    CHECK_INT(drift.drifted, 40);
    CHECK(fabs(drift.median - 1.2) < 0.03);
    tccl_drift_clear(&drift);
    rough.scale = 1;
    rough.bad = "";
    CHECK_INT(check_drift(&drift), TCCL_DRIFT_UNCLEAR);
    CHECK_INT(drift.failed, 40);
    tccl_drift_clear(&drift);
    read_log();
    CHECK_INT(log_.good, end.measured); /* nothing of it was written down */
}

/* Another process finds each set off by as much as on an H200: 0.8 of the noise that the back end
 * tells. That is no drift, but for a rare one; a link that is worn out is one all the same. */
TEST(drift_between_processes)
{
    struct tccl_drift drift;
    int drifted = 0;
    rough.process = 0.8 * 2 * rough.noise;
    CHECK_INT(run(0), TCCL_FILL_DONE);
    for (int i = 0; i < 10; i++) {
        drifted += check_drift(&drift) != TCCL_DRIFT_HOLDS;
        tccl_drift_clear(&drift);
    }
    CHECK(drifted <= 3);
    rough.slow = "g0>m0";
    for (int i = 0; i < 3; i++) {
        CHECK_INT(check_drift(&drift), TCCL_DRIFT_DRIFTED);
        tccl_drift_clear(&drift);
    }
}

SETUP
{
    cache = check_at("cache");
}

TEARDOWN
{
    tccl_setmap_clear(&log_.seen);
    check_remove(cache);
    check_nothing_left();
}
