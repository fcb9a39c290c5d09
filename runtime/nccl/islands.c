/* islands.c: writes the topology file, after trying by NCCL's own rules whether it makes each edge
 * as planned. */
#include "nccl/shim-nccl.h"

#include <string.h>

#include "chain/nccl-version.h"

enum {
    MOST_CPUS = 24 /* NCCL reads 32 things below one, of which some may be there already */
};

/* An end of a ring: a NIC and a GPU. */
struct end {
    tccl_bus nic;
    int gpu;                /* its place in the chain */
    bool gpudirect, direct; /* as planned; NCCL can do it */
};

/* Where the topology file puts the devices of pci. */
struct map {
    const struct shim_chain *chain;
    int island[SHIM_GPUS]; /* of chain->rings.chains[0].gpus[i]: the index of the first GPU in it */
    /* As in the chain; behind them NICs that are not left where they are. */
    struct shim_pci_device gpus[SHIM_PCI_DEVICES];
    int n;
    bool done[SHIM_PCI_DEVICES];
    int n_ends;
    struct end ends[2 * TCCL_CHAIN_RINGS];
};

bool shim_islands_far_p2p(const struct shim_pci *pci, int n, uint32_t version)
{
    bool before = !pci->cautious, since = pci->amd && n <= 2;
    if (version == 0)
        return before || since;
    return tccl_release_does(version, TCCL_FACT_FAR_P2P) ? before : since;
}

bool shim_islands_all_cpus(uint32_t version)
{
    return version == 0 || tccl_release_does(version, TCCL_FACT_ALL_CPUS);
}

/* NCCL hands on over NVLink, also by one GPU between. */
static bool nvlink(const struct shim_chain *chain, bool linked[SHIM_GPUS][SHIM_GPUS], int a, int b)
{
    if (linked[a][b] || linked[b][a])
        return true;
    for (int i = 0; i < chain->rings.chains[0].n_gpus; i++)
        if (i != a && i != b && (linked[a][i] || linked[i][a]) && (linked[i][b] || linked[b][i]))
            return true;
    return false;
}

static void join(struct map *map, int a, int b)
{
    int from = map->island[a] > map->island[b] ? map->island[a] : map->island[b];
    int to = map->island[a] + map->island[b] - from;
    for (int i = 0; i < map->chain->rings.chains[0].n_gpus; i++)
        if (map->island[i] == from)
            map->island[i] = to;
}

/* The place in the chain of a ring's GPU i; n_gpus is the first one again. */
static int place_in(const struct shim_chain *chain, const struct tccl_named_chain *ring, int i)
{
    return shim_ring_find(&chain->rings.chains[0], ring->gpus[i % ring->n_gpus]);
}

/* The ends of all rings; a closed one has none. Returns how many. */
static int find_ends(const struct shim_chain *chain, const struct shim_pci *pci,
                     struct end ends[static 2 * TCCL_CHAIN_RINGS])
{
    int n = 0;
    for (int i = 0; i < chain->rings.n; i++) {
        const struct tccl_named_chain *ring = &chain->rings.chains[i];
        if (ring->closed)
            continue;
        ends[n++] =
            (struct end){chain->entry[i], place_in(chain, ring, 0), ring->entry.gpudirect, true};
        ends[n++] = (struct end){chain->exit[i], place_in(chain, ring, ring->n_gpus - 1),
                                 ring->exit.gpudirect, pci->reads >> i & 1};
    }
    return n;
}

/* Islands: what is joined by P2P edges of any ring. One NIC can only be near several ends if they
 * are near each other. */
static void find_islands(struct map *map)
{
    const struct shim_chain *chain = map->chain;
    for (int i = 0; i < chain->rings.chains[0].n_gpus; i++)
        map->island[i] = i;
    for (int i = 0; i < chain->rings.n; i++) {
        const struct tccl_named_chain *ring = &chain->rings.chains[i];
        for (int j = 0; j < tccl_named_edges(ring); j++)
            if (ring->edges[j].kind != TCCL_BOUNCE)
                join(map, place_in(chain, ring, j), place_in(chain, ring, j + 1));
    }
    for (int i = 0; i < map->n_ends; i++)
        for (int j = 0; j < i; j++)
            if (map->ends[i].nic == map->ends[j].nic && map->ends[i].gpudirect &&
                map->ends[j].gpudirect)
                join(map, map->ends[i].gpu, map->ends[j].gpu);
}

