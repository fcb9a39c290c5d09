/* Topology files of random chains in random PCI trees: read back as NCCL would, each edge comes out
 * as planned, and devices are as far from each other as the shim says. */
#include "check.h"
#include "nccl/shim-nccl.h"

enum { BRIDGES = 6, NODES = 128, TEXT = 16384, VERSION = 22907 };

/* ---- A random machine and chain ---- */

/* Bridges in a forest; each device hangs below one, or at a CPU. */
static void random_pci(unsigned long *seed, int gpus, struct shim_pci *pci)
{
    int parents[BRIDGES], bridges = random_below(seed, BRIDGES + 1);
    int16_t nodes[BRIDGES];
    memset(pci, 0, sizeof(*pci));
    pci->family = pci->model = -1;
    pci->amd = random_below(seed, 2);
    pci->cautious = !pci->amd && random_below(seed, 2);
    pci->reads = (uint8_t)(random_below(seed, 4) ? UINT8_MAX : random_below(seed, 8));
    pci->net_intra = random_below(seed, 2);
    if (random_below(seed, 2))
        strcpy(pci->vendor, pci->amd ? "AuthenticAMD" : pci->cautious ? "GenuineIntel" : "Other");
    for (int i = 0; i < bridges; i++) {
        parents[i] = random_below(seed, i + 1) - 1;
        nodes[i] = parents[i] < 0 ? (int16_t)(random_below(seed, 4) - 1) : nodes[parents[i]];
    }
    pci->n = (uint8_t)(gpus + 2);
    for (int i = 0; i < pci->n; i++) {
        struct shim_pci_device *device = &pci->devices[i];
        int at = random_below(seed, bridges + 1) - 1, way[BRIDGES];
        device->bus = (tccl_bus)(0x10 + i) << 8;
        device->node = at < 0 ? (int16_t)(random_below(seed, 4) - 1) : nodes[at];
        for (; at >= 0; at = parents[at])
            way[device->depth++] = at;
        for (int d = 0; d < device->depth; d++)
            device->above[d] = (tccl_bus)(0x80 + way[device->depth - 1 - d]) << 8;
    }
}

static void random_end(unsigned long *seed, const struct shim_pci *pci, tccl_bus *nic,
                       struct tccl_named_port *end)
{
    *nic = pci->devices[pci->n - 1 - random_below(seed, 2)].bus;
    end->gpudirect = random_below(seed, 2);
}

static void random_chain(unsigned long *seed, int gpus, const struct shim_pci *pci,
                         struct shim_chain *chain)
{
    memset(chain, 0, sizeof(*chain));
    chain->rings.n = 1;
    chain->rings.chains[0].n_gpus = (uint8_t)gpus;
    chain->rings.chains[0].closed = gpus > 1 && random_below(seed, 2);
    for (int i = 0; i < gpus; i++) {
        int other = random_below(seed, i + 1);
        chain->rings.chains[0].gpus[i] = chain->rings.chains[0].gpus[other];
        chain->rings.chains[0].gpus[other] = pci->devices[i].bus;
        chain->rings.chains[0].edges[i].kind = random_below(seed, 2) ? TCCL_BOUNCE : TCCL_P2P_WRITE;
    }
    random_end(seed, pci, &chain->entry[0], &chain->rings.chains[0].entry);
    random_end(seed, pci, &chain->exit[0], &chain->rings.chains[0].exit);
}

/* More rings: P2P between GPUs of the same group, host memory between others. */
static void random_rings(unsigned long *seed, const struct shim_pci *pci, struct shim_chain *chain)
{
    int groups = 1 + random_below(seed, 4);
    chain->rings.n = 2 + random_below(seed, TCCL_CHAIN_RINGS - 1);
    for (int r = 0; r < chain->rings.n; r++) {
        struct tccl_named_chain *path = &chain->rings.chains[r];
        chain->rings.chains[r] = chain->rings.chains[0];
        for (int i = path->n_gpus - 1; i > 0; i--) {
            int other = random_below(seed, i + 1);
            tccl_bus gpu = path->gpus[i];
            path->gpus[i] = path->gpus[other];
            path->gpus[other] = gpu;
        }
        for (int i = 0; i < path->n_gpus; i++) {
            tccl_bus next = path->gpus[(i + 1) % path->n_gpus];
            path->edges[i].kind =
                (path->gpus[i] >> 8) % (unsigned)groups == (next >> 8) % (unsigned)groups
                    ? TCCL_P2P_WRITE
                    : TCCL_BOUNCE;
        }
        random_end(seed, pci, &chain->entry[r], &path->entry);
        random_end(seed, pci, &chain->exit[r], &path->exit);
    }
}

