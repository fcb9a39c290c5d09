/* fake-cuda.c: stands in for libcuda.so.1 in tests, where there is no GPU. Never installed. It has
 * just the calls that the back end makes, and is strict: what a driver may refuse it refuses. The
 * memory of its GPUs is this machine's; its kernel is copy.cu's algorithm in a thread.
 *
 * FAKE_CUDA_GPUS    bus ids, with commas between them (default: 0000:01:00.0)
 * FAKE_CUDA_FAIL    name of a call that fails
 * FAKE_CUDA_MODE    compute mode: 0 default, 2 prohibited, 3 one process only
 * FAKE_CUDA_PEERS   how many other GPUs one reaches at once (default: 8)
 * FAKE_CUDA_VERSION what the driver is of, as 12040 for CUDA 12.4; it loads no newer kernels
 * FAKE_CUDA_KERNEL  absent: never starts; endless: does not stop when told to, only at its limit;
 *                   idle: reports bytes and copies nothing; broken: fails soon after its start;
 *                   deadly: ends the process soon after its start
 */
#include <cuda.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "measure/cuda/copy-job.h"

enum { GPUS = 16, RANGES = 4096, QUEUE = 64, MULTIPROCESSORS = 16, THREADS = 2048 };
enum { BLOCKS = MULTIPROCESSORS * (THREADS / TCCL_COPY_THREADS) }; /* that fit at the same time */
/* The GPU's addresses differ from the CPU's: neither can be taken for the other. */
static const uint64_t HOST_BIT = 1ULL << 60, DEVICE_BIT = 1ULL << 59;
static const uint64_t FATBIN = 0xba55ed50;

#define ANSWER CUresult
#include "stand-in.h"

struct range {
    CUdeviceptr at;
    size_t bytes;
    int fd; /* of memory of our own; -1: host or peer memory */
};

struct CUctx_st {
    int device;
};

struct op {
    enum { KERNEL, COPY, RECORD } kind;
    struct tccl_copy_job job;
    unsigned blocks;
    void *to;
    const void *from;
    size_t bytes;
    CUevent event;
    unsigned long number;
};

struct CUstream_st {
    pthread_t thread;
    struct op queue[QUEUE];
    unsigned first, last;
};

struct CUevent_st {
    unsigned long asked, done;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct range ranges[RANGES];
static int n_ranges, kernels, peers;
static unsigned resident; /* blocks on the GPU */
static CUresult broken;   /* an error of a kernel: all calls return it from then on */
static bool loaded, launch_blocking;
static char module_here, function_here;
static struct CUctx_st contexts[GPUS];
static _Thread_local CUcontext current;
static pid_t started;

static bool fails(const char *call)
{
    const char *name = getenv("FAKE_CUDA_FAIL");
    return name && strcmp(name, call) == 0;
}

static bool kernel_is(const char *kind)
{
    const char *name = getenv("FAKE_CUDA_KERNEL");
    return name && strcmp(name, kind) == 0;
}

/* As the real one: nothing works in a process that was forked later, or without a context. */
static CUresult usable(const char *call, CUresult failure)
{
    if (started != getpid())
        return CUDA_ERROR_NOT_INITIALIZED;
    if (!current)
        return CUDA_ERROR_INVALID_CONTEXT;
    CUresult sticky = __atomic_load_n(&broken, __ATOMIC_SEQ_CST);
    if (sticky != CUDA_SUCCESS)
        return sticky;
    return fails(call) ? failure : CUDA_SUCCESS;
}

#define MUST_BE_USABLE(call, failure)                                                              \
    do {                                                                                           \
        CUresult usable_ = usable(call, failure);                                                  \
        if (usable_ != CUDA_SUCCESS)                                                               \
            return usable_;                                                                        \
    } while (0)

static pthread_mutex_t *take_lock(void)
{
    pthread_mutex_lock(&lock);
    return &lock;
}

static void let_go(pthread_mutex_t **mutex)
{
    pthread_mutex_unlock(*mutex);
}

/* Until the end of the scope. */
#define LOCKED __attribute__((cleanup(let_go), unused)) pthread_mutex_t *locked_ = take_lock()

static uint64_t nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
}

