/* islands.c: writes the topology file, after trying by NCCL's own rules whether it makes each edge
 * as planned. */
#include "nccl/islands.h"

#include <string.h>

enum {
    DEFAULT_PXB = 22300, /* from this version on P2P is by default taken up to PXB only */
    HOST_HASHES = 22100, /* from here up to … */
    OWN_HASHES = 22703,  /* … here CPUs of the file and others are taken for those of two hosts */
    SAME_VENDOR = 22400, /* from here on ranks agree on the CPU's maker before they tune */
    MOST_CPUS = 24       /* NCCL reads 32 things below one, of which some may be there already */
};

/* Where the topology file puts the devices of pci. */
struct map {
    const struct shim_chain *chain;
    int island[SHIM_GPUS]; /* of chain->path.gpus[i]: the index of the first GPU in it */
    /* As in the chain; behind them NICs that are not left where they are. */
    struct shim_pci_device gpus[SHIM_PCI_DEVICES];
    int n;
    bool done[SHIM_PCI_DEVICES];
};

bool shim_islands_far_p2p(const struct shim_pci *pci, int n, uint32_t version)
{
    bool before = !pci->cautious, since = pci->amd && n <= 2;
    if (version == 0)
        return before || since;
    return version < DEFAULT_PXB ? before : since;
}

bool shim_islands_all_cpus(uint32_t version)
{
    return version == 0 || (version >= HOST_HASHES && version < OWN_HASHES);
}

/* NCCL hands on over NVLink, also by one GPU between. */
static bool nvlink(const struct shim_chain *chain, bool linked[SHIM_GPUS][SHIM_GPUS], int a, int b)
{
    if (linked[a][b] || linked[b][a])
        return true;
    for (int i = 0; i < chain->path.n_gpus; i++)
        if (i != a && i != b && (linked[a][i] || linked[i][a]) && (linked[i][b] || linked[b][i]))
            return true;
    return false;
}

static void join(struct map *map, int a, int b)
{
    int from = map->island[a] > map->island[b] ? map->island[a] : map->island[b];
    int to = map->island[a] + map->island[b] - from;
    for (int i = 0; i < map->chain->path.n_gpus; i++)
        if (map->island[i] == from)
            map->island[i] = to;
}

/* Islands: what is joined by P2P edges. */
static void find_islands(struct map *map)
{
    const struct shim_chain *chain = map->chain;
    for (int i = 0; i < chain->path.n_gpus; i++)
        map->island[i] = i;
    for (int i = 0; i < tccl_named_edges(&chain->path); i++)
        if (chain->path.edges[i].kind != TCCL_BOUNCE)
            join(map, i, (i + 1) % chain->path.n_gpus);
    /* One NIC can only be near both ends if they are near each other. */
    if (!chain->path.closed && chain->entry == chain->exit && chain->path.entry.gpudirect &&
        chain->path.exit.gpudirect)
        join(map, 0, chain->path.n_gpus - 1);
}

static const struct shim_pci_device *gpu_of(const struct map *map, const struct shim_pci *pci,
                                            int i)
{
    return &pci->devices[shim_pci_find(pci, map->chain->path.gpus[i])];
}

/* Does the chain meet the network here, directly, with GPU and NIC below this bridge? */
static bool serves_end(const struct map *map, const struct shim_pci *pci, int gpu, shim_bus bridge)
{
    const struct shim_chain *chain = map->chain;
    const struct tccl_named_port *ends[] = {&chain->path.entry, &chain->path.exit};
    const int gpus[] = {0, chain->path.n_gpus - 1};
    for (int i = 0; i < 2 && !chain->path.closed; i++) {
        int nic = shim_pci_find(pci, i == 0 ? chain->entry : chain->exit);
        if (gpus[i] == gpu && ends[i]->gpudirect && nic >= 0 &&
            shim_pci_is_below(&pci->devices[nic], bridge))
            return true;
    }
    return false;
}

/* The island that keeps a bridge with all NICs below it; GPUs of others are put elsewhere. */
static int owner_of(const struct map *map, const struct shim_pci *pci, shim_bus bridge)
{
    int owner = -1;
    for (int i = 0; i < map->chain->path.n_gpus; i++) {
        if (!shim_pci_is_below(gpu_of(map, pci, i), bridge))
            continue;
        if (serves_end(map, pci, i, bridge))
            return map->island[i];
        if (owner < 0)
            owner = map->island[i];
    }
    return owner;
}

