/* islands.c: finds a topology in which NCCL takes each edge as planned, and tries it by NCCL's own
 * rules. */
#include <string.h>

#include "chain/nccl-version.h"
#include "nccl/shim-nccl.h"

/* An end of a ring: a NIC and a GPU. */
struct end {
    tccl_bus nic;
    int gpu;                /* its place in the chain */
    bool gpudirect, direct; /* as planned; NCCL can do it */
};

/* Where devices are, and where they will be (seen). */
struct map {
    const struct shim_chain *chain;
    const struct shim_pci *real;
    struct shim_pci *seen;
    bool (*linked)[SHIM_GPUS];
    int n, gpu[SHIM_GPUS]; /* the chain's GPUs: places in both */
    int island[SHIM_GPUS]; /* of GPU i: the first GPU in it */
    bool moved[SHIM_PCI_DEVICES];
    int n_ends;
    struct end ends[2 * TCCL_CHAIN_RINGS];
};

bool shim_islands_far_p2p(const struct shim_pci *pci, int n, uint32_t version)
{
    return tccl_release_does(version, TCCL_FACT_FAR_P2P) ? !pci->cautious : pci->amd && n <= 2;
}

static struct shim_pci_device *seen_gpu(const struct map *map, int i)
{
    return &map->seen->devices[map->gpu[i]];
}

static const struct shim_pci_device *real_gpu(const struct map *map, int i)
{
    return &map->real->devices[map->gpu[i]];
}

/* The place in the chain of a ring's GPU i; n_gpus is the first one again. */
static int place_in(const struct shim_chain *chain, const struct tccl_named_chain *ring, int i)
{
    return shim_ring_find(&chain->rings.chains[0], ring->gpus[i % ring->n_gpus]);
}

static void join(struct map *map, int a, int b)
{
    int from = map->island[a] > map->island[b] ? map->island[a] : map->island[b];
    int to = map->island[a] + map->island[b] - from;
    for (int i = 0; i < map->n; i++)
        if (map->island[i] == from)
            map->island[i] = to;
}

/* Does a ring meet the network here, directly, with GPU and NIC below this bridge? */
static bool serves_end(const struct map *map, int gpu, tccl_bus bridge)
{
    for (int i = 0; i < map->n_ends; i++) {
        int nic = shim_pci_find(map->real, map->ends[i].nic);
        if (map->ends[i].gpu == gpu && map->ends[i].gpudirect && nic >= 0 &&
            shim_pci_is_below(&map->real->devices[nic], bridge))
            return true;
    }
    return false;
}

/* The island that keeps a bridge with all NICs below it; GPUs of others are put elsewhere. */
static int owner_of(const struct map *map, tccl_bus bridge)
{
    int owner = -1;
    for (int i = 0; i < map->n; i++) {
        if (!shim_pci_is_below(real_gpu(map, i), bridge))
            continue;
        if (serves_end(map, i, bridge))
            return map->island[i];
        if (owner < 0)
            owner = map->island[i];
    }
    return owner;
}

/* The NUMA node that most GPUs of an island are at; of equals the first. But the rings' ends stay
 * at their CPU, where their threads for the network run; where P2P or one NIC joins several of
 * them, the others go to the first one's. */
static int16_t node_of(const struct map *map, int island)
{
    int16_t best = -1;
    int most = 0;
    for (int i = 0; i < map->n; i++) {
        int16_t node = real_gpu(map, i)->node;
        int count = 0;
        if (map->island[i] != island)
            continue;
        for (int end = 0; end < map->n_ends; end++)
            if (map->ends[end].gpu == i)
                return node;
        for (int other = 0; other < map->n; other++)
            count += map->island[other] == island && real_gpu(map, other)->node == node;
        if (count > most) {
            most = count;
            best = node;
        }
    }
    return best;
}

/* Has an island no bridge yet that is above all of its GPUs? */
static bool is_apart(const struct map *map, int island)
{
    const struct shim_pci_device *first = seen_gpu(map, island);
    for (int i = 0; i < map->n; i++)
        if (map->island[i] == island && i != island &&
            (first->depth == 0 || seen_gpu(map, i)->depth == 0 ||
             seen_gpu(map, i)->above[0] != first->above[0]))
            return true;
    return false;
}

static int put_below(struct shim_pci_device *place, tccl_bus bridge, struct tccl_error *why)
{
    if (place->depth == SHIM_PCI_DEPTH)
        return tccl_fail(why, "PCI switches are nested too deeply here");
    memmove(place->above + 1, place->above, place->depth * sizeof(*place->above));
    place->above[0] = bridge;
    place->depth++;
    return 0;
}

