/* topo.c: a machine as NCCL sees it before it searches for rings: GPUs and NICs in its
 * order, links with nominal rates, and the way between any two devices. */
#include "nccl/topo.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

/* Nodes of the PCI tree, by index: CPUs (NUMA nodes), switches, GPUs, NICs, and a port for each
 * NIC. */
enum {
    FIRST_SWITCH = TCCL_MAX_MEMORIES,
    FIRST_GPU = FIRST_SWITCH + TCCL_MAX_SWITCHES,
    FIRST_NIC = FIRST_GPU + TCCL_MAX_GPUS,
    FIRST_PORT = FIRST_NIC + TCCL_MAX_NICS,
    PLACES = FIRST_PORT + TCCL_MAX_NICS,
};

static const float SAME_GBPS = 5000; /* no limit */

struct place {
    bool met;
    int parent; /* -1: a CPU */
    int up;     /* index of the link to the parent; its back leads down */
    int n_children;
    int children[TCCL_MAX_SWITCHES + TCCL_MAX_GPUS + TCCL_MAX_NICS];
    char key[TCCL_BUSID]; /* for sorting: bus id; of a switch, the lowest below it */
};

struct tree {
    struct place places[PLACES];
    int n_cpus;
    int cpus[TCCL_MAX_MEMORIES]; /* in order of discovery */
    int across[TCCL_MAX_MEMORIES][TCCL_MAX_MEMORIES];
};

/* NCCL's nominal rate between sockets, GB/s. */
static float cpu_gbps(enum tccl_cpu cpu, enum tccl_nccl nccl)
{
    static const float gbps[] = {
        [TCCL_CPU_AMD_ZEN3] = 24,  [TCCL_CPU_AMD_ZEN5] = 32,  [TCCL_CPU_UNKNOWN] = 5000,
        [TCCL_CPU_AMD] = 16,       [TCCL_CPU_INTEL_BDW] = 6,  [TCCL_CPU_INTEL_SKL] = 10,
        [TCCL_CPU_INTEL_SRP] = 22, [TCCL_CPU_INTEL_ERP] = 40, [TCCL_CPU_ARM] = 6,
        [TCCL_CPU_POWER] = 32,     [TCCL_CPU_ZHAOXIN] = 6,    [TCCL_CPU_YONGFENG] = 9,
    };
    if (nccl < TCCL_NCCL_2_26 && (cpu == TCCL_CPU_INTEL_SRP || cpu == TCCL_CPU_INTEL_ERP))
        return gbps[TCCL_CPU_INTEL_SKL];
    if (nccl < TCCL_NCCL_2_31 && tccl_cpu_is_amd(cpu))
        return gbps[TCCL_CPU_AMD];
    return gbps[cpu];
}

static bool is_intel(enum tccl_cpu cpu)
{
    return cpu >= TCCL_CPU_INTEL_BDW && cpu <= TCCL_CPU_INTEL_ERP;
}

/* Where the description of the machine has no slot: 16 lanes of the GPU's PCIe generation. */
static float gpu_slot_gbps(const struct tccl_gpu *gpu)
{
    if (gpu->slot > 0)
        return (float)gpu->slot;
    if (gpu->sm != 0 && gpu->sm < 80)
        return 12;
    return gpu->sm < 90 ? 24 : 48;
}

/* The nominal line rate nearest to the NIC's gbps, which may be a measured value. GB/s. */
static float nic_line_gbps(const struct tccl_nic *nic)
{
    static const int gigabits[] = {1, 5, 10, 20, 25, 40, 50, 56, 100, 200, 400, 800};
    int best = gigabits[0];
    for (size_t i = 1; i < sizeof(gigabits) / sizeof(*gigabits); i++)
        if (fabs(gigabits[i] - nic->gbps * 8) < fabs(best - nic->gbps * 8))
            best = gigabits[i];
    return (float)best / 8;
}

static float nic_slot_gbps(const struct tccl_nic *nic)
{
    float line = nic_line_gbps(nic);
    if (nic->slot > 0)
        return (float)nic->slot;
    return line <= 12.5F ? 12 : line <= 25 ? 24 : 48;
}