/* The NUMA node that most GPUs of an island are at; of equals the first. But the chain's ends stay
 * at their CPU, where their threads for the network run; the last GPU goes to the first one's
 * where P2P or one NIC joins them. */
static int16_t node_of(const struct map *map, const struct shim_pci *pci, int island)
{
    int16_t best = -1;
    int most = 0, last = map->chain->path.n_gpus - 1;
    for (int i = 0; i <= last; i++) {
        int count = 0;
        if (map->island[i] != island)
            continue;
        if (!map->chain->path.closed && (i == 0 || i == last))
            return gpu_of(map, pci, i)->node;
        for (int other = 0; other <= last; other++)
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
    for (int i = 0; i < map->chain->path.n_gpus; i++)
        if (map->island[i] == island && i != island &&
            (first->depth == 0 || map->gpus[i].depth == 0 ||
             map->gpus[i].above[0] != first->above[0]))
            return true;
    return false;
}

static int put_below(struct shim_pci_device *place, shim_bus bridge, struct shim_why *why)
{
    if (place->depth == SHIM_PCI_DEPTH)
        return shim_fail(why, "the PCI tree is too deep");
    memmove(place->above + 1, place->above, place->depth * sizeof(*place->above));
    place->above[0] = bridge;
    place->depth++;
    return 0;
}

/* A device that the file does not name hangs below the first bridge of its own that is there. */
static struct shim_pci_device place_other(const struct map *map, const struct shim_pci_device *real)
{
    for (int d = real->depth - 1; d >= 0; d--) {
        for (int i = 0; i < map->chain->path.n_gpus; i++) {
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

/* Is GPUDirect as planned at the ends that have the NIC with this place? head, tail: the GPUs'. */
static bool nic_serves(const struct shim_chain *chain, const struct shim_pci *pci,
                       const struct shim_pci_device *nic, const struct shim_pci_device *head,
                       const struct shim_pci_device *tail)
{
    bool at_head = shim_pci_distance(nic, head) <= SHIM_PXB;
    bool at_tail = pci->reads && shim_pci_distance(nic, tail) <= SHIM_PXB;
    return (chain->entry != nic->bus || at_head == chain->path.entry.gpudirect) &&
           (chain->exit != nic->bus || at_tail == chain->path.exit.gpudirect);
}

/* Below the bridge that is above the GPU, and above all of its island. */
static int put_near(struct map *map, const struct shim_pci *pci, int gpu, shim_bus nic,
                    struct shim_pci_device *place, struct shim_why *why)
{
    struct shim_pci_device *at = &map->gpus[gpu];
    if (at->depth == 0 && put_below(at, shim_pci_unused(pci, map->island[gpu]), why) != 0)
        return -1;
    *place = (struct shim_pci_device){.bus = nic, .node = at->node, .depth = 1};
    place->above[0] = at->above[0];
    return 0;
}

/* A NIC stays where it is if that is right for the ends that have it; else it is put near the one
 * that it reaches directly, or away from both. */
static int place_nic(struct map *map, const struct shim_pci *pci, shim_bus nic,
                     struct shim_why *why)
{
    const struct shim_chain *chain = map->chain;
    int last = chain->path.n_gpus - 1, at = shim_pci_find(pci, nic);
    bool head = chain->entry == nic && chain->path.entry.gpudirect;
    bool tail = chain->exit == nic && chain->path.exit.gpudirect;
    if (at < 0)
        return shim_fail(why, "a NIC's place is not known");
    struct shim_pci_device place = place_other(map, &pci->devices[at]);
    if (nic_serves(chain, pci, &place, &map->gpus[0], &map->gpus[last]))
        return 0;
    place = (struct shim_pci_device){.bus = nic, .node = pci->devices[at].node};
    if ((head || tail) && put_near(map, pci, head ? 0 : last, nic, &place, why) != 0)
        return -1;
    if (!nic_serves(chain, pci, &place, &map->gpus[0], &map->gpus[last]))
        return shim_fail(why, "NCCL can't be made to use GPUDirect as the chain does at its ends");
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
        if (shim_bus_find(map->chain->path.gpus, n_gpus, nic->bus) >= 0)
            continue;
        struct shim_pci_device place = place_other(map, nic);
        for (int gpu = 0; gpu < n_gpus; gpu++)
            if (shim_pci_distance(&place, &map->gpus[gpu]) <= SHIM_PXB) {
                map->gpus[map->n++] = (struct shim_pci_device){.bus = nic->bus, .node = nic->node};
                break;
            }
    }
}

static int place_nics(struct map *map, const struct shim_pci *pci, struct shim_why *why)
{
    const struct shim_chain *chain = map->chain;
    if (chain->path.closed && pci->net_intra)
        move_nics_away(map, pci);
    if (chain->path.closed)
        return 0;
    if (place_nic(map, pci, chain->entry, why) != 0)
        return -1;
    return chain->exit == chain->entry ? 0 : place_nic(map, pci, chain->exit, why);
}

static int draw(struct map *map, const struct shim_chain *chain, const struct shim_pci *pci,
                struct shim_why *why)
{
    memset(map, 0, sizeof(*map));
    map->chain = chain;
    map->n = chain->path.n_gpus;
    for (int i = 0; i < chain->path.n_gpus; i++)
        if (shim_pci_find(pci, chain->path.gpus[i]) < 0)
            return shim_fail(why, "a GPU's place is not known");
    find_islands(map);
    for (int i = 0; i < chain->path.n_gpus; i++)
        place_gpu(map, pci, i);
    bool apart[SHIM_GPUS] = {false};
    for (int i = 0; i < chain->path.n_gpus; i++)
        apart[i] = is_apart(map, map->island[i]);
    for (int i = 0; i < chain->path.n_gpus; i++)
        if (apart[i] && put_below(&map->gpus[i], shim_pci_unused(pci, map->island[i]), why) != 0)
            return -1;
    return place_nics(map, pci, why);
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
        if (shim_bus_find(chain->path.gpus, chain->path.n_gpus, place.bus) < 0 &&
            shim_pci_distance(&place, gpu) <= SHIM_PXB)
            return true;
    }
    return false;
}

/* Where two GPUs have NICs of their own that are faster on paper than the way between them, NCCL
 * takes the network in place of host memory. How fast that is depends on much: it is not tried. */
static bool takes_net(const struct map *map, const struct shim_chain *chain,
                      const struct shim_pci *pci, const struct shim_pci_device *a,
                      const struct shim_pci_device *b)
{
    return pci->net_intra && has_nic(map, chain, pci, a) && has_nic(map, chain, pci, b);
}

/* Does NCCL take each edge as planned, where GPUs are far from each other as distance says? */
static bool as_planned(const struct map *map, const struct shim_chain *chain,
                       const struct shim_pci *pci, bool linked[SHIM_GPUS][SHIM_GPUS],
                       const struct shim_pci_device *const *gpus, enum shim_path level)
{
    for (int i = 0; i < tccl_named_edges(&chain->path); i++) {
        int next = (i + 1) % chain->path.n_gpus;
        bool direct =
            nvlink(chain, linked, i, next) || shim_pci_distance(gpus[i], gpus[next]) <= level;
        if (direct == (chain->path.edges[i].kind == TCCL_BOUNCE) ||
            (!direct && takes_net(map, chain, pci, gpus[i], gpus[next])))
            return false;
    }
    return true;
}

/* Do the ends come out as planned where GPUs and NICs really are? */
static bool ends_serve(const struct shim_chain *chain, const struct shim_pci *pci,
                       const struct shim_pci_device *const *gpus)
{
    int entry = shim_pci_find(pci, chain->entry), exit = shim_pci_find(pci, chain->exit);
    const struct shim_pci_device *head = gpus[0], *tail = gpus[chain->path.n_gpus - 1];
    return chain->path.closed ||
           (entry >= 0 && exit >= 0 && nic_serves(chain, pci, &pci->devices[entry], head, tail) &&
            nic_serves(chain, pci, &pci->devices[exit], head, tail));
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

static bool holds_gpu(const struct map *map, int node)
{
    for (int i = 0; i < map->n; i++)
        if (map->gpus[i].node == node)
            return true;
    return false;
}

/* CPUs without GPUs, which NICs may be at. NCCL drops those that it does not need. */
static int add_others(const struct map *map, const struct shim_pci *pci, bool disguised,
                      struct shim_text *text)
{
    int n = 0;
    for (int node = -1; node < SHIM_PCI_NODES; node++) {
        if (holds_gpu(map, node) || !shim_pci_has_node(pci, node))
            continue;
        add_cpu(pci, node, disguised, text);
        shim_text_add(text, "</cpu>\n");
        n++;
    }
    return n;
}

static int write_file(struct map *map, const struct shim_pci *pci, uint32_t version, bool disguised,
                      struct shim_text *text, struct shim_why *why)
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
        return shim_fail(why, "the machine has more NUMA nodes than NCCL reads");
    return text->full ? shim_fail(why, "the topology file is too long") : 1;
}

int shim_islands(const struct shim_chain *chain, const struct shim_pci *pci,
                 bool linked[SHIM_GPUS][SHIM_GPUS], bool p2p_level_pxb, uint32_t version,
                 struct shim_text *text, struct shim_why *why)
{
    bool far = !p2p_level_pxb && shim_islands_far_p2p(pci, chain->path.n_gpus, version);
    bool either = far && version == 0; /* both defaults must do */
    const struct shim_pci_device *gpus[SHIM_GPUS];
    struct map map;
    for (int i = 0; i < chain->path.n_gpus; i++) {
        int at = shim_pci_find(pci, chain->path.gpus[i]);
        if (at < 0)
            return shim_fail(why, "a GPU's place is not known");
        gpus[i] = &pci->devices[at];
    }
    if (ends_serve(chain, pci, gpus) &&
        as_planned(NULL, chain, pci, linked, gpus, far ? SHIM_SYS : SHIM_PXB) &&
        (!either || as_planned(NULL, chain, pci, linked, gpus, SHIM_PXB)))
        return 0;
    if (draw(&map, chain, pci, why) != 0)
        return -1;
    for (int i = 0; i < chain->path.n_gpus; i++)
        gpus[i] = &map.gpus[i];
    if (!as_planned(&map, chain, pci, linked, gpus, SHIM_PXB))
        return shim_fail(why, "NCCL can't be made to go through host memory between all GPUs "
                              "where the chain does");
    bool disguised = far && !as_planned(&map, chain, pci, linked, gpus, SHIM_SYS);
    if (disguised && !chain->path.closed && version < SAME_VENDOR)
        return shim_fail(why, "this NCCL takes P2P at any distance");
    return write_file(&map, pci, version, disguised, text, why);
}

static int find_place(const struct map *map, const struct shim_pci *pci, shim_bus bus,
                      struct shim_pci_device *place)
{
    int i = shim_pci_find(pci, bus);
    if (i < 0)
        return -1;
    *place = place_of(map, pci, i);
    return 0;
}

enum shim_path shim_islands_path(const struct shim_chain *chain, const struct shim_pci *pci,
                                 bool islands, shim_bus a, shim_bus b)
{
    struct shim_pci_device first, second;
    struct map map;
    if (!islands)
        return shim_pci_path(pci, a, b);
    if (draw(&map, chain, pci, NULL) != 0 || find_place(&map, pci, a, &first) != 0 ||
        find_place(&map, pci, b, &second) != 0)
        return SHIM_SYS;
    return shim_pci_distance(&first, &second);
}

int shim_islands_read(const struct shim_chain *chain, struct shim_pci *pci, struct shim_why *why)
{
    shim_bus devices[SHIM_GPUS + 2];
    int n = 0;
    for (int i = 0; i < chain->path.n_gpus; i++)
        devices[n++] = chain->path.gpus[i];
    if (!chain->path.closed)
        devices[n++] = chain->entry;
    if (!chain->path.closed && chain->exit != chain->entry)
        devices[n++] = chain->exit;
    if (shim_pci_read(devices, n, pci, why) != 0)
        return -1;
    shim_pci_add_nics(pci);
    return 0;
}
