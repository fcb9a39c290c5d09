/* steer.c: a topology file under which NCCL's own search finds the chain.
 *
 * NCCL first tries its GPUs in the order in which the topology has them, and keeps the first chain
 * that no other one beats: by nominal bandwidth, then by the number of links. So the file has the
 * GPUs in the order of the chain, and P2P neighbours below a bridge of their own: any other order
 * takes more links. Each GPU's own link is as fast as all of NCCL's own channels together, and no
 * other link is slower, so one channel along the chain uses all that there is. Ring and tree then
 * have the nominal speeds that NCCL would give them by itself.
 *
 * Each rank detects only its own GPU, and NCCL joins the ranks' trees by equal attributes, in the
 * order of the ranks. What all ranks know comes first: a bridge above each GPU, invented here,
 * which NCCL is told to keep where it has found no device below it. CPUs must be described in full,
 * as each rank would complete only its own.
 *
 * Below one bridge each GPU is direct to each other one: A to C, too, where the chain has A to B
 * and B to C. NCCL uses the ring for no send and receive, so what it would copy through host memory
 * between A and C stays there. Then the island has no bridge of its own, and each pair that is
 * direct has a way for itself: a link, such as NCCL knows between PCI switches, from a bridge below
 * that of the first GPU to that of the other one. NCCL takes paths with the fewest links. Through
 * the CPU these are four, along a pair's own way four, too (NCCL looks at a bridge's own links
 * before the one up to the CPU, and keeps what it found), along the ways of two pairs six. From
 * 2.30.7 on it takes switches before the CPU, whatever their number: there are no ways then.
 *
 * testsuite/unit/test-shim-steer compares these files with NCCL's search as pathfind foretells it.
 */
#include "nccl/steer.h"

#include <string.h>

enum {
    INVENTED_CPU = 4096, /* numbers of NUMA nodes from here on are nobody's */
    MOST_AFFINITY = 250, /* bytes of an attribute that NCCL reads */
    MOST_ELEMENTS = 256, /* that NCCL reads, with what it finds by itself: */
    OF_GPU = 1,          /* a rank's own GPU, … */
    OF_NIC = 8,          /* and each NIC with its switches */
    OF_WAY = 3,
    PCI_LINKS = 22200,    /* the first version that reads them, */
    LONG_WAYS = 23005,    /* and those that go along several (2.30.4 does not, 2.30.7 does) */
    DOUBLED_GBPS = 25,    /* NCCL makes two channels of half the rate of one that is so fast */
    AMD_ACROSS_GBPS = 16, /* nominal, between two NUMA nodes */
    INTEL_ACROSS_GBPS = 40,
    INTEL_ACROSS_MODEL = 0xcf, /* the model of CPU from which on it is that much */
};

struct drawing {
    const struct shim_chain *chain;
    const struct shim_pci *pci;
    bool (*linked)[SHIM_GPUS]; /* in the order of the chain */
    const struct shim_steer *facts;
    bool intel;                       /* the CPU that the file has: Intel's, or AMD's */
    int n, first;                     /* number of GPUs; the one that the file begins with */
    int islands;                      /* consecutive P2P neighbours */
    int begins[SHIM_GPUS + 1];        /* of each island: its first GPU, counted from `first` */
    int16_t node[SHIM_GPUS];          /* and the NUMA node that most of its GPUs are at */
    int home;                         /* the island below whose bridge the NIC is, -1: none */
    bool crowded;                     /* NCCL would not read all ways */
    int cpus, bridges;                /* so many are written; each GPU has a bridge of its own */
    bool has_cpu[SHIM_PCI_NODES + 1]; /* of node -1, 0, … */
    /* Bridges of the ways between pairs, by their first GPU (n: the NIC) and the other one. */
    int ways[SHIM_GPUS + 1][SHIM_GPUS];
    struct shim_text *text;
};

/* GPU i, counted from the first. */
static int position(const struct drawing *drawing, int i)
{
    return (drawing->first + i) % drawing->n;
}

static const struct shim_pci_device *gpu_of(const struct drawing *drawing, int i)
{
    shim_bus bus = drawing->chain->path.gpus[position(drawing, i)];
    return &drawing->pci->devices[shim_pci_find(drawing->pci, bus)];
}

