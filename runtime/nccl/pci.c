/* pci.c: walks /sys as NCCL does, level by level, so that distances are what NCCL will find. */
#include "nccl/shim-nccl.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { BDF_LENGTH = 12 }; /* "0000:41:00.0" */

/* Reads a file below a folder, as shim_read_file. */
static long read_below(const char *folder, const char *file, char *content, size_t size)
{
    char path[PATH_MAX];
    struct shim_text text = {path, sizeof(path), 0, false};
    shim_text_add(&text, "%s%s", folder, file);
    errno = ENAMETOOLONG;
    return text.full ? -1 : shim_read_file(path, content, size);
}

const char *shim_path_name(enum shim_path path)
{
    static const char *const names[] = {"PIX", "PXB", "PHB", "SYS"};
    return names[path];
}

/* The last part of a path is the address of a PCI device, by NCCL's measure. */
static int last_bus(const char *path, tccl_bus *bus)
{
    const char *name = strrchr(path, '/');
    return name && strlen(name + 1) == BDF_LENGTH ? tccl_bus_parse(name + 1, bus) : -1;
}

static void cut(char *path)
{
    char *slash = strrchr(path, '/');
    if (slash)
        *slash = '\0';
}

/* NCCL goes two levels up at a time: a device hangs below a port (of a switch, or the root's), and
 * what it takes for the switch is what the port hangs below. Where one of the two levels is no
 * device, it is at the CPU, whose number is the NUMA node of the last device. */
static int climb(char *path, struct shim_pci_device *device)
{
    tccl_bus up[SHIM_PCI_DEPTH], bus;
    int depth = 0;
    for (;;) {
        int16_t node;
        /* numa_node of the device with that path: a number, or -1. */
        char value[16];
        uint64_t number;
        long length = read_below(path, "/numa_node", value, sizeof(value));
        if (length < 1)
            return -1;
        if (value[length - 1] == '\n')
            value[length - 1] = '\0';
        if (shim_number(value, 10, INT16_MAX, &number) == 0)
            node = (int16_t)number;
        else if (strcmp(value, "-1") == 0)
            node = -1;
        else
            return -1;
        device->node = node;
        cut(path);
        if (last_bus(path, &bus) != 0)
            break;
        cut(path);
        if (last_bus(path, &bus) != 0)
            break;
        if (depth == SHIM_PCI_DEPTH)
            return -1;
        up[depth++] = bus;
    }
    device->depth = (uint8_t)depth;
    for (int i = 0; i < depth; i++)
        device->above[i] = up[depth - 1 - i];
    return 0;
}

static int read_device(const char *root, tccl_bus bus, struct shim_pci_device *device,
                       struct tccl_error *why)
{
    char name[TCCL_BUS_TEXT], link[PATH_MAX], path[PATH_MAX];
    struct shim_text text = {link, sizeof(link), 0, false};
    tccl_bus_format(bus, name);
    if (strlen(name) != BDF_LENGTH)
        return tccl_fail(why, "the address %s is longer than NCCL reads", name);
    shim_text_add(&text, "%s/sys/class/pci_bus/%.7s/../../%s", root, name, name);
    device->bus = bus;
    if (text.full || !realpath(link, path) || climb(path, device) != 0)
        return tccl_fail(why, "the place of %s can't be read in /sys", name);
    return 0;
}

/* The value of an attribute in the first <cpu> of an XML text; "" if it has none. */
static void find_attribute(const char *cpu, const char *name, char *value, size_t size)
{
    const char *end = strchr(cpu, '>');
    size_t length = strlen(name);
    *value = '\0';
    for (const char *at = cpu; (at = strstr(at, name)) && end && at < end; at += length) {
        if (at[-1] != ' ' || at[length] != '=' || at[length + 1] != '"')
            continue;
        const char *start = at + length + 2, *quote = strchr(start, '"');
        if (quote && (size_t)(quote - start) < size) {
            memcpy(value, start, (size_t)(quote - start));
            value[quote - start] = '\0';
        }
        return;
    }
}

