/* topo-file.c: writes topology files: CPUs, bridges, GPUs and NICs. That of islands has what is
 * moved, and NCCL adds the rest as it is. That of a layout has nominal rates, too.
 *
 * Each rank detects only its own GPU, and NCCL joins the ranks' trees by equal attributes, in the
 * order of the ranks. What all ranks know comes first: in a layout a bridge above each GPU,
 * invented here, which NCCL is told to keep where it has found no device below it. CPUs must be
 * described in full, as each rank would complete only its own. */
#include <string.h>

#include "chain/tree-rate.h"
#include "nccl/shim-nccl.h"

enum {
    BRIDGE = 0x060400,
    GPU = 0x030000,
    NIC = 0x020000,            /* classes of devices; 0: not told */
    INVENTED_CPU = 4096,       /* numbers of NUMA nodes from here on are nobody's */
    MOST_AFFINITY = 250,       /* bytes of an attribute that NCCL reads */
    MOST_CPUS = 24,            /* NCCL reads 32 things below one, of which some may be there */
    INTEL_ACROSS_MODEL = 0xcf, /* the model of CPU from which on NUMA nodes are nominally nearer */
    AMD_ACROSS_FAMILY = 23,    /* Zen 2: from 2.31 on later ones are nominally nearer */
};

/* Numbers that are negative and texts that are empty are not told. */
static void open_cpu(struct shim_text *text, int number, const char *affinity, const char *vendor,
                     int family, int model)
{
    shim_text_add(text, "<cpu numaid=\"%d\"", number);
    if (affinity[0])
        shim_text_add(text, " affinity=\"%s\"", affinity);
    if (vendor[0])
        shim_text_add(text, " arch=\"x86_64\" vendor=\"%s\"", vendor);
    if (vendor[0] && family >= 0 && model >= 0)
        shim_text_add(text, " familyid=\"%d\" modelid=\"%d\"", family, model);
    shim_text_add(text, ">\n");
}

/* speed: "32.0", in GT/s, with so many lanes; NULL: not told. end: of the tag. */
static void add_pci(struct shim_text *text, tccl_bus device, unsigned class, const char *speed,
                    int lanes, const char *end)
{
    char bus[TCCL_BUS_TEXT];
    tccl_bus_format(device, bus);
    shim_text_add(text, "<pci busid=\"%s\"", bus);
    if (class)
        shim_text_add(text, " class=\"0x%06x\"", class);
    if (speed)
        shim_text_add(text, " link_speed=\"%s GT/s PCIe\" link_width=\"%d\"", speed, lanes);
    shim_text_add(text, "%s>\n", end);
}

/* ---- Islands ---- */

/* Through Intel's CPUs no NCCL takes P2P by default: where it would at any distance, the file says
 * that the CPU is one. (As fast between sockets as AMD's, or faster.) */
static void open_island_cpu(const struct shim_pci *pci, int node, bool disguised,
                            struct shim_text *text)
{
    if (disguised)
        open_cpu(text, node, "", "GenuineIntel", 6, 143);
    else
        open_cpu(text, node, "", pci->vendor, pci->family, pci->model);
}

/* All that is below the first depth bridges above a device. A bridge is as fast as any, so that the
 * links of GPUs are what counts. */
static void add_below(const struct shim_pci *pci, bool *left, const struct shim_pci_device *place,
                      int depth, struct shim_text *text)
{
    for (int i = 0; i < pci->n; i++) {
        const struct shim_pci_device *device = &pci->devices[i];
        if (!left[i] ||
            !(place->node == device->node && device->depth >= depth &&
              memcmp(place->above, device->above, (size_t)depth * sizeof(*place->above)) == 0))
            continue;
        if (device->depth > depth) {
            tccl_bus bridge = device->above[depth];
            bool invented = bridge >> 16 == 0xffff;
            add_pci(text, bridge, BRIDGE, invented ? "32.0" : NULL, 16, "");
            add_below(pci, left, device, depth + 1, text);
            shim_text_add(text, "</pci>\n");
        } else {
            add_pci(text, device->bus, 0, NULL, 0, "/");
            left[i] = false;
        }
    }
}

