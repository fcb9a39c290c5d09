/* topo-file.c: writes CPUs, bridges, GPUs and the NIC, with nominal rates.
 *
 * Each rank detects only its own GPU, and NCCL joins the ranks' trees by equal attributes, in the
 * order of the ranks. What all ranks know comes first: a bridge above each GPU, invented here,
 * which NCCL is told to keep where it has found no device below it. CPUs must be described in full,
 * as each rank would complete only its own. */
#include "chain/tree-rate.h"
#include "nccl/shim-nccl.h"

enum {
    INVENTED_CPU = 4096,       /* numbers of NUMA nodes from here on are nobody's */
    MOST_AFFINITY = 250,       /* bytes of an attribute that NCCL reads */
    INTEL_ACROSS_MODEL = 0xcf, /* the model of CPU from which on NUMA nodes are nominally nearer */
};

struct drawing {
    const struct shim_layout *layout;
    int cpus, bridges;                /* so many are written; each GPU has a bridge of its own */
    bool has_cpu[SHIM_PCI_NODES + 1]; /* of node -1, 0, … */
    /* Bridges of the ways between pairs, by their first GPU (n: the NIC) and the other one. */
    int ways[SHIM_GPUS + 1][SHIM_GPUS];
    struct shim_text *text;
};

/* The CPUs of a NUMA node as NCCL reads them, "" if the kernel does not say. Returns 0, or -1: the
 * text is longer than NCCL's. */
static int read_affinity(int node, char *affinity, size_t size)
{
    char path[64];
    struct shim_text text = {path, sizeof(path), 0, false};
    shim_text_add(&text, "/sys/devices/system/node/node%d/cpumap", node);
    long length = node < 0 ? 0 : shim_read_file(path, affinity, size);
    affinity[length > 0 ? length - 1 : 0] = '\0';
    return length > MOST_AFFINITY ? -1 : 0;
}

/* Other NICs must not get as near to the first GPU as the chain's, nor to others of its island. */
static bool is_private(const struct drawing *drawing, int island)
{
    return island == 0 && !drawing->layout->chain->rings.chains[0].closed &&
           !drawing->layout->facts->given &&
           (drawing->layout->home != 0 || shim_layout_needs_ways(drawing->layout, 0));
}

/* Of the CPUs that stand for one NUMA node the first has its number, so that devices that are not
 * in the file are put there. */
static int number_of(const struct drawing *drawing, int island)
{
    bool taken = is_private(drawing, island);
    for (int i = 0; i < island; i++)
        taken = taken || (drawing->layout->node[i] == drawing->layout->node[island] &&
                          !is_private(drawing, i));
    return taken ? INVENTED_CPU + drawing->cpus : drawing->layout->node[island];
}

static int open_cpu(struct drawing *drawing, int node, int number, struct tccl_error *why)
{
    char affinity[512];
    if (read_affinity(node, affinity, sizeof(affinity)) != 0)
        return tccl_fail(why, "NUMA node %d has more CPUs than NCCL reads", node);
    shim_text_add(drawing->text, "<cpu numaid=\"%d\"", number);
    if (affinity[0])
        shim_text_add(drawing->text, " affinity=\"%s\"", affinity);
    if (!drawing->layout->intel)
        shim_text_add(drawing->text, " arch=\"x86_64\" vendor=\"AuthenticAMD\" familyid=\"25\""
                                     " modelid=\"1\">\n");
    else
        shim_text_add(drawing->text,
                      " arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\""
                      " modelid=\"%d\">\n",
                      INTEL_ACROSS_MODEL);
    drawing->cpus++;
    if (number < SHIM_PCI_NODES)
        drawing->has_cpu[number + 1] = true;
    return 0;
}

enum { BRIDGE = 0x060400, GPU = 0x030000, NIC = 0x020000 };

/* A device of that class with the end of its tag; lanes: of a link of 2.5 GT/s, 0: a wide one. */
static void add_pci(struct drawing *drawing, tccl_bus device, unsigned class, int lanes,
                    const char *end)
{
    char bus[TCCL_BUS_TEXT];
    tccl_bus_format(device, bus);
    shim_text_add(drawing->text,
                  "<pci busid=\"%s\" class=\"0x%06x\" link_speed=\"%s GT/s PCIe\""
                  " link_width=\"%d\"%s>\n",
                  bus, class, lanes ? "2.5" : "32.0", lanes ? lanes : 128, end);
}

