/* What the shim measures of collectives, with a driver, a clock and a tccld of the test's. */
#include <dlfcn.h>

#include "check.h"
#include "hook/hook.h"
#include "verify/verify.h"

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

static int connected;
static char comm[2], stream[1];
int __wrap_shim_nccllog_connected(const void *handle);
void __wrap_shim_nccllog_read(void);

int __wrap_shim_nccllog_connected(const void *handle)
{
    CHECK(handle == comm);
    return connected;
}

void __wrap_shim_nccllog_read(void)
{
}

static tccl_bus current = 0x4100;
int __wrap_shim_device_current(tccl_bus *gpu, struct tccl_error *why);

int __wrap_shim_device_current(tccl_bus *gpu, struct tccl_error *why)
{
    *gpu = current;
    return why != NULL;
}

BEFORE
{
    unsetenv("TCCL_ACHIEVED");
    unsetenv("NCCL_PROFILER_PLUGIN");
    unsetenv("NCCL_ALGO");
    shim_achieved_end(NULL, true);
    connected = 0;
    process.plan.n_nodes = 1;
    memset(&told, 0, sizeof(told));
    n_events = destroyed = queries = captures = fails = times_told = tell_status = modes = 0;
    behind = false;
    decision = SHIM_USE;
    current = 0x4100;
}

static void begin(const void *handle)
{
    shim_achieved_begin(handle, 4, 2, 0x4100, (void *)&told, 22907);
}

static bool run(enum shim_collective kind, size_t bytes, double ms, bool good);

/* And its first sample, which does not count, is over. */
static void begin_warm(void)
{
    begin(comm);
    clock_ms = 0;
    CHECK(run(SHIM_ALL_REDUCE, 64 * MIB, 1000, true));
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
    begin_warm();
    CHECK_INT(shim_achieved_count, 1);
    /* 64 MiB of 4 ranks in 10 ms: 6.71 GB/s of the algorithm, 1.5 times as much on the bus. */
    CHECK(run(SHIM_ALL_REDUCE, 64 * MIB, 10, true));
    /* 4 MiB of each of 4: 16 MiB, of which three quarters pass each link. */
    CHECK(run(SHIM_GATHER, 4 * MIB, 2, true));
    CHECK(!run(SHIM_ALL_REDUCE, 4 * MIB - 1, 1, true));
    CHECK(!run(SHIM_OTHER, 64 * MIB, 1, true));
    shim_achieved_end(comm, true);
    CHECK_INT(times_told, 1);
    CHECK_INT(told.from, 16 * MIB); /* of neither there are many: the smaller one */
    CHECK_INT(told.samples, 1);
    CHECK(fabs(told.best - 16 * MIB * 0.75 / 2e6) < 1e-3);
    CHECK(told.best == told.median);
    CHECK_INT(told.bytes, 64 * MIB + 64 * MIB + 16 * MIB + 4 * MIB - 1 + 64 * MIB);
    CHECK(told_steered);
    CHECK_INT(destroyed, n_events);
    CHECK_INT(shim_achieved_count, 0);
}

TEST(largest_size)
{
    begin_warm();
    for (int i = 0; i < 16; i++)
        CHECK(run(SHIM_ALL_REDUCE, (i % 2 ? 4 : 64) * MIB, 10, true));
    shim_achieved_end(comm, true);
    CHECK_INT(told.from, 64 * MIB);
    CHECK_INT(told.samples, 8);
    CHECK(fabs(told.best - 64 * MIB * 1.5 / 10e6) < 1e-3);
}

/* The best tenth and the median of known values, in any order. */
TEST(best_and_median)
{
    begin_warm();
    for (int i = 0; i < 30; i++)
        CHECK(run(SHIM_ALL_REDUCE, 64 * MIB, 10 + (i * 7) % 30, true));
    shim_achieved_end(comm, true);
    CHECK_INT(told.samples, 30);
    CHECK(fabs(told.best / (64 * MIB * 1.5 / 12e6) - 1) < 1e-3);
    CHECK(fabs(told.median / (64 * MIB * 1.5 / 24e6) - 1) < 1e-3);
}