int shim_topo_islands(const struct shim_pci *pci, bool *left, bool disguised, bool all_cpus,
                      struct shim_text *text, struct tccl_error *why)
{
    bool has_cpu[SHIM_PCI_NODES + 1] = {false}; /* of node -1, 0, … */
    int cpus = 0;
    shim_text_add(text, "<system version=\"1\">\n");
    for (int i = 0; i < pci->n; i++) {
        int node = pci->devices[i].node;
        if (!left[i])
            continue;
        open_island_cpu(pci, node, disguised, text);
        add_below(pci, left, &pci->devices[i], 0, text);
        shim_text_add(text, "</cpu>\n");
        cpus++;
        if (node < SHIM_PCI_NODES)
            has_cpu[node + 1] = true;
    }
    /* CPUs without GPUs, which NICs may be at. NCCL drops those that it does not need. */
    for (int node = -1; all_cpus && node < SHIM_PCI_NODES; node++) {
        if (has_cpu[node + 1] || !shim_pci_has_node(pci, node))
            continue;
        open_island_cpu(pci, node, disguised, text);
        shim_text_add(text, "</cpu>\n");
        cpus++;
    }
    shim_text_add(text, "</system>\n");
    if (cpus > MOST_CPUS)
        return tccl_fail(why, "the machine has more NUMA nodes than NCCL reads");
    return text->full ? tccl_fail(why, "the topology file is too long") : 1;
}

/* ---- A layout ---- */

struct drawing {
    const struct shim_layout *layout;
    const struct tccl_named_chain *path;
    int cpus, bridges;                /* so many are written; each GPU has a bridge of its own */
    bool has_cpu[SHIM_PCI_NODES + 1]; /* of node -1, 0, … */
    /* Bridges of the ways between pairs, by their first GPU (n: the NIC) and the other one. */
    int ways[SHIM_GPUS + 1][SHIM_GPUS];
    struct shim_text *text;
};

/* Other NICs must not get as near to the first GPU as the chain's, nor to others of its island. */
static bool is_private(const struct drawing *drawing, int island)
{
    const struct shim_layout *layout = drawing->layout;
    return island == 0 && !drawing->path->closed && !layout->facts->given &&
           (layout->home != 0 || shim_layout_needs_ways(layout, 0));
}

/* Of the CPUs that stand for one NUMA node the first has its number, so that devices that are not
 * in the file are put there. */
static int number_of(const struct drawing *drawing, int island)
{
    const int16_t *node = drawing->layout->node;
    bool taken = is_private(drawing, island);
    for (int i = 0; i < island; i++)
        taken = taken || (node[i] == node[island] && !is_private(drawing, i));
    return taken ? INVENTED_CPU + drawing->cpus : node[island];
}

static int open_layout_cpu(struct drawing *drawing, int node, int number, struct tccl_error *why)
{
    /* The CPUs of a NUMA node as NCCL reads them, "" if the kernel does not say. */
    char affinity[512], path[64];
    struct shim_text text = {path, sizeof(path), 0, false};
    shim_text_add(&text, "/sys/devices/system/node/node%d/cpumap", node);
    long length = node < 0 ? 0 : shim_read_file(path, affinity, sizeof(affinity));
    affinity[length > 0 ? length - 1 : 0] = '\0';
    if (length > MOST_AFFINITY)
        return tccl_fail(why, "NUMA node %d has more CPUs than NCCL reads", node);
    if (drawing->layout->intel)
        open_cpu(drawing->text, number, affinity, "GenuineIntel", 6, INTEL_ACROSS_MODEL);
    else
        open_cpu(drawing->text, number, affinity, "AuthenticAMD", AMD_ACROSS_FAMILY, 49);
    drawing->cpus++;
    if (number < SHIM_PCI_NODES)
        drawing->has_cpu[number + 1] = true;
    return 0;
}

static void open_bridge(struct drawing *drawing, int bridge, bool keep)
{
    add_pci(drawing->text, shim_pci_unused(drawing->layout->pci, bridge), BRIDGE, "32.0", 128,
            keep ? " keep=\"1\"" : "");
}

static void add_link(struct drawing *drawing, int bridge)
{
    char bus[TCCL_BUS_TEXT];
    tccl_bus_format(shim_pci_unused(drawing->layout->pci, bridge), bus);
    shim_text_add(drawing->text, "<pcilink target=\"%s\"/>\n", bus);
}

/* The first half of the way between two GPUs (from n: the NIC and a GPU). */
static void add_way(struct drawing *drawing, int from, int to)
{
    drawing->ways[from][to] = drawing->bridges++;
    open_bridge(drawing, drawing->ways[from][to], true);
    add_link(drawing, to);
    shim_text_add(drawing->text, "</pci>\n");
}

static void add_nic(struct drawing *drawing)
{
    add_pci(drawing->text, drawing->layout->chain->entry[0], NIC, "32.0", 128, "/");
}

/* The NIC below a bridge of its own, which is linked to an end that it is near to. Where it is near
 * both, the other one has a way, so that the ends are no nearer to each other. */
