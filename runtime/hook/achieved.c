/* achieved.c: when a collective is measured, and what is made of it. CUDA's driver is used as the
 * process has it, by functions that neither wait nor leave an error behind for the program. */
#include "hook/achieved.h"

#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

#include "base/loaded.h"
#include "hook/hook.h"

enum {
    PAIRS = 4,                  /* of events under way in a communicator */
    FAULTS = 3,                 /* after so many errors of the driver nothing is measured */
    SECOND_US = 1000000,        /* between samples */
    MINUTE_US = 60 * SECOND_US, /* between what tccld is told, at least */
    LATER_US = 10 * MINUTE_US,
    RELAXED = 2, /* CU_STREAM_CAPTURE_MODE_RELAXED */
    NAME = 36
};
/* Whatever a clock says: no bus is faster. */
#define MOST_GBPS 10000.0

/* ---- The driver ---- */

struct driver {
    int (*create)(void **event, unsigned flags);
    int (*destroy)(void *event);
    int (*record)(void *event, void *stream);
    int (*query)(void *event);
    int (*elapsed)(float *ms, void *start, void *end);
    int (*capturing)(void *stream, int *status);
    int (*exchange_mode)(int *mode);
};
static const char names[][NAME] = {"cuEventCreate",
                                   "cuEventDestroy_v2",
                                   "cuEventRecord",
                                   "cuEventQuery",
                                   "cuEventElapsedTime",
                                   "cuStreamIsCapturing",
                                   "cuThreadExchangeStreamCaptureMode"};

/* NULL: there is none, or an old one. Two threads at once find the same. */
static const struct driver *find_driver(void)
{
    static struct driver driver;
    static int state; /* 1: found; -1: not */
    struct driver found;

    int known = __atomic_load_n(&state, __ATOMIC_ACQUIRE);
    if (known)
        return known > 0 ? &driver : NULL;
    void *handle = shim_dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_LAZY);
    bool all = handle != NULL;
    for (size_t i = 0; all && i < sizeof(names) / sizeof(names[0]); i++) {
        void *function = dlsym(handle, names[i]);
        memcpy((char *)&found + i * sizeof(function), &function, sizeof(function));
        all = function != NULL;
    }
    if (all)
        driver = found;
    __atomic_store_n(&state, all ? 1 : -1, __ATOMIC_RELEASE);
    return all ? &driver : NULL;
}

/* ---- A communicator ---- */

struct shim_sample {
    void *start, *end; /* events, kept from sample to sample; NULL: not made yet */
    bool under_way;
    size_t bytes;
    double on_bus; /* bytes that pass each link */
};

static struct watch {
    const void *handle; /* NULL: free */
    int ranks, rank;
    const struct shim_entry *entry;
    uint32_t nccl;
    int lock; /* one thread at a time; others are not sampled */
    int faults;
    unsigned samples;
    int64_t first_us, next_us, told_us;
    uint64_t bytes;
    double seconds, sampled; /* of all samples, and their bytes */
    unsigned counts[SHIM_SIZES];
    float gbps[SHIM_SIZES][SHIM_SAMPLES];
    struct shim_sample pairs[PAIRS];
} watches[SHIM_MEASURED];

int shim_achieved_count;
static int owner; /* the process whose they are */

static struct watch *find(const void *handle)
{
    for (int i = 0; handle && i < SHIM_MEASURED; i++)
        if (__atomic_load_n(&watches[i].handle, __ATOMIC_ACQUIRE) == handle)
            return &watches[i];
    return NULL;
}

static void notice_fork(void)
{
    if (shim_forked(&owner)) {
        memset(watches, 0, sizeof(watches));
        __atomic_store_n(&shim_achieved_count, 0, __ATOMIC_SEQ_CST);
    }
}

static const size_t least[SHIM_SIZES] = {(size_t)4 << 20, (size_t)16 << 20, (size_t)64 << 20};

/* ---- What was measured ---- */

static void add(struct watch *watch, const struct shim_sample *sample, float ms)
{
    double gbps = sample->on_bus / (ms * 1e6);

    if (!(ms > 0) || !(gbps > 0) || gbps > MOST_GBPS)
        return;
    int size = SHIM_SIZES - 1;
    while (size > 0 && sample->bytes < least[size])
        size--;
    watch->gbps[size][watch->counts[size]++ % SHIM_SAMPLES] = (float)gbps;
    watch->seconds += ms / 1e3;
    watch->sampled += (double)sample->bytes;
}