static int edges(const struct shim_chain *chain)
{
    return tccl_named_edges(&chain->rings.chains[0]);
}

/* ---- What NCCL has in the end ---- */

struct node {
    bool cpu;
    uint64_t id; /* bus id, or number of the CPU + 1 */
    int parent;
};
struct tree {
    struct node nodes[NODES];
    int n;
};

static int find_node(const struct tree *tree, bool cpu, uint64_t id)
{
    for (int i = 0; i < tree->n; i++)
        if (tree->nodes[i].cpu == cpu && tree->nodes[i].id == id)
            return i;
    return -1;
}

static int add_node(struct tree *tree, bool cpu, uint64_t id, int parent)
{
    CHECK(tree->n < NODES);
    tree->nodes[tree->n] = (struct node){cpu, id, parent};
    return tree->n++;
}

/* Tags one in a line, as the shim writes them. */
static void read_topology(const char *text, struct tree *tree)
{
    char copy[TEXT], *rest = copy;
    int at = -1;
    snprintf(copy, sizeof(copy), "%s", text);
    for (char *line; (line = strsep(&rest, "\n"));) {
        int node;
        char bus[32];
        tccl_bus id;
        if (sscanf(line, "<cpu numaid=\"%d\"", &node) == 1) {
            CHECK_INT(at, -1);
            CHECK_INT(find_node(tree, true, (uint64_t)(node + 1)), -1);
            at = add_node(tree, true, (uint64_t)(node + 1), -1);
        } else if (sscanf(line, "<pci busid=\"%31[^\"]\"", bus) == 1) {
            CHECK_INT(tccl_bus_parse(bus, &id), 0);
            CHECK_INT(find_node(tree, false, id), -1);
            CHECK(at >= 0);
            int added = add_node(tree, false, id, at);
            at = line[strlen(line) - 2] == '/' ? at : added;
        } else if (strcmp(line, "</pci>") == 0 || strcmp(line, "</cpu>") == 0) {
            at = tree->nodes[at].parent;
        } else {
            CHECK(strcmp(line, "<system version=\"1\">") == 0 || strcmp(line, "</system>") == 0 ||
                  !*line);
        }
    }
    CHECK_INT(at, -1);
}

/* NCCL adds what the file lacks: from the device upwards to the first that is there. */
static void add_device(struct tree *tree, const struct shim_pci_device *device)
{
    if (find_node(tree, false, device->bus) >= 0)
        return;
    int parent = find_node(tree, true, (uint64_t)(device->node + 1)), depth = 0;
    for (int d = device->depth; d > 0 && depth == 0; d--) {
        int there = find_node(tree, false, device->above[d - 1]);
        if (there >= 0) {
            parent = there;
            depth = d;
        }
    }
    if (parent < 0)
        parent = add_node(tree, true, (uint64_t)(device->node + 1), -1);
    for (int d = depth; d < device->depth; d++)
        parent = add_node(tree, false, device->above[d], parent);
    add_node(tree, false, device->bus, parent);
}

static int ancestors(const struct tree *tree, int at, int list[static NODES])
{
    int n = 0;
    while ((at = tree->nodes[at].parent) >= 0)
        list[n++] = at;
    return n;
}