TEST(sampled)
{
    int sampled = 0;
    begin_warm();
    /* The first 32, then at most one a second; told at the 32nd, and at most once a minute. */
    for (int i = 0; i < 20032; i++)
        sampled += run(SHIM_ALL_REDUCE, 64 * MIB, 10, true);
    CHECK(sampled >= 31 + 100 && sampled <= 31 + 200);
    CHECK_INT(times_told, 1 + 3);
    CHECK(told.share > 0.99 && told.share <= 1);
    CHECK_INT(queries, sampled); /* each is asked for once, when the next one begins */
    CHECK(n_events <= 8);
    shim_achieved_end(comm, true);
    CHECK_INT(told.samples, sampled);
}

/* Half of the time something else. */
TEST(share)
{
    begin_warm();
    for (int i = 0; i < 100; i++) {
        run(SHIM_ALL_REDUCE, 64 * MIB, 10, true);
        now_us += 10000;
    }
    shim_achieved_end(comm, true);
    CHECK(fabs(told.share - 0.5) < 0.02);
}

/* A program that hardly communicates, and ends as it has: since its first one. */
TEST(share_of_few)
{
    for (int few = 1; few <= 3; few++) {
        begin_warm();
        for (int i = 0; i < few; i++) {
            now_us += 90000;
            run(SHIM_ALL_REDUCE, 64 * MIB, 10, true);
        }
        shim_achieved_end(comm, true);
        CHECK_INT(told.samples, few);
        CHECK(fabs(told.share - 0.1) < 0.001);
    }
}

/* In a program that does the same each second: two all-reduces, and gathers and a broadcast between
 * them, which have as much on the bus, with the rest of the second to itself. */
TEST(share_in_step)
{
    begin_warm();
    for (int second = 0; second < 300; second++) {
        int64_t began = now_us;
        run(SHIM_ALL_REDUCE, 64 * MIB, 150, true); /* which waits for the others */
        for (int i = 0; i < 3; i++)
            run(SHIM_GATHER, 32 * MIB, 50, true);
        run(SHIM_OTHER, 96 * MIB, 50, true);
        run(SHIM_ALL_REDUCE, 64 * MIB, 50, true);
        now_us = began + 1000000;
    }
    shim_achieved_end(comm, true);
    CHECK(fabs(told.share - 0.4) < 0.06);
}

/* What is in graphs, which start them unseen, is not counted, whether or not a sample would be due
 * or could be taken, and the share is not known; in groups, too, and whatever its size. */
TEST(share_in_graphs)
{
    for (int late = 0; late < 2; late++) {
        begin_warm();
        for (int i = 0; i < 8 + 40 * late; i++)
            run(SHIM_ALL_REDUCE, 64 * MIB, 10, true);
        captures = 1;
        int queried = queries;
        CHECK(!run(SHIM_OTHER, 100, 10, true));
        CHECK(!run(SHIM_ALL_REDUCE, 64 * MIB, 10, true));
        void *its;
        shim_achieved_add(comm, SHIM_GATHER, 64 * MIB, stream);
        CHECK(!shim_achieved_start_group(&its));
        CHECK_INT(queries, queried);
        captures = 0;
        shim_achieved_end(comm, true);
        CHECK_INT(told.samples, late ? 31 : 8);
        CHECK_INT(told.captured, 3);
        CHECK(told.bytes == (uint64_t)(9 + 40 * late) * 64 * MIB);
        CHECK(told.share == -1);
    }
}

/* All is queued before the first one is done: the first 32 are measured, and one is asked for at a
 * time; what they took of the time is known once they are over. */
