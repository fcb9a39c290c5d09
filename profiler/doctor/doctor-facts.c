/* doctor-facts.c: reads what the rules are about: GPUs, NICs and the bridges above them from /sys,
 * NUMA nodes, and what this process is allowed. Every file is read in part only, and there are
 * never more than fit. */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "doctor/doctor.h"

enum {
    MOST_ENTRIES = 8192, /* of a folder of /sys */
    NVIDIA = 0x10de,
    VGA = 0x0300,
    ACCELERATOR = 0x0302,
    NETWORK = 0x02,
    PORTS = 4
};
#define DEVICES "/sys/bus/pci/devices"

static const double usual_gbps = 1.25; /* an interface that has no more is for management */

static unsigned hex(const char *root, const char *busid, const char *name)
{
    char text[32];
    tccl_sys_text(root, text, sizeof(text), DEVICES "/%s/%s", busid, name);
    return (unsigned)strtoul(text, NULL, 16);
}

static bool is_busid(const char *text)
{
    size_t length = strlen(text);
    if (length < 12 || length >= TCCL_BUSID)
        return false;
    for (size_t i = 0; i < length; i++)
        if (!isxdigit((unsigned char)text[i]) && text[i] != ':' && text[i] != '.')
            return false;
    return text[length - 2] == '.' && text[length - 5] == ':' && text[length - 8] == ':';
}

/* The first name in a folder of the device's: "infiniband", "net". */
static bool name_in(const char *root, const char *busid, const char *folder,
                    char name[static TCCL_NAME])
{
    char path[PATH_MAX];
    struct dirent *entry;
    snprintf(path, sizeof(path), "%s" DEVICES "/%s/%s", root, busid, folder);
    cleanup_dir DIR *names = opendir(path);
    name[0] = '\0';
    for (int i = 0; names && i < MOST_ENTRIES && (entry = readdir(names)); i++) {
        size_t length = strlen(entry->d_name);
        if (entry->d_name[0] != '.' && length < TCCL_NAME &&
            (!name[0] || strcmp(entry->d_name, name) < 0))
            memcpy(name, entry->d_name, length + 1);
    }
    return name[0] != '\0';
}

/* Is it a NIC that jobs may use: RDMA, or not slow, and no virtual function? */
static bool read_nic(const char *root, struct tccl_doctor_device *device)
{
    long speed = 0;
    if (tccl_sys_exists(root, DEVICES "/%s/physfn", device->busid))
        return false;
    device->rdma = name_in(root, device->busid, "infiniband", device->name);
    if (device->rdma) {
        char text[64];
        device->link = TCCL_LINK_UNKNOWN;
        for (int port = 1; port <= PORTS; port++) {
            enum tccl_sys_link link = tccl_sys_port_link(root, device->name, port);
            device->link = link > device->link ? link : device->link;
            if (tccl_sys_text(root, text, sizeof(text), "/sys/class/infiniband/%s/ports/%d/rate",
                              device->name, port) &&
                link != TCCL_LINK_DOWN)
                device->gbps += strtod(text, NULL) / 8;
        }
        tccl_sys_text(root, device->firmware, sizeof(device->firmware),
                      "/sys/class/infiniband/%s/fw_ver", device->name);
        return true;
    }
    if (!name_in(root, device->busid, "net", device->name))
        return false;
    device->link = tccl_sys_net_link(root, device->name);
    tccl_sys_number(root, &speed, "/sys/class/net/%s/speed", device->name);
    device->gbps = speed > 0 ? (double)speed / 8000 : 0;
    return device->gbps >= usual_gbps;
}

int tccl_doctor_find(const struct tccl_doctor_facts *facts, const char *busid)
{
    for (int i = 0; i < facts->n_devices; i++)
        if (strcmp(facts->devices[i].busid, busid) == 0)
            return i;
    return -1;
}

