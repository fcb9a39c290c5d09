/* What the shim measures of collectives, with a driver, a clock and a tccld of the test's. */
#include <dlfcn.h>

#include "check.h"
#include "hook/achieved.h"
#include "hook/hook.h"

enum { MIB = 1 << 20 };

/* ---- the driver: an event is a place in stamps; a stream takes ms for each collective ---- */

static float stamps[64], clock_ms;
static int n_events, destroyed, queries, captures, fails, mode, modes;
static bool behind; /* the GPU has not come to the end of the last collective */

#define EXPORTED __attribute__((visibility("default")))
EXPORTED int cuEventCreate(float **event, unsigned flags);
EXPORTED int cuEventDestroy_v2(float *event);
EXPORTED int cuEventRecord(float *event, void *stream);
EXPORTED int cuEventQuery(float *event);
EXPORTED int cuEventElapsedTime(float *ms, float *start, float *end);
EXPORTED int cuStreamIsCapturing(void *stream, int *status);
EXPORTED int cuThreadExchangeStreamCaptureMode(int *mode);

int cuEventCreate(float **event, unsigned flags)
{
    CHECK_INT(flags, 0);
    *event = &stamps[n_events++];
    return fails == 1;
}

int cuEventDestroy_v2(float *event)
{
    destroyed += event != NULL;
    return 0;
}

int cuEventRecord(float *event, void *stream)
{
    CHECK_INT(mode, 2);
    *event = clock_ms;
    return fails == 2 && stream;
}

int cuEventQuery(float *event)
{
    CHECK_INT(mode, 2);
    queries++;
    return behind && event ? 600 : fails == 3 ? 700 : 0;
}

int cuEventElapsedTime(float *ms, float *start, float *end)
{
    *ms = *end - *start;
    return 0;
}

int cuStreamIsCapturing(void *stream, int *status)
{
    *status = captures;
    return stream == &captures ? 900 : 0;
}

int cuThreadExchangeStreamCaptureMode(int *to)
{
    int before = mode;
    mode = *to;
    *to = before;
    modes++;
    return 0;
}

/* ---- the rest of the shim ---- */

static int64_t now_us = 1000000;
static struct shim_process process;
static struct shim_figures told;
static int times_told, tell_status;
static bool told_steered;
static enum shim_decision decision = SHIM_USE;

void *__wrap_shim_dlopen(const char *name, int flags);
int64_t __wrap_shim_now_us(void);
const struct shim_process *__wrap_shim_process_armed(void);
enum shim_decision __wrap_shim_entry_stands(const struct shim_entry *entry);
int __wrap_shim_ask_achieved(const struct shim_plan *plan, const struct shim_figures *figures,
                             int ranks, int rank, bool steered, uint32_t nccl, int64_t deadline_us,
                             struct tccl_error *why);

void *__wrap_shim_dlopen(const char *name, int flags)
{
    CHECK_STR(name, "libcuda.so.1");
    CHECK(flags & RTLD_NOLOAD);
    return dlopen(NULL, RTLD_LAZY);
}

int64_t __wrap_shim_now_us(void)
{
    return now_us;
}

const struct shim_process *__wrap_shim_process_armed(void)
{
    return &process;
}

enum shim_decision __wrap_shim_entry_stands(const struct shim_entry *entry)
{
    CHECK(entry == (void *)&told);
    return decision;
}

int __wrap_shim_ask_achieved(const struct shim_plan *plan, const struct shim_figures *figures,
                             int ranks, int rank, bool steered, uint32_t nccl, int64_t deadline_us,
                             struct tccl_error *why)
{
    CHECK(plan == &process.plan && !why);
    CHECK_INT(ranks, 4);
    CHECK_INT(rank, 2);
    CHECK_INT(nccl, 22907);
    CHECK(deadline_us - now_us <= 20000);
    told = *figures;
    told_steered = steered;
    times_told++;
    return tell_status;
}

static char comm[2], stream[1];