/* Adds two links, one per direction. Returns the index of the first, or -1 if there is no room. */
static int add_links(struct tccl_topo *topo, float gbps, bool pci)
{
    int there = topo->n_links;
    if (there + 2 > TCCL_TOPO_LINKS)
        return -1;
    topo->n_links += 2;
    topo->links[there] =
        (struct tccl_topo_link){.gbps = gbps, .pci = pci, .back = (uint16_t)(there + 1)};
    topo->links[there + 1] =
        (struct tccl_topo_link){.gbps = gbps, .pci = pci, .back = (uint16_t)there};
    return there;
}

/* Of a device, and of the switches above it. */
static void lower_keys(const struct tccl_machine *machine, struct tree *tree, int place, int above,
                       const char *busid)
{
    memcpy(tree->places[place].key, busid, TCCL_BUSID);
    for (int s = above; s >= 0; s = machine->switches[s].parent) {
        char *key = tree->places[FIRST_SWITCH + s].key;
        if (!key[0] || strcmp(busid, key) < 0)
            memcpy(key, busid, TCCL_BUSID);
    }
}

static int place_above(const struct tccl_machine *machine, int place)
{
    int parent = -1, numa = 0;
    if (place < FIRST_SWITCH)
        return -1;
    if (place < FIRST_GPU) {
        parent = machine->switches[place - FIRST_SWITCH].parent;
        numa = machine->switches[place - FIRST_SWITCH].numa;
    } else if (place < FIRST_NIC) {
        parent = machine->gpus[place - FIRST_GPU].parent;
        numa = machine->gpus[place - FIRST_GPU].numa;
    } else if (place < FIRST_PORT) {
        parent = machine->nics[place - FIRST_NIC].parent;
        numa = machine->nics[place - FIRST_NIC].numa;
    } else {
        return place - FIRST_PORT + FIRST_NIC;
    }
    return parent < 0 ? numa : FIRST_SWITCH + parent;
}

static void add_child(struct tree *tree, int parent, int child, bool sorted)
{
    struct place *above = &tree->places[parent];
    int at = above->n_children++;
    while (sorted && at > 0 &&
           strcmp(tree->places[child].key, tree->places[above->children[at - 1]].key) < 0) {
        above->children[at] = above->children[at - 1];
        at--;
    }
    above->children[at] = child;
}

/* Adds a place and those above it to the tree, as NCCL discovers them. The children found by the
 * first process are in the order of bus ids; those added by other processes come last. */
static void meet(const struct tccl_machine *machine, struct tree *tree, int place, bool sorted)
{
    if (tree->places[place].met)
        return;
    int parent = place_above(machine, place);
    tree->places[place].met = true;
    tree->places[place].parent = parent;
    if (parent < 0) {
        tree->cpus[tree->n_cpus++] = place;
        return;
    }
    meet(machine, tree, parent, sorted);
    add_child(tree, parent, place, sorted);
}

/* The next NIC by bus id after `after` (-1: the first), or -1. */
static int next_nic(const struct tccl_machine *machine, int after)
{
    int best = -1;
    for (int i = 0; i < machine->n_nics; i++) {
        int order = after < 0 ? 1 : strcmp(machine->nics[i].busid, machine->nics[after].busid);
        if (order < 0 || (order == 0 && i <= after))
            continue;
        if (best < 0 || strcmp(machine->nics[i].busid, machine->nics[best].busid) < 0)
            best = i;
    }
    return best;
}

/* NCCL fuses up to four ports of a NIC, functions of one PCI device, into one device, up to 2.23
 * (and here 2.24, which is of its generation) two. Returns the first of the ports with which `nic`
 * is fused. */
static int first_port(const struct tccl_machine *machine, enum tccl_nccl nccl, int nic)
{
    int most = nccl < TCCL_NCCL_2_25 ? 2 : 4;
    const char *busid = machine->nics[nic].busid;
    size_t bus = strlen("0000:00:");
    int first = nic, before = 0;
    for (int i = next_nic(machine, -1); i != nic; i = next_nic(machine, i)) {
        if (strncmp(machine->nics[i].busid, busid, bus) != 0)
            continue;
        first = before % most == 0 ? i : first;
        before++;
    }
    return before % most == 0 ? nic : first;
}

