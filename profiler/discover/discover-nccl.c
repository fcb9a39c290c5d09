/* discover-nccl.c: the machine of a topology that NCCL wrote (NCCL_TOPO_DUMP_FILE). */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "discover/discover-parts.h"
#include "discover/sysfs.h"

enum { MAX_DEPTH = 32, VALUE = 64 };

/* Of the attributes that some element has here. */
enum attribute {
    NUMAID,
    ARCH,
    VENDOR,
    FAMILYID,
    MODELID,
    HOST_HASH,
    BUSID,
    CLASS,
    DEVICE,
    LINK_SPEED,
    LINK_WIDTH,
    DEV,
    SM,
    NAME,
    SPEED,
    GDR,
    ATTRIBUTES
};
static const char *const names[ATTRIBUTES] = {
    [NUMAID] = "numaid",
    [ARCH] = "arch",
    [VENDOR] = "vendor",
    [FAMILYID] = "familyid",
    [MODELID] = "modelid",
    [HOST_HASH] = "host_hash",
    [BUSID] = "busid",
    [CLASS] = "class",
    [DEVICE] = "device",
    [LINK_SPEED] = "link_speed",
    [LINK_WIDTH] = "link_width",
    [DEV] = "dev",
    [SM] = "sm",
    [NAME] = "name",
    [SPEED] = "speed",
    [GDR] = "gdr",
};

enum kind { OTHER, SYSTEM, CPU, PCI, GPU, NIC, NET, NVLINK };
static const char *const kinds[] = {"", "system", "cpu", "pci", "gpu", "nic", "net", "nvlink"};

struct element {
    enum kind kind;
    char values[ATTRIBUTES][VALUE]; /* "" where there is none */
    int index;                      /* a CPU's memory; of PCI: the switch that it is, -1 none yet */
};

struct reader {
    struct tccl_scene *scene;
    struct tccl_error *err;
    int depth;
    struct element open[MAX_DEPTH];
    bool gpu_gdr[TCCL_MAX_GPUS], nic_gdr[TCCL_MAX_NICS];
    int nic_dev[TCCL_MAX_NICS]; /* their numbers, by which they stand in the order of libibverbs */
    bool nvlinks;
    struct tccl_tally virtual_nics;
};

/* ---- XML ---- */

static enum kind kind_of(const char *name, size_t length)
{
    for (int i = SYSTEM; i <= NVLINK; i++)
        if (strlen(kinds[i]) == length && memcmp(kinds[i], name, length) == 0)
            return (enum kind)i;
    return OTHER;
}

/* Reads name="value" pairs up to '>'. Returns what follows, NULL where this is no XML; *closed: of
 * an element without content. */
static const char *read_attributes(const char *at, struct element *element, bool *closed)
{
    for (;;) {
        at += strspn(at, " \t\r\n");
        *closed = *at == '/';
        at += *closed;
        if (*at == '>')
            return at + 1;
        size_t length = strcspn(at, "=<>/ \t\r\n");
        char quote = at[length] == '=' ? at[length + 1] : '\0';
        if (length == 0 || *closed || (quote != '"' && quote != '\''))
            return NULL;
        const char *value = at + length + 2, *end = strchr(value, quote);
        if (!end)
            return NULL;
        char text[VALUE];
        snprintf(text, sizeof(text), "%.*s", end - value < VALUE ? (int)(end - value) : VALUE - 1,
                 value);
        for (int i = 0; i < ATTRIBUTES; i++)
            if (strlen(names[i]) == length && memcmp(names[i], at, length) == 0)
                tccl_sys_clean(element->values[i], VALUE, text);
        at = end + 1;
    }
}

/* ---- what the elements say ---- */

static int number(const struct element *element, enum attribute name, int none)
{
    const char *text = element->values[name];
    long value = text[0] ? strtol(text, NULL, 0) : none;
    return value > INT_MAX ? INT_MAX : value < INT_MIN ? INT_MIN : (int)value;
}