TEST(share_queued)
{
    for (int over = 0; over < 2; over++) {
        begin(comm);
        behind = true;
        clock_ms = 0;
        queries = 0;
        for (int i = 0; i < 100; i++)
            CHECK_INT(run(SHIM_ALL_REDUCE, 64 * MIB, 10, true), i < 32);
        CHECK(queries <= 100);
        behind = !over;
        now_us += 1000000;
        shim_achieved_end(comm, true);
        CHECK_INT(told.samples, over ? 31 : 0);
        CHECK(over ? fabs(told.share - 0.5) < 0.02 : told.share == -1);
        n_events = 0;
    }
}

/* ---- algorithms ---- */

static void check_algorithm(enum shim_collective kind, const char *expected)
{
    begin_warm();
    for (int i = 0; i < 9; i++)
        CHECK(run(kind, 64 * MIB, 10, true));
    shim_achieved_end(comm, true);
    CHECK_INT(told.samples, 9);
    CHECK_STR(told.algorithm ? told.algorithm : "", expected);
}

TEST(algorithm)
{
    check_algorithm(SHIM_ALL_REDUCE, "");
    check_algorithm(SHIM_GATHER, "ring");
    process.plan.n_nodes = 4; /* a GPU on each: it may be NCCL's PAT */
    check_algorithm(SHIM_GATHER, "");
    process.plan.n_nodes = 1;
    decision = SHIM_ASIDE; /* NVLink may be there */
    check_algorithm(SHIM_GATHER, "");
    connected = SHIM_CONNECTED_RINGS;
    check_algorithm(SHIM_GATHER, "ring");
    check_algorithm(SHIM_ALL_REDUCE, "ring");
    connected = SHIM_CONNECTED_TREES;
    check_algorithm(SHIM_ALL_REDUCE, "tree");
    connected |= SHIM_CONNECTED_RINGS;
    check_algorithm(SHIM_ALL_REDUCE, ""); /* NVLS may be there */
    decision = SHIM_USE;
    check_algorithm(SHIM_ALL_REDUCE, "either");
    decision = SHIM_ASIDE;
    setenv("NCCL_ALGO", "Tree", 1);
    check_algorithm(SHIM_ALL_REDUCE, "tree");
    check_algorithm(SHIM_GATHER, "");
    setenv("NCCL_ALGO", "RING", 1);
    check_algorithm(SHIM_ALL_REDUCE, "ring");
    setenv("NCCL_ALGO", "allreduce:tree;allgather:ring", 1);
    check_algorithm(SHIM_ALL_REDUCE, "");
}

/* ---- groups ---- */

/* All of them, whose end takes so long. Is it sampled? */
static bool run_group(const enum shim_collective *kinds, const size_t *bytes, int n, double ms)
{
    void *its = NULL;
    for (int i = 0; i < n; i++)
        shim_achieved_add(comm, kinds[i], bytes[i], stream);
    int before = n_events;
    CHECK_INT(modes, 0); /* nothing is done before the end */
    struct shim_sample *sample = shim_achieved_start_group(&its);
    CHECK(sample || n_events == before);
    clock_ms += (float)ms;
    if (sample) {
        CHECK(its == stream);
        shim_achieved_stop(sample, its, true);
    }
    now_us += (int64_t)(ms * 1e3);
    modes = 0;
    return sample != NULL;
}

/* FSDP's coalesced gathers; what they pass to the bus together, and the size of the largest. */
TEST(group)
{
    static const enum shim_collective kinds[] = {SHIM_GATHER, SHIM_GATHER, SHIM_ALL_REDUCE};
    static const size_t bytes[] = {4 * MIB, 100, 2 * MIB};
    begin_warm();
    modes = 0;
    for (int i = 0; i < 8; i++)
        CHECK(run_group(kinds, bytes, 3, 2));
    CHECK(run_group(kinds, bytes, 1, 2)); /* of one: PyTorch's */
    shim_achieved_end(comm, true);
    CHECK_INT(told.from, 16 * MIB);
    CHECK_INT(told.samples, 9);
    CHECK(fabs(told.best - (16 * MIB * 0.75 + 300 + 3 * MIB) / 2e6) < 1e-3);
    CHECK_INT(told.bytes, 64 * MIB + 8 * (16 * MIB + 400 + 2 * MIB) + 16 * MIB);
}