static float fused_gbps(const struct tccl_machine *machine, enum tccl_nccl nccl, int nic)
{
    float gbps = 0;
    for (int i = 0; i < machine->n_nics; i++)
        if (first_port(machine, nccl, i) == nic)
            gbps += nic_line_gbps(&machine->nics[i]);
    return gbps;
}

/* All ports of NICs: up to 2.28 in the order in which the machine has them. */
static void meet_nics(const struct tccl_machine *machine, enum tccl_nccl nccl, struct tree *tree)
{
    bool by_bus = nccl >= TCCL_NCCL_2_29;
    for (int i = 0, nic = next_nic(machine, -1); i < machine->n_nics; i++) {
        int next = by_bus ? nic : i;
        if (first_port(machine, nccl, next) == next)
            meet(machine, tree, FIRST_PORT + next, true);
        nic = next_nic(machine, nic);
    }
}

static float slot_gbps(const struct tccl_machine *machine, enum tccl_nccl nccl, int place)
{
    if (place < FIRST_GPU) {
        /* The uplink of a switch is taken to be as fast as the fastest slot of the machine, if
         * nothing is known. */
        float best = (float)machine->switches[place - FIRST_SWITCH].slot;
        if (best > 0)
            return best;
        for (int i = 0; i < machine->n_gpus; i++)
            best = fmaxf(best, gpu_slot_gbps(&machine->gpus[i]));
        for (int i = 0; i < machine->n_nics; i++)
            best = fmaxf(best, nic_slot_gbps(&machine->nics[i]));
        return best;
    }
    if (place < FIRST_NIC)
        return gpu_slot_gbps(&machine->gpus[place - FIRST_GPU]);
    if (place < FIRST_PORT)
        return nic_slot_gbps(&machine->nics[place - FIRST_NIC]);
    return fused_gbps(machine, nccl, place - FIRST_PORT);
}

static int link_up(const struct tccl_machine *machine, struct tree *tree, int place,
                   struct tccl_topo *topo)
{
    struct place *here = &tree->places[place];
    int sm = place >= FIRST_GPU && place < FIRST_NIC ? machine->gpus[place - FIRST_GPU].sm : 0;
    here->up = add_links(topo, slot_gbps(machine, topo->nccl, place), place < FIRST_PORT);
    if (here->up < 0)
        return -1;
    topo->links[here->up].to_intel = here->parent < FIRST_SWITCH && is_intel(machine->cpu);
    topo->links[here->up + 1].to_old_gpu = sm != 0 && sm < 80;
    return 0;
}

static int link_all(const struct tccl_machine *machine, struct tree *tree, struct tccl_topo *topo)
{
    for (int i = FIRST_SWITCH; i < PLACES; i++)
        if (tree->places[i].met && link_up(machine, tree, i, topo) != 0)
            return -1;
    for (int a = 0; a < tree->n_cpus; a++)
        for (int b = 0; b < a; b++) {
            int link = add_links(topo, cpu_gbps(machine->cpu, topo->nccl), false);
            if (link < 0)
                return -1;
            topo->links[link].to_intel = topo->links[link + 1].to_intel = is_intel(machine->cpu);
            tree->across[tree->cpus[a]][tree->cpus[b]] = link;
            tree->across[tree->cpus[b]][tree->cpus[a]] = link + 1;
        }
    return 0;
}

/* Numbers the GPUs of part and the NICs in the order of the tree. */
static void number_below(const struct tccl_machine *machine, const struct tree *tree, int place,
                         uint32_t part, struct tccl_topo *topo)
{
    const struct place *here = &tree->places[place];
    if (place >= FIRST_PORT) {
        int index = place - FIRST_PORT;
        topo->nics[topo->n_nics++] = (struct tccl_topo_nic){
            .index = index, .gbps = fused_gbps(machine, topo->nccl, index), .nearest = -1};
    } else if (place >= FIRST_GPU && place < FIRST_NIC &&
               part & UINT32_C(1) << (place - FIRST_GPU)) {
        const struct tccl_gpu *gpu = &machine->gpus[place - FIRST_GPU];
        struct tccl_topo_gpu *numbered = &topo->gpus[topo->n_gpus++];
        memset(numbered, 0, sizeof(*numbered));
        numbered->index = place - FIRST_GPU;
        numbered->sm = gpu->sm != 0 ? gpu->sm : 80;
        numbered->slot = gpu_slot_gbps(gpu);
        numbered->up = here->up;
    }
    for (int i = 0; i < here->n_children; i++)
        number_below(machine, tree, here->children[i], part, topo);
}