/* A ring may begin anywhere: behind a bounce, so that no island is cut in two. */
static void choose_first(struct drawing *drawing)
{
    const struct tccl_named_chain *path = &drawing->chain->path;
    for (int i = 0; path->closed && i < path->n_gpus; i++)
        if (path->edges[i].kind == TCCL_BOUNCE)
            drawing->first = (i + 1) % path->n_gpus;
}

/* The NUMA node that most GPUs of an island are at; of equals the first. */
static int16_t node_of(const struct drawing *drawing, int begin, int end)
{
    int16_t best = -1;
    int most = 0;
    for (int i = begin; i < end; i++) {
        int count = 0;
        for (int other = begin; other < end; other++)
            count += gpu_of(drawing, i)->node == gpu_of(drawing, other)->node;
        if (count > most) {
            most = count;
            best = gpu_of(drawing, i)->node;
        }
    }
    return best;
}

/* GPUs i < j: P2P where it is planned, or, between GPUs that are no neighbours, where NCCL alone
 * takes it? */
static bool wants_p2p(const struct drawing *drawing, int i, int j)
{
    const struct tccl_named_chain *path = &drawing->chain->path;
    bool next = j == i + 1, around = path->closed && i == 0 && j == drawing->n - 1;
    if (next || around)
        return path->edges[position(drawing, next ? i : j)].kind != TCCL_BOUNCE;
    return drawing->facts->far_p2p ||
           shim_pci_distance(gpu_of(drawing, i), gpu_of(drawing, j)) <= SHIM_PXB;
}

/* Would a bridge above the island's GPUs make more of them direct to each other than wanted? Then
 * the number of ways that do in its place, else 0. */
static int count_ways(const struct drawing *drawing, int island)
{
    int wanted = 0, all = 0;
    for (int i = drawing->begins[island]; i < drawing->begins[island + 1]; i++)
        for (int j = i + 1; j < drawing->begins[island + 1]; j++) {
            wanted += wants_p2p(drawing, i, j);
            all++;
        }
    return wanted < all ? wanted : 0;
}

/* Of several NICs NCCL would find another one shorter for the other GPUs of the NIC's island. */
static bool can_have_ways(const struct drawing *drawing, int island)
{
    bool several = island == 0 && drawing->home == 0 && drawing->islands > 1;
    return drawing->facts->ways && !drawing->crowded &&
           (drawing->facts->given || !several || drawing->facts->nics <= 1);
}

static bool needs_ways(const struct drawing *drawing, int island)
{
    return can_have_ways(drawing, island) && count_ways(drawing, island) > 0;
}

/* Each GPU and the NIC have a bridge, each island may have a CPU and a bridge. */
static bool is_crowded(const struct drawing *drawing)
{
    int elements = 1 + 2 * drawing->n + 2 * (drawing->islands + 1) + OF_GPU +
                   OF_NIC * (drawing->facts->nics + 1);
    for (int node = -1; drawing->facts->all_cpus && node < SHIM_PCI_NODES; node++)
        elements += shim_pci_has_node(drawing->pci, node);
    for (int i = 0; i < drawing->islands; i++)
        elements += OF_WAY * count_ways(drawing, i);
    return elements > MOST_ELEMENTS;
}

static void find_islands(struct drawing *drawing)
{
    for (int i = 0; i < drawing->n; i++) {
        bool bounce =
            i > 0 && drawing->chain->path.edges[position(drawing, i - 1)].kind == TCCL_BOUNCE;
        if (i == 0 || bounce)
            drawing->begins[drawing->islands++] = i;
    }
    drawing->begins[drawing->islands] = drawing->n;
    for (int i = 0; i < drawing->islands; i++)
        drawing->node[i] = node_of(drawing, drawing->begins[i], drawing->begins[i + 1]);
}

/* ---- Does it work? ---- */

