/* shim-achieved.c: when a collective is measured, and what is made of it. CUDA's driver is used as
 * the process has it, by functions that neither wait nor leave an error behind for the program. */
#include "hook/hook.h"

#include <dlfcn.h>
#include <string.h>
#include <strings.h>

#include "base/base.h"
#include "base/loaded.h"
#include "verify/verify.h"

enum {
    PAIRS = SHIM_SAMPLED_FIRST, /* of events under way in a communicator */
    FAULTS = 3,                 /* after so many errors of the driver nothing is measured */
    SECOND_US = 1000000,        /* between samples */
    MINUTE_US = 60 * SECOND_US, /* between what tccld is told, at least */
    LATER_US = 10 * MINUTE_US,
    RELAXED = 2, /* CU_STREAM_CAPTURE_MODE_RELAXED */
};
/* Whatever a clock says: no bus is faster. Whatever a program says: no memory is larger. */
#define MOST_GBPS 10000.0
#define MOST_BYTES ((size_t)1 << 40)

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
static const char names[][SHIM_FUNCTION] = {"cuEventCreate",
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
    size_t n = sizeof(names) / sizeof(names[0]);
    bool all = handle && shim_functions(handle, names, n, n, &found);
    if (all)
        driver = found;
    __atomic_store_n(&state, all ? 1 : -1, __ATOMIC_RELEASE);
    return all ? &driver : NULL;
}

/* ---- A communicator ---- */

/* What passes NCCL at once. */
struct load {
    size_t largest;  /* bytes of one collective */
    uint64_t on_bus; /* bytes of all that pass each link */
    bool reduces;    /* all-reduces are among them */
    bool gathers;    /* and so are gathers, or reduce-scatters */
};

struct shim_sample {
    void *start, *end; /* events, kept from sample to sample; NULL: not made yet */
    int64_t begun_us;
    struct load load;
};

static struct watch {
    const void *handle; /* NULL: free */
    const void *comm;   /* its handle, also once it has ended */
    int ranks, rank;
    tccl_bus gpu;
    const struct shim_entry *entry; /* NULL: it has none, and is not steered */
    uint32_t nccl;
    int faults;
    bool warm; /* its first sample, which may hold the time to connect, is over */
    unsigned samples;
    unsigned since, skip; /* large ones since the last sample; to be passed over */
    int64_t first_us, next_us, told_us;
    uint64_t bytes, on_bus, before; /* of all collectives; before: on_bus with the first sample */
    double seconds, sampled;        /* of all samples, and what they had on the bus */
    unsigned captured;              /* into graphs */
    bool reduces[SHIM_SIZES], gathers[SHIM_SIZES];
    unsigned counts[SHIM_SIZES];
    float gbps[SHIM_SIZES][SHIM_SAMPLES];
    int oldest, under_way; /* of pairs, one behind the other */
    struct shim_sample pairs[PAIRS];
} watches[SHIM_MEASURED];
/* One thread at a time; others are not sampled. */
static int locks[SHIM_MEASURED];

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
        memset(locks, 0, sizeof(locks));
        shim_store(&shim_achieved_count, 0);
    }
}

static const size_t least[SHIM_SIZES] = {(size_t)4 << 20, (size_t)16 << 20, (size_t)64 << 20};

/* ---- What was measured ---- */

static void add(struct watch *watch, const struct shim_sample *sample, float ms)
{
    double gbps = (double)sample->load.on_bus / (ms * 1e6);
    int64_t now = shim_now_us(), since_us = now - sample->begun_us;
    if (!watch->warm) { /* the time to connect is nobody's; it is over since then */
        watch->warm = true;
        watch->first_us =
            ms > 0 && ms * 1e3 < (double)since_us ? sample->begun_us + (int64_t)(ms * 1e3) : now;
        return;
    }
    /* Longer than it can have been: one of two clocks has jumped. */
    if (!(ms > 0) || !(gbps > 0) || gbps > MOST_GBPS || ms > 1 + 1.01 * (double)since_us / 1e3)
        return;
    int size = SHIM_SIZES - 1;
    while (size > 0 && sample->load.largest < least[size])
        size--;
    watch->gbps[size][watch->counts[size]++ % SHIM_SAMPLES] = (float)gbps;
    watch->reduces[size] |= sample->load.reduces;
    watch->gathers[size] |= sample->load.gathers;
    watch->seconds += ms / 1e3;
    watch->sampled += (double)sample->load.on_bus;
}