/* The places from a device up to its CPU, both included. Returns how many. */
static int climb(const struct tree *tree, int place, int line[static PLACES])
{
    int count = 0;
    for (; place >= 0; place = tree->places[place].parent)
        line[count++] = place;
    return count;
}

static int add_step(const struct tccl_topo *topo, int link, struct tccl_topo_way *way)
{
    if (way->n_links == TCCL_TOPO_WAY)
        return -1;
    way->gbps = fminf(way->gbps, topo->links[link].gbps);
    way->links[way->n_links++] = (uint16_t)link;
    return 0;
}

/* Does the path up to a switch pass through another one? */
static bool has_switch_below(const int *line, int length)
{
    for (int i = 0; i + 1 < length; i++)
        if (line[i] >= FIRST_SWITCH && line[i] < FIRST_GPU)
            return true;
    return false;
}

/* The way up from one device and down to the other. meet_below: a common switch is a short cut;
 * otherwise the way goes through the CPU. Returns 0, or -1 if it has too many links. */
static int find_way(const struct tree *tree, const struct tccl_topo *topo, int from, int to,
                    bool meet_below, struct tccl_topo_way *way)
{
    int up[PLACES], down[PLACES];
    int n_up = climb(tree, from, up), n_down = climb(tree, to, down);
    int cpu_from = up[n_up - 1], cpu_to = down[n_down - 1];
    *way = (struct tccl_topo_way){.gbps = SAME_GBPS, .far = TCCL_FAR_SAME};
    if (from == to)
        return 0;
    while (meet_below && n_up > 1 && n_down > 1 && up[n_up - 2] == down[n_down - 2]) {
        n_up--;
        n_down--;
    }
    for (int i = 0; i + 1 < n_up; i++)
        if (add_step(topo, tree->places[up[i]].up, way) != 0)
            return -1;
    if (cpu_from != cpu_to && add_step(topo, tree->across[cpu_from][cpu_to], way) != 0)
        return -1;
    for (int i = n_down - 2; i >= 0; i--)
        if (add_step(topo, tree->places[down[i]].up + 1, way) != 0)
            return -1;
    if (cpu_from != cpu_to)
        way->far = TCCL_FAR_SYSTEM;
    else if (up[n_up - 1] == cpu_from)
        way->far = TCCL_FAR_NODE;
    else
        way->far = has_switch_below(up, n_up) || has_switch_below(down, n_down) ? TCCL_FAR_SWITCHES
                                                                                : TCCL_FAR_SWITCH;
    return 0;
}

/* The longest path that P2P takes. */
static enum tccl_far p2p_far(const struct tccl_topo *topo)
{
    switch (topo->cpu) {
    case TCCL_CPU_AMD:
    case TCCL_CPU_AMD_ZEN3:
    case TCCL_CPU_AMD_ZEN5:
        return topo->nccl < TCCL_NCCL_2_23 || topo->n_gpus <= 2 ? TCCL_FAR_SYSTEM
                                                                : TCCL_FAR_SWITCHES;
    case TCCL_CPU_UNKNOWN:
    case TCCL_CPU_POWER:
        return topo->nccl < TCCL_NCCL_2_23 ? TCCL_FAR_SYSTEM : TCCL_FAR_SWITCHES;
    default:
        return TCCL_FAR_SWITCHES;
    }
}

static bool allows_p2p(const struct tccl_topo *topo, const struct tccl_machine *machine, int from,
                       int to, enum tccl_far far)
{
    if (from == to)
        return true;
    return far <= p2p_far(topo) && machine->p2p[topo->gpus[from].index][topo->gpus[to].index];
}

bool tccl_topo_p2p(const struct tccl_topo *topo, const struct tccl_machine *machine, int from,
                   int to)
{
    return allows_p2p(topo, machine, from, to, topo->gpus[from].to_gpu[to].far);
}

