/* nvml.c: what NVIDIA's management library says of the GPUs. Its binary interface is written down
 * here as far as it is used (NVML API reference, sections "Device Queries" and "Struct Reference");
 * functions that an older library doesn't have leave their values unknown. */
#include "discover/discover.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "discover/sysfs.h"

enum {
    SUCCESS = 0,
    NO_PERMISSION = 4,
    DRIVER_NOT_LOADED = 9,
    VERSION_MISMATCH = 18,
    P2P_READ = 0, /* what nvmlDeviceGetP2PStatus is asked for */
    P2P_WRITE = 1,
    P2P_OK = 0,
};

typedef void *device;

struct pci_info { /* nvmlPciInfo_t */
    char bus_id_legacy[16];
    unsigned domain, bus, device, device_id, subsystem_id;
    char bus_id[32];
};

/* nvmlProcessInfo_t of the plain function has only the first two members, that of _v2 and _v3 all
 * four. (Some libraries of 2023 write 8 bytes more: there is room for them.) */
struct process_v1 {
    unsigned pid;
    unsigned long long memory;
};
struct process_v2 {
    unsigned pid;
    unsigned long long memory;
    unsigned gpu_instance, compute_instance;
};
enum { PROCESS_BYTES = 40, MOST_PROCESSES = 4096 };

/* The library's functions, by the names that they have here. */
#define CALLS(X)                                                                                   \
    X(init, "nvmlInit_v2", void)                                                                   \
    X(shutdown, "nvmlShutdown", void)                                                              \
    X(driver_version, "nvmlSystemGetDriverVersion", char *, unsigned)                              \
    X(count, "nvmlDeviceGetCount_v2", unsigned *)                                                  \
    X(by_index, "nvmlDeviceGetHandleByIndex_v2", unsigned, device *)                               \
    X(pci, "nvmlDeviceGetPciInfo_v3", device, struct pci_info *)                                   \
    X(name, "nvmlDeviceGetName", device, char *, unsigned)                                         \
    X(uuid, "nvmlDeviceGetUUID", device, char *, unsigned)                                         \
    X(minor, "nvmlDeviceGetMinorNumber", device, unsigned *)                                       \
    X(capability, "nvmlDeviceGetCudaComputeCapability", device, int *, int *)                      \
    X(mig, "nvmlDeviceGetMigMode", device, unsigned *, unsigned *)                                 \
    X(persistence, "nvmlDeviceGetPersistenceMode", device, unsigned *)                             \
    X(pstate, "nvmlDeviceGetPerformanceState", device, unsigned *)                                 \
    X(p2p, "nvmlDeviceGetP2PStatus", device, device, int, int *)

struct library {
    void *handle;
#define MEMBER(member, name, ...) int (*member)(__VA_ARGS__);
    CALLS(MEMBER)
#undef MEMBER
    const char *(*error_string)(int);
    int (*processes)(device, unsigned *, void *);
    size_t process_size; /* of what processes writes */
};

/* A GPU while all are read. */
struct entry {
    device device;
    uint64_t place; /* bus id as a number */
    struct tccl_nvml_gpu gpu;
};

static void find(void *handle, const char *name, void *function)
{
    void *symbol = dlsym(handle, name);
    memcpy(function, &symbol, sizeof(symbol));
}

/* Returns false where a function is missing without which nothing can be said. */
static bool find_all(struct library *library)
{
    static const struct {
        const char *name;
        size_t size;
    } forms[] = {{"nvmlDeviceGetComputeRunningProcesses_v3", sizeof(struct process_v2)},
                 {"nvmlDeviceGetComputeRunningProcesses_v2", sizeof(struct process_v2)},
                 {"nvmlDeviceGetComputeRunningProcesses", sizeof(struct process_v1)}};
    void *handle = library->handle;
#define FIND(member, name, ...) find(handle, name, &library->member);
    CALLS(FIND)
#undef FIND
    find(handle, "nvmlErrorString", &library->error_string);
    if (!library->pci) /* ends before the longer bus id, which isn't read */
        find(handle, "nvmlDeviceGetPciInfo_v2", &library->pci);
    for (size_t i = 0; i < sizeof(forms) / sizeof(*forms) && !library->processes; i++) {
        find(handle, forms[i].name, &library->processes);
        library->process_size = forms[i].size;
    }
    return library->init && library->shutdown && library->count && library->by_index &&
           library->pci;
}

static int fail(const struct library *library, const char *what, int code, struct tccl_error *err)
{
    const char *why = library->error_string ? library->error_string(code) : NULL;
    char text[96];
    const char *now = code == NO_PERMISSION ? ": run this as root and outside of jobs"
                      : code == VERSION_MISMATCH
                          ? ": the driver was updated; reload it or restart this machine"
                      : code == DRIVER_NOT_LOADED ? ": load it (modprobe nvidia)"
                                                  : "";
    tccl_sys_clean(text, sizeof(text), why);
    return tccl_fail(err, "NVML: %s: %s (error %d)%s", what, text[0] ? text : "failed", code, now);
}

/* Of many the first ones are kept. NVML lists all or none, and the room is for more than ever run:
 * a GPU that is crowded must not look free. */