static const struct shim_pci_device *gpu_of(const struct map *map, const struct shim_pci *pci,
                                            int i)
{
    return &pci->devices[shim_pci_find(pci, map->chain->rings.chains[0].gpus[i])];
}

/* Does a ring meet the network here, directly, with GPU and NIC below this bridge? */
static bool serves_end(const struct map *map, const struct shim_pci *pci, int gpu, tccl_bus bridge)
{
    for (int i = 0; i < map->n_ends; i++) {
        int nic = shim_pci_find(pci, map->ends[i].nic);
        if (map->ends[i].gpu == gpu && map->ends[i].gpudirect && nic >= 0 &&
            shim_pci_is_below(&pci->devices[nic], bridge))
            return true;
    }
    return false;
}

/* The island that keeps a bridge with all NICs below it; GPUs of others are put elsewhere. */
static int owner_of(const struct map *map, const struct shim_pci *pci, tccl_bus bridge)
{
    int owner = -1;
    for (int i = 0; i < map->chain->rings.chains[0].n_gpus; i++) {
        if (!shim_pci_is_below(gpu_of(map, pci, i), bridge))
            continue;
        if (serves_end(map, pci, i, bridge))
            return map->island[i];
        if (owner < 0)
            owner = map->island[i];
    }
    return owner;
}

/* The NUMA node that most GPUs of an island are at; of equals the first. But the rings' ends stay
 * at their CPU, where their threads for the network run; where P2P or one NIC joins several of
 * them, the others go to the first one's. */
static int16_t node_of(const struct map *map, const struct shim_pci *pci, int island)
{
    int16_t best = -1;
    int most = 0, n = map->chain->rings.chains[0].n_gpus;
    for (int i = 0; i < n; i++) {
        int count = 0;
        if (map->island[i] != island)
            continue;
        for (int end = 0; end < map->n_ends; end++)
            if (map->ends[end].gpu == i)
                return gpu_of(map, pci, i)->node;
        for (int other = 0; other < n; other++)
            count += map->island[other] == island &&
                     gpu_of(map, pci, i)->node == gpu_of(map, pci, other)->node;
        if (count > most) {
            most = count;
            best = gpu_of(map, pci, i)->node;
        }
    }
    return best;
}

/* Below the bridges that its island keeps. */
static void place_gpu(struct map *map, const struct shim_pci *pci, int i)
{
    const struct shim_pci_device *real = gpu_of(map, pci, i);
    struct shim_pci_device *place = &map->gpus[i];
    *place = (struct shim_pci_device){.bus = real->bus, .node = node_of(map, pci, map->island[i])};
    for (int d = 0; d < real->depth; d++)
        if (owner_of(map, pci, real->above[d]) == map->island[i])
            place->above[place->depth++] = real->above[d];
}

/* Has an island no bridge yet that is above all of its GPUs? */
static bool is_apart(const struct map *map, int island)
{
    const struct shim_pci_device *first = &map->gpus[island];
    for (int i = 0; i < map->chain->rings.chains[0].n_gpus; i++)
        if (map->island[i] == island && i != island &&
            (first->depth == 0 || map->gpus[i].depth == 0 ||
             map->gpus[i].above[0] != first->above[0]))
            return true;
    return false;
}

static int put_below(struct shim_pci_device *place, tccl_bus bridge, struct tccl_error *why)
{
    if (place->depth == SHIM_PCI_DEPTH)
        return tccl_fail(why, "the PCI tree is too deep");
    memmove(place->above + 1, place->above, place->depth * sizeof(*place->above));
    place->above[0] = bridge;
    place->depth++;
    return 0;
}