static void open_bridge(struct drawing *drawing, int bridge, bool keep)
{
    add_pci(drawing, shim_pci_unused(drawing->layout->pci, bridge), BRIDGE, 0,
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

/* Those of the first two limit the tree, too, the others the ring alone. */
static int lanes_of(const struct shim_layout *layout, int i)
{
    double ring = layout->facts->channels * layout->facts->gbps;
    return layout->chain->rings.chains[0].closed || i > 1
               ? tccl_link_lanes(ring)
               : tccl_tree_lanes(i, layout->n, ring, layout->facts->tree_gbps);
}

static void add_nic(struct drawing *drawing)
{
    add_pci(drawing, drawing->layout->chain->entry[0], NIC, 0, "/");
}

/* The NIC below a bridge of its own, which is linked to an end that it is near to. Where it is near
 * both, the other one has a way, so that the ends are no nearer to each other. */
static void add_nic_with_ways(struct drawing *drawing)
{
    const struct shim_steer *facts = drawing->layout->facts;
    int bridge = drawing->bridges++, end = facts->near_entry ? 0 : drawing->layout->n - 1;
    open_bridge(drawing, bridge, true);
    add_nic(drawing);
    add_link(drawing, end);
    drawing->ways[drawing->layout->n][end] = bridge;
    if (facts->near_entry && facts->near_exit)
        add_way(drawing, drawing->layout->n, drawing->layout->n - 1);
    shim_text_add(drawing->text, "</pci>\n");
}

static void add_island(struct drawing *drawing, int island)
{
    int begin = drawing->layout->begins[island], end = drawing->layout->begins[island + 1];
    bool ways = shim_layout_needs_ways(drawing->layout, island),
         home = drawing->layout->home == island;
    bool bridge = !ways && (end - begin > 1 || home);
    if (bridge)
        open_bridge(drawing, drawing->bridges++, false);
    if (home && ways)
        add_nic_with_ways(drawing);
    else if (home)
        add_nic(drawing);
    for (int i = begin; i < end; i++) {
        open_bridge(drawing, i, true);
        add_pci(drawing, shim_layout_gpu(drawing->layout, i)->bus, GPU,
                lanes_of(drawing->layout, i), "/");
        for (int j = i + 1; ways && j < end; j++)
            if (shim_layout_wants_p2p(drawing->layout, i, j))
                add_way(drawing, i, j);
        for (int from = 0; ways && from <= drawing->layout->n; from++)
            if (drawing->ways[from][i])
                add_link(drawing, drawing->ways[from][i]);
        shim_text_add(drawing->text, "</pci>\n");
    }
    if (bridge)
        shim_text_add(drawing->text, "</pci>\n");
}

static int add_islands(struct drawing *drawing, bool nic_first, struct tccl_error *why)
{
    for (int i = 0; i < drawing->layout->islands; i++) {
        /* P2P through an Intel CPU takes NCCL more of its nominal bandwidth than from one CPU to
         * another, so there each island has one of its own. */
        if (i == 0 || drawing->layout->intel ||
            drawing->layout->node[i] != drawing->layout->node[i - 1]) {
            if (i > 0)
                shim_text_add(drawing->text, "</cpu>\n");
            if (open_cpu(drawing, drawing->layout->node[i], number_of(drawing, i), why) != 0)
                return -1;
        }
        if (i == 0 && nic_first)
            add_nic(drawing);
        add_island(drawing, i);
    }
    shim_text_add(drawing->text, "</cpu>\n");
    return 0;
}

/* The same for the NIC, if all GPUs are in one island: then it has a CPU to itself. */
int shim_topo_file(const struct shim_layout *layout, struct shim_text *text, struct tccl_error *why)
{
    struct drawing of = {.layout = layout, .bridges = layout->n, .text = text}, *drawing = &of;
    bool loose = !drawing->layout->chain->rings.chains[0].closed && drawing->layout->home < 0;
    bool apart = loose && drawing->layout->intel && drawing->layout->islands == 1;
    shim_text_add(drawing->text, "<system version=\"1\">\n");
    if (add_islands(drawing, loose && !apart, why) != 0)
        return 0;
    if (apart) {
        if (open_cpu(drawing, drawing->layout->node[0], drawing->layout->node[0], why) != 0)
            return 0;
        add_nic(drawing);
        shim_text_add(drawing->text, "</cpu>\n");
    }
    /* Other CPUs, which NICs may be at. NCCL drops those that it does not need. */
    for (int node = -1; layout->facts->all_cpus && node < SHIM_PCI_NODES; node++) {
        if (drawing->has_cpu[node + 1] || !shim_pci_has_node(layout->pci, node))
            continue;
        if (open_cpu(drawing, node, node, why) != 0)
            return 0;
        shim_text_add(drawing->text, "</cpu>\n");
    }
    shim_text_add(drawing->text, "</system>\n");
    if (drawing->text->full) {
        tccl_fail(why, "the topology file is too long");
        return 0;
    }
    /* Where a bridge makes more GPUs direct to each other than wanted. */
    for (int i = 0; i < layout->islands; i++)
        if (shim_layout_count_ways(layout, i) > 0 && !shim_layout_can_have_ways(layout, i))
            tccl_fail(why, "%s",
                      !layout->facts->ways ? "this NCCL knows no ways between single GPUs"
                      : layout->crowded    ? "NCCL would not read so many ways between GPUs"
                                           : "other NICs would be nearer to its first GPUs");
    return 1;
}