static int check_speed(const struct drawing *drawing, struct shim_why *why)
{
    const struct shim_steer *facts = drawing->facts;
    double all = facts->channels * facts->gbps;
    if (facts->channels < 1 || facts->gbps <= 0)
        return shim_fail(why, "the channels of NCCL's own search are not known");
    if (facts->channels > 2 || (facts->channels == 2 && all < DOUBLED_GBPS))
        return shim_fail(why, "NCCL's own search finds %d channels", facts->channels);
    if (drawing->islands > 1 && all > (drawing->intel ? INTEL_ACROSS_GBPS : AMD_ACROSS_GBPS))
        return shim_fail(why, "NUMA nodes are too far from each other for %g GB/s", all);
    return 0;
}

/* NCCL begins with the NIC that is nearest to the first GPU. */
static int check_nics(const struct drawing *drawing, struct shim_why *why)
{
    const struct shim_steer *facts = drawing->facts;
    if (drawing->chain->path.closed)
        return 0;
    if (drawing->chain->entry != drawing->chain->exit)
        return shim_fail(why, "the chain has two NICs");
    if (facts->near_entry && facts->near_exit && drawing->islands > 1)
        return shim_fail(why, "the NIC is near both ends");
    if (facts->nics == 1)
        return 0;
    if (!facts->given && !facts->near_entry && (facts->near_exit || drawing->islands == 1))
        return shim_fail(why, "other NICs are as near to the first GPU");
    for (int i = 0; i < drawing->n; i++)
        if (gpu_of(drawing, i)->depth > 0)
            return shim_fail(why, "other NICs may be at the PCI switches of GPUs");
    return 0;
}

static bool has_nvlink(const struct drawing *drawing)
{
    for (int i = 0; i < drawing->n; i++)
        for (int j = 0; j < drawing->n; j++)
            if (drawing->linked[i][j])
                return true;
    return false;
}

static int check(const struct drawing *drawing, struct shim_why *why)
{
    if (has_nvlink(drawing))
        return shim_fail(why, "GPUs are joined by NVLink");
    if (drawing->n < 2)
        return shim_fail(why, "there is one GPU");
    if (!drawing->pci->amd && !drawing->pci->intel)
        return shim_fail(why, "the CPU is neither AMD's nor Intel's");
    if (!drawing->facts->given && check_speed(drawing, why) != 0)
        return -1;
    return check_nics(drawing, why);
}

/* ---- The file ---- */

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
    return island == 0 && !drawing->chain->path.closed && !drawing->facts->given &&
           (drawing->home != 0 || needs_ways(drawing, 0));
}

/* Of the CPUs that stand for one NUMA node the first has its number, so that devices that are not
 * in the file are put there. */
static int number_of(const struct drawing *drawing, int island)
{
    bool taken = is_private(drawing, island);
    for (int i = 0; i < island; i++)
        taken = taken || (drawing->node[i] == drawing->node[island] && !is_private(drawing, i));
    return taken ? INVENTED_CPU + drawing->cpus : drawing->node[island];
}