static int32_t find_number(const char *cpu, const char *name)
{
    char value[16];
    uint64_t number;
    find_attribute(cpu, name, value, sizeof(value));
    return shim_number(value, 10, INT32_MAX, &number) == 0 ? (int32_t)number : -1;
}

/* Where NCCL_TOPO_FILE is not set NCCL reads this file (of virtual machines, mostly) first. What it
 * says of the CPU is taken over; if it has devices, they are not where /sys has them. */
static int read_topology_file(const char *root, struct shim_pci *pci, struct tccl_error *why)
{
    static const char file[] = "/var/run/nvidia-topologyd/virtualTopology.xml";
    char content[8192];
    pci->family = pci->model = -1;
    pci->vendor[0] = '\0';
    long length = read_below(root, file, content, sizeof(content));
    if (length < 0 && errno == ENOENT)
        return 0;
    if (length < 0 || strstr(content, "<pci"))
        return tccl_fail(why, "NCCL reads its topology from %s, not from /sys", file);
    const char *cpu = strstr(content, "<cpu");
    if (cpu) {
        find_attribute(cpu, "vendor", pci->vendor, sizeof(pci->vendor));
        pci->family = find_number(cpu, "familyid");
        pci->model = find_number(cpu, "modelid");
    }
    return 0;
}

/* The CPU's maker as cpuid says it, which stands in /proc/cpuinfo, too. */
static int read_maker(const char *root, char *maker, size_t size)
{
    char content[2048];
    *maker = '\0';
    if (read_below(root, "/proc/cpuinfo", content, sizeof(content)) < 0 && errno != EFBIG)
        return -1;
    const char *at = strstr(content, "vendor_id");
    at = at ? strstr(at, ": ") : NULL;
    size_t length = at ? strcspn(at + 2, "\n") : 0;
    if (length > 0 && length < size) {
        memcpy(maker, at + 2, length);
        maker[length] = '\0';
    }
    return 0;
}

static int find_maker(const char *root, struct shim_pci *pci)
{
    static const char *const cautious[] = {"GenuineIntel", "CentaurHauls", "  Shanghai  "};
    char maker[16];
    if (pci->vendor[0])
        strcpy(maker, pci->vendor);
    else if (read_maker(root, maker, sizeof(maker)) != 0)
        return -1;
    pci->amd = strcmp(maker, "AuthenticAMD") == 0;
    pci->intel = strcmp(maker, "GenuineIntel") == 0;
    for (size_t i = 0; i < sizeof(cautious) / sizeof(*cautious); i++)
        if (strcmp(maker, cautious[i]) == 0)
            pci->cautious = true;
#ifdef __aarch64__
    pci->cautious = true;
#endif
    return 0;
}

/* "0-3,8": in place of a list that can't be read there are no nodes. */
static void read_nodes(const char *root, struct shim_pci *pci)
{
    char list[1024];
    if (read_below(root, "/sys/devices/system/node/online", list, sizeof(list)) < 0)
        return;
    list[strcspn(list, "\n")] = '\0';
    for (char *part = list, *next; part; part = next) {
        uint64_t first, last;
        next = strchr(part, ',');
        if (next)
            *next++ = '\0';
        char *dash = strchr(part, '-');
        if (dash)
            *dash++ = '\0';
        if (shim_number(part, 10, SHIM_PCI_NODES, &first) != 0 ||
            shim_number(dash ? dash : part, 10, SHIM_PCI_NODES, &last) != 0)
            return;
        for (uint64_t i = first; i <= last && i < SHIM_PCI_NODES; i++)
            pci->nodes[i / 64] |= UINT64_C(1) << i % 64;
    }
}

/* Its node is there, whatever the kernel's list says. */
static int add_device(const char *root, tccl_bus bus, struct shim_pci *pci, struct tccl_error *why)
{
    struct shim_pci_device *device = &pci->devices[pci->n];
    if (read_device(root, bus, device, why) != 0)
        return -1;
    if (device->node >= 0 && device->node < SHIM_PCI_NODES)
        pci->nodes[device->node / 64] |= UINT64_C(1) << device->node % 64;
    pci->n++;
    return 0;
}