/* Those that are done, the oldest first: of what a program queues one is asked, not all. */
static void collect(const struct driver *driver, struct watch *watch)
{
    for (; watch->under_way > 0; watch->under_way--) {
        struct shim_sample *sample = &watch->pairs[watch->oldest];
        float ms = 0;
        int state = driver->query(sample->end);
        if (state == 600 /* CUDA_ERROR_NOT_READY */)
            return;
        watch->oldest = (watch->oldest + 1) % PAIRS;
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

/* The samples' algorithm, as far as it can be known. Where there is a ring over PCIe, and more than
 * one GPU on a node, gathers go by it; else by what the user wants; or by what NCCL has connected.
 */
static const char *algorithm_of(const struct watch *watch, int size, int nodes, bool steered)
{
    const char *wanted = shim_env("NCCL_ALGO");
    if (steered && !watch->reduces[size] && watch->ranks > nodes)
        return "ring";
    if (wanted && (strcasecmp(wanted, "ring") == 0 || strcasecmp(wanted, "tree") == 0))
        return strcasecmp(wanted, "ring") == 0 ? "ring" : watch->gathers[size] ? NULL : "tree";
    shim_nccllog_read();
    switch (shim_nccllog_connected(watch->comm)) {
    case SHIM_CONNECTED_RINGS:
        return "ring";
    case SHIM_CONNECTED_TREES:
        return "tree";
    case SHIM_CONNECTED_RINGS | SHIM_CONNECTED_TREES:
        return steered && !wanted && !watch->gathers[size] ? "either"
                                                           : NULL; /* no NVLS over PCIe */
    default:
        return NULL;
    }
}

static void tell(struct watch *watch, int64_t now, bool last)
{
    const struct shim_process *process = shim_process_armed();
    unsigned captured = __atomic_load_n(&watch->captured, __ATOMIC_RELAXED);
    struct shim_figures figures = {.bytes = watch->bytes, .captured = captured, .share = -1};
    bool steered = watch->entry && shim_entry_stands(watch->entry) == SHIM_USE;
    int size = 0;
    /* The largest size of which there are some; where there are few of all, the one with most. */
    for (int i = 1; i < SHIM_SIZES; i++)
        if (watch->counts[i] >= SHIM_FEW || watch->counts[i] > watch->counts[size])
            size = i;
    if (process && last && captured > 0 && watch->rank <= 0)
        shim_log(SHIM_LOG_INFO,
                 "communicator of %d ranks: %u collective%s captured into CUDA graphs; what "
                 "launches of these send is not seen: neither measured nor counted",
                 watch->ranks, captured, captured == 1 ? " was" : "s were");
    bool any = watch->bytes > 0 || captured > 0;
    if (!process || (watch->counts[size] == 0 && !(last && any)))
        return;
    if (watch->counts[size] > 0) {
        figures.from = least[size];
        figures.samples = watch->counts[size];
        order(watch, size, &figures.best, &figures.median);
        figures.algorithm = algorithm_of(watch, size, (int)process->plan.n_nodes, steered);
    }
    /* Of what is queued it is not known whether it is over: it is to be little of all. */
    double sent = (double)(watch->on_bus - watch->before);
    bool over = watch->under_way <= 1 || (unsigned)watch->under_way * 8 <= watch->samples;
    if (watch->sampled > 0 && over && now > watch->first_us && !captured) {
        double share =
            watch->seconds * (sent / watch->sampled) / ((double)(now - watch->first_us) / 1e6);
        figures.share = share < 1 ? share : 1;
    }
    watch->told_us = now;
    if (last && watch->rank <= 0 && figures.samples > 0)
        shim_log(SHIM_LOG_INFO,
                 "communicator of %d ranks, %s: the best tenth of %u collectives from %llu MiB on "
                 "reached %.2f GB/s (bus), half of them %.2f",
                 watch->ranks, steered ? "with the ring" : "NCCL's own choice", figures.samples,
                 (unsigned long long)figures.from >> 20, figures.best, figures.median);
    if (shim_ask_achieved(&process->plan, &figures, watch->ranks, watch->rank, steered, watch->nccl,
                          now + SHIM_CONFIRM_US, NULL) != 0)
        watch->told_us = now + LATER_US; /* tccld is not there: the job is not to notice */
}

/* ---- When ---- */

/* The last words on a watch that has ended, and its events, but where CUDA is not to be called: it
 * may be gone at the process' end, and busy for ever in a communicator that is given up. Called
 * with the lock. */
static void forget(struct watch *watch, bool by_cuda)
{
    const struct driver *driver = by_cuda ? find_driver() : NULL;
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
    memset(watch->pairs, 0, sizeof(watch->pairs));
    if (driver)
        driver->exchange_mode(&mode);
}

static bool take(struct watch *watch)
{
    int open = 0;
    return shim_swap(&locks[watch - watches], &open, 1);
}

static void give(struct watch *watch)
{
    shim_store(&locks[watch - watches], 0);
}

/* Its handle goes at once, whoever is at work with it: that thread's sample is its last. */
void shim_achieved_end(const void *handle, bool by_cuda)
{
    if (__atomic_load_n(&shim_achieved_count, __ATOMIC_RELAXED) == 0)
        return;
    notice_fork();
    for (int i = 0; i < SHIM_MEASURED; i++) {
        struct watch *watch = &watches[i];
        const void *its = shim_load(&watch->handle);
        if (!its || (handle && its != handle) || !shim_swap(&watch->handle, &its, NULL))
            continue;
        __atomic_fetch_sub(&shim_achieved_count, 1, __ATOMIC_SEQ_CST);
        if (!take(watch))
            continue;
        forget(watch, by_cuda);
        give(watch);
    }
}

void shim_achieved_begin(const void *handle, int ranks, int rank, tccl_bus gpu,
                         const struct shim_entry *entry, uint32_t nccl)
{
    notice_fork();
    if (!handle || ranks < 2)
        return;
    /* Somebody else looks at this job's times: nothing is added to what he sees. */
    static const char profilers[][32] = {"NCCL_PROFILER_PLUGIN", "CUDA_INJECTION64_PATH",
                                         "NSYS_PROFILING_SESSION_ID"};
    const char *wanted = shim_env("TCCL_ACHIEVED");
    for (size_t i = 0; i < sizeof(profilers) / sizeof(profilers[0]); i++) {
        const char *value = shim_env(profilers[i]);
        if (value && *value)
            return;
    }
    if (wanted && strcmp(wanted, "0") == 0)
        return;
    for (int i = 0; i < SHIM_MEASURED; i++) {
        struct watch *watch = &watches[i];
        if (watch->handle || !take(watch))
            continue;
        bool free = !watch->handle;
        if (free) {
            *watch = (struct watch){.comm = handle,
                                    .ranks = ranks,
                                    .rank = rank,
                                    .gpu = gpu,
                                    .entry = entry,
                                    .nccl = nccl};
            __atomic_fetch_add(&shim_achieved_count, 1, __ATOMIC_SEQ_CST);
            shim_store(&watch->handle, handle);
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
    tccl_bus gpu;
    collect(driver, watch);
    /* Default streams are those of the device that is current: is that the communicator's, as NCCL
     * takes it? */
    if (watch->under_way == PAIRS ||
        ((uintptr_t)stream <= 2 && (shim_device_current(&gpu, NULL) || gpu != watch->gpu)))
        return NULL;
    if (watch->under_way == 0) /* events are made where there are none: few, if nobody queues */
        watch->oldest = 0;
    struct shim_sample *sample = &watch->pairs[(watch->oldest + watch->under_way) % PAIRS];
    if (!make(driver, &sample->start) || !make(driver, &sample->end) ||
        driver->record(sample->start, stream) != 0) {
        watch->faults++;
        return NULL;
    }
    return sample;
}

/* A second after the last sample any of as many large ones as there were since: the first one is
 * often that which waits for other ranks. */
static bool is_due(struct watch *watch, int64_t now)
{
    watch->since++;
    if (now < watch->next_us)
        watch->skip = ((uint32_t)now * UINT32_C(2654435761) >> 12) % watch->since;
    else if (watch->skip == 0)
        return true;
    else
        watch->skip--;
    return false;
}

/* A sample of what is about to be launched, or NULL. */
static struct shim_sample *start(const void *handle, struct watch *watch, const struct load *load,
                                 void *stream)
{
    const struct driver *driver;
    int mode = RELAXED;
    if (load->largest < least[0])
        return NULL;
    int64_t now = shim_now_us();
    if ((watch->samples >= SHIM_SAMPLED_FIRST && !is_due(watch, now)) || watch->faults >= FAULTS ||
        !(driver = find_driver()) || !take(watch))
        return NULL;
    watch->next_us = now + SECOND_US;
    watch->since = 0;
    /* Another thread may be capturing, which the query of an event would end. */
    driver->exchange_mode(&mode);
    struct shim_sample *sample =
        watch->handle == handle ? begin_sample(driver, watch, stream) : NULL;
    driver->exchange_mode(&mode);
    if (!sample) {
        give(watch);
        return NULL;
    }
    sample->load = *load;
    sample->begun_us = now;
    if (watch->samples == 0)
        watch->before = __atomic_load_n(&watch->on_bus, __ATOMIC_RELAXED);
    return sample;
}

/* Counts one, and says what it is to the bus. */
static struct load count(struct watch *watch, enum shim_collective kind, size_t bytes)
{
    size_t ranks = (size_t)watch->ranks;
    if (bytes > MOST_BYTES / ranks) /* NCCL will refuse it */
        return (struct load){0};
    size_t all = kind == SHIM_GATHER ? bytes * ranks : bytes;
    size_t on_bus = kind == SHIM_OTHER ? all : all / ranks * (ranks - 1);
    if (kind == SHIM_ALL_REDUCE)
        on_bus *= 2;
    __atomic_fetch_add(&watch->bytes, all, __ATOMIC_RELAXED);
    __atomic_fetch_add(&watch->on_bus, on_bus, __ATOMIC_RELAXED);
    return (struct load){.largest = kind == SHIM_OTHER ? 0 : all,
                         .on_bus = on_bus,
                         .reduces = kind == SHIM_ALL_REDUCE,
                         .gathers = kind == SHIM_GATHER};
}

/* What is captured into a graph is left alone, since an event would become a part of it, and so is
 * a stream that can't be asked. It does nothing now, and nobody sees how often it is launched. */
static bool is_captured(struct watch *watch, void *stream)
{
    const struct driver *driver = find_driver();
    int captures = 0;
    if (!driver)
        return false;
    if (driver->capturing(stream, &captures) != 0)
        watch->faults++;
    else if (captures != 0)
        __atomic_fetch_add(&watch->captured, 1, __ATOMIC_RELAXED);
    else
        return false;
    return true;
}

struct shim_sample *shim_achieved_start(const void *handle, enum shim_collective kind, size_t bytes,
                                        void *stream)
{
    struct watch *watch = find(handle);
    if (!watch || is_captured(watch, stream))
        return NULL;
    struct load load = count(watch, kind, bytes);
    return start(handle, watch, &load, stream);
}

/* ---- Groups: all of it is launched at the end ---- */

static __thread struct {
    const void *handle;
    void *stream;
    struct load load;
    int calls;
    bool mixed; /* it is not one communicator's, or of several streams, or has others in it */
} group;

void shim_achieved_add(const void *handle, enum shim_collective kind, size_t bytes, void *stream)
{
    struct watch *watch = find(handle);
    bool captured = watch && is_captured(watch, stream);
    struct load load = {0};
    if (watch && !captured)
        load = count(watch, kind, bytes);
    group.mixed |= !watch || captured || kind == SHIM_OTHER ||
                   (group.calls > 0 && (group.handle != handle || group.stream != stream));
    group.handle = handle;
    group.stream = stream;
    group.calls++;
    group.load.on_bus += load.on_bus;
    group.load.reduces |= load.reduces;
    group.load.gathers |= load.gathers;
    if (load.largest > group.load.largest)
        group.load.largest = load.largest;
}

struct shim_sample *shim_achieved_start_group(void **stream)
{
    struct watch *watch = group.calls > 0 && !group.mixed ? find(group.handle) : NULL;
    struct shim_sample *sample =
        watch ? start(group.handle, watch, &group.load, group.stream) : NULL;
    *stream = group.stream;
    memset(&group, 0, sizeof(group));
    return sample;
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
        watch->under_way++;
        watch->samples++;
    } else {
        watch->faults++; /* such as one that does not block: nothing is launched yet */
    }
    driver->exchange_mode(&mode);
    int64_t now = shim_now_us();
    if (shim_load(&watch->handle) &&
        (watch->samples == SHIM_SAMPLED_FIRST ||
         (watch->samples > SHIM_SAMPLED_FIRST && now - watch->told_us > MINUTE_US)))
        tell(watch, now, false);
    give(watch);
}