static int open_cpu(struct drawing *drawing, int node, int number, struct shim_why *why)
{
    char affinity[512];
    if (read_affinity(node, affinity, sizeof(affinity)) != 0)
        return shim_fail(why, "NUMA node %d has more CPUs than NCCL reads", node);
    shim_text_add(drawing->text, "<cpu numaid=\"%d\"", number);
    if (affinity[0])
        shim_text_add(drawing->text, " affinity=\"%s\"", affinity);
    if (!drawing->intel)
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

static void open_bridge(struct drawing *drawing, int bridge, bool keep)
{
    char bus[TCCL_BUS_TEXT];
    tccl_bus_format(shim_pci_unused(drawing->pci, bridge), bus);
    shim_text_add(drawing->text,
                  "<pci busid=\"%s\" class=\"0x060400\" link_speed=\"32.0 GT/s PCIe\""
                  " link_width=\"128\"%s>\n",
                  bus, keep ? " keep=\"1\"" : "");
}

static void add_link(struct drawing *drawing, int bridge)
{
    char bus[TCCL_BUS_TEXT];
    tccl_bus_format(shim_pci_unused(drawing->pci, bridge), bus);
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

/* GB/s of the link of GPU i. Of an open chain, the first one's carries what comes back from older
 * GPUs, too, an eighth; and a balanced tree uses the NIC from its first two, at half of its rate
 * each, which counts for a fifth more through an Intel CPU. The other links limit the ring. */
static double speed_of(const struct drawing *drawing, int i)
{
    const struct shim_steer *facts = drawing->facts;
    double ring = facts->channels * facts->gbps;
    double tree = facts->tree_gbps * (i == 0 ? 1.75 : 1.5);
    if (drawing->chain->path.closed || i > 1 || (i == 1 && drawing->n == 2))
        return ring;
    ring *= i == 0 ? 1.125 : 1;
    return tree > ring && drawing->n > 2 ? tree : ring;
}

static void add_gpu(struct drawing *drawing, int i)
{
    const double lane = 0.1875; /* GB/s at 2.5 GT/s */
    char bus[TCCL_BUS_TEXT];
    tccl_bus_format(gpu_of(drawing, i)->bus, bus);
    shim_text_add(drawing->text,
                  "<pci busid=\"%s\" class=\"0x030000\" link_speed=\"2.5 GT/s PCIe\""
                  " link_width=\"%d\"/>\n",
                  bus, (int)(speed_of(drawing, i) / lane + 0.999));
}

static void add_nic(struct drawing *drawing)
{
    char bus[TCCL_BUS_TEXT];
    tccl_bus_format(drawing->chain->entry, bus);
    shim_text_add(drawing->text,
                  "<pci busid=\"%s\" class=\"0x020000\" link_speed=\"32.0 GT/s PCIe\""
                  " link_width=\"128\"/>\n",
                  bus);
}

/* The NIC below a bridge of its own, which is linked to an end that it is near to. Where it is near
 * both, the other one has a way, so that the ends are no nearer to each other. */
static void add_nic_with_ways(struct drawing *drawing)
{
    const struct shim_steer *facts = drawing->facts;
    int bridge = drawing->bridges++, end = facts->near_entry ? 0 : drawing->n - 1;
    open_bridge(drawing, bridge, true);
    add_nic(drawing);
    add_link(drawing, end);
    drawing->ways[drawing->n][end] = bridge;
    if (facts->near_entry && facts->near_exit)
        add_way(drawing, drawing->n, drawing->n - 1);
    shim_text_add(drawing->text, "</pci>\n");
}

static void add_ways(struct drawing *drawing, int i, int end)
{
    for (int j = i + 1; j < end; j++)
        if (wants_p2p(drawing, i, j))
            add_way(drawing, i, j);
    for (int from = 0; from <= drawing->n; from++)
        if (drawing->ways[from][i])
            add_link(drawing, drawing->ways[from][i]);
}

static void add_island(struct drawing *drawing, int island)
{
    int begin = drawing->begins[island], end = drawing->begins[island + 1];
    bool ways = needs_ways(drawing, island), home = drawing->home == island;
    bool bridge = !ways && (end - begin > 1 || home);
    if (bridge)
        open_bridge(drawing, drawing->bridges++, false);
    if (home && ways)
        add_nic_with_ways(drawing);
    else if (home)
        add_nic(drawing);
    for (int i = begin; i < end; i++) {
        open_bridge(drawing, i, true);
        add_gpu(drawing, i);
        if (ways)
            add_ways(drawing, i, end);
        shim_text_add(drawing->text, "</pci>\n");
    }
    if (bridge)
        shim_text_add(drawing->text, "</pci>\n");
}

/* P2P through an Intel CPU takes NCCL more of its nominal bandwidth than from one CPU to another,
 * so there each island has one of its own. */
static bool has_own_cpu(const struct drawing *drawing, int island)
{
    return island == 0 || drawing->intel || drawing->node[island] != drawing->node[island - 1];
}

static int add_islands(struct drawing *drawing, bool nic_first, struct shim_why *why)
{
    for (int i = 0; i < drawing->islands; i++) {
        if (has_own_cpu(drawing, i)) {
            if (i > 0)
                shim_text_add(drawing->text, "</cpu>\n");
            if (open_cpu(drawing, drawing->node[i], number_of(drawing, i), why) != 0)
                return -1;
        }
        if (i == 0 && nic_first)
            add_nic(drawing);
        add_island(drawing, i);
    }
    shim_text_add(drawing->text, "</cpu>\n");
    return 0;
}

/* NICs may be at them. NCCL drops those that it does not need. */
static int add_other_cpus(struct drawing *drawing, struct shim_why *why)
{
    for (int node = -1; drawing->facts->all_cpus && node < SHIM_PCI_NODES; node++) {
        if (drawing->has_cpu[node + 1] || !shim_pci_has_node(drawing->pci, node))
            continue;
        if (open_cpu(drawing, node, node, why) != 0)
            return -1;
        shim_text_add(drawing->text, "</cpu>\n");
    }
    return 0;
}

/* Says where a bridge makes more GPUs direct to each other than wanted. */
static void tell_direct(const struct drawing *drawing, struct shim_why *why)
{
    for (int i = 0; i < drawing->islands; i++)
        if (count_ways(drawing, i) > 0 && !can_have_ways(drawing, i))
            shim_fail(why, "%s",
                      !drawing->facts->ways ? "this NCCL knows no ways between single GPUs"
                      : drawing->crowded    ? "NCCL would not read so many ways between GPUs"
                                            : "other NICs would be nearer to its first GPUs");
}

/* The same for the NIC, if all GPUs are in one island: then it has a CPU to itself. */
static int write_file(struct drawing *drawing, struct shim_why *why)
{
    bool loose = !drawing->chain->path.closed && drawing->home < 0;
    bool apart = loose && drawing->intel && drawing->islands == 1;
    shim_text_add(drawing->text, "<system version=\"1\">\n");
    if (add_islands(drawing, loose && !apart, why) != 0)
        return 0;
    if (apart) {
        if (open_cpu(drawing, drawing->node[0], drawing->node[0], why) != 0)
            return 0;
        add_nic(drawing);
        shim_text_add(drawing->text, "</cpu>\n");
    }
    if (add_other_cpus(drawing, why) != 0)
        return 0;
    shim_text_add(drawing->text, "</system>\n");
    if (drawing->text->full) {
        shim_fail(why, "the topology file is too long");
        return 0;
    }
    tell_direct(drawing, why);
    return 1;
}

/* All but the file. Returns 0, or -1 with why. */
static int begin(struct drawing *drawing, struct shim_why *why)
{
    const struct shim_steer *facts = drawing->facts;
    const struct tccl_named_chain *path = &drawing->chain->path;
    drawing->n = drawing->bridges = path->n_gpus;
    for (int i = 0; i < drawing->n; i++)
        if (shim_pci_find(drawing->pci, path->gpus[i]) < 0)
            return shim_fail(why, "a GPU's place is not known");
    choose_first(drawing);
    find_islands(drawing);
    /* Through Intel's CPUs NCCL takes no P2P. */
    drawing->intel = drawing->pci->intel || (facts->far_p2p && drawing->islands > 1);
    drawing->home = path->closed        ? -1
                    : facts->near_entry ? 0
                    : facts->near_exit  ? drawing->islands - 1
                                        : -1;
    drawing->crowded = is_crowded(drawing);
    return 0;
}

int shim_steer(const struct shim_chain *chain, const struct shim_pci *pci,
               bool linked[SHIM_GPUS][SHIM_GPUS], const struct shim_steer *facts,
               struct shim_text *text, struct shim_why *why)
{
    struct drawing drawing = {
        .chain = chain, .pci = pci, .linked = linked, .facts = facts, .text = text};
    if (begin(&drawing, why) != 0 || check(&drawing, why) != 0)
        return 0;
    return write_file(&drawing, why);
}

bool shim_steer_has_ways(uint32_t version)
{
    return version >= PCI_LINKS && version < LONG_WAYS;
}

bool shim_steer_matters(const struct shim_chain *chain, const struct shim_pci *pci,
                        const struct shim_steer *facts)
{
    struct drawing drawing = {.chain = chain, .pci = pci, .facts = facts};
    bool matters = false;
    if (begin(&drawing, NULL) != 0)
        return false;
    for (int i = 0; i < drawing.islands; i++)
        matters = matters || count_ways(&drawing, i) > 0;
    return matters;
}