static void add_nic_with_ways(struct drawing *drawing)
{
    const struct shim_steer *facts = drawing->layout->facts;
    int bridge = drawing->bridges++, n = drawing->layout->n, end = facts->near_entry ? 0 : n - 1;
    open_bridge(drawing, bridge, true);
    add_nic(drawing);
    add_link(drawing, end);
    drawing->ways[n][end] = bridge;
    if (facts->near_entry && facts->near_exit)
        add_way(drawing, n, n - 1);
    shim_text_add(drawing->text, "</pci>\n");
}

static void add_island(struct drawing *drawing, int island)
{
    const struct shim_layout *layout = drawing->layout;
    int begin = layout->begins[island], end = layout->begins[island + 1];
    bool ways = shim_layout_needs_ways(layout, island), home = layout->home == island;
    bool bridge = !ways && (end - begin > 1 || home);
    if (bridge)
        open_bridge(drawing, drawing->bridges++, false);
    if (home && ways)
        add_nic_with_ways(drawing);
    else if (home)
        add_nic(drawing);
    for (int i = begin; i < end; i++) {
        open_bridge(drawing, i, true);
        /* Those of the first two limit the tree, too, the others the ring alone. */
        const struct shim_steer *facts = drawing->layout->facts;
        double ring = facts->channels * facts->gbps;
        int lanes = drawing->path->closed || i > 1
                        ? tccl_link_lanes(ring)
                        : tccl_tree_lanes(i, drawing->layout->n, ring, facts->tree_gbps);
        add_pci(drawing->text, shim_layout_gpu(layout, i)->bus, GPU, lanes ? "2.5" : "32.0",
                lanes ? lanes : 128, "/");
        for (int j = i + 1; ways && j < end; j++)
            if (shim_layout_wants_p2p(layout, i, j))
                add_way(drawing, i, j);
        for (int from = 0; ways && from <= layout->n; from++)
            if (drawing->ways[from][i])
                add_link(drawing, drawing->ways[from][i]);
        shim_text_add(drawing->text, "</pci>\n");
    }
    if (bridge)
        shim_text_add(drawing->text, "</pci>\n");
}

/* nic: it is the first thing at the first CPU. */
static int add_islands(struct drawing *drawing, bool nic, struct tccl_error *why)
{
    const struct shim_layout *layout = drawing->layout;
    for (int i = 0; i < layout->islands; i++) {
        /* P2P through an Intel CPU takes NCCL more of its nominal bandwidth than from one CPU to
         * another, so there each island has one of its own. */
        if (i == 0 || layout->intel || layout->node[i] != layout->node[i - 1]) {
            if (i > 0)
                shim_text_add(drawing->text, "</cpu>\n");
            if (open_layout_cpu(drawing, layout->node[i], number_of(drawing, i), why) != 0)
                return -1;
        }
        if (i == 0 && nic)
            add_nic(drawing);
        add_island(drawing, i);
    }
    shim_text_add(drawing->text, "</cpu>\n");
    return 0;
}

int shim_topo_layout(const struct shim_layout *layout, struct shim_text *text,
                     struct tccl_error *why)
{
    struct drawing drawing = {.layout = layout,
                              .path = &layout->chain->rings.chains[0],
                              .bridges = layout->n,
                              .text = text};
    bool loose = !drawing.path->closed && layout->home < 0;
    /* If all GPUs are in one island the NIC has a CPU to itself, too. */
    bool apart = loose && layout->intel && layout->islands == 1;
    shim_text_add(text, "<system version=\"1\">\n");
    if (add_islands(&drawing, loose && !apart, why) != 0)
        return 0;
    if (apart) {
        if (open_layout_cpu(&drawing, layout->node[0], layout->node[0], why) != 0)
            return 0;
        add_nic(&drawing);
        shim_text_add(text, "</cpu>\n");
    }
    /* Other CPUs, which NICs may be at. NCCL drops those that it does not need. */
    for (int node = -1; layout->facts->all_cpus && node < SHIM_PCI_NODES; node++) {
        if (drawing.has_cpu[node + 1] || !shim_pci_has_node(layout->pci, node))
            continue;
        if (open_layout_cpu(&drawing, node, node, why) != 0)
            return 0;
        shim_text_add(text, "</cpu>\n");
    }
    shim_text_add(text, "</system>\n");
    if (text->full) {
        tccl_fail(why, "the topology file is too long");
        return 0;
    }
    /* Where a bridge makes more GPUs direct to each other than wanted. */
    for (int i = 0; i < layout->islands; i++)
        if (shim_layout_count_ways(layout, i) > 0 && !shim_layout_can_have_ways(layout, i))
            tccl_fail(why, "%s",
                      !layout->facts->ways ? "this NCCL can't be told the way for each pair of GPUs"
                      : layout->crowded    ? "NCCL would not read so many ways between GPUs"
                                           : "other NICs would be nearer to its first GPUs");
    return 1;
}