/* Those that are done. */
static void collect(const struct driver *driver, struct watch *watch)
{
    for (int i = 0; i < PAIRS; i++) {
        struct shim_sample *sample = &watch->pairs[i];
        float ms = 0;
        if (!sample->under_way)
            continue;
        int state = driver->query(sample->end);
        if (state == 600 /* CUDA_ERROR_NOT_READY */)
            continue;
        sample->under_way = false;
        if (state != 0 || driver->elapsed(&ms, sample->start, sample->end) != 0)
            watch->faults++;
        else
            add(watch, sample, ms);
    }
}

/* Values in falling order: the one that a tenth of them, and a half, reaches. */
static void order(const struct watch *watch, int size, double *best, double *median)
{
    float sorted[SHIM_SAMPLES];
    unsigned n = watch->counts[size] < SHIM_SAMPLES ? watch->counts[size] : SHIM_SAMPLES;

    for (unsigned i = 0; i < n; i++) {
        unsigned at = i;
        for (; at > 0 && sorted[at - 1] < watch->gbps[size][i]; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = watch->gbps[size][i];
    }
    *best = n ? sorted[(n - 1) / 10] : 0;
    *median = n ? sorted[(n - 1) / 2] : 0;
}

static void tell(struct watch *watch, int64_t now, bool last)
{
    const struct shim_process *process = shim_process_armed();
    struct shim_figures figures = {.bytes = watch->bytes, .share = -1};
    int size = SHIM_SIZES - 1;

    while (size > 0 && watch->counts[size] < SHIM_FEW)
        size--;
    while (size < SHIM_SIZES && watch->counts[size] == 0)
        size++;
    if (size == SHIM_SIZES || !process)
        return;
    figures.from = least[size];
    figures.samples = watch->counts[size];
    order(watch, size, &figures.best, &figures.median);
    if (watch->sampled > 0 && now > watch->first_us) {
        double share = watch->seconds * ((double)watch->bytes / watch->sampled) /
                       ((double)(now - watch->first_us) / 1e6);
        figures.share = share < 1 ? share : 1;
    }
    watch->told_us = now;
    if (last && watch->rank <= 0)
        shim_log(
            SHIM_LOG_INFO,
            "communicator of %d ranks, %s: the best tenth of %u collectives of %llu MiB and "
            "more reached %.2f GB/s (bus), half of them %.2f",
            watch->ranks,
            shim_entry_stands(watch->entry) == SHIM_USE ? "with the ring" : "NCCL's own choice",
            figures.samples, (unsigned long long)figures.from >> 20, figures.best, figures.median);
    if (shim_ask_achieved(&process->plan, &figures, watch->ranks, watch->rank,
                          shim_entry_stands(watch->entry) == SHIM_USE, watch->nccl,
                          now + SHIM_CONFIRM_US, NULL) != 0)
        watch->told_us = now + LATER_US; /* tccld is not there: the job is not to notice */
}

/* ---- When ---- */

/* Somebody else looks at this job's times: nothing is added to what he sees. */
static bool is_unwanted(void)
{
    static const char profilers[][NAME] = {"NCCL_PROFILER_PLUGIN", "CUDA_INJECTION64_PATH",
                                           "NSYS_PROFILING_SESSION_ID"};
    const char *wanted = shim_env("TCCL_ACHIEVED");

    for (size_t i = 0; i < sizeof(profilers) / sizeof(profilers[0]); i++) {
        const char *value = shim_env(profilers[i]);
        if (value && *value)
            return true;
    }
    return wanted && strcmp(wanted, "0") == 0;
}

/* CUDA's events of a watch that ends. At the process' end CUDA may be gone. Called with the lock.
 */
static void forget(struct watch *watch, bool process_ends)
{
    const struct driver *driver = process_ends ? NULL : find_driver();
    int mode = RELAXED;

    if (driver) {
        driver->exchange_mode(&mode);
        collect(driver, watch);
    }
    tell(watch, shim_now_us(), true);
    for (int i = 0; driver && i < PAIRS; i++) {
        if (watch->pairs[i].start)
            driver->destroy(watch->pairs[i].start);
        if (watch->pairs[i].end)
            driver->destroy(watch->pairs[i].end);
    }
    if (driver)
        driver->exchange_mode(&mode);
    __atomic_store_n(&watch->handle, NULL, __ATOMIC_SEQ_CST);
    __atomic_fetch_sub(&shim_achieved_count, 1, __ATOMIC_SEQ_CST);
}

static bool take(struct watch *watch)
{
    int open = 0;

    return __atomic_compare_exchange_n(&watch->lock, &open, 1, false, __ATOMIC_SEQ_CST,
                                       __ATOMIC_SEQ_CST);
}

static void give(struct watch *watch)
{
    __atomic_store_n(&watch->lock, 0, __ATOMIC_SEQ_CST);
}

void shim_achieved_end(const void *handle)
{
    notice_fork();
    for (int i = 0; i < SHIM_MEASURED; i++) {
        struct watch *watch = &watches[i];
        if (!watch->handle || (handle && watch->handle != handle) || !take(watch))
            continue;
        if (watch->handle && (!handle || watch->handle == handle))
            forget(watch, !handle);
        give(watch);
    }
}

void shim_achieved_begin(const void *handle, int ranks, int rank, const struct shim_entry *entry,
                         uint32_t nccl)
{
    shim_achieved_end(handle ? handle : &watches); /* one that had its handle is gone */
    if (!handle || ranks < 2 || is_unwanted())
        return;
    for (int i = 0; i < SHIM_MEASURED; i++) {
        struct watch *watch = &watches[i];
        if (watch->handle || !take(watch))
            continue;
        bool free = !watch->handle;
        if (free) {
            *watch = (struct watch){
                .ranks = ranks, .rank = rank, .entry = entry, .nccl = nccl, .lock = 1};
            __atomic_fetch_add(&shim_achieved_count, 1, __ATOMIC_SEQ_CST);
            __atomic_store_n(&watch->handle, handle, __ATOMIC_SEQ_CST);
        }
        give(watch);
        if (free)
            return;
    }
}

static bool make(const struct driver *driver, void **event)
{
    if (!*event && driver->create(event, 0) != 0)
        *event = NULL;
    return *event != NULL;
}

/* A pair of events with the first one recorded, or NULL. Called with the lock. */
static struct shim_sample *begin_sample(const struct driver *driver, struct watch *watch,
                                        void *stream)
{
    struct shim_sample *sample = NULL;
    int captures = 0;

    collect(driver, watch);
    for (int i = 0; i < PAIRS && !sample; i++)
        if (!watch->pairs[i].under_way)
            sample = &watch->pairs[i];
    if (!sample || watch->faults >= FAULTS)
        return NULL;
    /* A stream that is captured into a graph is left alone: an event would become a part of it. */
    if (driver->capturing(stream, &captures) != 0 || captures != 0)
        return NULL;
    if (!make(driver, &sample->start) || !make(driver, &sample->end) ||
        driver->record(sample->start, stream) != 0) {
        watch->faults++;
        return NULL;
    }
    return sample;
}

struct shim_sample *shim_achieved_start(const void *handle, enum shim_collective kind, size_t bytes,
                                        void *stream)
{
    struct watch *watch = find(handle);
    const struct driver *driver;
    int mode = RELAXED;

    if (!watch)
        return NULL;
    double ranks = watch->ranks;
    size_t all = kind == SHIM_GATHER ? bytes * (size_t)watch->ranks : bytes;
    __atomic_fetch_add(&watch->bytes, all, __ATOMIC_RELAXED);
    if (kind == SHIM_OTHER || all < least[0])
        return NULL;
    int64_t now = shim_now_us();
    if ((watch->samples >= SHIM_SAMPLED_FIRST && now < watch->next_us) ||
        !(driver = find_driver()) || !take(watch))
        return NULL;
    watch->first_us = watch->first_us ? watch->first_us : now;
    watch->next_us = now + SECOND_US;
    /* Another thread may be capturing, which the query of an event would end. */
    driver->exchange_mode(&mode);
    struct shim_sample *sample =
        watch->handle == handle ? begin_sample(driver, watch, stream) : NULL;
    driver->exchange_mode(&mode);
    if (sample) {
        sample->bytes = all;
        sample->on_bus = (double)all * (ranks - 1) / ranks * (kind == SHIM_ALL_REDUCE ? 2 : 1);
        return sample;
    }
    give(watch);
    return NULL;
}

void shim_achieved_stop(struct shim_sample *sample, void *stream, bool good)
{
    const struct driver *driver = find_driver();
    struct watch *watch = watches;
    int mode = RELAXED;

    while (sample < watch->pairs || sample >= watch->pairs + PAIRS)
        watch++;
    driver->exchange_mode(&mode);
    if (good && driver->record(sample->end, stream) == 0) {
        sample->under_way = true;
        watch->samples++;
    }
    driver->exchange_mode(&mode);
    int64_t now = shim_now_us();
    if (watch->samples == SHIM_SAMPLED_FIRST ||
        (watch->samples > SHIM_SAMPLED_FIRST && now - watch->told_us > MINUTE_US))
        tell(watch, now, false);
    give(watch);
}