/* A device that the file does not name hangs below the first bridge of its own that is there. */
static struct shim_pci_device place_other(const struct map *map, const struct shim_pci_device *real)
{
    for (int d = real->depth - 1; d >= 0; d--) {
        for (int i = 0; i < map->chain->rings.chains[0].n_gpus; i++) {
            const struct shim_pci_device *gpu = &map->gpus[i];
            for (int at = 0; at < gpu->depth; at++) {
                if (gpu->above[at] != real->above[d] || at + real->depth - d > SHIM_PCI_DEPTH)
                    continue;
                struct shim_pci_device place = *gpu;
                place.bus = real->bus;
                place.depth = (uint8_t)(at + real->depth - d);
                memcpy(place.above + at, real->above + d,
                       (size_t)(real->depth - d) * sizeof(*place.above));
                return place;
            }
        }
    }
    return *real;
}

/* Is GPUDirect as planned at the ends that have the NIC with this place? gpus: the places of the
 * chain's. */
static bool nic_serves(const struct end *ends, int n, const struct shim_pci_device *nic,
                       const struct shim_pci_device *const *gpus)
{
    for (int i = 0; i < n; i++) {
        bool near = shim_pci_distance(nic, gpus[ends[i].gpu]) <= SHIM_PXB;
        if (ends[i].nic == nic->bus && (near && ends[i].direct) != ends[i].gpudirect)
            return false;
    }
    return true;
}

static bool drawn_nic_serves(const struct map *map, const struct shim_pci_device *nic)
{
    const struct shim_pci_device *gpus[SHIM_GPUS];
    for (int i = 0; i < map->chain->rings.chains[0].n_gpus; i++)
        gpus[i] = &map->gpus[i];
    return nic_serves(map->ends, map->n_ends, nic, gpus);
}

/* A NIC stays where it is if that is right for the ends that have it; else it is put near one that
 * it reaches directly, or away from all. */
static int place_nic(struct map *map, const struct shim_pci *pci, tccl_bus nic,
                     struct tccl_error *why)
{
    int at = shim_pci_find(pci, nic);
    struct shim_pci_device *near = NULL; /* the first GPU that reaches it directly */
    if (at < 0)
        return tccl_fail(why, "a NIC's place is not known");
    for (int i = 0; i < map->n_ends && !near; i++)
        if (map->ends[i].nic == nic && map->ends[i].gpudirect)
            near = &map->gpus[map->ends[i].gpu];
    struct shim_pci_device place = place_other(map, &pci->devices[at]);
    if (drawn_nic_serves(map, &place))
        return 0;
    place = (struct shim_pci_device){.bus = nic, .node = pci->devices[at].node};
    if (near) { /* below the bridge that is above this GPU, and above all of its island */
        int island = map->island[near - map->gpus];
        if (near->depth == 0 && put_below(near, shim_pci_unused(pci, island), why) != 0)
            return -1;
        place.node = near->node;
        place.depth = 1;
        place.above[0] = near->above[0];
    }
    if (!drawn_nic_serves(map, &place))
        return tccl_fail(why, "NCCL can't be made to use GPUDirect as the chain does at its ends");
    map->gpus[map->n++] = place;
    return 0;
}

/* Directly below their CPUs NICs are no GPU's own, and NCCL does not take them in place of host
 * memory. Within a node they have nothing else to do. */
static void move_nics_away(struct map *map, const struct shim_pci *pci)
{
    int n_gpus = map->n;
    for (int i = 0; i < pci->n; i++) {
        const struct shim_pci_device *nic = &pci->devices[i];
        if (shim_bus_find(map->chain->rings.chains[0].gpus, n_gpus, nic->bus) >= 0)
            continue;
        struct shim_pci_device place = place_other(map, nic);
        for (int gpu = 0; gpu < n_gpus; gpu++)
            if (shim_pci_distance(&place, &map->gpus[gpu]) <= SHIM_PXB) {
                map->gpus[map->n++] = (struct shim_pci_device){.bus = nic->bus, .node = nic->node};
                break;
            }
    }
}