/* ---- memory; with the lock held ---- */

static bool overlaps(CUdeviceptr at, size_t bytes)
{
    for (int i = 0; i < n_ranges; i++)
        if (at < ranges[i].at + ranges[i].bytes && ranges[i].at < at + bytes)
            return true;
    return false;
}

static struct range *find_range(CUdeviceptr at, size_t bytes)
{
    for (int i = 0; i < n_ranges; i++)
        if (at >= ranges[i].at && at - ranges[i].at <= ranges[i].bytes &&
            bytes <= ranges[i].bytes - (at - ranges[i].at))
            return &ranges[i];
    return NULL;
}

static CUresult add_range(CUdeviceptr at, size_t bytes, int fd)
{
    if (n_ranges == RANGES)
        return CUDA_ERROR_OUT_OF_MEMORY;
    ranges[n_ranges++] = (struct range){at, bytes, fd};
    return CUDA_SUCCESS;
}

/* A driver may let such calls wait until nothing runs: here they always do. */
static void wait_for_kernels(void)
{
    while (kernels > 0)
        pthread_cond_wait(&changed, &lock);
}

/* The CPU's address of what a kernel names; NULL: not mapped for the GPU. */
static void *reach(uint64_t at, size_t bytes)
{
    LOCKED;
    return find_range(at, bytes) ? (void *)(uintptr_t)(at & ~(HOST_BIT | DEVICE_BIT)) : NULL;
}

/* ---- the kernel ---- */

static bool stopped(const struct tccl_copy_control *control, uint32_t turn)
{
    if (kernel_is("endless"))
        return false;
    return (int32_t)(__atomic_load_n(&control->stop, __ATOMIC_SEQ_CST) - turn) >= 0;
}

static bool wait_for_go(struct tccl_copy_control *control, const struct op *op, uint64_t end)
{
    const struct tccl_copy_job *job = &op->job;
    if (!kernel_is("absent"))
        for (unsigned block = 0; block < op->blocks; block++)
            __atomic_store_n(&control->lines[block].armed, job->turn, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&control->go, __ATOMIC_SEQ_CST) != job->turn) {
        if (stopped(control, job->turn) || nanoseconds() > end ||
            __atomic_load_n(&control->hold, __ATOMIC_SEQ_CST) != job->hold)
            return false;
        nap();
    }
    for (unsigned block = 0; block < op->blocks; block++)
        __atomic_store_n(&control->lines[block].begun, job->turn, __ATOMIC_SEQ_CST);
    return true;
}

static void copy_round(struct tccl_copy_control *control, const struct op *op, unsigned round)
{
    const struct tccl_copy_job *job = &op->job;
    char *to = reach(job->sink, (size_t)job->pieces * TCCL_COPY_PIECE);
    const char *from = reach(job->source, (size_t)job->pieces * TCCL_COPY_PIECE);
    for (unsigned block = 0; block < op->blocks; block++) {
        size_t at = (size_t)((block + round * op->blocks) % job->pieces) * TCCL_COPY_PIECE;
        if (!kernel_is("idle"))
            memcpy(to + at, from + at, TCCL_COPY_PIECE);
        __atomic_store_n(&control->lines[block].moved, (uint64_t)(round + 1) * TCCL_COPY_PIECE,
                         __ATOMIC_RELEASE);
    }
    nap(); /* leaves the others some of the few cores */
}

static CUresult run_kernel(const struct op *op)
{
    const struct tccl_copy_job *job = &op->job;
    struct tccl_copy_control *control = reach(job->control, sizeof(*control));
    uint64_t end = nanoseconds() + job->limit;
    if (!control || !reach(job->sink, (size_t)job->pieces * TCCL_COPY_PIECE) ||
        !reach(job->source, (size_t)job->pieces * TCCL_COPY_PIECE))
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    if (job->control % 16 || job->sink % 16 || job->source % 16) /* of vector loads and stores */
        return CUDA_ERROR_MISALIGNED_ADDRESS;
    if (!wait_for_go(control, op, end))
        return CUDA_SUCCESS;
    for (unsigned round = 0; !stopped(control, job->turn) && nanoseconds() <= end; round++) {
        if (round == 2 && kernel_is("broken"))
            return CUDA_ERROR_LAUNCH_FAILED;
        if (round == 2 && kernel_is("deadly"))
            _exit(9);
        copy_round(control, op, round);
    }
    return CUDA_SUCCESS;
}