/* By counting what lies on the way. */
static enum shim_path measure(const struct tree *tree, tccl_bus a, tccl_bus b)
{
    int of_a[NODES], of_b[NODES];
    int n_a = ancestors(tree, find_node(tree, false, a), of_a);
    int n_b = ancestors(tree, find_node(tree, false, b), of_b);
    for (int i = 0; i < n_a; i++)
        for (int j = 0; j < n_b; j++)
            if (of_a[i] == of_b[j])
                return tree->nodes[of_a[i]].cpu ? SHIM_PHB : i + j == 0 ? SHIM_PIX : SHIM_PXB;
    return SHIM_SYS;
}

/* ---- The properties ---- */

static bool nvlink(bool linked[SHIM_GPUS][SHIM_GPUS], int n, int a, int b)
{
    bool found = linked[a][b];
    for (int i = 0; i < n; i++)
        found = found || (linked[a][i] && linked[i][b]);
    return found;
}

/* Is there a way along P2P edges between two neighbours that are to bounce, or NVLink? Then nothing
 * can be done. */
static bool is_possible(const struct shim_chain *chain, bool linked[SHIM_GPUS][SHIM_GPUS])
{
    for (int i = 0; i < edges(chain); i++) {
        int next = (i + 1) % chain->rings.chains[0].n_gpus, at = next, steps = 0;
        if (chain->rings.chains[0].edges[i].kind != TCCL_BOUNCE)
            continue;
        if (nvlink(linked, chain->rings.chains[0].n_gpus, i, next))
            return false;
        for (; chain->rings.chains[0].closed && steps < chain->rings.chains[0].n_gpus - 1 &&
               chain->rings.chains[0].edges[at].kind != TCCL_BOUNCE;
             at = (at + 1) % chain->rings.chains[0].n_gpus)
            steps++;
        if (chain->rings.chains[0].closed && at == i && steps == chain->rings.chains[0].n_gpus - 1)
            return false;
    }
    return true;
}

static bool ring_comes_out(const struct shim_chain *chain, int ring, const struct tree *tree,
                           bool linked[SHIM_GPUS][SHIM_GPUS], enum shim_path level)
{
    const struct tccl_named_chain *path = &chain->rings.chains[ring],
                                  *first = &chain->rings.chains[0];
    for (int i = 0; i < tccl_named_edges(path); i++) {
        tccl_bus from = path->gpus[i], to = path->gpus[(i + 1) % path->n_gpus];
        bool direct = nvlink(linked, path->n_gpus, shim_bus_find(first->gpus, path->n_gpus, from),
                             shim_bus_find(first->gpus, path->n_gpus, to)) ||
                      measure(tree, from, to) <= level;
        if (direct != (path->edges[i].kind != TCCL_BOUNCE))
            return false;
    }
    return true;
}

static bool comes_out(const struct shim_chain *chain, const struct tree *tree,
                      bool linked[SHIM_GPUS][SHIM_GPUS], enum shim_path level)
{
    for (int i = 0; i < chain->rings.n; i++)
        if (!ring_comes_out(chain, i, tree, linked, level))
            return false;
    return true;
}

/* NVLink between some pairs, often none. */
static void random_links(unsigned long *seed, int n, bool linked[SHIM_GPUS][SHIM_GPUS])
{
    memset(linked, 0, sizeof(bool[SHIM_GPUS][SHIM_GPUS]));
    if (random_below(seed, 4))
        return;
    for (int i = 0; i + 1 < n; i++)
        linked[i][i + 1] = linked[i + 1][i] = random_below(seed, 3) == 0;
}

static bool has_nic(const struct shim_chain *chain, const struct shim_pci *pci,
                    const struct tree *tree, tccl_bus gpu)
{
    for (int i = 0; i < pci->n; i++)
        if (shim_bus_find(chain->rings.chains[0].gpus, chain->rings.chains[0].n_gpus,
                          pci->devices[i].bus) < 0 &&
            measure(tree, pci->devices[i].bus, gpu) <= SHIM_PXB)
            return true;
    return false;
}

