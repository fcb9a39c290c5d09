/* device.c: GPUs by the numbers of CUDA and NVML, by their public interfaces. CUDA is used as the
 * process has it, never loaded; NVML is what NCCL loads too. */
#include "base/base.h"

#include <ctype.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/loaded.h"

enum { ORDINALS = 64, LINKS = 18, BUS_TEXT = 32 };

/* ---- CUDA ---- */

/* The runtime and the driver have the same functions, and the same numbers of devices. */
struct cuda {
    int (*current)(int *ordinal);
    int (*count)(int *count);
    int (*busid)(char *text, int size, int device);
    int (*version)(int *version);
    int (*start)(unsigned flags); /* the driver only */
};
/* Arrays, not pointers, which the loader would have to relocate in every program. */
static const char runtime_names[][SHIM_FUNCTION] = {
    "cudaGetDevice", "cudaGetDeviceCount", "cudaDeviceGetPCIBusId", "cudaDriverGetVersion"};
static const char driver_names[][SHIM_FUNCTION] = {
    "cuCtxGetDevice", "cuDeviceGetCount", "cuDeviceGetPCIBusId", "cuDriverGetVersion", "cuInit"};

/* Libraries that are found are kept: programs hardly unload them. */
static bool find_runtime(struct cuda *cuda)
{
    memset(cuda, 0, sizeof(*cuda));
    if (shim_functions(RTLD_DEFAULT, runtime_names, 4, 3, cuda))
        return true;
    const char *path = shim_loaded("libcudart.so");
    void *handle = path ? shim_dlopen(path, RTLD_NOLOAD | RTLD_LAZY) : NULL;
    return handle && shim_functions(handle, runtime_names, 4, 3, cuda);
}

static bool find_driver(struct cuda *cuda)
{
    void *handle = shim_dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_LAZY);
    memset(cuda, 0, sizeof(*cuda));
    return handle && shim_functions(handle, driver_names, 5, 3, cuda) && cuda->start;
}

/* A thread's context is what every runtime in the process goes by, also one that is linked into
 * NCCL; without a context yet it is the runtime that knows. */
static int current_ordinal(int *ordinal, struct tccl_error *why)
{
    struct cuda cuda;
    if (find_driver(&cuda) && cuda.current(ordinal) == 0)
        return 0;
    if (!find_runtime(&cuda))
        return tccl_fail(why, "CUDA can't be asked for the thread's device: it has no context, and "
                              "no CUDA runtime is loaded");
    if (cuda.current(ordinal) != 0)
        return tccl_fail(why, "CUDA does not tell the thread's device");
    return 0;
}

static int read_bus(const struct cuda *cuda, int ordinal, tccl_bus *bus)
{
    char text[BUS_TEXT] = "";
    return cuda->busid(text, sizeof(text), ordinal) == 0 ? tccl_bus_parse(text, bus) : -1;
}

/* Several devices with one bus id are parts of a GPU. */
static int bus_of(const struct cuda *cuda, int ordinal, tccl_bus *bus, struct tccl_error *why)
{
    int count = 0;
    tccl_bus other;
    if (cuda->count(&count) != 0 || ordinal >= count || read_bus(cuda, ordinal, bus))
        return tccl_fail(why, "CUDA does not tell the bus id of device %d", ordinal);
    for (int i = 0; i < count && i < ORDINALS; i++)
        if (i != ordinal && read_bus(cuda, i, &other) == 0 && other == *bus)
            return tccl_fail(why, "CUDA's devices %d and %d have the same bus id", ordinal, i);
    return 0;
}

/* ---- NVML ---- */

typedef void *device;

struct pci_info {
    char legacy[16];
    unsigned domain, bus, device, pci_device, pci_subsystem;
    char busid[BUS_TEXT];
};

struct field_value {
    unsigned field, scope;
    int64_t time, latency;
    int type, status;
    union {
        unsigned number;
        uint64_t bytes;
    } value;
};
enum { FIELD_NVLINK_STATE = 165, CAPABILITY_P2P = 0, NOT_SUPPORTED = 3 };

struct nvml {
    int (*init)(void);
    int (*by_busid)(const char *busid, device *gpu);
    int (*index)(device gpu, unsigned *index);
    /* These may be missing in an old one. */
    int (*capability)(device gpu, int *major, int *minor);
    int (*mig)(device gpu, unsigned *current, unsigned *pending);
    int (*link_state)(device gpu, unsigned link, unsigned *active);
    int (*link_can)(device gpu, unsigned link, unsigned capability, unsigned *can);
    int (*link_remote)(device gpu, unsigned link, struct pci_info *remote);
    int (*fields)(device gpu, int count, struct field_value *values);
};