/* Does the GPU have a NIC below the same switches at a higher rate than that? */
static bool has_faster_nic(const struct tccl_topo *topo, int gpu, float than)
{
    for (int i = 0; i < topo->n_nics; i++) {
        const struct tccl_topo_way *way = &topo->gpus[gpu].to_nic[i];
        if (way->far <= TCCL_FAR_SWITCHES && way->gbps > than)
            return true;
    }
    return false;
}

bool tccl_topo_by_network(const struct tccl_topo *topo, int from, int to)
{
    float gbps = topo->gpus[from].to_gpu[to].gbps;
    return has_faster_nic(topo, from, gbps) && has_faster_nic(topo, to, gbps);
}

static int find_gpu_ways(const struct tccl_machine *machine, const struct tree *tree,
                         struct tccl_topo *topo)
{
    for (int a = 0; a < topo->n_gpus; a++)
        for (int b = 0; b < topo->n_gpus; b++) {
            struct tccl_topo_way *way = &topo->gpus[a].to_gpu[b];
            int from = FIRST_GPU + topo->gpus[a].index, to = FIRST_GPU + topo->gpus[b].index;
            if (find_way(tree, topo, from, to, true, way) != 0)
                return -1;
            if (!allows_p2p(topo, machine, a, b, way->far) &&
                find_way(tree, topo, from, to, false, way) != 0)
                return -1;
            if (a != b && tccl_topo_by_network(topo, a, b))
                way->far = TCCL_FAR_NETWORK;
        }
    return 0;
}

static int find_nic_ways(const struct tree *tree, struct tccl_topo *topo, bool direct,
                         const struct tccl_machine *machine)
{
    for (int g = 0; g < topo->n_gpus; g++)
        for (int n = 0; n < topo->n_nics; n++) {
            int gpu = topo->gpus[g].index, nic = topo->nics[n].index;
            bool meet_below = direct || machine->gpudirect[nic][gpu];
            if (find_way(tree, topo, FIRST_GPU + gpu, FIRST_PORT + nic, meet_below,
                         &topo->gpus[g].to_nic[n]) != 0 ||
                find_way(tree, topo, FIRST_PORT + nic, FIRST_GPU + gpu, meet_below,
                         &topo->nics[n].to_gpu[g]) != 0)
                return -1;
        }
    return 0;
}

/* Of `count` ways, those of the highest rate, of these the nearest. Returns how many. */
static int best_ways(const struct tccl_topo_way *ways, int count, int best[])
{
    int found = 0, far = TCCL_FAR_UNREACHABLE;
    float gbps = 0;
    for (int i = 0; i < count; i++) {
        if (ways[i].gbps > gbps || (ways[i].gbps == gbps && ways[i].far < far)) {
            gbps = ways[i].gbps;
            far = ways[i].far;
            found = 0;
        }
        if (ways[i].gbps == gbps && ways[i].far == far)
            best[found++] = i;
    }
    return found;
}

int tccl_topo_near_gpus(const struct tccl_topo *topo, int nic, int gpus[static TCCL_MAX_GPUS])
{
    return best_ways(topo->nics[nic].to_gpu, topo->n_gpus, gpus);
}

int tccl_topo_own_nics(const struct tccl_topo *topo, int gpu, int nics[static TCCL_MAX_NICS])
{
    int best[TCCL_MAX_NICS], gpus[TCCL_MAX_GPUS];
    int count = best_ways(topo->gpus[gpu].to_nic, topo->n_nics, best);
    if (count == 0)
        return 0;
    int sharers = tccl_topo_near_gpus(topo, best[0], gpus);
    int each = (count + sharers - 1) / sharers, start = topo->gpus[gpu].index;
    if (topo->nccl >= TCCL_NCCL_2_30)
        start %= sharers;
    if ((count & (count - 1)) == 0) {
        /* The bits of a number below `count`, a power of two, in reverse order. */
        int reversed = 0;
        for (int bit = 1, mirror = count >> 1; bit < count; bit <<= 1, mirror >>= 1)
            if (start & bit)
                reversed |= mirror;
        start = reversed;
    }
    for (int i = 0; i < each; i++)
        nics[i] = best[(start + i) % count];
    return each;
}

/* Of the GPUs near a NIC, the one that has it as its first choice; else as its second, and so on.
 */