/* Must both ends be at one CPU where the file says so: P2P all the way, or GPUDirect to one NIC? */
static bool ends_joined(const struct shim_chain *chain)
{
    bool joined = true;
    for (int i = 0; i < edges(chain); i++)
        joined = joined && chain->rings.chains[0].edges[i].kind != TCCL_BOUNCE;
    return joined || (chain->entry[0] == chain->exit[0] && chain->rings.chains[0].entry.gpudirect &&
                      chain->rings.chains[0].exit.gpudirect);
}

/* GPUDirect at the ends. */
static void check_ends(const struct shim_chain *chain, int ring, const struct shim_pci *pci,
                       const struct tree *tree)
{
    const struct tccl_named_chain *path = &chain->rings.chains[ring];
    tccl_bus head = path->gpus[0], tail = path->gpus[path->n_gpus - 1];
    if (path->closed)
        return;
    CHECK_INT(measure(tree, chain->entry[ring], head) <= SHIM_PXB, path->entry.gpudirect);
    CHECK_INT((pci->reads >> ring & 1) && measure(tree, chain->exit[ring], tail) <= SHIM_PXB,
              path->exit.gpudirect);
}

/* No two GPUs with NICs of their own that don't reach each other directly: NCCL would take them for
 * those of two nodes. */
static void check_network(const struct shim_chain *chain, const struct shim_pci *pci,
                          const struct tree *tree, bool linked[SHIM_GPUS][SHIM_GPUS],
                          enum shim_path level)
{
    const struct tccl_named_chain *path = &chain->rings.chains[0];
    for (int i = 0; i < path->n_gpus && pci->net_intra; i++)
        for (int j = 0; j < i; j++)
            CHECK(nvlink(linked, path->n_gpus, i, j) ||
                  measure(tree, path->gpus[i], path->gpus[j]) <= level ||
                  !has_nic(chain, pci, tree, path->gpus[i]) ||
                  !has_nic(chain, pci, tree, path->gpus[j]));
}

/* The ends keep their CPU, but for the last GPU where a file joins them. */
static void check_cpus(const struct shim_chain *chain, const struct shim_pci *pci,
                       const struct tree *tree, bool file)
{
    const struct tccl_named_chain *path = &chain->rings.chains[0];
    for (int i = 0; i < 2 && !path->closed; i++) {
        tccl_bus head = path->gpus[0], tail = path->gpus[path->n_gpus - 1];
        int list[NODES], n = ancestors(tree, find_node(tree, false, i ? tail : head), list);
        bool moved = i > 0 && file && ends_joined(chain);
        int from = shim_pci_find(pci, i > 0 && !moved ? tail : head);
        CHECK_INT((long)tree->nodes[list[n - 1]].id, pci->devices[from].node + 1);
    }
}

static bool has_links(bool linked[SHIM_GPUS][SHIM_GPUS])
{
    bool any = false;
    for (int i = 0; i < SHIM_GPUS * SHIM_GPUS; i++)
        any = any || linked[i / SHIM_GPUS][i % SHIM_GPUS];
    return any;
}

