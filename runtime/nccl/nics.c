/* nics.c: NCCL's number of a NIC. */
#include "nccl/shim-nccl.h"

#include <dirent.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/loaded.h"
#include "chain/nccl-version.h"
#include "verify/verify.h"

enum { PORTS = 32 /* NCCL's most */, FILTERS = 32, SYSFS = 256 };

/* ---- NCCL_IB_HCA ---- */

struct filter {
    char name[SHIM_NAME];
    int port; /* -1: any */
};

struct filters {
    bool none_of, exact;
    int n;
    struct filter list[FILTERS];
};

/* "^=mlx5_0:1,mlx5_1": beginnings of names, or whole names with "="; all others with "^". */
static int read_filters(const char *text, struct filters *filters, struct tccl_error *why)
{
    memset(filters, 0, sizeof(*filters));
    if (!text)
        return 0;
    filters->none_of = *text == '^';
    text += filters->none_of;
    filters->exact = *text == '=';
    text += filters->exact;
    for (; *text && filters->n < FILTERS; text += strspn(text, ",")) {
        struct filter *filter = &filters->list[filters->n];
        size_t length = strcspn(text, ",:"), whole = strcspn(text, ",");
        const char *port = text[length] == ':' ? text + length + 1 : NULL;
        /* 2.30 also knows rails and planes. */
        if (length >= SHIM_NAME || (port && port[strspn(port, "0123456789")] != text[whole]) ||
            (port && port == text + whole))
            return tccl_fail(why, "NCCL_IB_HCA is not understood");
        memcpy(filter->name, text, length);
        filter->port = port ? atoi(port) : -1;
        filters->n += length > 0;
        text += whole;
    }
    return 0;
}

/* ---- ports, from /sys ---- */

struct port {
    char name[SHIM_NAME];
    int number;
    tccl_bus bus;
};

struct ports {
    int n;
    struct port list[PORTS];
};

static bool reads(const char *name, int port, const char *file, const char *text, bool *there)
{
    char path[SYSFS], content[64];
    snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/%d/%s", name, port, file);
    *there = shim_read_file(path, content, sizeof(content)) >= 0;
    return *there && strncmp(content, text, strlen(text)) == 0;
}

static int add_ports(const char *name, const struct filters *filters, struct ports *ports,
                     struct tccl_error *why)
{
    char path[SYSFS], target[PATH_MAX];
    bool there = true;
    if (strlen(name) >= SHIM_NAME || strchr(name, '/'))
        return tccl_fail(why, "a NIC has an invalid name");
    for (int number = 1; there && ports->n < PORTS; number++) {
        struct port *port = &ports->list[ports->n];
        bool up = reads(name, number, "state", "4:", &there), known;
        if (!up || !(reads(name, number, "link_layer", "InfiniBand", &known) ||
                     reads(name, number, "link_layer", "Ethernet", &known)))
            continue;
        bool listed = filters->n == 0;
        for (int i = 0; i < filters->n && !listed; i++) {
            const struct filter *filter = &filters->list[i];
            size_t length = filters->exact ? strlen(name) + 1 : strlen(filter->name);
            listed = strncmp(name, filter->name, length) == 0 &&
                     (filter->port == -1 || filter->port == number);
        }
        if (listed == filters->none_of)
            continue;
        strcpy(port->name, name);
        port->number = number;
        snprintf(path, sizeof(path), "/sys/class/infiniband/%s/device", name);
        if (!realpath(path, target) || tccl_bus_parse(strrchr(target, '/') + 1, &port->bus) != 0)
            return tccl_fail(why, "the NIC %s has no bus id", name);
        ports->n++;
    }
    return 0;
}

/* NCCL has read the list by the same library. */
static int list_ports(const struct filters *filters, struct ports *ports, struct tccl_error *why)
{
    void *verbs = shim_dlopen("libibverbs.so.1", RTLD_NOLOAD | RTLD_LAZY);
    void **(*get_list)(int *count) = NULL;
    void (*free_list)(void **list) = NULL;
    const char *(*get_name)(void *device) = NULL;
    void **list = NULL;
    int count = 0, status = 0;
    ports->n = 0;
    if (verbs) {
        *(void **)&get_list = dlsym(verbs, "ibv_get_device_list");
        *(void **)&free_list = dlsym(verbs, "ibv_free_device_list");
        *(void **)&get_name = dlsym(verbs, "ibv_get_device_name");
    }
    if (get_list && free_list && get_name)
        list = get_list(&count);
    if (!list)
        status = tccl_fail(why, "libibverbs has listed no NICs in this process");
    for (int i = 0; i < count && status == 0; i++)
        status = add_ports(get_name(list[i]), filters, ports, why);
    if (list)
        free_list(list);
    if (verbs)
        shim_dlclose(verbs);
    return status;
}

/* ---- doubts ---- */

