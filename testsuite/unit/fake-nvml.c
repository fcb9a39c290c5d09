/* fake-nvml.c: stands in for NVIDIA's management library (libnvidia-ml.so.1) in tests, where there
 * is no such hardware. What it says comes from the environment:
 *   FAKE_NVML_GPUS   bus ids in the order of NVML's index: "0000:84:00.0,0000:03:00.0"
 *   FAKE_NVML_NAME   name of all GPUs (default "Fake GPU")
 *   FAKE_NVML_P2P    pairs of indexes that reach each other: "0-1,1-0"; "all"
 *   FAKE_NVML_MIG    indexes cut into instances: "0,2"
 *   FAKE_NVML_USERS  processes that compute: "INDEX-PID,INDEX-PID"
 *   FAKE_NVML_ALIVE  set: only those of them that are there
 *   FAKE_NVML_DENY   indexes that may not be asked (no permission)
 *   FAKE_NVML_LOST   indexes that fell off the bus
 *   FAKE_NVML_INIT   error number of the start; "hang": it never comes back
 *   FAKE_NVML_BUSY   indexes that are at work (performance state 0, else 8)
 *   FAKE_NVML_PM_OFF indexes without persistence mode
 * The minor of a GPU is 100 + its index, its compute capability 8.6. With FAKE_OLD it is a library
 * from before MIG and P2P. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#pragma GCC visibility push(default)

enum { MOST = 80, NO_PERMISSION = 4, INSUFFICIENT_SIZE = 7, NOT_FOUND = 6, LOST = 15 };

struct pci {
    char legacy[16];
    unsigned domain, bus, device, id, subsystem;
    char busid[32];
};

#define EXPORT(type, name, ...)                                                                    \
    type name(__VA_ARGS__);                                                                        \
    type name(__VA_ARGS__)

static const char *setting(const char *name)
{
    const char *text = getenv(name);
    return text ? text : "";
}

/* Is "index", or "index-other", one of the list? */
static int listed(const char *name, long index, long other)
{
    const char *at = setting(name);
    for (char *end; *at; at = *end ? end + 1 : end) {
        long first = strtol(at, &end, 10);
        long second = *end == '-' ? strtol(end + 1, &end, 10) : -1;
        if (end == at)
            return 0;
        if (first == index && second == other)
            return 1;
    }
    return 0;
}

static char devices[MOST]; /* their addresses are the handles */

static long index_of(const void *device)
{
    return (const char *)device - devices;
}

EXPORT(int, nvmlInit_v2, void)
{
    while (strcmp(setting("FAKE_NVML_INIT"), "hang") == 0)
        pause();
    return atoi(setting("FAKE_NVML_INIT"));
}

EXPORT(int, nvmlShutdown, void)
{
    return 0;
}

EXPORT(const char *, nvmlErrorString, int code)
{
    return code == NO_PERMISSION ? "Insufficient Permissions"
           : code == 18          ? "Driver/library version mismatch"
                                 : "Something\nelse";
}

EXPORT(int, nvmlSystemGetDriverVersion, char *text, unsigned size)
{
    snprintf(text, size, "999.1");
    return 0;
}

EXPORT(int, nvmlDeviceGetCount_v2, unsigned *count)
{
    *count = *setting("FAKE_NVML_GPUS") ? 1 : 0;
    for (const char *at = setting("FAKE_NVML_GPUS"); *at; at++)
        *count += *at == ',';
    return 0;
}

EXPORT(int, nvmlDeviceGetHandleByIndex_v2, unsigned index, void **device)
{
    if (index >= MOST)
        return NOT_FOUND;
    *device = &devices[index];
    return listed("FAKE_NVML_DENY", index, -1)   ? NO_PERMISSION
           : listed("FAKE_NVML_LOST", index, -1) ? LOST
                                                 : 0;
}

EXPORT(int, nvmlDeviceGetPciInfo_v3, void *device, struct pci *pci)
{
    const char *at = setting("FAKE_NVML_GPUS");
    for (long i = 0; i < index_of(device) && at; i++)
        at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL;
    memset(pci, 0, sizeof(*pci));
    return at && sscanf(at, "%x:%x:%x", &pci->domain, &pci->bus, &pci->device) == 3 ? 0 : NOT_FOUND;
}

EXPORT(int, nvmlDeviceGetName, void *device, char *text, unsigned size)
{
    snprintf(text, size, "%s", *setting("FAKE_NVML_NAME") ? setting("FAKE_NVML_NAME") : "Fake GPU");
    return 0;
}

/* Pairs INDEX-PID of this GPU, each record of the given size. */
static int write_processes(const void *device, unsigned *count, unsigned char *out, size_t size)
{
    unsigned room = *count;
    const char *at = setting("FAKE_NVML_USERS");
    *count = 0;
    for (char *end; *at; at = *end ? end + 1 : end) {
        long index = strtol(at, &end, 10);
        unsigned pid = *end == '-' ? (unsigned)strtol(end + 1, &end, 10) : 0;
        if (index != index_of(device) || (*setting("FAKE_NVML_ALIVE") && kill((pid_t)pid, 0) != 0))
            continue;
        if (*count == room)
            return INSUFFICIENT_SIZE;
        memset(out + *count * size, 0xff, size);
        memcpy(out + *count * size, &pid, sizeof(pid));
        ++*count;
    }
    return 0;
}

#ifdef FAKE_OLD

EXPORT(int, nvmlDeviceGetComputeRunningProcesses, void *device, unsigned *count, void *out)
{
    return write_processes(device, count, out, 16);
}

#else

EXPORT(int, nvmlDeviceGetComputeRunningProcesses_v3, void *device, unsigned *count, void *out)
{
    return write_processes(device, count, out, 24);
}

EXPORT(int, nvmlDeviceGetMinorNumber, void *device, unsigned *minor)
{
    *minor = 100 + (unsigned)index_of(device);
    return 0;
}

EXPORT(int, nvmlDeviceGetCudaComputeCapability, void *device, int *major, int *minor)
{
    *major = 8;
    *minor = 6;
    return 0;
}

EXPORT(int, nvmlDeviceGetMigMode, void *device, unsigned *now, unsigned *later)
{
    *now = *later = (unsigned)listed("FAKE_NVML_MIG", index_of(device), -1);
    return 0;
}

EXPORT(int, nvmlDeviceGetPersistenceMode, void *device, unsigned *mode)
{
    *mode = !listed("FAKE_NVML_PM_OFF", index_of(device), -1);
    return 0;
}

EXPORT(int, nvmlDeviceGetPerformanceState, void *device, unsigned *state)
{
    *state = listed("FAKE_NVML_BUSY", index_of(device), -1) ? 0 : 8;
    return 0;
}

/* Status 0: they reach each other; 1: the chipset can't. */
EXPORT(int, nvmlDeviceGetP2PStatus, void *from, void *to, int how, int *status)
{
    *status = strcmp(setting("FAKE_NVML_P2P"), "all") != 0 &&
              !listed("FAKE_NVML_P2P", index_of(from), index_of(to));
    return 0;
}

#endif