static int draw(struct map *map, const struct shim_chain *chain, const struct shim_pci *pci,
                struct tccl_error *why)
{
    memset(map, 0, sizeof(*map));
    map->chain = chain;
    map->n = chain->rings.chains[0].n_gpus;
    for (int i = 0; i < chain->rings.chains[0].n_gpus; i++)
        if (shim_pci_find(pci, chain->rings.chains[0].gpus[i]) < 0)
            return tccl_fail(why, "a GPU's place is not known");
    map->n_ends = find_ends(chain, pci, map->ends);
    find_islands(map);
    for (int i = 0; i < chain->rings.chains[0].n_gpus; i++)
        place_gpu(map, pci, i);
    bool apart[SHIM_GPUS] = {false};
    for (int i = 0; i < chain->rings.chains[0].n_gpus; i++)
        apart[i] = is_apart(map, map->island[i]);
    for (int i = 0; i < chain->rings.chains[0].n_gpus; i++)
        if (apart[i] && put_below(&map->gpus[i], shim_pci_unused(pci, map->island[i]), why) != 0)
            return -1;
    if (chain->rings.chains[0].closed && pci->net_intra)
        move_nics_away(map, pci);
    for (int i = 0; i < map->n_ends; i++) {
        bool first = true; /* of the ends with this NIC */
        for (int before = 0; before < i; before++)
            first = first && map->ends[before].nic != map->ends[i].nic;
        if (first && place_nic(map, pci, map->ends[i].nic, why) != 0)
            return -1;
    }
    return 0;
}

/* Where a device that was read is; map NULL: really. */
static struct shim_pci_device place_of(const struct map *map, const struct shim_pci *pci,
                                       int device)
{
    const struct shim_pci_device *real = &pci->devices[device];
    for (int i = 0; map && i < map->n; i++)
        if (map->gpus[i].bus == real->bus)
            return map->gpus[i];
    return map ? place_other(map, real) : *real;
}

/* Has it a NIC that NCCL takes for its own? */
static bool has_nic(const struct map *map, const struct shim_chain *chain,
                    const struct shim_pci *pci, const struct shim_pci_device *gpu)
{
    for (int i = 0; i < pci->n; i++) {
        struct shim_pci_device place = place_of(map, pci, i);
        if (shim_bus_find(chain->rings.chains[0].gpus, chain->rings.chains[0].n_gpus, place.bus) <
                0 &&
            shim_pci_distance(&place, gpu) <= SHIM_PXB)
            return true;
    }
    return false;
}

/* How NCCL reaches GPUs from each other: where they are, and up to which distance by P2P. */
struct reach {
    const struct shim_pci_device *const *gpus; /* in the order of the chain */
    enum shim_path level;
    bool (*linked)[SHIM_GPUS];
};

static bool is_direct(const struct shim_chain *chain, const struct reach *reach, int a, int b)
{
    return nvlink(chain, reach->linked, a, b) ||
           shim_pci_distance(reach->gpus[a], reach->gpus[b]) <= reach->level;
}

/* Where two GPUs have NICs of their own that are faster on paper than the way between them, NCCL
 * takes the network in place of host memory. How fast that is depends on much: it is not tried. And
 * it may take them for GPUs of two nodes, and fail to find one of them, whether or not a ring leads
 * from one to the other (ncclTopoTrimSystem). */
static bool takes_net(const struct map *map, const struct shim_chain *chain,
                      const struct shim_pci *pci, const struct reach *reach)
{
    int own[SHIM_GPUS], n = 0;
    for (int i = 0; pci->net_intra && i < chain->rings.chains[0].n_gpus; i++) {
        if (!has_nic(map, chain, pci, reach->gpus[i]))
            continue;
        for (int j = 0; j < n; j++)
            if (!is_direct(chain, reach, own[j], i))
                return true;
        own[n++] = i;
    }
    return false;
}