static void read_users(const struct library *library, device device, struct tccl_nvml_gpu *gpu)
{
    cleanup_free unsigned char *room = calloc(MOST_PROCESSES, PROCESS_BYTES);
    unsigned count = MOST_PROCESSES, pid;
    if (!room || !library->processes || library->processes(device, &count, room) != SUCCESS)
        return;
    for (unsigned i = 0; i < count && gpu->n_users < TCCL_NVML_USERS; i++) {
        memcpy(&pid, room + i * library->process_size, sizeof(pid));
        if (pid == 0 || pid > INT32_MAX || pid == (unsigned)getpid())
            continue;
        if (gpu->n_users == 0)
            tccl_sys_text(NULL, gpu->users_of, sizeof(gpu->users_of), "/proc/%u/comm", pid);
        gpu->users[gpu->n_users++] = (int)pid;
    }
}

static void read_details(const struct library *library, device device, struct tccl_nvml_gpu *gpu)
{
    char name[128] = "";
    unsigned number, pending;
    int major, minor;
    if (library->name && library->name(device, name, sizeof(name)) == SUCCESS) {
        name[sizeof(name) - 1] = '\0';
        tccl_sys_clean(gpu->name, sizeof(gpu->name), name);
    }
    if (library->uuid && library->uuid(device, name, sizeof(name)) == SUCCESS) {
        name[sizeof(name) - 1] = '\0';
        tccl_sys_clean(gpu->uuid, sizeof(gpu->uuid), name);
    }
    if (library->minor && library->minor(device, &number) == SUCCESS && number <= 9999)
        gpu->minor = (int)number;
    if (library->capability && library->capability(device, &major, &minor) == SUCCESS &&
        major > 0 && major < 99 && minor >= 0 && minor < 10)
        gpu->sm = 10 * major + minor;
    if (library->mig && library->mig(device, &number, &pending) == SUCCESS)
        gpu->mig = number == 1;
    if (library->persistence && library->persistence(device, &number) == SUCCESS && number <= 1)
        gpu->persistence = (int)number;
    if (library->pstate && library->pstate(device, &number) == SUCCESS && number <= 15)
        gpu->pstate = (int)number; /* 32: unknown */
    read_users(library, device, gpu);
}

/* A GPU that fell off the bus, or that doesn't answer, is no error of the others. Returns 0 with
 * *entry; 1: left out; -1 with err. */
static int read_gpu(const struct library *library, unsigned index, struct entry *entry,
                    struct tccl_error *err)
{
    struct pci_info pci = {0};
    char what[32];
    *entry =
        (struct entry){.gpu = {.index = (int)index, .minor = -1, .persistence = -1, .pstate = -1}};
    snprintf(what, sizeof(what), "GPU with NVML index %u", index);
    int code = library->by_index(index, &entry->device);
    if (code == SUCCESS)
        code = library->pci(entry->device, &pci);
    if (code == NO_PERMISSION)
        return fail(library, what, code, err);
    if (code != SUCCESS)
        return 1;
    snprintf(entry->gpu.busid, sizeof(entry->gpu.busid), "%04x:%02x:%02x.0", pci.domain,
             pci.bus & 255, pci.device & 31);
    entry->place = (uint64_t)pci.domain << 16 | (pci.bus & 255) << 8 | (pci.device & 31);
    read_details(library, entry->device, &entry->gpu);
    return 0;
}

static int compare(const void *a, const void *b)
{
    uint64_t first = ((const struct entry *)a)->place, second = ((const struct entry *)b)->place;
    return (first > second) - (first < second);
}

static bool reaches(const struct library *library, device from, device to, int how)
{
    int status = -1;
    return library->p2p(from, to, how, &status) == SUCCESS && status == P2P_OK;
}

static int read_all(const struct library *library, struct tccl_nvml *nvml, struct tccl_error *err)
{
    struct entry entries[TCCL_NVML_GPUS];
    unsigned count = 0;
    char driver[96] = "";
    if (library->driver_version && library->driver_version(driver, sizeof(driver)) == SUCCESS)
        tccl_sys_clean(nvml->driver, sizeof(nvml->driver), driver);
    int code = library->count(&count);
    if (code != SUCCESS)
        return fail(library, "number of GPUs", code, err);
    if (count > TCCL_NVML_GPUS)
        return tccl_fail(err, "NVML: %u GPUs: at most %d are supported", count, TCCL_NVML_GPUS);
    for (unsigned i = 0; i < count; i++) {
        int rc = read_gpu(library, i, &entries[nvml->n_gpus], err);
        if (rc < 0)
            return -1;
        nvml->n_gpus += rc == 0;
    }
    qsort(entries, (size_t)nvml->n_gpus, sizeof(*entries), compare);
    for (int i = 0; i < nvml->n_gpus; i++)
        nvml->gpus[i] = entries[i].gpu;
    nvml->knows_p2p = library->p2p;
    for (int a = 0; library->p2p && a < nvml->n_gpus; a++)
        for (int b = 0; b < nvml->n_gpus; b++)
            if (a != b) {
                nvml->read[a][b] = reaches(library, entries[a].device, entries[b].device, P2P_READ);
                nvml->write[a][b] =
                    reaches(library, entries[a].device, entries[b].device, P2P_WRITE);
            }
    return 0;
}

int tccl_nvml_read(struct tccl_nvml *nvml, struct tccl_error *err)
{
    struct library library = {.handle = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)};
    memset(nvml, 0, sizeof(*nvml));
    if (!library.handle)
        return 1;
    int rc = 0, code = SUCCESS;
    if (!find_all(&library))
        rc = tccl_fail(err, "NVML: libnvidia-ml.so.1 lacks functions: it is too old, or of "
                            "something else");
    else if ((code = library.init()) != SUCCESS)
        rc = fail(&library, "can't start", code, err);
    if (rc == 0) {
        rc = read_all(&library, nvml, err);
        library.shutdown();
    }
    dlclose(library.handle);
    return rc;
}