static int nearest_gpu(const struct tccl_topo *topo, int nic)
{
    int gpus[TCCL_MAX_GPUS], nics[TCCL_MAX_NICS];
    int count = tccl_topo_near_gpus(topo, nic, gpus);
    for (int choice = 0; choice < TCCL_MAX_NICS; choice++)
        for (int i = 0; i < count; i++) {
            int own = tccl_topo_own_nics(topo, gpus[i], nics);
            if (own > 0 && nics[choice % own] == nic)
                return gpus[i];
        }
    return -1;
}

static int fill(const struct tccl_machine *machine, uint32_t part, bool closed,
                const struct tree *tree, struct tccl_topo *topo)
{
    for (int i = 0; i < tree->n_cpus; i++)
        number_below(machine, tree, tree->cpus[i], part, topo);
    /* Up to 2.27 a communicator on one node forgets the NICs. */
    if (closed && topo->nccl < TCCL_NCCL_2_28)
        topo->n_nics = 0;
    /* NCCL compares GPUs' ways to NICs before it considers GPUDirect, so NIC ways are computed
     * twice. */
    if (find_nic_ways(tree, topo, true, machine) != 0 || find_gpu_ways(machine, tree, topo) != 0 ||
        find_nic_ways(tree, topo, false, machine) != 0)
        return -1;
    for (int i = 0; i < topo->n_nics; i++)
        topo->nics[i].nearest = nearest_gpu(topo, i);
    return 0;
}

int tccl_topo_make(const struct tccl_machine *machine, enum tccl_nccl nccl, uint32_t all,
                   uint32_t part, bool closed, struct tccl_topo *topo, struct tccl_error *err)
{
    cleanup_free struct tree *tree = calloc(1, sizeof(*tree));
    if (!tree)
        return tccl_fail(err, "out of memory");
    topo->nccl = nccl;
    topo->cpu = machine->cpu;
    topo->n_gpus = topo->n_nics = topo->n_links = 0;
    /* Bus ids of all places: buses are numbered depth first, so that of a switch is next to the
     * lowest below it. */
    for (int i = 0; i < machine->n_gpus; i++)
        lower_keys(machine, tree, FIRST_GPU + i, machine->gpus[i].parent, machine->gpus[i].busid);
    for (int i = 0; i < machine->n_nics; i++)
        lower_keys(machine, tree, FIRST_NIC + i, machine->nics[i].parent, machine->nics[i].busid);
    if (nccl < TCCL_NCCL_2_22) { /* Up to 2.21 each process adds all GPUs, then all NICs. */
        for (int i = 0; i < machine->n_gpus; i++)
            if (all & UINT32_C(1) << i)
                meet(machine, tree, FIRST_GPU + i, true);
        meet_nics(machine, nccl, tree);
    } else {
        /* The first process adds its GPU and all NICs, each other one its GPU. */
        bool first = true;
        for (int i = 0; i < machine->n_gpus; i++) {
            if (!(all & UINT32_C(1) << i))
                continue;
            meet(machine, tree, FIRST_GPU + i, first);
            if (first)
                meet_nics(machine, nccl, tree);
            first = false;
        }
    }
    if (link_all(machine, tree, topo) != 0 || fill(machine, part, closed, tree, topo) != 0)
        return tccl_fail(err, "the tree of PCI switches is too deep");
    return 0;
}

int tccl_topo_parts(const struct tccl_topo *topo, uint32_t parts[static TCCL_MAX_GPUS])
{
    int part_of[TCCL_MAX_GPUS] = {0}, count = 0;
    uint32_t by_position[TCCL_MAX_GPUS] = {0};
    for (int g = 0; g < topo->n_gpus; g++) {
        part_of[g] = g;
        for (int p = 0; p < g; p++)
            if (topo->gpus[g].to_gpu[p].far < TCCL_FAR_NETWORK && part_of[p] < part_of[g])
                part_of[g] = part_of[p];
        by_position[part_of[g]] |= UINT32_C(1) << topo->gpus[g].index;
    }
    for (int index = 0; index < TCCL_MAX_GPUS; index++)
        for (int i = 0; i < topo->n_gpus; i++)
            if (by_position[i] && !(by_position[i] & ((UINT32_C(1) << index) - 1)) &&
                by_position[i] & UINT32_C(1) << index)
                parts[count++] = by_position[i];
    return count;
}