/* Returns what the shim did. */
static int check_one(unsigned long *seed, bool sets)
{
    bool linked[SHIM_GPUS][SHIM_GPUS], pxb = random_below(seed, 2);
    int gpus = 1 + random_below(seed, 9);
    char topology[TEXT] = "";
    struct shim_text text = {topology, sizeof(topology), 0, false};
    struct shim_pci pci, seen;
    struct shim_chain chain;
    struct tree tree = {.n = 0};
    random_pci(seed, gpus, &pci);
    random_chain(seed, gpus, &pci, &chain);
    random_links(seed, gpus, linked);
    if (sets)
        random_rings(seed, &pci, &chain);
    uint32_t version = random_below(seed, 4) ? VERSION : 22203;
    int answer = shim_islands(&chain, &pci, linked, pxb, version, &text, &seen, ERR);
    enum shim_path level =
        !pxb && (version == VERSION ? pci.amd && gpus <= 2 : !pci.cautious) ? SHIM_SYS : SHIM_PXB;
    CHECK((answer < 0) == (check_err.text[0] != '\0') && (answer == 1) == (topology[0] != '\0'));
    if (answer > 0)
        read_topology(topology, &tree);
    if (!pci.cautious && strstr(topology, "vendor=\"GenuineIntel\""))
        level = SHIM_PXB; /* no longer what it is */
    for (int i = 0; i < pci.n; i++)
        add_device(&tree, &pci.devices[i]);
    CHECK_INT(answer >= 0 && comes_out(&chain, &tree, linked, level), answer >= 0);
    if (answer < 0 && !sets)
        CHECK(!chain.rings.chains[0].closed || !is_possible(&chain, linked));
    if (answer < 0 && sets) /* such rings can be had within a node */
        CHECK(!chain.rings.chains[0].closed || has_links(linked));
    for (int i = 0; i < chain.rings.n && answer >= 0; i++)
        check_ends(&chain, i, &pci, &tree);
    CHECK(answer < 0 || pci.net_intra || !seen.net_intra);
    if (answer >= 0)
        check_network(&chain, &seen, &tree, linked, level);
    if (answer >= 0 && !sets)
        check_cpus(&chain, &pci, &tree, answer > 0);
    for (int i = 0; i < pci.n && answer >= 0; i++)
        for (int j = 0; j < i; j++)
            CHECK_INT(shim_pci_path(&seen, pci.devices[i].bus, pci.devices[j].bus),
                      measure(&tree, pci.devices[i].bus, pci.devices[j].bus));
    return answer;
}

TEST(random)
{
    unsigned long seed = check_seed();
    for (int sets = 0; sets < 2; sets++) {
        int seen[3] = {0};
        for (int i = 0; i < 5000 && check_failures < 10; i++)
            seen[check_one(&seed, sets) + 1]++;
        CHECK(seen[0] > 0 && seen[1] > 0 && seen[2] > 0);
    }
}

/* ---- Versions ---- */

TEST(levels)
{
    struct shim_pci amd = {.amd = true}, intel = {.cautious = true}, other = {.n = 0};
    CHECK(shim_islands_far_p2p(&amd, 4, 22203) && !shim_islands_far_p2p(&amd, 4, 22304));
    CHECK(shim_islands_far_p2p(&amd, 2, 22203) && shim_islands_far_p2p(&amd, 2, 22304));
    CHECK(!shim_islands_far_p2p(&intel, 2, 22103));
    CHECK(shim_islands_far_p2p(&other, 4, 22103) && !shim_islands_far_p2p(&other, 2, 22304));
}

/* From 2.21 to 2.26 the file has all CPUs, too many of them are refused. */
TEST(cpus)
{
    bool linked[SHIM_GPUS][SHIM_GPUS] = {{false}};
    char topology[TEXT] = "";
    struct shim_text text = {topology, sizeof(topology), 0, false};
    struct shim_pci seen,
        pci = {.n = 2, .family = -1, .model = -1, .nodes = {0xf}, .cautious = true};
    struct shim_chain chain = {
        .rings.n = 1, .rings.chains[0] = {.n_gpus = 2, .closed = true, .gpus = {0x100, 0x200}}};
    struct tree tree = {.n = 0};
    pci.devices[0] = (struct shim_pci_device){.bus = 0x100, .node = 2};
    pci.devices[1] = (struct shim_pci_device){.bus = 0x200, .node = 3};
    CHECK_INT(shim_islands(&chain, &pci, linked, true, 22405, &text, &seen, NULL), 1);
    read_topology(topology, &tree);
    for (int node = -1; node < 4; node++)
        CHECK(find_node(&tree, true, (uint64_t)(node + 1)) >= 0);
    pci.nodes[1] = 0xffffffff;
    text = (struct shim_text){topology, sizeof(topology), 0, false};
    CHECK_INT(shim_islands(&chain, &pci, linked, true, 22405, &text, &seen, NULL), -1);
    text = (struct shim_text){topology, sizeof(topology), 0, false};
    CHECK_INT(shim_islands(&chain, &pci, linked, true, 22907, &text, &seen, NULL), 1);
    text = (struct shim_text){topology, 100, 0, false};
    CHECK_INT(shim_islands(&chain, &pci, linked, true, 22907, &text, &seen, NULL), -1);
}