/* ---- streams: one thread each, which does one thing after another ---- */

/* All blocks of a copy wait for the start: it begins when there is room for all of them. */
static CUresult run_in_room(const struct op *op)
{
    pthread_mutex_lock(&lock);
    while (resident + op->blocks > BLOCKS)
        pthread_cond_wait(&changed, &lock);
    resident += op->blocks;
    pthread_mutex_unlock(&lock);
    CUresult result = run_kernel(op);
    pthread_mutex_lock(&lock);
    resident -= op->blocks;
    pthread_mutex_unlock(&lock);
    return result;
}

static CUresult run_op(const struct op *op)
{
    if (op->kind == KERNEL)
        return run_in_room(op);
    if (op->kind == COPY && !kernel_is("idle"))
        memcpy(op->to, op->from, op->bytes);
    if (op->kind == COPY)
        nap();
    if (op->kind == RECORD)
        __atomic_store_n(&op->event->done, op->number, __ATOMIC_SEQ_CST);
    return CUDA_SUCCESS;
}

static void *run_stream(void *context)
{
    CUstream stream = context;
    for (;;) {
        pthread_mutex_lock(&lock);
        while (stream->first == stream->last)
            pthread_cond_wait(&changed, &lock);
        struct op op = stream->queue[stream->first % QUEUE];
        pthread_mutex_unlock(&lock);
        CUresult result = run_op(&op);
        pthread_mutex_lock(&lock);
        stream->first++;
        kernels -= op.kind == KERNEL;
        if (result != CUDA_SUCCESS)
            broken = result;
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

static CUresult push(CUstream stream, const struct op *op)
{
    LOCKED;
    if (broken != CUDA_SUCCESS || stream->last - stream->first == QUEUE)
        return broken != CUDA_SUCCESS ? broken : CUDA_ERROR_OUT_OF_MEMORY;
    stream->queue[stream->last++ % QUEUE] = *op;
    kernels += op->kind == KERNEL;
    pthread_cond_broadcast(&changed);
    return CUDA_SUCCESS;
}

/* ---- the calls ---- */

/* By which tests know that they have this library and not a driver. */
extern const char fake_cuda[];
const char fake_cuda[] = "stands in for a driver";

CUresult cuInit(unsigned flags)
{
    const char *loading = getenv("CUDA_MODULE_LOADING"), *launch = getenv("CUDA_LAUNCH_BLOCKING");
    while (fails("hang"))
        pause();
    if (fails("cuInit"))
        return CUDA_ERROR_NO_DEVICE;
    if (started != 0 && started != getpid()) /* the parent of this process had started it */
        return CUDA_ERROR_NOT_INITIALIZED;
    if (flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    started = getpid();
    loaded = loading && strcmp(loading, "EAGER") == 0;
    launch_blocking = launch && strcmp(launch, "0") != 0;
    return CUDA_SUCCESS;
}

static int version(void)
{
    return getenv("FAKE_CUDA_VERSION") ? atoi(getenv("FAKE_CUDA_VERSION")) : CUDA_VERSION;
}

DOES(cuDriverGetVersion, (int *out), *out = version());

CUresult cuGetErrorName(CUresult error, const char **name)
{
    static _Thread_local char text[32];
    snprintf(text, sizeof(text), "fake %d", (int)error);
    *name = text;
    return CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult error, const char **text)
{
    static const struct {
        CUresult error;
        const char *text;
    } texts[] = {
        {CUDA_ERROR_OUT_OF_MEMORY, "out of memory"},
        {CUDA_ERROR_LAUNCH_FAILED, "unspecified launch failure"},
        {CUDA_ERROR_DEVICE_UNAVAILABLE, "device(s) is/are busy or unavailable"},
        {CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, "peer access is not supported between these devices"},
        {CUDA_ERROR_TOO_MANY_PEERS, "peer mapping resources exhausted"},
        {CUDA_ERROR_NO_DEVICE, "no CUDA-capable device is detected"},
        {CUDA_ERROR_INVALID_IMAGE, "device kernel image is invalid"},
        {CUDA_ERROR_LAUNCH_TIMEOUT, "the launch timed out and was terminated"},
    };
    *text = "some error";
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
        if (texts[i].error == error)
            *text = texts[i].text;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetByPCIBusId(CUdevice *device, const char *busid)
{
    const char *list = getenv("FAKE_CUDA_GPUS");
    const char *at;
    if (started != getpid())
        return CUDA_ERROR_NOT_INITIALIZED;
    list = list ? list : "0000:01:00.0";
    at = strstr(list, busid);
    if (!at || getenv("CUDA_VISIBLE_DEVICES"))
        return CUDA_ERROR_INVALID_DEVICE;
    *device = 0;
    for (; list < at; list++)
        *device += *list == ',';
    return CUDA_SUCCESS;
}

/* FAKE_CUDA_PEERS: pairs of devices of which the first reaches the other: "0-1,1-0"; "all". */
CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer)
{
    const char *pairs = getenv("FAKE_CUDA_PEERS");
    char pair[16];
    snprintf(pair, sizeof(pair), "%d-%d", device, peer);
    *can = pairs && (strcmp(pairs, "all") == 0 || strstr(pairs, pair));
    return fails("cuDeviceCanAccessPeer") ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    if (started != getpid())
        return CUDA_ERROR_NOT_INITIALIZED;
    if (attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_MODE)
        *value = getenv("FAKE_CUDA_MODE") ? atoi(getenv("FAKE_CUDA_MODE")) : 0;
    else if (attribute == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
        *value = MULTIPROCESSORS;
    else
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    if (started != getpid())
        return CUDA_ERROR_NOT_INITIALIZED;
    if (fails("cuDevicePrimaryCtxRetain"))
        return CUDA_ERROR_DEVICE_UNAVAILABLE;
    *context = &contexts[device];
    return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context)
{
    if (started != getpid())
        return CUDA_ERROR_NOT_INITIALIZED;
    current = context;
    return CUDA_SUCCESS;
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    uint32_t magic;
    MUST_BE_USABLE("cuModuleLoadData", CUDA_ERROR_NO_BINARY_FOR_GPU);
    memcpy(&magic, image, sizeof(magic));
    if (magic != FATBIN || version() / 1000 < CUDA_VERSION / 1000)
        return CUDA_ERROR_INVALID_IMAGE;
    *module = (CUmodule)&module_here;
    return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    MUST_BE_USABLE("cuModuleGetFunction", CUDA_ERROR_NOT_FOUND);
    if (module != (CUmodule)&module_here)
        return CUDA_ERROR_INVALID_HANDLE;
    if (strcmp(name, "tccl_copy") != 0)
        return CUDA_ERROR_NOT_FOUND;
    *function = (CUfunction)&function_here;
    return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function, int threads,
                                                     size_t shared)
{
    CUresult result = usable("cuOccupancyMaxActiveBlocksPerMultiprocessor", CUDA_ERROR_UNKNOWN);
    *blocks = THREADS / threads;
    return function == (CUfunction)&function_here ? result : CUDA_ERROR_INVALID_HANDLE;
}

static void wait_for_stream(CUstream stream)
{
    LOCKED;
    while (stream->first != stream->last)
        pthread_cond_wait(&changed, &lock);
}

CUresult cuLaunchKernel(CUfunction function, unsigned x, unsigned y, unsigned z, unsigned threads,
                        unsigned y_threads, unsigned z_threads, unsigned shared, CUstream stream,
                        void **parameters, void **extra)
{
    struct op op = {.kind = KERNEL, .blocks = x};
    MUST_BE_USABLE("cuLaunchKernel", CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    if (function != (CUfunction)&function_here || x < 1 || x > TCCL_COPY_BLOCKS || y != 1 ||
        z != 1 || threads != TCCL_COPY_THREADS || y_threads != 1 || z_threads != 1 || shared != 0 ||
        !stream || extra)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(&op.job, parameters[0], sizeof(op.job));
    /* A kernel that was not loaded at once is loaded now, which may wait for others to end. */
    pthread_mutex_lock(&lock);
    if (!loaded)
        wait_for_kernels();
    loaded = true;
    pthread_mutex_unlock(&lock);
    CUresult result = push(stream, &op);
    if (result == CUDA_SUCCESS && launch_blocking)
        wait_for_stream(stream);
    return result;
}

/* Memory behind a file, so that other processes can map it. */
CUresult cuMemAlloc(CUdeviceptr *address, size_t bytes)
{
    MUST_BE_USABLE("cuMemAlloc", CUDA_ERROR_OUT_OF_MEMORY);
    int fd = memfd_create("fake-cuda", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, (off_t)bytes) != 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *address = (uintptr_t)memory | DEVICE_BIT;
    LOCKED;
    wait_for_kernels();
    return add_range(*address, bytes, fd);
}

CUresult cuMemsetD8(CUdeviceptr address, unsigned char value, size_t bytes)
{
    MUST_BE_USABLE("cuMemsetD8", CUDA_ERROR_UNKNOWN);
    void *memory = reach(address, bytes);
    if (!memory)
        return CUDA_ERROR_INVALID_VALUE;
    memset(memory, value, bytes);
    return CUDA_SUCCESS;
}

CUresult cuMemHostRegister(void *memory, size_t bytes, unsigned flags)
{
    uint64_t at = (uintptr_t)memory | HOST_BIT;
    MUST_BE_USABLE("cuMemHostRegister", CUDA_ERROR_OUT_OF_MEMORY);
    if (at % 4096 || bytes % 4096 || !(flags & CU_MEMHOSTREGISTER_DEVICEMAP))
        return CUDA_ERROR_INVALID_VALUE;
    LOCKED;
    wait_for_kernels();
    return overlaps(at, bytes) ? CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED
                               : add_range(at, bytes, -1);
}

CUresult cuMemHostGetDevicePointer(CUdeviceptr *address, void *memory, unsigned flags)
{
    *address = (uintptr_t)memory | HOST_BIT;
    MUST_BE_USABLE("cuMemHostGetDevicePointer", CUDA_ERROR_INVALID_VALUE);
    return flags == 0 && reach(*address, 1) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* What a handle says here; tests that look at a GPU's memory read it too. */
struct fake_handle {
    char magic[8];
    pid_t pid;
    int fd;
    uint64_t bytes;
};

CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr address)
{
    struct fake_handle said = {.magic = "fake", .pid = getpid()};
    if (usable("cuIpcGetMemHandle", CUDA_ERROR_NOT_SUPPORTED) != CUDA_SUCCESS)
        return CUDA_ERROR_NOT_SUPPORTED;
    pthread_mutex_lock(&lock);
    const struct range *range = find_range(address, 1);
    pthread_mutex_unlock(&lock);
    if (!range || range->fd < 0 || range->at != address)
        return CUDA_ERROR_INVALID_VALUE;
    said.fd = range->fd;
    said.bytes = range->bytes;
    memset(handle, 0, sizeof(*handle));
    memcpy(handle, &said, sizeof(said));
    return CUDA_SUCCESS;
}

static int most_peers(void)
{
    const char *most = getenv("FAKE_CUDA_PEERS");
    return most ? atoi(most) : 8;
}

CUresult cuIpcOpenMemHandle(CUdeviceptr *address, CUipcMemHandle handle, unsigned flags)
{
    struct fake_handle said;
    char path[64];
    memcpy(&said, &handle, sizeof(said));
    MUST_BE_USABLE("cuIpcOpenMemHandle", CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
    if (strcmp(said.magic, "fake") != 0 || said.pid == getpid() ||
        flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)
        return CUDA_ERROR_INVALID_VALUE;
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)said.pid, said.fd);
    if (peers >= most_peers())
        return CUDA_ERROR_TOO_MANY_PEERS;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return CUDA_ERROR_MAP_FAILED;
    void *memory = mmap(NULL, said.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (memory == MAP_FAILED)
        return CUDA_ERROR_MAP_FAILED;
    *address = (uintptr_t)memory | DEVICE_BIT;
    LOCKED;
    wait_for_kernels();
    CUresult result = add_range(*address, said.bytes, -1);
    peers += result == CUDA_SUCCESS;
    return result;
}

CUresult cuIpcCloseMemHandle(CUdeviceptr address)
{
    MUST_BE_USABLE("cuIpcCloseMemHandle", CUDA_ERROR_INVALID_VALUE);
    LOCKED;
    wait_for_kernels();
    struct range *range = find_range(address, 1);
    if (!range || range->at != address)
        return CUDA_ERROR_INVALID_VALUE;
    munmap((void *)(uintptr_t)(address & ~DEVICE_BIT), range->bytes);
    *range = ranges[--n_ranges];
    peers--;
    return CUDA_SUCCESS;
}

CUresult cuStreamCreate(CUstream *stream, unsigned flags)
{
    MUST_BE_USABLE("cuStreamCreate", CUDA_ERROR_OUT_OF_MEMORY);
    *stream = calloc(1, sizeof(**stream));
    if (!*stream || flags != CU_STREAM_NON_BLOCKING ||
        pthread_create(&(*stream)->thread, NULL, run_stream, *stream) != 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    return CUDA_SUCCESS;
}

CUresult cuStreamQuery(CUstream stream)
{
    MUST_BE_USABLE("cuStreamQuery", CUDA_ERROR_UNKNOWN);
    LOCKED;
    return broken != CUDA_SUCCESS                    ? broken
           : stream && stream->first != stream->last ? CUDA_ERROR_NOT_READY
                                                     : CUDA_SUCCESS;
}

CUresult cuStreamSynchronize(CUstream stream)
{
    MUST_BE_USABLE("cuStreamSynchronize", CUDA_ERROR_UNKNOWN);
    if (stream)
        return CUDA_ERROR_NOT_SUPPORTED;
    LOCKED;
    wait_for_kernels();
    return CUDA_SUCCESS;
}

CUresult cuEventCreate(CUevent *event, unsigned flags)
{
    *event = calloc(1, sizeof(**event));
    return *event ? usable("cuEventCreate", CUDA_ERROR_OUT_OF_MEMORY) : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuEventRecord(CUevent event, CUstream stream)
{
    CUresult result = usable("cuEventRecord", CUDA_ERROR_UNKNOWN);
    struct op op = {.kind = RECORD, .event = event, .number = ++event->asked};
    return result != CUDA_SUCCESS ? result : push(stream, &op);
}

CUresult cuEventQuery(CUevent event)
{
    MUST_BE_USABLE("cuEventQuery", CUDA_ERROR_UNKNOWN);
    return __atomic_load_n(&event->done, __ATOMIC_SEQ_CST) == event->asked ? CUDA_SUCCESS
                                                                           : CUDA_ERROR_NOT_READY;
}

static CUresult copy(const char *call, void *to, const void *from, size_t bytes, CUstream stream)
{
    struct op op = {.kind = COPY, .to = to, .from = from, .bytes = bytes};
    MUST_BE_USABLE(call, CUDA_ERROR_LAUNCH_FAILED);
    return to && from ? push(stream, &op) : CUDA_ERROR_INVALID_VALUE;
}

/* The CPU's address of host memory, which must be page-locked, or a copy would not be asynchronous.
 */
static void *locked(const void *host, size_t bytes)
{
    return reach((uintptr_t)host | HOST_BIT, bytes);
}

SAYS(cuMemcpyHtoDAsync, (CUdeviceptr to, const void *from, size_t bytes, CUstream stream),
     copy("cuMemcpyHtoDAsync", reach(to, bytes), locked(from, bytes), bytes, stream));
SAYS(cuMemcpyDtoHAsync, (void *to, CUdeviceptr from, size_t bytes, CUstream stream),
     copy("cuMemcpyDtoHAsync", locked(to, bytes), reach(from, bytes), bytes, stream));
SAYS(cuMemcpyDtoDAsync, (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream),
     copy("cuMemcpyDtoDAsync", reach(to, bytes), reach(from, bytes), bytes, stream));