BEFORE
{
    unsetenv("TCCL_ACHIEVED");
    unsetenv("NCCL_PROFILER_PLUGIN");
    shim_achieved_end(NULL);
    memset(&told, 0, sizeof(told));
    n_events = destroyed = queries = captures = fails = times_told = tell_status = modes = 0;
    behind = false;
    decision = SHIM_USE;
}

static void begin(const void *handle)
{
    shim_achieved_begin(handle, 4, 2, (void *)&told, 22907);
}

/* Is it sampled? */
static bool run(enum shim_collective kind, size_t bytes, double ms, bool good)
{
    struct shim_sample *sample = shim_achieved_start(comm, kind, bytes, stream);
    clock_ms += (float)ms;
    if (sample)
        shim_achieved_stop(sample, stream, good);
    now_us += (int64_t)(ms * 1e3);
    CHECK_INT(mode, 0);
    return sample != NULL;
}

/* ---- what counts ---- */

TEST(bus_bandwidth)
{
    begin(comm);
    CHECK_INT(shim_achieved_count, 1);
    clock_ms = 0;
    /* 64 MiB of 4 ranks in 10 ms: 6.71 GB/s of the algorithm, 1.5 times as much on the bus. */
    CHECK(run(SHIM_ALL_REDUCE, 64 * MIB, 10, true));
    /* 4 MiB of each of 4: 16 MiB, of which three quarters pass each link. */
    CHECK(run(SHIM_GATHER, 4 * MIB, 2, true));
    CHECK(!run(SHIM_ALL_REDUCE, 4 * MIB - 1, 1, true));
    CHECK(!run(SHIM_OTHER, 64 * MIB, 1, true));
    shim_achieved_end(comm);
    CHECK_INT(times_told, 1);
    CHECK_INT(told.from, 16 * MIB); /* of neither there are many: the smaller one */
    CHECK_INT(told.samples, 1);
    CHECK(fabs(told.best - 16 * MIB * 0.75 / 2e6) < 1e-3);
    CHECK(told.best == told.median);
    CHECK_INT(told.bytes, 64 * MIB + 16 * MIB + 4 * MIB - 1 + 64 * MIB);
    CHECK(told_steered);
    CHECK_INT(destroyed, n_events);
    CHECK_INT(shim_achieved_count, 0);
}

TEST(largest_size)
{
    begin(comm);
    clock_ms = 0;
    for (int i = 0; i < 16; i++)
        CHECK(run(SHIM_ALL_REDUCE, (i % 2 ? 4 : 64) * MIB, 10, true));
    shim_achieved_end(comm);
    CHECK_INT(told.from, 64 * MIB);
    CHECK_INT(told.samples, 8);
    CHECK(fabs(told.best - 64 * MIB * 1.5 / 10e6) < 1e-3);
}

/* The best tenth and the median of known values, in any order. */
TEST(best_and_median)
{
    begin(comm);
    clock_ms = 0;
    for (int i = 0; i < 30; i++)
        CHECK(run(SHIM_ALL_REDUCE, 64 * MIB, 10 + (i * 7) % 30, true));
    shim_achieved_end(comm);
    CHECK_INT(told.samples, 30);
    CHECK(fabs(told.best / (64 * MIB * 1.5 / 12e6) - 1) < 1e-3);
    CHECK(fabs(told.median / (64 * MIB * 1.5 / 24e6) - 1) < 1e-3);
}

TEST(sampled)
{
    int sampled = 0;
    begin(comm);
    clock_ms = 0;
    /* The first 32, then one a second; told at the 32nd, and at most once a minute. */
    for (int i = 0; i < 20032; i++)
        sampled += run(SHIM_ALL_REDUCE, 64 * MIB, 10, true);
    CHECK_INT(sampled, 32 + 200);
    CHECK_INT(times_told, 1 + 3);
    CHECK(told.share > 0.99 && told.share <= 1);
    CHECK_INT(queries, 231); /* each is asked for once, when the next one begins */
    CHECK(n_events <= 8);
    shim_achieved_end(comm);
    CHECK_INT(told.samples, 232);
}

/* Half of the time something else. */
TEST(share)
{
    begin(comm);
    clock_ms = 0;
    for (int i = 0; i < 100; i++) {
        run(SHIM_ALL_REDUCE, 64 * MIB, 10, true);
        now_us += 10000;
    }
    shim_achieved_end(comm);
    CHECK(fabs(told.share - 0.5) < 0.02);
}