TEST(mixed_groups)
{
    static const enum shim_collective kinds[] = {SHIM_ALL_REDUCE, SHIM_OTHER};
    static const size_t bytes[] = {64 * MIB, 100}, small[] = {4 * MIB - 1, 4 * MIB - 1};
    void *its;
    begin_warm();
    modes = 0;
    CHECK(!run_group(kinds, bytes, 2, 10));
    CHECK(!run_group((enum shim_collective[]){0, 0}, small, 2, 10));
    CHECK(!run_group(kinds, bytes, 0, 10));
    shim_achieved_add(comm, SHIM_ALL_REDUCE, 64 * MIB, stream);
    shim_achieved_add(comm, SHIM_ALL_REDUCE, 64 * MIB, &n_events); /* of another stream */
    CHECK(!shim_achieved_start_group(&its));
    for (int i = 0; i < 2; i++) { /* another communicator, before or after */
        shim_achieved_add(i ? comm : comm + 1, SHIM_ALL_REDUCE, 64 * MIB, stream);
        shim_achieved_add(i ? comm + 1 : comm, SHIM_ALL_REDUCE, 64 * MIB, stream);
        CHECK(!shim_achieved_start_group(&its));
    }
    CHECK(!shim_achieved_start_group(&its));
    captures = 1;
    shim_achieved_add(comm, SHIM_ALL_REDUCE, 64 * MIB, stream);
    CHECK(!shim_achieved_start_group(&its));
    captures = 0;
    modes = 0;
    CHECK(run_group(kinds, bytes, 1, 10)); /* none has left a trace */
    shim_achieved_end(comm, true);
    CHECK_INT(told.samples, 1);
    CHECK(fabs(told.best - 64 * MIB * 1.5 / 10e6) < 1e-3);
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
    for (int i = 0; i < 40; i++)
        CHECK_INT(run(SHIM_ALL_REDUCE, 64 * MIB, 10, true), i < 32);
    shim_achieved_end(comm, true);
    CHECK_INT(times_told, 1); /* at the end: nothing was measured */
    CHECK_INT(told.samples, 0);
    CHECK(told.from == 0 && told.best == 0 && told.median == 0 && told.share == -1);
    CHECK_INT(told.captured, 1);
    CHECK(told.bytes == 41 * (uint64_t)64 * MIB);
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
    shim_achieved_end(comm, true);
    CHECK_INT(told.samples, 0);
}

/* The GPU's clock, or the processor's, jumps: such a sample is left out. */
TEST(clocks_jump)
{
    begin_warm();
    for (int i = 0; i < 16; i++) {
        struct shim_sample *sample = shim_achieved_start(comm, SHIM_ALL_REDUCE, 64 * MIB, stream);
        CHECK(sample);
        clock_ms += i == 3 ? 1e6f : 10;
        now_us += i == 7 ? -3600000000 : 10000;
        if (sample)
            shim_achieved_stop(sample, stream, true);
    }
    shim_achieved_end(comm, true);
    CHECK_INT(told.samples, 14);
    CHECK(fabs(told.median - 64 * MIB * 1.5 / 10e6) < 1e-2);
    CHECK(told.share == -1 || (told.share >= 0 && told.share <= 1));
}