static const char nvml_names[][SHIM_FUNCTION] = {"nvmlInit_v2",
                                                 "nvmlDeviceGetHandleByPciBusId_v2",
                                                 "nvmlDeviceGetIndex",
                                                 "nvmlDeviceGetCudaComputeCapability",
                                                 "nvmlDeviceGetMigMode",
                                                 "nvmlDeviceGetNvLinkState",
                                                 "nvmlDeviceGetNvLinkCapability",
                                                 "nvmlDeviceGetNvLinkRemotePciInfo_v2",
                                                 "nvmlDeviceGetFieldValues"};

/* Started once in a process and left so, as NCCL does: starting it takes long. Threads that come at
 * the same time both do it, with the same result. */
static const struct nvml *find_nvml(struct tccl_error *why)
{
    static struct nvml shared;
    static int started_by; /* process id: not what a parent had */
    struct nvml nvml;
    if (__atomic_load_n(&started_by, __ATOMIC_ACQUIRE) == getpid())
        return &shared;
    void *handle = shim_dlopen("libnvidia-ml.so.1", RTLD_NOW);
    if (!handle || !shim_functions(handle, nvml_names, 9, 3, &nvml) || nvml.init() != 0)
        return tccl_fail_null(why, "NVML can't be loaded or started");
    shared = nvml;
    __atomic_store_n(&started_by, getpid(), __ATOMIC_RELEASE);
    return &shared;
}

/* NVML, and its handle of a GPU; NULL with why. */
static const struct nvml *find_gpu(tccl_bus bus, device *gpu, struct tccl_error *why)
{
    const struct nvml *nvml = find_nvml(why);
    char text[TCCL_BUS_TEXT];
    tccl_bus_format(bus, text);
    if (nvml && nvml->by_busid(text, gpu) != 0)
        return tccl_fail_null(why, "NVML does not know the GPU %s", text);
    return nvml;
}

/* ---- bus ids ---- */

static uint64_t known[ORDINALS]; /* bus + 1 */

int shim_device_bus(int ordinal, tccl_bus *bus, struct tccl_error *why)
{
    unsigned mig = 0, pending = 0;
    char text[TCCL_BUS_TEXT];
    const struct nvml *nvml;
    struct cuda cuda;
    device gpu;
    if (ordinal < 0 || ordinal >= ORDINALS)
        return tccl_fail(why, "there is no CUDA device %d", ordinal);
    *bus = __atomic_load_n(&known[ordinal], __ATOMIC_RELAXED) - 1;
    if (*bus != SHIM_NO_BUS)
        return 0;
    /* NCCL starts the driver too. */
    if (!find_runtime(&cuda) && !(find_driver(&cuda) && cuda.start(0) == 0))
        return tccl_fail(why, "CUDA is not loaded");
    if (bus_of(&cuda, ordinal, bus, why) || !(nvml = find_gpu(*bus, &gpu, why)))
        return -1;
    tccl_bus_format(*bus, text);
    if (nvml->mig && nvml->mig(gpu, &mig, &pending) == 0 && mig != 0)
        return tccl_fail(why, "the GPU %s is cut into MIG instances", text);
    __atomic_store_n(&known[ordinal], *bus + 1, __ATOMIC_RELAXED);
    return 0;
}

int shim_device_current(tccl_bus *bus, struct tccl_error *why)
{
    int ordinal;
    return current_ordinal(&ordinal, why) ? -1 : shim_device_bus(ordinal, bus, why);
}

int shim_device_driver(void)
{
    struct cuda cuda;
    int version;
    return (find_driver(&cuda) || find_runtime(&cuda)) && cuda.version &&
                   cuda.version(&version) == 0
               ? version
               : 0;
}

int shim_device_nvml(tccl_bus bus, int *index, struct tccl_error *why)
{
    unsigned number;
    device gpu;
    const struct nvml *nvml = find_gpu(bus, &gpu, why);
    if (!nvml)
        return -1;
    if (nvml->index(gpu, &number) != 0 || number > 1023)
        return tccl_fail(why, "NVML does not tell the index of a GPU");
    *index = (int)number;
    return 0;
}

bool shim_device_seen(tccl_bus bus)
{
    device gpu;
    return find_gpu(bus, &gpu, NULL) != NULL;
}

int shim_device_sm(tccl_bus bus)
{
    device gpu;
    const struct nvml *nvml = find_gpu(bus, &gpu, NULL);
    int major, minor;
    if (!nvml || !nvml->capability || nvml->capability(gpu, &major, &minor) != 0 || major < 1 ||
        minor < 0 || minor > 9)
        return -1;
    return major * 10 + minor;
}

/* ---- NVLink ---- */

struct links {
    bool to_switch;
    int n;
    tccl_bus to[LINKS]; /* GPUs */
};