static bool as_planned(const struct map *map, const struct shim_chain *chain,
                       const struct shim_pci *pci, bool linked[SHIM_GPUS][SHIM_GPUS],
                       const struct shim_pci_device *const *gpus, enum shim_path level)
{
    struct reach reach = {gpus, level, linked};
    for (int i = 0; i < chain->rings.n; i++) {
        const struct tccl_named_chain *ring = &chain->rings.chains[i];
        for (int j = 0; j < tccl_named_edges(ring); j++)
            if (is_direct(chain, &reach, place_in(chain, ring, j), place_in(chain, ring, j + 1)) ==
                (ring->edges[j].kind == TCCL_BOUNCE))
                return false;
    }
    return !takes_net(map, chain, pci, &reach);
}

/* Do the ends come out as planned where GPUs and NICs really are? */
static bool ends_serve(const struct shim_chain *chain, const struct shim_pci *pci,
                       const struct shim_pci_device *const *gpus)
{
    struct end ends[2 * TCCL_CHAIN_RINGS];
    int n = find_ends(chain, pci, ends);
    for (int i = 0; i < n; i++) {
        int nic = shim_pci_find(pci, ends[i].nic);
        if (nic < 0 || !nic_serves(ends, n, &pci->devices[nic], gpus))
            return false;
    }
    return true;
}

/* Through Intel's CPUs no NCCL takes P2P by default: where it would at any distance, the file says
 * that the CPU is one. (As fast between sockets as AMD's, or faster.) */
static void add_cpu(const struct shim_pci *pci, int node, bool disguised, struct shim_text *text)
{
    shim_text_add(text, "<cpu numaid=\"%d\"", node);
    if (disguised)
        shim_text_add(text,
                      " arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"143\"");
    else if (pci->vendor[0])
        shim_text_add(text, " arch=\"x86_64\" vendor=\"%s\"", pci->vendor);
    if (!disguised && pci->vendor[0] && pci->family >= 0 && pci->model >= 0)
        shim_text_add(text, " familyid=\"%d\" modelid=\"%d\"", pci->family, pci->model);
    shim_text_add(text, ">\n");
}

static bool same_place(const struct shim_pci_device *a, const struct shim_pci_device *b, int depth)
{
    return a->node == b->node && b->depth >= depth &&
           memcmp(a->above, b->above, (size_t)depth * sizeof(*a->above)) == 0;
}

/* All that is below the first depth bridges above a GPU. A bridge is as fast as any, so that the
 * links of GPUs are what counts. */
static void add_below(struct map *map, const struct shim_pci_device *place, int depth,
                      struct shim_text *text)
{
    char bus[TCCL_BUS_TEXT];
    for (int i = 0; i < map->n; i++) {
        const struct shim_pci_device *gpu = &map->gpus[i];
        if (map->done[i] || !same_place(place, gpu, depth))
            continue;
        if (gpu->depth > depth) {
            bool invented = gpu->above[depth] >> 16 == 0xffff;
            tccl_bus_format(gpu->above[depth], bus);
            shim_text_add(text, "<pci busid=\"%s\" class=\"0x060400\"%s>\n", bus,
                          invented ? " link_speed=\"32.0 GT/s PCIe\" link_width=\"16\"" : "");
            add_below(map, gpu, depth + 1, text);
            shim_text_add(text, "</pci>\n");
        } else {
            tccl_bus_format(gpu->bus, bus);
            shim_text_add(text, "<pci busid=\"%s\"/>\n", bus);
            map->done[i] = true;
        }
    }
}

/* CPUs without GPUs, which NICs may be at. NCCL drops those that it does not need. */
static int add_others(const struct map *map, const struct shim_pci *pci, bool disguised,
                      struct shim_text *text)
{
    int n = 0;
    for (int node = -1; node < SHIM_PCI_NODES; node++) {
        bool there = !shim_pci_has_node(pci, node);
        for (int i = 0; i < map->n; i++)
            there = there || map->gpus[i].node == node;
        if (there)
            continue;
        add_cpu(pci, node, disguised, text);
        shim_text_add(text, "</cpu>\n");
        n++;
    }
    return n;
}