/* Sizes that no memory has are NCCL's to refuse, and count for nothing; so do none. */
TEST(odd_sizes)
{
    begin_warm();
    CHECK(!run(SHIM_ALL_REDUCE, SIZE_MAX, 10, false));
    CHECK(!run(SHIM_GATHER, SIZE_MAX / 3, 10, false));
    CHECK(!run(SHIM_OTHER, SIZE_MAX, 10, false));
    CHECK(!run(SHIM_GATHER, 0, 10, true));
    CHECK(run(SHIM_ALL_REDUCE, 64 * MIB, 10, true));
    shim_achieved_end(comm, true);
    CHECK_INT(told.samples, 1);
    CHECK_INT(told.bytes, 128 * MIB);
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
        shim_achieved_end(comm, true);
        fails = 0;
        CHECK_INT(told.samples, 0);
    }
    CHECK_INT(times_told, 3);
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
    shim_achieved_begin(comm, 1, 0, 0x4100, (void *)&told, 22907);
    shim_achieved_begin(NULL, 4, 2, 0x4100, (void *)&told, 22907);
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
    shim_achieved_end(&many[0], true);
    CHECK_INT(shim_achieved_count, SHIM_MEASURED - 1);
    CHECK(!shim_achieved_start(&many[0], SHIM_ALL_REDUCE, 64 * MIB, stream));
    CHECK_INT(times_told, 0);
}

/* One that has no place in the registry is NCCL's own. */
TEST(no_entry)
{
    shim_achieved_begin(comm, 4, 2, 0x4100, NULL, 22907);
    clock_ms = 0;
    for (int i = 0; i < 32; i++)
        CHECK(run(SHIM_ALL_REDUCE, 64 * MIB, 10, true));
    CHECK_INT(times_told, 1);
    CHECK(!told_steered);
    begin(comm + 1);
    decision = SHIM_ASIDE;
    shim_achieved_end(comm, true);
    CHECK_INT(times_told, 2);
}

/* Where it is given up, and at the process' end, CUDA is not called. */
TEST(given_up)
{
    begin_warm();
    CHECK(run(SHIM_ALL_REDUCE, 64 * MIB, 10, true));
    CHECK(run(SHIM_ALL_REDUCE, 64 * MIB, 10, true));
    int asked = queries, exchanged = modes;
    shim_achieved_end(comm, false);
    CHECK_INT(times_told, 1); /* of what was known */
    CHECK_INT(told.samples, 1);
    CHECK_INT(queries, asked);
    CHECK_INT(modes, exchanged);
    CHECK_INT(destroyed, 0);
}

/* It ends while another thread's collective is under way in it: its place is free afterwards. */
TEST(ended_meanwhile)
{
    for (int i = 0; i < 3 * SHIM_MEASURED; i++) {
        begin(comm);
        struct shim_sample *sample = shim_achieved_start(comm, SHIM_ALL_REDUCE, 64 * MIB, stream);
        CHECK(sample);
        shim_achieved_end(comm, false);
        CHECK_INT(shim_achieved_count, 0);
        CHECK(!shim_achieved_start(comm, SHIM_ALL_REDUCE, 64 * MIB, stream));
        begin(comm); /* in another place */
        CHECK_INT(shim_achieved_count, 1);
        shim_achieved_end(comm, false);
        if (sample)
            shim_achieved_stop(sample, stream, true);
        n_events = 0;
    }
    CHECK_INT(shim_achieved_count, 0);
}

/* One that does not block has launched nothing when its call returns; it is soon left alone. */
TEST(does_not_block)
{
    int sampled = 0;
    begin_warm();
    for (int i = 0; i < 100; i++)
        sampled += run(SHIM_ALL_REDUCE, 64 * MIB, 10, false);
    CHECK_INT(sampled, 3);
    CHECK(modes < 20);
    shim_achieved_end(comm, true);
    CHECK_INT(told.samples, 0);
}

/* Default streams are the current device's, which has to be the communicator's. */
TEST(default_stream)
{
    begin(comm);
    current = 0x6100;
    for (uintptr_t i = 0; i <= 2; i++)
        CHECK(!shim_achieved_start(comm, SHIM_ALL_REDUCE, 64 * MIB, (void *)i));
    current = 0x4100;
    struct shim_sample *sample = shim_achieved_start(comm, SHIM_ALL_REDUCE, 64 * MIB, NULL);
    CHECK(sample);
    if (sample)
        shim_achieved_stop(sample, NULL, true);
    shim_achieved_end(comm, true);
}