/* A GPU without NVLink says so of its first link. */
static bool has_nvlink(const struct nvml *nvml, device gpu)
{
    unsigned can, active;
    if (!nvml->link_state || !nvml->link_remote)
        return false; /* NVML is older than NVLink */
    return !(nvml->link_can && nvml->link_can(gpu, 0, CAPABILITY_P2P, &can) == NOT_SUPPORTED &&
             nvml->link_state(gpu, 0, &active) == NOT_SUPPORTED);
}

static bool link_is_up(const struct nvml *nvml, device gpu, unsigned link)
{
    struct field_value value = {.field = FIELD_NVLINK_STATE, .scope = link};
    unsigned active = 0, can = 0;
    if (nvml->link_can && (nvml->link_can(gpu, link, CAPABILITY_P2P, &can) != 0 || !can))
        return false;
    if (nvml->link_state(gpu, link, &active) == 0)
        return active;
    return nvml->fields && nvml->fields(gpu, 1, &value) == 0 && value.status == 0 &&
           value.value.number;
}

/* As NCCL has it: what can't be seen in /sys is a switch. */
static bool is_switch(const char *busid)
{
    char path[96] = "/sys/bus/pci/devices/", kind[32];
    size_t length = strlen(path), skip = strlen(busid) > 12 ? strlen(busid) - 12 : 0;
    for (; busid[skip] && length < sizeof(path) - 8; skip++)
        path[length++] = (char)tolower((unsigned char)busid[skip]);
    strcpy(path + length, "/class");
    return shim_read_file(path, kind, sizeof(kind)) < 0 || strncmp(kind, "0x0680", 6) == 0;
}

static int read_links(tccl_bus bus, struct links *links, struct tccl_error *why)
{
    struct pci_info remote;
    char busid[BUS_TEXT];
    device gpu;
    const struct nvml *nvml = find_gpu(bus, &gpu, why);
    tccl_bus other;
    memset(links, 0, sizeof(*links));
    if (!nvml)
        return -1;
    if (!has_nvlink(nvml, gpu))
        return 0;
    for (unsigned link = 0; link < LINKS; link++) {
        memset(&remote, 0, sizeof(remote));
        if (!link_is_up(nvml, gpu, link) || nvml->link_remote(gpu, link, &remote) != 0)
            continue;
        snprintf(busid, sizeof(busid), "%.*s", BUS_TEXT - 1, remote.busid);
        if (is_switch(busid))
            links->to_switch = true;
        else if (tccl_bus_parse(busid, &other) == 0)
            links->to[links->n++] = other;
    }
    return 0;
}

/* Hundreds of questions to NVML take long: each is asked once in a process. Entries are only added;
 * two threads may add the same. */
static struct {
    bool filled;
    tccl_bus bus;
    struct links links;
} cache[2 * SHIM_GPUS];
static unsigned n_cached;

static int get_links(tccl_bus bus, struct links *links, struct tccl_error *why)
{
    for (int i = 0; i < 2 * SHIM_GPUS; i++)
        if (__atomic_load_n(&cache[i].filled, __ATOMIC_ACQUIRE) && cache[i].bus == bus) {
            *links = cache[i].links;
            return 0;
        }
    if (read_links(bus, links, why))
        return -1;
    unsigned place = __atomic_fetch_add(&n_cached, 1, __ATOMIC_RELAXED);
    if (place >= 2 * SHIM_GPUS)
        return 0;
    cache[place].bus = bus;
    cache[place].links = *links;
    __atomic_store_n(&cache[place].filled, true, __ATOMIC_RELEASE);
    return 0;
}

bool shim_device_has_nvlink(tccl_bus bus)
{
    struct links links;
    return get_links(bus, &links, NULL) != 0 || links.n > 0 || links.to_switch;
}

static bool are_linked(const struct links *a, const struct links *b, tccl_bus bus_of_b)
{
    return shim_bus_find(a->to, a->n, bus_of_b) >= 0 || (a->to_switch && b->to_switch);
}

int shim_device_nvlink(const tccl_bus *gpus, int n, bool linked[SHIM_GPUS][SHIM_GPUS],
                       struct tccl_error *why)
{
    struct links links[SHIM_GPUS];
    int pairs = 0, found = 0;
    if (n > SHIM_GPUS)
        return tccl_fail(why, "too many GPUs");
    for (int i = 0; i < n; i++)
        if (get_links(gpus[i], &links[i], why))
            return -1;
    for (int a = 0; a < n; a++)
        for (int b = 0; b < n; b++) {
            bool both = a != b && (are_linked(&links[a], &links[b], gpus[b]) ||
                                   are_linked(&links[b], &links[a], gpus[a]));
            if (linked)
                linked[a][b] = both;
            pairs += a < b;
            found += a < b && both;
        }
    return found == 0 ? SHIM_NVLINK_NONE : found < pairs ? SHIM_NVLINK_SOME : SHIM_NVLINK_ALL;
}