/* 0: the file leaves it to /sys. */
static double slot_gbps(const struct reader *reader, const struct element *pci)
{
    bool speed = pci->values[LINK_SPEED][0], width = pci->values[LINK_WIDTH][0];
    bool bridge = strncmp(pci->values[CLASS], "0x06", 4) == 0; /* /sys may not have it */
    if (reader->scene->in_part && !(bridge ? speed || width : speed && width))
        return 0;
    return tccl_slot_gbps(strtod(pci->values[LINK_SPEED], NULL), number(pci, LINK_WIDTH, 0));
}

static bool same(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

static int enter_cpu(struct reader *reader, struct element *cpu)
{
    struct tccl_machine *machine = reader->scene->machine;
    int node = number(cpu, NUMAID, 0), family = number(cpu, FAMILYID, 0);
    /* NCCL up to 2.30 writes the extension of a family, which is to be added, times 16. */
    bool odd = family >= 0x80 && family <= 0xfff;
    node = node < 0 ? 0 : node;
    bool says = cpu->values[ARCH][0] && cpu->values[VENDOR][0] && cpu->values[FAMILYID][0] &&
                cpu->values[MODELID][0];
    reader->scene->says_cpu |= says;
    if (says || !reader->scene->in_part)
        machine->cpu =
            tccl_cpu_of(cpu->values[ARCH], cpu->values[VENDOR],
                        odd ? (family & 15) + family / 16 : family, number(cpu, MODELID, 0));
    for (cpu->index = 0; cpu->index < machine->n_memories; cpu->index++)
        if (machine->nodes[cpu->index] == node)
            return 0;
    if (machine->n_memories == TCCL_MAX_MEMORIES || node > 4095)
        return tccl_fail(reader->err, "more than %d CPUs, or NUMA node %d: not supported",
                         TCCL_MAX_MEMORIES, node);
    machine->nodes[machine->n_memories++] = node;
    return 0;
}

/* The switch above the element at this depth, entered with those above it; -1 none. *numa: the
 * memory. Returns 0, or -1 with err. */
static int place(struct reader *reader, int depth, int *numa, int *parent)
{
    struct tccl_machine *machine = reader->scene->machine;
    *parent = -1;
    for (int i = 0; i < depth; i++) {
        struct element *above = &reader->open[i];
        char busid[TCCL_BUSID];
        tccl_bus bus;
        if (above->kind == CPU)
            *numa = above->index;
        if (above->kind != PCI)
            continue;
        if (above->index < 0) {
            if (tccl_bus_parse(above->values[BUSID], &bus) != 0)
                return tccl_fail(reader->err, "a PCI switch has the bus id \"%s\"",
                                 above->values[BUSID]);
            if (machine->n_switches == TCCL_MAX_SWITCHES)
                return tccl_fail(reader->err, "more than %d PCIe switches: not supported",
                                 TCCL_MAX_SWITCHES);
            tccl_bus_format(bus, busid);
            for (int k = 0; k < machine->n_switches; k++)
                if (same(machine->switches[k].name, busid))
                    return tccl_fail(reader->err, "PCI switch %s is there twice", busid);
            struct tccl_switch *entry = &machine->switches[machine->n_switches];
            *entry = (struct tccl_switch){
                .numa = *numa, .parent = *parent, .slot = slot_gbps(reader, above)};
            snprintf(entry->name, sizeof(entry->name), "%s", busid);
            above->index = machine->n_switches++;
        }
        *parent = above->index;
    }
    return 0;
}

/* The GPU that is the PCI device at this depth. */
static int enter_gpu(struct reader *reader, const struct element *gpu, int depth)
{
    const struct element *pci = &reader->open[depth];
    struct tccl_scene *scene = reader->scene;
    struct tccl_machine *machine = scene->machine;
    struct tccl_gpu entry = {.minor = -1, .slot = slot_gbps(reader, pci), .sm = number(gpu, SM, 0)};
    tccl_bus bus;
    if (machine->n_gpus == TCCL_MAX_GPUS)
        return tccl_fail(reader->err, "more than %d GPUs: that many are not supported",
                         TCCL_MAX_GPUS);
    if (tccl_bus_parse(pci->values[BUSID], &bus) != 0)
        return tccl_fail(reader->err, "a GPU has the bus id \"%s\"", pci->values[BUSID]);
    tccl_bus_format(bus, entry.busid);
    if (place(reader, depth, &entry.numa, &entry.parent) != 0)
        return -1;
    entry.sm = entry.sm < 0 || entry.sm > 999 ? 0 : entry.sm;
    /* "10de:2684": what NCCL writes of a model; some files leave it out. */
    const char *vendor = pci->values[VENDOR], *device = pci->values[DEVICE];
    snprintf(entry.model, TCCL_NAME, *device ? "%.8s:%.8s" : "GPU",
             vendor + (strncmp(vendor, "0x", 2) == 0 ? 2 : 0),
             device + (strncmp(device, "0x", 2) == 0 ? 2 : 0));
    int at = machine->n_gpus++;
    for (; at > 0 && tccl_busid_compare(entry.busid, machine->gpus[at - 1].busid) < 0; at--) {
        machine->gpus[at] = machine->gpus[at - 1];
        scene->found->gpu_index[at] = scene->found->gpu_index[at - 1];
        reader->gpu_gdr[at] = reader->gpu_gdr[at - 1];
    }
    if (at > 0 && same(entry.busid, machine->gpus[at - 1].busid))
        return tccl_fail(reader->err, "GPU %s is there twice", entry.busid);
    machine->gpus[at] = entry;
    scene->found->gpu_index[at] = number(gpu, DEV, -1);
    reader->gpu_gdr[at] = number(gpu, GDR, 1) != 0;
    return 0;
}

/* A port of a NIC: <pci><nic><net>. One without a PCI device is virtual. */
static int enter_net(struct reader *reader, const struct element *net)
{
    struct tccl_scene *scene = reader->scene;
    struct tccl_machine *machine = scene->machine;
    const struct element *pci = &reader->open[reader->depth - 2];
    struct tccl_nic entry = {.gbps = number(net, SPEED, 0) / 8e3, .slot = slot_gbps(reader, pci)};
    int at = machine->n_nics;
    tccl_bus bus;
    snprintf(entry.name, sizeof(entry.name), "%.63s", net->values[NAME]);
    if (pci->kind != PCI || tccl_bus_parse(pci->values[BUSID], &bus) != 0)
        return tccl_tally_add(&reader->virtual_nics, entry.name), 0;
    if (at == TCCL_MAX_NICS)
        return tccl_fail(reader->err, "more than %d NICs: that many are not supported",
                         TCCL_MAX_NICS);
    tccl_nic_rename(entry.name);
    tccl_bus_format(bus, entry.busid);
    if (tccl_machine_find_nic(machine, entry.name) >= 0)
        return tccl_fail(reader->err, "a second NIC \"%s\"", entry.name);
    if (place(reader, reader->depth - 2, &entry.numa, &entry.parent) != 0)
        return -1;
    bool infiniband = strncmp(pci->values[CLASS], "0x0207", 6) == 0;
    if (!(entry.gbps >= 0.001 && entry.gbps <= 10000))
        entry.gbps = 1.25; /* as NCCL: 10 Gb/s */
    const char *kind = infiniband ? "infiniband" : "ethernet";
    snprintf(entry.fabric, sizeof(entry.fabric), "%s", kind);
    scene->found->nic_up[at] = true;
    int dev = number(net, DEV, INT_MAX);
    for (; at > 0 && dev < reader->nic_dev[at - 1]; at--) {
        machine->nics[at] = machine->nics[at - 1];
        memcpy(scene->found->nic_kind[at], scene->found->nic_kind[at - 1],
               sizeof(scene->found->nic_kind[at]));
        reader->nic_dev[at] = reader->nic_dev[at - 1];
        reader->nic_gdr[at] = reader->nic_gdr[at - 1];
    }
    snprintf(scene->found->nic_kind[at], sizeof(scene->found->nic_kind[at]), "%s", kind);
    reader->nic_dev[at] = dev;
    reader->nic_gdr[at] = number(net, GDR, 1) != 0;
    machine->nics[at] = entry;
    machine->n_nics++;
    return 0;
}

static int enter(struct reader *reader, struct element *element)
{
    struct element *above = reader->depth > 0 ? &reader->open[reader->depth - 1] : NULL;
    element->index = -1;
    if (!above) {
        element->kind = element->kind == SYSTEM ? SYSTEM : OTHER;
        return 0;
    }
    /* Of a dump of several hosts the first one is read. */
    const char *first = reader->open[0].values[HOST_HASH], *own = element->values[HOST_HASH];
    bool foreign = element->kind == CPU &&
                   (above->kind != SYSTEM || (first[0] && own[0] && !same(first, own)));
    if (above->kind == OTHER || foreign)
        element->kind = OTHER;
    if (element->kind == CPU && !reader->open[0].values[HOST_HASH][0])
        memcpy(reader->open[0].values[HOST_HASH], element->values[HOST_HASH], VALUE);
    if (element->kind == CPU)
        return enter_cpu(reader, element);
    if (element->kind == GPU && above->kind == PCI)
        return enter_gpu(reader, element, reader->depth - 1);
    if (element->kind == NET && above->kind == NIC)
        return enter_net(reader, element);
    reader->nvlinks |= element->kind == NVLINK;
    return 0;
}

int tccl_nic_at(const struct tccl_machine *machine, const char *busid)
{
    for (int i = 0; i < machine->n_nics; i++)
        if (same(machine->nics[i].busid, busid))
            return i;
    return -1;
}

/* A NIC of which the place is said, and nothing else. */
static int enter_bare_nic(struct reader *reader, const struct element *pci)
{
    struct tccl_machine *machine = reader->scene->machine;
    struct tccl_nic entry = {.slot = slot_gbps(reader, pci)};
    tccl_bus bus;
    if (machine->n_nics == TCCL_MAX_NICS)
        return tccl_fail(reader->err, "more than %d NICs: that many are not supported",
                         TCCL_MAX_NICS);
    if (tccl_bus_parse(pci->values[BUSID], &bus) != 0)
        return tccl_fail(reader->err, "a NIC has the bus id \"%s\"", pci->values[BUSID]);
    tccl_bus_format(bus, entry.busid);
    if (tccl_nic_at(machine, entry.busid) >= 0)
        return 0; /* its ports are said, too */
    if (place(reader, reader->depth, &entry.numa, &entry.parent) != 0)
        return -1;
    machine->nics[machine->n_nics++] = entry;
    return 0;
}

/* Files that were written for virtual machines have GPUs' and NICs' PCI devices only. Returns 0, or
 * -1 with err. */
static int leave(struct reader *reader)
{
    const struct element *pci = &reader->open[reader->depth];
    const struct element unknown = {.kind = GPU};
    if (reader->scene->in_part && pci->kind == PCI && pci->index < 0 &&
        strncmp(pci->values[CLASS], "0x02", 4) == 0)
        return enter_bare_nic(reader, pci);
    if (pci->kind != PCI || strncmp(pci->values[CLASS], "0x03", 4) != 0 ||
        (pci->values[VENDOR][0] && !same(pci->values[VENDOR], "0x10de")) || pci->index >= 0 ||
        tccl_machine_find_gpu(reader->scene->machine, pci->values[BUSID]) >= 0)
        return 0;
    return enter_gpu(reader, &unknown, reader->depth);
}

/* Reads one element's beginning or end at '<'. Returns what follows, or NULL with err. */
static const char *read_tag(struct reader *reader, const char *at)
{
    size_t length = strcspn(at + 1, " \t\r\n/>");
    struct element *element = &reader->open[reader->depth];
    bool closed;
    if (at[1] == '/') {
        if (reader->depth-- == 0)
            return tccl_fail(reader->err, "has an end tag without its beginning"), NULL;
        return leave(reader) == 0 ? strchr(at, '>') : NULL;
    }
    if (reader->depth == MAX_DEPTH)
        return tccl_fail(reader->err, "has more than %d elements inside each other", MAX_DEPTH),
               NULL;
    memset(element, 0, sizeof(*element));
    element->kind = kind_of(at + 1, length);
    at = read_attributes(at + 1 + length, element, &closed);
    if (!at)
        return tccl_fail(reader->err, "is no XML that NCCL wrote"), NULL;
    if (enter(reader, element) != 0 || (closed && leave(reader) != 0))
        return NULL;
    reader->depth += !closed;
    return at;
}

static int read_all(struct reader *reader, const char *text)
{
    for (const char *at = strchr(text, '<'); at; at = strchr(at, '<')) {
        bool comment = strncmp(at, "<!--", 4) == 0;
        if (comment || at[1] == '?' || at[1] == '!')
            at = strstr(at, comment ? "-->" : ">");
        else
            at = read_tag(reader, at);
        if (!at)
            return tccl_fail(reader->err, "is not whole");
    }
    return reader->depth == 0 ? 0 : tccl_fail(reader->err, "is not whole");
}

bool tccl_is_nccl_topology(const char *text)
{
    const char *root = strstr(text, "<system");
    return root && strchr(" \t\r\n>", root[strlen("<system")]) && !strstr(text, "<topology");
}

int tccl_scene_nccl(struct tccl_scene *scene, const char *text, struct tccl_error *err)
{
    struct tccl_machine *machine = scene->machine;
    cleanup_free struct reader *reader = calloc(1, sizeof(*reader));
    if (!reader)
        return tccl_fail(err, "out of memory");
    reader->scene = scene;
    reader->err = err;
    if (read_all(reader, text) != 0)
        return -1;
    bool whole = machine->n_gpus > 0 && machine->n_memories > 0;
    bool placed = machine->n_memories > 0 || machine->n_gpus + machine->n_nics == 0;
    if (!whole && !(scene->in_part && placed))
        return tccl_fail(err, "names no %s: have NCCL write it (NCCL_TOPO_DUMP_FILE)",
                         machine->n_gpus == 0 ? "GPU" : "CPU");
    /* Memories stand in the order of their NUMA nodes; they were numbered as they came. */
    int place_of[TCCL_MAX_MEMORIES], nodes[TCCL_MAX_MEMORIES];
    for (int i = 0; i < machine->n_memories; i++) {
        place_of[i] = 0;
        for (int k = 0; k < machine->n_memories; k++)
            place_of[i] += machine->nodes[k] < machine->nodes[i];
        nodes[place_of[i]] = machine->nodes[i];
    }
    memcpy(machine->nodes, nodes, sizeof(*nodes) * (size_t)machine->n_memories);
    for (int i = 0; i < machine->n_gpus; i++)
        machine->gpus[i].numa = place_of[machine->gpus[i].numa];
    for (int i = 0; i < machine->n_nics; i++)
        machine->nics[i].numa = place_of[machine->nics[i].numa];
    for (int i = 0; i < machine->n_switches; i++)
        machine->switches[i].numa = place_of[machine->switches[i].numa];
    for (int i = 0; i < machine->n_memories; i++)
        scene->found->package_of[i] = -1;
    for (int nic = 0; nic < machine->n_nics; nic++)
        for (int gpu = 0; gpu < machine->n_gpus; gpu++)
            machine->gpudirect[nic][gpu] = reader->nic_gdr[nic] && reader->gpu_gdr[gpu];
    const struct tccl_tally *nics = &reader->virtual_nics;
    char others[TCCL_TALLY_TEXT];
    if (nics->count > 0)
        tccl_scene_note(reader->scene, "NIC %s%s: without a PCI device, left out", nics->first,
                        tccl_tally_others(nics, others));
    if (reader->nvlinks)
        tccl_scene_note(reader->scene, "there are NVLinks: what NCCL does by itself isn't "
                                       "foretold with these");
    return 0;
}
