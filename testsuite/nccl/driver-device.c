/* driver-device.c: errors, versions and devices of the stand-in driver. */
#include "driver.h"

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

CUresult rig_token(void *out)
{
    *(void **)out = malloc(1);
    return *(void **)out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult rig_refused(const char *what)
{
    rig_refuse(what);
    return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuGetErrorName(CUresult error, const char **text)
{
    static __thread char name[32];
    snprintf(name, sizeof(name), "CUresult %d", (int)error);
    *text = name;
    return CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult error, const char **text)
{
    CUresult result = cuGetErrorName(error, text);
    if (error == CUDA_ERROR_NOT_SUPPORTED)
        *text = "operation not supported";
    return result;
}

SAYS(cuInit, (unsigned flags), rig_visible() > 0 ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE);
DOES(cuDriverGetVersion, (int *version), *version = rig_devices()->driver);
DOES(cuDeviceGetCount, (int *count), *count = rig_visible());

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    *device = ordinal;
    return rig_ordinal(ordinal) < 0 ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int length, CUdevice device)
{
    int gpu = rig_ordinal(device);
    if (gpu < 0)
        return CUDA_ERROR_INVALID_DEVICE;
    snprintf(name, (size_t)length, "%s", rig_devices()->gpus[gpu].name);
    return CUDA_SUCCESS;
}

/* The hexadecimal digits of "GPU-01234567-89ab-…". */
CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device)
{
    int gpu = rig_ordinal(device), byte = 0;
    if (gpu < 0)
        return CUDA_ERROR_INVALID_DEVICE;
    memset(uuid, 0, sizeof(*uuid));
    for (const char *at = strchr(rig_devices()->gpus[gpu].uuid, '-'); at && byte < 16; byte++) {
        unsigned value = 0;
        at += *at == '-';
        if (sscanf(at, "%2x", &value) != 1)
            break;
        uuid->bytes[byte] = (char)value;
        at += 2;
    }
    return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem(size_t *size, CUdevice device)
{
    *size = (size_t)16 << 30;
    return rig_ordinal(device) < 0 ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char *busid, int length, CUdevice device)
{
    int index = rig_ordinal(device);
    if (index < 0)
        return CUDA_ERROR_INVALID_DEVICE;
    const struct rig_gpu *gpu = &rig_devices()->gpus[index];
    snprintf(busid, (size_t)length, "%04X:%02X:%02X.0", gpu->domain, gpu->bus, gpu->slot);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetByPCIBusId(CUdevice *device, const char *busid)
{
    int index = rig_find_gpu(busid);
    for (int i = 0; i < rig_visible(); i++)
        if (visible[i] == index) {
            *device = i;
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_INVALID_DEVICE;
}

int rig_numa_node(int number)
{
    const struct rig_gpu *gpu = &rig_devices()->gpus[number];
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

/* What all GPUs have here; of what else there is, they have nothing. */
static const struct {
    CUdevice_attribute attribute;
    int value;
} same[] = {
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, INT_MAX},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 48 << 10},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 96 << 10},
    {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 80},
    {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
    {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1},
    {CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1},
};

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    int index = rig_ordinal(device);
    if (index < 0)
        return CUDA_ERROR_INVALID_DEVICE;
    const struct rig_gpu *gpu = &rig_devices()->gpus[index];
    *value = 0;
    for (size_t i = 0; i < sizeof(same) / sizeof(*same); i++)
        if (same[i].attribute == attribute)
            *value = same[i].value;
    switch ((int)attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
        *value = gpu->sm / 10;
        break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
        *value = gpu->sm % 10;
        break;
    case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED:
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
        *value = rig_numa_node(rig_ordinal(device));
        break;
    case CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID:
        *value = (int)gpu->domain;
        break;
    case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
        *value = (int)gpu->bus;
        break;
    case CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID:
        *value = (int)gpu->slot;
        break;
    }
    return CUDA_SUCCESS;
}

CUresult cuDeviceCanAccessPeer(int *can, CUdevice a, CUdevice b)
{
    int from = rig_ordinal(a), to = rig_ordinal(b);
    if (from < 0 || to < 0)
        return CUDA_ERROR_INVALID_DEVICE;
    *can = rig_devices()->p2p[from][to];
    return CUDA_SUCCESS;
}