/* A device that the file does not name hangs below the first bridge of its own that is there. */
static void place_other(const struct map *map, int device)
{
    const struct shim_pci_device *real = &map->real->devices[device];
    for (int d = real->depth - 1; d >= 0; d--)
        for (int i = 0; i < map->n; i++) {
            const struct shim_pci_device *gpu = seen_gpu(map, i);
            for (int at = 0; at < gpu->depth; at++) {
                if (gpu->above[at] != real->above[d] || at + real->depth - d > SHIM_PCI_DEPTH)
                    continue;
                struct shim_pci_device *place = &map->seen->devices[device];
                *place = *gpu;
                place->bus = real->bus;
                place->depth = (uint8_t)(at + real->depth - d);
                memcpy(place->above + at, real->above + d,
                       (size_t)(real->depth - d) * sizeof(*place->above));
                return;
            }
        }
}

/* Is GPUDirect as planned at the ends that have the NIC with this place? */
static bool nic_serves(const struct map *map, const struct shim_pci_device *nic)
{
    for (int i = 0; i < map->n_ends; i++) {
        const struct end *end = &map->ends[i];
        bool near = shim_pci_distance(nic, seen_gpu(map, end->gpu)) <= SHIM_PXB;
        if (end->nic == nic->bus && (near && end->direct) != end->gpudirect)
            return false;
    }
    return true;
}

/* A NIC stays where it is if that is right for the ends that have it; else it is put near one that
 * it reaches directly, or away from all. */
static int place_nic(struct map *map, int nic, struct tccl_error *why)
{
    struct shim_pci_device *place = &map->seen->devices[nic];
    struct shim_pci_device *near = NULL; /* the first GPU that reaches it directly */
    int island = 0;
    if (nic_serves(map, place))
        return 0;
    for (int i = 0; i < map->n_ends && !near; i++)
        if (map->ends[i].nic == place->bus && map->ends[i].gpudirect) {
            near = seen_gpu(map, map->ends[i].gpu);
            island = map->island[map->ends[i].gpu];
        }
    *place = (struct shim_pci_device){.bus = place->bus, .node = map->real->devices[nic].node};
    if (near) { /* below the bridge that is above this GPU, and above all of its island */
        if (near->depth == 0 && put_below(near, shim_pci_unused(map->real, island), why) != 0)
            return -1;
        place->node = near->node;
        place->depth = 1;
        place->above[0] = near->above[0];
    }
    map->moved[nic] = true;
    return nic_serves(map, place)
               ? 0
               : tccl_fail(why,
                           "NCCL can't be made to use GPUDirect as the chain does at its ends");
}

static bool is_gpu(const struct map *map, int device)
{
    return shim_bus_find(map->chain->rings.chains[0].gpus, map->n,
                         map->real->devices[device].bus) >= 0;
}

/* Is the device that near to a GPU? */
static bool is_near_any(const struct map *map, int device)
{
    for (int i = 0; i < map->n; i++)
        if (shim_pci_distance(&map->seen->devices[device], seen_gpu(map, i)) <= SHIM_PXB)
            return true;
    return false;
}

static int draw(struct map *map, struct tccl_error *why)
{
    bool apart[SHIM_GPUS];
    /* Islands: what is joined by P2P edges of any ring. One NIC can only be near several ends if
     * they are near each other. */
    const struct shim_chain *chain = map->chain;
    for (int i = 0; i < map->n; i++)
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
    for (int i = 0; i < map->n; i++) { /* below the bridges that its island keeps */
        const struct shim_pci_device *real = real_gpu(map, i);
        struct shim_pci_device *place = seen_gpu(map, i);
        *place = (struct shim_pci_device){.bus = real->bus, .node = node_of(map, map->island[i])};
        for (int d = 0; d < real->depth; d++)
            if (owner_of(map, real->above[d]) == map->island[i])
                place->above[place->depth++] = real->above[d];
        map->moved[map->gpu[i]] = true;
    }
    for (int i = 0; i < map->n; i++)
        apart[i] = is_apart(map, map->island[i]);
    for (int i = 0; i < map->n; i++)
        if (apart[i] &&
            put_below(seen_gpu(map, i), shim_pci_unused(map->real, map->island[i]), why) != 0)
            return -1;
    for (int i = 0; i < map->real->n; i++) {
        struct shim_pci_device *place = &map->seen->devices[i];
        if (is_gpu(map, i))
            continue;
        place_other(map, i);
        /* Directly below their CPUs NICs are no GPU's own, and NCCL does not take them in place of
         * host memory. Within a node they have nothing else to do. */
        if (map->n_ends == 0 && map->seen->net_intra && is_near_any(map, i)) {
            *place =
                (struct shim_pci_device){.bus = place->bus, .node = map->real->devices[i].node};
            map->moved[i] = true;
        }
    }
    for (int i = 0; i < map->n_ends; i++)
        if (place_nic(map, shim_pci_find(map->real, map->ends[i].nic), why) != 0)
            return -1;
    return 0;
}

/* ---- How NCCL goes from one GPU to another ---- */

/* NCCL hands on over NVLink, also by one GPU between; else up to some distance. */
static bool is_direct(const struct map *map, int a, int b, enum shim_path level)
{
    bool(*linked)[SHIM_GPUS] = map->linked;
    if (linked[a][b] || linked[b][a])
        return true;
    for (int i = 0; i < map->n; i++)
        if (i != a && i != b && (linked[a][i] || linked[i][a]) && (linked[i][b] || linked[b][i]))
            return true;
    return shim_pci_distance(seen_gpu(map, a), seen_gpu(map, b)) <= level;
}

