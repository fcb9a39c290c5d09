/* stand-in-nvml.c: libnvidia-ml.so.1 without a driver: tells of the GPUs of devices.h. Only what
 * NVML's public interface says of them; nothing can be changed through it. */
#include "devices.h"

#include <stdio.h>
#include <string.h>

/* Values and layouts of NVML's public interface. */
enum {
    NVML_SUCCESS = 0,
    NVML_ERROR_INVALID_ARGUMENT = 2,
    NVML_ERROR_NOT_SUPPORTED = 3,
    NVML_ERROR_NOT_FOUND = 6,
    NVML_ERROR_INSUFFICIENT_SIZE = 7,
};
enum { NVML_P2P_STATUS_OK = 0, NVML_P2P_STATUS_CHIPSET_NOT_SUPPORTED = 1 };
enum { NVML_NVLINK_CAP_P2P_SUPPORTED = 0, NVML_FI_DEV_NVLINK_GET_STATE = 165 };

typedef int nvmlReturn_t;
typedef struct rig_gpu *nvmlDevice_t;

struct pci_info {
    char busid_legacy[16];
    unsigned domain, bus, device, pci_device, pci_subsystem;
    char busid[32];
};

#define PUBLIC __attribute__((visibility("default")))

#define ANSWER PUBLIC nvmlReturn_t
#include "stand-in.h"

static int index_of(nvmlDevice_t device)
{
    return (int)(device - rig_devices()->gpus);
}

static nvmlReturn_t put_text(char *out, unsigned size, const char *text)
{
    int length = snprintf(out, size, "%s", text);
    return (unsigned)length < size ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_SIZE;
}

DOES(nvmlInit_v2, (void));
DOES(nvmlInit, (void));
DOES(nvmlShutdown, (void));

PUBLIC const char *nvmlErrorString(nvmlReturn_t result)
{
    switch (result) {
    case NVML_SUCCESS:
        return "The operation was successful";
    case NVML_ERROR_NOT_SUPPORTED:
        return "Not Supported";
    case NVML_ERROR_NOT_FOUND:
        return "Not Found";
    default:
        return "Invalid Argument";
    }
}

SAYS(nvmlSystemGetDriverVersion, (char *version, unsigned length),
     put_text(version, length, "580.0"));
DOES(nvmlDeviceGetCount_v2, (unsigned *count), *count = (unsigned)rig_devices()->n_gpus);
SAYS(nvmlDeviceGetCount, (unsigned *count), nvmlDeviceGetCount_v2(count));

PUBLIC nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *device)
{
    if (index >= (unsigned)rig_devices()->n_gpus)
        return NVML_ERROR_INVALID_ARGUMENT;
    *device = (nvmlDevice_t)&rig_devices()->gpus[index];
    return NVML_SUCCESS;
}

SAYS(nvmlDeviceGetHandleByIndex, (unsigned index, nvmlDevice_t *device),
     nvmlDeviceGetHandleByIndex_v2(index, device));

PUBLIC nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *busid, nvmlDevice_t *device)
{
    int index = rig_find_gpu(busid);
    return index < 0 ? NVML_ERROR_NOT_FOUND
                     : nvmlDeviceGetHandleByIndex_v2((unsigned)index, device);
}

SAYS(nvmlDeviceGetHandleByPciBusId, (const char *busid, nvmlDevice_t *device),
     nvmlDeviceGetHandleByPciBusId_v2(busid, device));
DOES(nvmlDeviceGetIndex, (nvmlDevice_t device, unsigned *index),
     *index = (unsigned)index_of(device));

PUBLIC nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned *minor)
{
    if (device->minor < 0)
        return NVML_ERROR_NOT_SUPPORTED;
    *minor = (unsigned)device->minor;
    return NVML_SUCCESS;
}

SAYS(nvmlDeviceGetName, (nvmlDevice_t device, char *name, unsigned length),
     put_text(name, length, device->name));
SAYS(nvmlDeviceGetUUID, (nvmlDevice_t device, char *uuid, unsigned length),
     put_text(uuid, length, device->uuid));
DOES(nvmlDeviceGetMigMode, (nvmlDevice_t device, unsigned *current, unsigned *pending),
     *current = *pending = device->mig);