/* ---- what does not ---- */

TEST(left_out)
{
    begin(comm);
    captures = 1;
    CHECK(!run(SHIM_ALL_REDUCE, 64 * MIB, 10, true));
    captures = 0;
    CHECK(!shim_achieved_start(comm, SHIM_ALL_REDUCE, 64 * MIB, &captures)); /* can't be asked */
    CHECK(!shim_achieved_start(comm + 1, SHIM_ALL_REDUCE, 64 * MIB, stream));
    CHECK(run(SHIM_ALL_REDUCE, 64 * MIB, 10, false)); /* NCCL has not launched it */
    behind = true;
    for (int i = 0; i < 8; i++)
        CHECK_INT(run(SHIM_ALL_REDUCE, 64 * MIB, 10, true), i < 4);
    shim_achieved_end(comm);
    CHECK_INT(times_told, 0); /* nothing was measured */
}

TEST(odd_times)
{
    static const double odd[] = {0, -1, NAN, -INFINITY, 1e-9};
    begin(comm);
    for (size_t i = 0; i < COUNT(odd); i++) {
        clock_ms = 0;
        struct shim_sample *sample = shim_achieved_start(comm, SHIM_ALL_REDUCE, 64 * MIB, stream);
        CHECK(sample);
        clock_ms = (float)odd[i];
        if (sample)
            shim_achieved_stop(sample, stream, true);
    }
    shim_achieved_end(comm);
    CHECK_INT(times_told, 0);
}

TEST(errors)
{
    for (int fail = 1; fail <= 3; fail++) {
        int sampled = 0;
        fails = fail;
        begin(comm);
        for (int i = 0; i < 100; i++)
            sampled += run(SHIM_ALL_REDUCE, 64 * MIB, 10, true);
        CHECK(sampled <= 4);
        shim_achieved_end(comm);
        fails = 0;
    }
    CHECK_INT(times_told, 0);
}

TEST(unwanted)
{
    setenv("TCCL_ACHIEVED", "0", 1);
    begin(comm);
    CHECK_INT(shim_achieved_count, 0);
    unsetenv("TCCL_ACHIEVED");
    setenv("NCCL_PROFILER_PLUGIN", "libnccl-profiler-inspector.so", 1);
    begin(comm);
    CHECK_INT(shim_achieved_count, 0);
    unsetenv("NCCL_PROFILER_PLUGIN");
    shim_achieved_begin(comm, 1, 0, (void *)&told, 22907);
    shim_achieved_begin(NULL, 4, 2, (void *)&told, 22907);
    CHECK_INT(shim_achieved_count, 0);
}

/* tccld is not there: a collective waits for it once in ten minutes. */
TEST(no_tccld)
{
    tell_status = -1;
    begin(comm);
    for (int i = 0; i < 32 + 600; i++) {
        run(SHIM_ALL_REDUCE, 64 * MIB, 10, true);
        now_us += 1000000;
    }
    CHECK_INT(times_told, 1);
}

/* Communicators beyond the eighth are not measured; one whose handle is used again has ended. */
TEST(handles)
{
    static char many[SHIM_MEASURED + 1];
    for (int i = 0; i <= SHIM_MEASURED; i++)
        begin(&many[i]);
    CHECK_INT(shim_achieved_count, SHIM_MEASURED);
    CHECK(!shim_achieved_start(&many[SHIM_MEASURED], SHIM_ALL_REDUCE, 64 * MIB, stream));
    begin(&many[0]);
    CHECK_INT(shim_achieved_count, SHIM_MEASURED);
    decision = SHIM_ASIDE;
    struct shim_sample *sample = shim_achieved_start(&many[0], SHIM_ALL_REDUCE, 64 * MIB, stream);
    clock_ms += 10;
    CHECK(sample);
    if (sample)
        shim_achieved_stop(sample, stream, true);
    begin(&many[0]);
    CHECK_INT(times_told, 1);
    CHECK(!told_steered);
}