/* Has it a NIC that NCCL takes for its own? */
static bool has_nic(const struct map *map, int gpu)
{
    for (int i = 0; i < map->seen->n; i++)
        if (!is_gpu(map, i) &&
            shim_pci_distance(&map->seen->devices[i], seen_gpu(map, gpu)) <= SHIM_PXB)
            return true;
    return false;
}

/* Where two GPUs have NICs of their own that are faster on paper than the way between them, NCCL
 * takes the network in place of host memory. How fast that is depends on much: it is not tried. And
 * it may take them for GPUs of two nodes, and fail to find one of them, whether or not a ring leads
 * from one to the other (ncclTopoTrimSystem). */
static bool takes_net(const struct map *map, enum shim_path level)
{
    for (int i = 0; map->seen->net_intra && i < map->n; i++)
        for (int j = 0; j < i && has_nic(map, i); j++)
            if (has_nic(map, j) && !is_direct(map, j, i, level))
                return true;
    return false;
}

static bool as_planned(const struct map *map, enum shim_path level)
{
    const struct shim_chain *chain = map->chain;
    for (int i = 0; i < chain->rings.n; i++) {
        const struct tccl_named_chain *ring = &chain->rings.chains[i];
        for (int j = 0; j < tccl_named_edges(ring); j++)
            if (is_direct(map, place_in(chain, ring, j), place_in(chain, ring, j + 1), level) ==
                (ring->edges[j].kind == TCCL_BOUNCE))
                return false;
    }
    return !takes_net(map, level);
}

/* Do the ends come out as planned? */
static bool ends_serve(const struct map *map)
{
    for (int i = 0; i < map->n_ends; i++)
        if (!nic_serves(map, &map->seen->devices[shim_pci_find(map->real, map->ends[i].nic)]))
            return false;
    return true;
}

static int begin(struct map *map, struct tccl_error *why)
{
    for (int i = 0; i < map->n; i++) {
        map->gpu[i] = shim_pci_find(map->real, map->chain->rings.chains[0].gpus[i]);
        if (map->gpu[i] < 0)
            return tccl_fail(why, "a GPU's place is not known");
    }
    /* The ends of all rings; a closed one has none. */
    const struct shim_chain *chain = map->chain;
    for (int i = 0; i < chain->rings.n; i++) {
        const struct tccl_named_chain *ring = &chain->rings.chains[i];
        if (ring->closed)
            continue;
        map->ends[map->n_ends++] =
            (struct end){chain->entry[i], place_in(chain, ring, 0), ring->entry.gpudirect, true};
        map->ends[map->n_ends++] =
            (struct end){chain->exit[i], place_in(chain, ring, ring->n_gpus - 1),
                         ring->exit.gpudirect, map->real->reads >> i & 1};
    }
    for (int i = 0; i < map->n_ends; i++)
        if (shim_pci_find(map->real, map->ends[i].nic) < 0)
            return tccl_fail(why, "a NIC's place is not known");
    *map->seen = *map->real;
    return 0;
}

/* net_intra: may NCCL take NICs in place of host memory? */
static int make(struct map map, bool pxb, uint32_t version, bool net_intra, struct shim_text *text,
                struct tccl_error *why)
{
    bool far = !pxb && shim_islands_far_p2p(map.real, map.n, version);
    if (begin(&map, why) != 0)
        return -1;
    map.seen->net_intra = net_intra;
    if (ends_serve(&map) && as_planned(&map, far ? SHIM_SYS : SHIM_PXB))
        return 0;
    if (draw(&map, why) != 0)
        return -1;
    if (!as_planned(&map, SHIM_PXB))
        return tccl_fail(why, "NCCL can't be made to go through host memory between all GPUs "
                              "where the chain does");
    bool disguised = far && !as_planned(&map, SHIM_SYS);
    if (disguised && map.n_ends > 0 && !tccl_release_does(version, TCCL_FACT_SAME_MAKER))
        return tccl_fail(why, "this NCCL uses P2P between all GPUs, whatever its settings");
    return shim_topo_islands(map.seen, map.moved, disguised,
                             tccl_release_does(version, TCCL_FACT_ALL_CPUS), text, why);
}

int shim_islands(const struct shim_chain *chain, const struct shim_pci *pci,
                 bool linked[SHIM_GPUS][SHIM_GPUS], bool pxb, uint32_t version,
                 struct shim_text *text, struct shim_pci *seen, struct tccl_error *why)
{
    struct map map = {.chain = chain,
                      .real = pci,
                      .seen = seen,
                      .linked = linked,
                      .n = chain->rings.chains[0].n_gpus};
    struct shim_text empty = *text;
    int made = pci->net_intra ? make(map, pxb, version, true, text, NULL) : -1;
    if (made >= 0)
        return made;
    *text = empty;
    return make(map, pxb, version, false, text, why);
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
    pci->net_intra = true;
    return 0;
}