static void read_device(const char *root, struct tccl_doctor_device *device)
{
    char path[PATH_MAX], real[PATH_MAX];
    long numa = -1;
    device->vendor = hex(root, device->busid, "vendor");
    device->device = hex(root, device->busid, "device");
    tccl_sys_number(root, &numa, DEVICES "/%s/numa_node", device->busid);
    device->numa = numa >= 0 && numa <= 65535 ? (int)numa : -1;
    snprintf(path, sizeof(path), "%s" DEVICES "/%s/iommu_group", root, device->busid);
    const char *group = realpath(path, real) ? strrchr(real, '/') : NULL;
    if (group)
        tccl_sys_text(root, device->iommu, sizeof(device->iommu),
                      "/sys/kernel/iommu_groups%.40s/type", group);
    snprintf(path, sizeof(path), "%s" DEVICES "/%s/driver", root, device->busid);
    const char *driver = realpath(path, real) ? strrchr(real, '/') : NULL;
    device->passed_on = driver && strcmp(driver, "/vfio-pci") == 0;
    const char *busid = device->busid;
    char text[32];
    long lanes = 0, most = 0;
    if (tccl_sys_text(root, text, sizeof(text), DEVICES "/%s/current_link_speed", busid))
        device->gts = strtod(text, NULL);
    if (tccl_sys_text(root, text, sizeof(text), DEVICES "/%s/max_link_speed", busid))
        device->gts_most = strtod(text, NULL);
    tccl_sys_number(root, &lanes, DEVICES "/%s/current_link_width", busid);
    tccl_sys_number(root, &most, DEVICES "/%s/max_link_width", busid);
    /* 255 and 63 are what a device that says nothing has. */
    device->lanes = lanes > 0 && lanes <= 32 ? (int)lanes : 0;
    device->lanes_most = most > 0 && most <= 32 ? (int)most : 0;
    if (!(device->gts >= 2.5 && device->gts <= 256))
        device->gts = 0;
    if (!(device->gts_most >= 2.5 && device->gts_most <= 256))
        device->gts_most = 0;
    unsigned char config[TCCL_DOCTOR_CONFIG];
    snprintf(path, sizeof(path), "%s" DEVICES "/%s/config", root, busid);
    cleanup_file FILE *file = fopen(path, "re");
    tccl_doctor_config(config, file ? fread(config, 1, sizeof(config), file) : 0, device);
}

/* Returns its index, or -1: there is no room. */
static int add(struct tccl_doctor_facts *facts, const struct tccl_doctor_device *device)
{
    if (facts->n_devices == TCCL_DOCTOR_DEVICES) {
        facts->crowded = true;
        return -1;
    }
    facts->devices[facts->n_devices] = *device;
    return facts->n_devices++;
}

/* The bridges above a device are the folders that its own lies in: pci0000:40/BRIDGE/…/DEVICE. */
static int add_bridges(const char *root, struct tccl_doctor_facts *facts, const char *busid)
{
    char path[PATH_MAX], real[PATH_MAX], *rest, *part;
    int above = -1;
    snprintf(path, sizeof(path), "%s" DEVICES "/%s", root, busid);
    if (!realpath(path, real) || !(part = strstr(real, "/pci")))
        return -1;
    for (part = strtok_r(part, "/", &rest); part && strcmp(part, busid) != 0;
         part = strtok_r(NULL, "/", &rest)) {
        if (!is_busid(part))
            continue;
        int known = tccl_doctor_find(facts, part);
        if (known < 0) {
            struct tccl_doctor_device bridge = {
                .kind = TCCL_DOCTOR_BRIDGE, .number = -1, .above = above};
            strcpy(bridge.busid, part);
            read_device(root, &bridge);
            known = add(facts, &bridge);
        }
        if (known < 0)
            return -1;
        above = known;
    }
    return above;
}

