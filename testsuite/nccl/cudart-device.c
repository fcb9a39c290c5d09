/* cudart-device.c: errors, versions and devices of the stand-in CUDA runtime. */
#include "cudart.h"

#include <cuda.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static __thread int current;
static __thread cudaError_t last;

static int visible[RIG_GPUS], n_visible;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* One entry of CUDA_VISIBLE_DEVICES: a number, or a UUID or a beginning of it. */
static int find_entry(const char *entry)
{
    const struct rig_devices *all = rig_devices();
    char *end;
    long number = strtol(entry, &end, 10);

    if (end != entry && *end == '\0')
        return number >= 0 && number < all->n_gpus ? (int)number : -1;
    for (int i = 0; i < all->n_gpus; i++)
        if (strlen(entry) > 4 && strncmp(all->gpus[i].uuid, entry, strlen(entry)) == 0)
            return i;
    return -1;
}

static bool add_visible(int gpu)
{
    for (int i = 0; i < n_visible; i++)
        if (visible[i] == gpu)
            return false;
    if (gpu < 0 || n_visible == RIG_GPUS)
        return false;
    visible[n_visible++] = gpu;
    return true;
}

/* What follows an entry that makes no sense is not seen; an entry twice: none at all. */
static void read_visible(void)
{
    const char *list = getenv("CUDA_VISIBLE_DEVICES");
    char *copy, *rest, *entry;

    if (!list) {
        for (int i = 0; i < rig_devices()->n_gpus; i++)
            add_visible(i);
        return;
    }
    copy = strdup(list);
    for (entry = copy ? strtok_r(copy, ",", &rest) : NULL; entry;
         entry = strtok_r(NULL, ",", &rest)) {
        int gpu = find_entry(entry);
        if (gpu < 0)
            break;
        if (!add_visible(gpu)) {
            n_visible = 0;
            break;
        }
    }
    free(copy);
}

int rig_visible(void)
{
    pthread_once(&once, read_visible);
    return n_visible;
}

int rig_ordinal(int ordinal)
{
    return ordinal >= 0 && ordinal < rig_visible() ? visible[ordinal] : -1;
}

int rig_current(void)
{
    return current;
}

cudaError_t rig_error(cudaError_t error)
{
    if (error != cudaSuccess)
        last = error;
    return error;
}

const char *cudaGetErrorName(cudaError_t error)
{
    static __thread char name[32];

    snprintf(name, sizeof(name), "cudaError %d", (int)error);
    return name;
}

const char *cudaGetErrorString(cudaError_t error)
{
    return error == cudaErrorNotSupported ? "operation not supported" : cudaGetErrorName(error);
}

cudaError_t cudaGetLastError(void)
{
    cudaError_t error = last;

    last = cudaSuccess;
    return error;
}

cudaError_t cudaPeekAtLastError(void)
{
    return last;
}

cudaError_t cudaDriverGetVersion(int *version)
{
    *version = rig_devices()->driver;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int *count)
{
    *count = rig_visible();
    return rig_error(*count > 0 ? cudaSuccess : cudaErrorNoDevice);
}

cudaError_t cudaSetDevice(int ordinal)
{
    if (rig_ordinal(ordinal) < 0)
        return rig_error(cudaErrorInvalidDevice);
    current = ordinal;
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int *ordinal)
{
    *ordinal = current;
    return rig_error(rig_visible() > 0 ? cudaSuccess : cudaErrorNoDevice);
}

cudaError_t cudaDeviceSynchronize(void)
{
    return cudaSuccess;
}

cudaError_t cudaDeviceSetLimit(enum cudaLimit limit, size_t value)
{
    (void)limit, (void)value;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char *busid, int length, int ordinal)
{
    int index = rig_ordinal(ordinal);

    if (index < 0)
        return rig_error(cudaErrorInvalidDevice);
    const struct rig_gpu *gpu = &rig_devices()->gpus[index];
    snprintf(busid, (size_t)length, "%04X:%02X:%02X.0", gpu->domain, gpu->bus, gpu->slot);
    return cudaSuccess;
}

cudaError_t cudaDeviceGetByPCIBusId(int *ordinal, const char *busid)
{
    int index = rig_find_gpu(busid);

    for (int i = 0; i < rig_visible(); i++)
        if (visible[i] == index) {
            *ordinal = i;
            return cudaSuccess;
        }
    return rig_error(cudaErrorInvalidDevice);
}

/* As /sys has it; -1: not known. */
static int numa_node(const struct rig_gpu *gpu)
{
    char path[96], text[16] = "-1";
    FILE *file;

    snprintf(path, sizeof(path), "/sys/bus/pci/devices/%04x:%02x:%02x.0/numa_node", gpu->domain,
             gpu->bus, gpu->slot);
    file = fopen(path, "re");
    if (file) {
        if (!fgets(text, sizeof(text), file))
            strcpy(text, "-1");
        fclose(file);
    }
    return atoi(text);
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int ordinal)
{
    int index = rig_ordinal(ordinal);

    if (index < 0)
        return rig_error(cudaErrorInvalidDevice);
    switch ((int)attribute) { /* the driver's have the same numbers */
    case cudaDevAttrComputeCapabilityMajor:
        *value = rig_devices()->gpus[index].sm / 10;
        break;
    case cudaDevAttrComputeCapabilityMinor:
        *value = rig_devices()->gpus[index].sm % 10;
        break;
    case cudaDevAttrMaxSharedMemoryPerBlock:
        *value = 48 << 10;
        break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
        *value = 96 << 10;
        break;
    case cudaDevAttrMultiProcessorCount:
        *value = 80;
        break;
    case cudaDevAttrWarpSize:
        *value = 32;
        break;
    case cudaDevAttrMaxThreadsPerBlock:
        *value = 1024;
        break;
    case cudaDevAttrUnifiedAddressing:
    case cudaDevAttrCanMapHostMemory:
        *value = 1;
        break;
    case cudaDevAttrGPUDirectRDMASupported:
        *value = rig_devices()->gpudirect;
        break;
    case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
        *value = rig_has_virtual();
        break;
    case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED:
        *value = rig_has_virtual() && rig_devices()->gpudirect;
        break;
    case CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID:
        *value = numa_node(&rig_devices()->gpus[index]);
        break;
    default: /* of what else there is, this GPU has nothing */
        *value = 0;
    }
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int ordinal)
{
    int index = rig_ordinal(ordinal);

    if (index < 0)
        return rig_error(cudaErrorInvalidDevice);
    const struct rig_gpu *gpu = &rig_devices()->gpus[index];
    memset(properties, 0, sizeof(*properties));
    memcpy(properties->name, gpu->name, sizeof(gpu->name));
    properties->major = gpu->sm / 10;
    properties->minor = gpu->sm % 10;
    properties->totalGlobalMem = (size_t)16 << 30;
    properties->multiProcessorCount = 80;
    properties->warpSize = 32;
    properties->unifiedAddressing = 1;
    properties->pciDomainID = (int)gpu->domain;
    properties->pciBusID = (int)gpu->bus;
    properties->pciDeviceID = (int)gpu->slot;
    return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int a, int b)
{
    int from = rig_ordinal(a), to = rig_ordinal(b);

    if (from < 0 || to < 0)
        return rig_error(cudaErrorInvalidDevice);
    *can = rig_devices()->p2p[from][to];
    return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags)
{
    int can = 0;

    (void)flags;
    if (cudaDeviceCanAccessPeer(&can, current, peer) != cudaSuccess || !can)
        return rig_error(cudaErrorPeerAccessUnsupported);
    return cudaSuccess;
}