PUBLIC nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, struct pci_info *info)
{
    memset(info, 0, sizeof(*info));
    info->domain = device->domain;
    info->bus = device->bus;
    info->device = device->slot;
    snprintf(info->busid_legacy, sizeof(info->busid_legacy), "%04X:%02X:%02X.0",
             device->domain & 0xffff, device->bus & 0xff, device->slot & 0xff);
    snprintf(info->busid, sizeof(info->busid), "%08X:%02X:%02X.0", device->domain, device->bus,
             device->slot);
    return NVML_SUCCESS;
}

/* A number in a file of the GPU's in /sys; 0: it has none. */
static double read_number(nvmlDevice_t device, const char *name)
{
    double number = 0;
    char path[128];
    FILE *file;
    snprintf(path, sizeof(path), "/sys/class/pci_bus/%04x:%02x/../../%04x:%02x:%02x.0/%s",
             device->domain, device->bus, device->domain, device->bus, device->slot, name);
    file = fopen(path, "re");
    if (!file)
        return 0;
    if (fscanf(file, "%lf", &number) != 1)
        number = 0;
    fclose(file);
    return number;
}

/* NCCL asks for these from 2.30.7 on, not for what the slot can. Here GPUs are never at rest. */
PUBLIC nvmlReturn_t nvmlDeviceGetCurrPcieLinkGeneration(nvmlDevice_t device, unsigned *generation)
{
    double rate = read_number(device, "max_link_speed"); /* GT/s */
    *generation = 1;
    for (double own = 2.5; own < rate; own = own == 5 ? 8 : own * 2)
        ++*generation;
    return rate > 0 ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

PUBLIC nvmlReturn_t nvmlDeviceGetCurrPcieLinkWidth(nvmlDevice_t device, unsigned *width)
{
    *width = (unsigned)read_number(device, "max_link_width");
    return *width > 0 ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

PUBLIC nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor)
{
    *major = device->sm / 10;
    *minor = device->sm % 10;
    return NVML_SUCCESS;
}

PUBLIC nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t a, nvmlDevice_t b, int what, int *status)
{
    *status = a == b || rig_devices()->p2p[index_of(a)][index_of(b)]
                  ? NVML_P2P_STATUS_OK
                  : NVML_P2P_STATUS_CHIPSET_NOT_SUPPORTED;
    return NVML_SUCCESS;
}

static bool has_link(nvmlDevice_t device, unsigned link)
{
    return link < (unsigned)device->n_nvlinks;
}

PUBLIC nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned link, int *active)
{
    *active = has_link(device, link);
    return *active ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

/* A switch is no device of the machine's /sys. */
PUBLIC nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t device, unsigned link,
                                                        struct pci_info *info)
{
    if (!has_link(device, link))
        return NVML_ERROR_NOT_SUPPORTED;
    if (device->nvlinks[link] != RIG_SWITCH)
        return nvmlDeviceGetPciInfo_v3((nvmlDevice_t)&rig_devices()->gpus[device->nvlinks[link]],
                                       info);
    memset(info, 0, sizeof(*info));
    strcpy(info->busid_legacy, "0000:FE:00.0");
    strcpy(info->busid, "00000000:FE:00.0");
    info->bus = 0xfe;
    return NVML_SUCCESS;
}

SAYS(nvmlDeviceGetNvLinkRemotePciInfo, (nvmlDevice_t device, unsigned link, struct pci_info *info),
     nvmlDeviceGetNvLinkRemotePciInfo_v2(device, link, info));

/* All links can P2P, and nothing else. */
PUBLIC nvmlReturn_t nvmlDeviceGetNvLinkCapability(nvmlDevice_t device, unsigned link,
                                                  int capability, unsigned *result)
{
    *result = capability == NVML_NVLINK_CAP_P2P_SUPPORTED;
    return has_link(device, link) ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

struct field_value {
    unsigned field, scope;
    long long time, latency;
    int type;
    nvmlReturn_t status;
    unsigned value;
    unsigned rest;
};

PUBLIC nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, void *values)
{
    struct field_value *list = values;
    for (int i = 0; i < count; i++) {
        bool known = list[i].field == NVML_FI_DEV_NVLINK_GET_STATE && device->n_nvlinks > 0;
        list[i].value = known && has_link(device, list[i].scope);
        list[i].status = known ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
    }
    return NVML_SUCCESS;
}