static int compare(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void read_devices(const char *root, struct tccl_doctor_facts *facts)
{
    char path[PATH_MAX];
    cleanup_free char(*names)[TCCL_BUSID] = calloc(MOST_ENTRIES, sizeof(*names));
    size_t count = 0;
    struct dirent *entry;
    snprintf(path, sizeof(path), "%s" DEVICES, root);
    cleanup_dir DIR *folder = opendir(path);
    for (int i = 0; names && folder && i < MOST_ENTRIES && (entry = readdir(folder)); i++)
        if (is_busid(entry->d_name))
            strcpy(names[count++], entry->d_name);
    facts->pci = count > 0;
    if (count > 0)
        qsort(names, count, sizeof(*names), compare);
    for (size_t i = 0; i < count; i++) {
        struct tccl_doctor_device device = {.number = -1, .above = -1};
        unsigned class_ = hex(root, names[i], "class") >> 8;
        strcpy(device.busid, names[i]);
        if (hex(root, names[i], "vendor") == NVIDIA && (class_ == VGA || class_ == ACCELERATOR))
            device.kind = TCCL_DOCTOR_GPU;
        else if (class_ >> 8 == NETWORK && read_nic(root, &device))
            device.kind = TCCL_DOCTOR_NIC;
        else
            continue;
        read_device(root, &device);
        device.above = add_bridges(root, facts, names[i]);
        add(facts, &device);
    }
}

static bool is_used(const struct tccl_doctor_facts *facts, int node)
{
    for (int i = 0; i < facts->n_devices; i++)
        if (facts->devices[i].kind != TCCL_DOCTOR_BRIDGE && facts->devices[i].numa == node)
            return true;
    return false;
}

void tccl_doctor_read(const char *root, const struct tccl_nvml *nvml, const char *trouble,
                      struct tccl_doctor_facts *facts)
{
    char path[PATH_MAX];
    struct statvfs shm;
    struct rlimit lock;
    root = root ? root : "";
    memset(facts, 0, sizeof(*facts));
    facts->root = geteuid() == 0;
    facts->nvml_known = nvml;
    if (nvml)
        facts->nvml = *nvml;
    tccl_sys_clean(facts->nvml_trouble, sizeof(facts->nvml_trouble), trouble);
    read_devices(root, facts);
    /* The numbers of people's GPUs are those of machine.json: without those that NVML doesn't list.
     */
    int gpus = 0, nics = 0;
    for (int i = 0; i < facts->n_devices; i++) {
        struct tccl_doctor_device *device = &facts->devices[i];
        for (int n = 0; device->kind == TCCL_DOCTOR_GPU && n < facts->nvml.n_gpus; n++)
            if (strcmp(facts->nvml.gpus[n].busid, device->busid) == 0)
                device->nvml = &facts->nvml.gpus[n];
        if (device->kind == TCCL_DOCTOR_NIC)
            device->number = nics++;
        if (device->kind == TCCL_DOCTOR_GPU && (device->nvml || facts->nvml.n_gpus == 0))
            device->number = gpus++;
    }
    for (int node = 0; node < 4 * TCCL_DOCTOR_NODES && facts->n_nodes < TCCL_DOCTOR_NODES; node++) {
        long cpu, socket = -1;
        /* One without CPUs is memory that hangs elsewhere. */
        if (!tccl_sys_number(root, &cpu, "/sys/devices/system/node/node%d/cpulist", node))
            continue;
        tccl_sys_number(root, &socket,
                        "/sys/devices/system/cpu/cpu%ld/topology/physical_package_id", cpu);
        facts->nodes[facts->n_nodes++] = (struct tccl_doctor_node){
            .number = node, .socket = (int)socket, .used = is_used(facts, node)};
    }
    facts->gpudirect = tccl_sys_gpudirect(root);
    snprintf(path, sizeof(path), "%s/dev/shm", root);
    if (statvfs(path, &shm) != 0)
        facts->shm_gb = errno == ENOENT ? 0 : -1;
    else /* no blocks: a tmpfs without limit */
        facts->shm_gb = shm.f_blocks ? (double)shm.f_blocks * (double)shm.f_frsize / 1e9 : -1;
    if (getrlimit(RLIMIT_MEMLOCK, &lock) == 0)
        facts->memlock_gb = lock.rlim_cur == RLIM_INFINITY ? -1 : (double)lock.rlim_cur / 1e9;
}

/* ---- what follows from them ---- */

const char *tccl_doctor_link_name(enum tccl_doctor_link state)
{
    static const char *const names[] = {"unknown", "full", "idle", "degraded"};
    return names[state];
}

double tccl_doctor_carried(double gts, int lanes)
{
    return gts * lanes / 8 * (gts <= 5 ? 0.8 : 128.0 / 130);
}

static double lesser(double a, double b)
{
    return a > 0 && (b <= 0 || a < b) ? a : b;
}

bool tccl_doctor_is_below(const struct tccl_doctor_facts *facts, int device, int bridge)
{
    while (device >= 0 && device != bridge)
        device = facts->devices[device].above;
    return device == bridge;
}

bool tccl_doctor_leads_down(const struct tccl_doctor_facts *facts, int device)
{
    int depth = 0;
    for (int at = facts->devices[device].above; at >= 0; at = facts->devices[at].above)
        depth++;
    return facts->devices[device].kind == TCCL_DOCTOR_BRIDGE && depth % 2 == 0;
}

struct tccl_doctor_rate tccl_doctor_link(const struct tccl_doctor_facts *facts, int device)
{
    const struct tccl_doctor_device *below = &facts->devices[device];
    const struct tccl_doctor_device none = {0};
    const struct tccl_doctor_device *above =
        below->above >= 0 ? &facts->devices[below->above] : &none;
    struct tccl_doctor_rate rate = {
        .gts = below->gts,
        .lanes = below->lanes,
        .gts_most = lesser(below->gts_most, above->gts_most),
        .lanes_most = (int)lesser(below->lanes_most, above->lanes_most),
    };
    rate.gbps = tccl_doctor_carried(rate.gts, rate.lanes);
    rate.gbps_most = tccl_doctor_carried(rate.gts_most, rate.lanes_most);
    /* A GPU's link is slow while it has nothing to do. By NVML P0 and P2 are those of work. */
    bool works = below->nvml && below->nvml->pstate >= 0 && below->nvml->pstate <= 2 &&
                 below->nvml->n_users > 0;
    rate.rests = below->kind == TCCL_DOCTOR_GPU && !works && rate.gts < rate.gts_most;
    /* A virtual machine's bridges may claim less than the device behind them has. */
    if (rate.gbps <= 0 || rate.gbps_most <= 0 || rate.gts > rate.gts_most ||
        rate.lanes > rate.lanes_most)
        rate.state = TCCL_DOCTOR_LINK_UNKNOWN;
    else if (rate.lanes == rate.lanes_most && rate.gts == rate.gts_most)
        rate.state = TCCL_DOCTOR_LINK_FULL;
    else if (rate.lanes == rate.lanes_most && rate.rests)
        rate.state = TCCL_DOCTOR_LINK_IDLE;
    else
        rate.state = TCCL_DOCTOR_LINK_DEGRADED;
    return rate;
}

void tccl_doctor_path(const struct tccl_doctor_facts *facts, int device,
                      char text[static TCCL_DOCTOR_PATH])
{
    char rest[TCCL_DOCTOR_PATH];
    snprintf(text, TCCL_DOCTOR_PATH, "%s", facts->devices[device].busid);
    for (int at = facts->devices[device].above; at >= 0; at = facts->devices[at].above) {
        memcpy(rest, text, sizeof(rest));
        snprintf(text, TCCL_DOCTOR_PATH, "%s > %.160s", facts->devices[at].busid, rest);
    }
}

void tccl_doctor_name(const struct tccl_doctor_device *device, char text[static TCCL_NAME + 8])
{
    char clean[TCCL_NAME]; /* an interface's may have any bytes */
    tccl_sys_clean(clean, sizeof(clean), device->name);
    if (device->kind == TCCL_DOCTOR_GPU && device->number >= 0)
        snprintf(text, TCCL_NAME + 8, "GPU %d", device->number);
    else
        snprintf(text, TCCL_NAME + 8, "%s%s",
                 device->kind == TCCL_DOCTOR_GPU   ? "GPU"
                 : device->kind == TCCL_DOCTOR_NIC ? "NIC "
                                                   : "bridge",
                 device->kind == TCCL_DOCTOR_NIC ? clean : "");
}