int shim_pci_read(const char *root, const tccl_bus *devices, int n, struct shim_pci *pci,
                  struct tccl_error *why)
{
    char links[8];
    memset(pci, 0, sizeof(*pci));
    if (read_topology_file(root, pci, why) != 0)
        return -1;
    if (find_maker(root, pci) != 0)
        return tccl_fail(why, "/proc/cpuinfo can't be read");
    /* Broadcom's switches can be joined past the CPU, which NCCL follows. */
    if (read_below(root, "/sys/kernel/pci_switch_link/virtual_switch_links", links,
                   sizeof(links)) >= 0 ||
        errno != ENOENT)
        return tccl_fail(why, "this machine's PCI switches are joined with each other");
    for (int i = 0; i < n; i++) {
        if (shim_pci_find(pci, devices[i]) >= 0)
            continue;
        if (pci->n == SHIM_PCI_DEVICES)
            return tccl_fail(why, "too many PCI devices");
        if (add_device(root, devices[i], pci, why) != 0)
            return -1;
    }
    read_nodes(root, pci);
    return 0;
}

/* Of a class folder, whose entries link to their devices. */
static int add_nics(const char *folder, tccl_bus nics[static SHIM_PCI_NICS], int n)
{
    DIR *dir = opendir(folder);
    if (!dir)
        return n;
    for (struct dirent *entry; n < SHIM_PCI_NICS && (entry = readdir(dir));) {
        char link[PATH_MAX], path[PATH_MAX];
        tccl_bus bus;
        struct shim_text text = {link, sizeof(link), 0, false};
        shim_text_add(&text, "%s/%s/device", folder, entry->d_name);
        if (entry->d_name[0] != '.' && !text.full && realpath(link, path) &&
            last_bus(path, &bus) == 0 && shim_bus_find(nics, n, bus) < 0)
            nics[n++] = bus;
    }
    closedir(dir);
    return n;
}

void shim_pci_add_nics(struct shim_pci *pci)
{
    tccl_bus nics[SHIM_PCI_NICS];
    int n = add_nics("/sys/class/net", nics, add_nics("/sys/class/infiniband", nics, 0));
    for (int i = 0; i < n && pci->n < SHIM_PCI_DEVICES; i++)
        if (shim_pci_find(pci, nics[i]) < 0)
            add_device("", nics[i], pci, NULL);
}

int shim_pci_find(const struct shim_pci *pci, tccl_bus bus)
{
    for (int i = 0; i < pci->n; i++)
        if (pci->devices[i].bus == bus)
            return i;
    return -1;
}

bool shim_pci_has_node(const struct shim_pci *pci, int node)
{
    return node < 0 || (pci->nodes[node / 64] >> node % 64 & 1);
}

bool shim_pci_is_below(const struct shim_pci_device *device, tccl_bus bridge)
{
    for (int i = 0; i < device->depth; i++)
        if (device->above[i] == bridge)
            return true;
    return false;
}

/* The last ones of the last domain. */
tccl_bus shim_pci_unused(const struct shim_pci *pci, int i)
{
    enum { APART = 64 };
    tccl_bus bus = UINT64_C(0xffff) << 16 | (tccl_bus)(0xff - i) << 8 | 0x1f << 3;
    for (int at = 0; at < pci->n; at++)
        if (pci->devices[at].bus == bus || shim_pci_is_below(&pci->devices[at], bus)) {
            bus -= APART << 8;
            at = -1; /* all of them again */
        }
    return bus;
}

enum shim_path shim_pci_distance(const struct shim_pci_device *a, const struct shim_pci_device *b)
{
    int common = 0;
    while (common < a->depth && common < b->depth && a->above[common] == b->above[common])
        common++;
    if (common == 0)
        return a->node == b->node ? SHIM_PHB : SHIM_SYS;
    return a->depth == common && b->depth == common ? SHIM_PIX : SHIM_PXB;
}

enum shim_path shim_pci_path(const struct shim_pci *pci, tccl_bus a, tccl_bus b)
{
    int i = shim_pci_find(pci, a), j = shim_pci_find(pci, b);
    return i < 0 || j < 0 ? SHIM_SYS : shim_pci_distance(&pci->devices[i], &pci->devices[j]);
}