static int write_file(struct map *map, const struct shim_pci *pci, uint32_t version, bool disguised,
                      struct shim_text *text, struct tccl_error *why)
{
    int cpus = 0;
    shim_text_add(text, "<system version=\"1\">\n");
    for (int i = 0; i < map->n; i++) {
        if (map->done[i])
            continue;
        add_cpu(pci, map->gpus[i].node, disguised, text);
        add_below(map, &map->gpus[i], 0, text);
        shim_text_add(text, "</cpu>\n");
        cpus++;
    }
    if (shim_islands_all_cpus(version))
        cpus += add_others(map, pci, disguised, text);
    shim_text_add(text, "</system>\n");
    if (cpus > MOST_CPUS)
        return tccl_fail(why, "the machine has more NUMA nodes than NCCL reads");
    return text->full ? tccl_fail(why, "the topology file is too long") : 1;
}

int shim_islands(const struct shim_chain *chain, const struct shim_pci *pci,
                 bool linked[SHIM_GPUS][SHIM_GPUS], bool p2p_level_pxb, uint32_t version,
                 struct shim_text *text, struct tccl_error *why)
{
    bool far = !p2p_level_pxb && shim_islands_far_p2p(pci, chain->rings.chains[0].n_gpus, version);
    bool either = far && version == 0; /* both defaults must do */
    const struct shim_pci_device *gpus[SHIM_GPUS];
    struct map map;
    for (int i = 0; i < chain->rings.chains[0].n_gpus; i++) {
        int at = shim_pci_find(pci, chain->rings.chains[0].gpus[i]);
        if (at < 0)
            return tccl_fail(why, "a GPU's place is not known");
        gpus[i] = &pci->devices[at];
    }
    if (ends_serve(chain, pci, gpus) &&
        as_planned(NULL, chain, pci, linked, gpus, far ? SHIM_SYS : SHIM_PXB) &&
        (!either || as_planned(NULL, chain, pci, linked, gpus, SHIM_PXB)))
        return 0;
    if (draw(&map, chain, pci, why) != 0)
        return -1;
    for (int i = 0; i < chain->rings.chains[0].n_gpus; i++)
        gpus[i] = &map.gpus[i];
    if (!as_planned(&map, chain, pci, linked, gpus, SHIM_PXB))
        return tccl_fail(why, "NCCL can't be made to go through host memory between all GPUs "
                              "where the chain does");
    bool disguised = far && !as_planned(&map, chain, pci, linked, gpus, SHIM_SYS);
    if (disguised && !chain->rings.chains[0].closed &&
        !tccl_release_does(version, TCCL_FACT_SAME_MAKER))
        return tccl_fail(why, "this NCCL takes P2P at any distance");
    return write_file(&map, pci, version, disguised, text, why);
}

enum shim_path shim_islands_path(const struct shim_chain *chain, const struct shim_pci *pci,
                                 bool islands, tccl_bus a, tccl_bus b)
{
    int i = shim_pci_find(pci, a), j = shim_pci_find(pci, b);
    struct map map;
    if (!islands)
        return shim_pci_path(pci, a, b);
    if (i < 0 || j < 0 || draw(&map, chain, pci, NULL) != 0)
        return SHIM_SYS;
    struct shim_pci_device first = place_of(&map, pci, i), second = place_of(&map, pci, j);
    return shim_pci_distance(&first, &second);
}

int shim_islands_read(const struct shim_chain *chain, struct shim_pci *pci, struct tccl_error *why)
{
    tccl_bus devices[SHIM_GPUS + 2 * TCCL_CHAIN_RINGS];
    int n = 0;
    for (int i = 0; i < chain->rings.chains[0].n_gpus; i++)
        devices[n++] = chain->rings.chains[0].gpus[i];
    for (int i = 0; i < chain->rings.n && !chain->rings.chains[i].closed; i++) {
        devices[n++] = chain->entry[i];
        devices[n++] = chain->exit[i];
    }
    if (shim_pci_read("", devices, n, pci, why) != 0)
        return -1;
    shim_pci_add_nics(pci);
    return 0;
}