static int refuse_settings(struct tccl_error *why)
{
    /* And what each of them may be: as without it. */
    static const char *const names[][2] = {{"NCCL_NET", "IB"},
                                           {"NCCL_NET_PLUGIN", "none"},
                                           {"NCCL_NET_MERGE_LEVEL", "LOC"},
                                           {"NCCL_NET_FORCE_MERGE", ""},
                                           {"NCCL_IB_DISABLE", "0"},
                                           {"NCCL_IB_DEVICE_PCI_ORDER", "1"}};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *value = shim_env(names[i][0]);
        if (value && strcasecmp(value, names[i][1]) != 0)
            return tccl_fail(why, "%s is set: NCCL's numbering of NICs is unknown", names[i][0]);
    }
    if (shim_loaded("libnccl-net"))
        return tccl_fail(why, "NCCL has loaded a net plugin");
    return 0;
}

/* From ConnectX-8 on a NIC may be there twice (Data Direct), under other names. */
static int refuse_kind(const struct port *port, struct tccl_error *why)
{
    char path[SYSFS], content[32] = "";
    snprintf(path, sizeof(path), "/sys/class/infiniband/%s/device/vendor", port->name);
    shim_read_file(path, content, sizeof(content));
    if (strncmp(content, "0x15b3", 6) != 0)
        return 0;
    snprintf(path, sizeof(path), "/sys/class/infiniband/%s/device/device", port->name);
    if (shim_read_file(path, content, sizeof(content)) < 0 || strtol(content, NULL, 16) < 0x1023)
        return 0;
    return tccl_fail(why, "the NIC %s may have Data Direct", port->name);
}

/* NCCL makes one of what sits in one PCI device. */
static int refuse_doubts(const struct ports *ports, uint32_t version, struct tccl_error *why)
{
    for (int a = 0; a < ports->n; a++) {
        if (tccl_release_does(version, TCCL_FACT_DATA_DIRECT) && refuse_kind(&ports->list[a], why))
            return -1;
        for (int b = 0; b < a; b++)
            if (ports->list[a].bus >> 3 == ports->list[b].bus >> 3)
                return tccl_fail(why, "NCCL merges the ports of the NIC %s", ports->list[b].name);
    }
    return 0;
}

/* ---- the number ---- */

/* count: of all NICs. */
static int scan(const char *name, uint32_t version, int *count, struct tccl_error *why)
{
    struct filters filters;
    struct ports ports;
    if (!tccl_release_of(version))
        return tccl_fail(why, "this NCCL version's numbering of NICs is unknown");
    if (refuse_settings(why) || read_filters(shim_env("NCCL_IB_HCA"), &filters, why) ||
        list_ports(&filters, &ports, why) || refuse_doubts(&ports, version, why))
        return -1;
    /* In the order of PCI addresses; equal ones stay as they are. */
    for (int i = 1; tccl_release_does(version, TCCL_FACT_NICS_BY_BUS) && i < ports.n; i++)
        for (int k = i; k > 0 && ports.list[k - 1].bus > ports.list[k].bus; k--) {
            struct port moved = ports.list[k];
            ports.list[k] = ports.list[k - 1];
            ports.list[k - 1] = moved;
        }
    *count = ports.n;
    int found = -1;
    for (int i = 0; i < ports.n; i++) {
        if (strcmp(ports.list[i].name, name) != 0)
            continue;
        if (found >= 0)
            return tccl_fail(why, "the NIC %s has several ports", name);
        found = i;
    }
    return found >= 0 ? found : tccl_fail(why, "NCCL leaves out the NIC %s", name);
}

int shim_nic_number(const char *name, const struct shim_nccl *nccl, struct tccl_error *why)
{
    int count = 0, said = -1;
    /* They have the numbers behind all real ones, in the same order. NCCL makes them while it reads
     * the topology, so its log does not have them yet. */
    bool are_virtual = tccl_release_does(nccl->version, TCCL_FACT_VIRTUAL_NICS);
    if (shim_nccllog_there()) {
        shim_nccllog_read();
        said = shim_nccllog_nic(name, &count, why);
        if (said < 0 || !are_virtual)
            return said;
    }
    int said_count = count, number = scan(name, nccl->version, &count, why);
    if (number < 0 || !are_virtual)
        return number;
    if (said >= 0 && (said != number || said_count != count))
        return tccl_fail(why, "NCCL's numbers of NICs are not as expected");
    return count + number;
}

int shim_nics_there(void)
{
    DIR *folder = opendir("/sys/class/infiniband");
    int n = 0;
    for (const struct dirent *entry; folder && (entry = readdir(folder));)
        n += entry->d_name[0] != '.';
    if (folder)
        closedir(folder);
    return n;
}

uint64_t shim_nics_settings(void)
{
    static const char *const names[] = {
        "NCCL_IB_HCA",         "NCCL_IB_MERGE_NICS", "NCCL_IB_DEVICE_PCI_ORDER",
        "NCCL_IB_DATA_DIRECT", "NCCL_NET",           "NCCL_NET_PLUGIN"};
    uint64_t hash = SHIM_HASH_START;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *value = shim_env(names[i]);
        hash = shim_hash(hash, value ? value : "", value ? strlen(value) + 1 : 0);
        hash = shim_hash(hash, "/", 1);
    }
    return hash;
}
