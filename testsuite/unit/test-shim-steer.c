/* Topology files of random chains in random machines: NCCL's own search, as pathfind foretells it,
 * finds each chain under them, in the order, over the NIC, and with the channels that are wanted.
 */
#include "chain/tree-rate.h"
#include "check.h"
#include "nccl/shim-nccl.h"
#include "nccl/topo.h"
/* The parts of a topo, to make one of a topology file. */
#include "nccl/topo.c"

enum { TEXT = 16384, MOST_NICS = 4, MOST_WAYS = 42 };

/* A machine with its NICs, of which the chain has one. */
struct sample {
    struct shim_pci pci;
    struct shim_chain chain;
    struct shim_steer facts;
    enum tccl_cpu cpu;
    enum tccl_nccl nccl;
    int sm, nic;
    int16_t nic_node[MOST_NICS];
    float line;     /* GB/s of a NIC */
    bool slow_tree; /* slower than NCCL's own, which the links of the file may not allow */
};

/* GPU i has bus 0x10 + i, NIC i 0x40 + i. */
static void random_machine(unsigned long *seed, int gpus, struct sample *sample)
{
    static const int sms[] = {70, 75, 80, 86, 90};
    static const enum tccl_cpu cpus[] = {TCCL_CPU_AMD, TCCL_CPU_INTEL_SKL, TCCL_CPU_INTEL_ERP};
    struct shim_pci *pci = &sample->pci;
    int nodes = 1 + random_below(seed, 4);
    memset(sample, 0, sizeof(*sample));
    sample->sm = sms[random_below(seed, 5)];
    sample->cpu = cpus[random_below(seed, 3)];
    sample->nccl = random_below(seed, 2) ? TCCL_NCCL_2_29 : TCCL_NCCL_2_30;
    pci->amd = sample->cpu == TCCL_CPU_AMD;
    pci->intel = !pci->amd;
    pci->n = (uint8_t)gpus;
    for (int i = 0; i < gpus; i++) {
        pci->devices[i].bus = (tccl_bus)(0x10 + i) << 8;
        pci->devices[i].node = (int16_t)random_below(seed, nodes);
    }
    sample->facts.nics = 1 + random_below(seed, MOST_NICS);
    sample->facts.ways = sample->nccl == TCCL_NCCL_2_29;
    sample->nic = random_below(seed, sample->facts.nics);
    for (int i = 0; i < sample->facts.nics; i++)
        sample->nic_node[i] = (int16_t)random_below(seed, nodes);
}

static void random_chain(unsigned long *seed, int gpus, struct sample *sample)
{
    struct shim_chain *chain = &sample->chain;
    int p2p = random_below(seed, 4);
    chain->rings.n = 1;
    chain->rings.chains[0].n_gpus = (uint8_t)gpus;
    chain->rings.chains[0].closed = random_below(seed, 2);
    for (int i = 0; i < gpus; i++) {
        int other = random_below(seed, i + 1);
        chain->rings.chains[0].gpus[i] = chain->rings.chains[0].gpus[other];
        chain->rings.chains[0].gpus[other] = sample->pci.devices[i].bus;
    }
    for (int i = 0; i < gpus; i++)
        chain->rings.chains[0].edges[i].kind =
            random_below(seed, 4) < p2p ? TCCL_P2P_WRITE : TCCL_BOUNCE;
    chain->entry[0] = chain->exit[0] = (tccl_bus)(0x40 + sample->nic) << 8;
    sample->facts.near_entry = random_below(seed, 2);
    sample->facts.near_exit = random_below(seed, 3) == 0;
}

/* What NCCL may well find by itself. */
static void random_speed(unsigned long *seed, struct sample *sample)
{
    static const double rates[] = {15, 12, 10, 9, 7, 6}, rates_90[] = {40, 30, 24, 20, 15, 12, 6};
    bool new = sample->sm >= 90;
    double gbps = new ? rates_90[random_below(seed, 7)] : rates[random_below(seed, 6)];
    sample->facts.channels = gbps >= 25 ? 2 : 1;
    sample->facts.gbps = gbps / sample->facts.channels;
    sample->facts.tree_gbps = random_below(seed, 2) ? gbps
                              : gbps <= 6           ? 6
                              : gbps <= 12          ? (new ? 6 : 7)
                                                    : 12;
    sample->slow_tree = random_below(seed, 3) == 0;
    if (sample->slow_tree)
        sample->facts.tree_gbps *= (double)(1 + random_below(seed, 99)) / 100;
    sample->line = gbps <= 12 && random_below(seed, 2) ? 12.5F : gbps <= 24 ? 25 : 50;
}

/* ---- The file, as NCCL reads it ---- */

struct reader {
    struct tree tree;
    struct tccl_topo topo;
    struct tccl_machine machine;
    float gbps[PLACES];
    int numbers[TCCL_MAX_MEMORIES]; /* of CPUs */
    int bridges;
    tccl_bus bus[FIRST_GPU]; /* of bridges */
    struct {
        int from;        /* bridge of a GPU or the NIC */
        tccl_bus by, to; /* the way's own bridge, which is below that, or that itself; that of a
                            GPU */
        bool back;       /* it is linked back */
    } ways[MOST_WAYS];
    int n_ways;
    bool amd;    /* the CPU that the file has */
    int in_file; /* CPUs of it; the others are the machine's */
    uint32_t gpus;
};

static void put(struct reader *reader, int place, int parent)
{
    reader->tree.places[place].met = true;
    reader->tree.places[place].parent = parent;
    if (parent >= 0)
        add_child(&reader->tree, parent, place, false);
}

static int put_cpu(struct reader *reader, int number)
{
    int at = reader->tree.n_cpus++;
    CHECK(at < TCCL_MAX_MEMORIES);
    for (int i = 0; i < at; i++)
        CHECK(reader->numbers[i] != number);
    reader->numbers[at] = number;
    reader->tree.cpus[at] = at;
    put(reader, at, -1);
    return at;
}

static void put_nic(struct reader *reader, const struct sample *sample, int nic, int parent,
                    float gbps)
{
    put(reader, FIRST_NIC + nic, parent);
    put(reader, FIRST_PORT + nic, FIRST_NIC + nic);
    reader->gbps[FIRST_NIC + nic] = gbps;
    reader->gbps[FIRST_PORT + nic] = sample->line;
}

/* Returns the place of what was put there, or of its parent where that is no bridge. */
static int put_pci(struct reader *reader, const struct sample *sample, const char *line, int parent)
{
    tccl_bus bus;
    char name[32], type[16], speed[16];
    int width;
    CHECK_INT(sscanf(line,
                     "<pci busid=\"%31[^\"]\" class=\"%15[^\"]\" link_speed=\"%15[^ ] GT/s PCIe\" "
                     "link_width=\"%d\"",
                     name, type, speed, &width),
              4);
    CHECK_INT(tccl_bus_parse(name, &bus), 0);
    float gbps = (float)width * (strcmp(speed, "2.5") == 0 ? 15 : 240) / 80.0F;
    int index = (int)(bus >> 8 & 0xff);
    if (bus >> 16 == 0xffff) {
        int place = FIRST_SWITCH + reader->bridges++;
        CHECK(place < FIRST_GPU);
        CHECK_INT(strcmp(type, "0x060400"), 0);
        reader->gbps[place] = gbps;
        reader->bus[place] = bus;
        put(reader, place, parent);
        return place;
    }
    if (index >= 0x40) {
        put_nic(reader, sample, index - 0x40, parent, gbps);
        return parent;
    }
    put(reader, FIRST_GPU + index - 0x10, parent);
    reader->gbps[FIRST_GPU + index - 0x10] = gbps;
    reader->gpus |= UINT32_C(1) << (index - 0x10);
    return parent;
}

/* The bus id in front of the next quote of a line. */
static tccl_bus bus_in(const char *text)
{
    char name[32];
    tccl_bus bus;
    CHECK_INT(sscanf(text, "%31[^\"]", name), 1);
    CHECK_INT(tccl_bus_parse(name, &bus), 0);
    return bus;
}

/* The bridge of a pair's way has a link and nothing else. Returns whether the line begins one. */
static bool put_way(struct reader *reader, const char *line, char **rest, int parent)
{
    static const char bridge[] = "<pci busid=\"", link[] = "<pcilink target=\"";
    if (strncmp(*rest, link, strlen(link)) != 0 || strncmp(line, bridge, strlen(bridge)) != 0 ||
        !strstr(line, "class=\"0x060400\""))
        return false;
    CHECK(reader->n_ways < MOST_WAYS);
    reader->ways[reader->n_ways].from = parent;
    reader->ways[reader->n_ways].by = bus_in(line + strlen(bridge));
    reader->ways[reader->n_ways++].to = bus_in(*rest + strlen(link));
    strsep(rest, "\n");
    CHECK(strncmp(strsep(rest, "\n"), "</pci>", 6) == 0);
    return true;
}

/* What is below a bridge: a GPU, or a NIC. */
static int device_below(const struct reader *reader, int bridge)
{
    for (int i = FIRST_GPU; i < FIRST_PORT; i++)
        if (reader->tree.places[i].met && reader->tree.places[i].parent == bridge)
            return i;
    return -1;
}

/* Of a way that was read, or of the NIC's bridge to a GPU's below it. */
static void put_link(struct reader *reader, const char *line, int parent)
{
    tccl_bus by = bus_in(line + strlen("<pcilink target=\""));
    if (device_below(reader, parent) >= FIRST_NIC) {
        CHECK(reader->n_ways < MOST_WAYS);
        reader->ways[reader->n_ways].from = parent;
        reader->ways[reader->n_ways].by = reader->bus[parent];
        reader->ways[reader->n_ways++].to = by;
        return;
    }
    for (int i = 0; i < reader->n_ways; i++)
        if (reader->ways[i].by == by) {
            CHECK(reader->ways[i].to == reader->bus[parent]);
            reader->ways[i].back = true;
            return;
        }
    CHECK(false);
}

/* Tags one in a line, as the shim writes them. */
static void read_file(struct reader *reader, const struct sample *sample, const char *text)
{
    char copy[TEXT], *rest = copy;
    int at = -1;
    snprintf(copy, sizeof(copy), "%s", text);
    for (char *line; (line = strsep(&rest, "\n"));) {
        int node;
        if (sscanf(line, "<cpu numaid=\"%d\"", &node) == 1) {
            at = put_cpu(reader, node);
            reader->amd = strstr(line, "AuthenticAMD") != NULL;
        } else if (strncmp(line, "<pcilink ", 9) == 0)
            put_link(reader, line, at);
        else if (strncmp(line, "<pci ", 5) == 0 && !put_way(reader, line, &rest, at))
            at = put_pci(reader, sample, line, at);
        else if (strcmp(line, "</pci>") == 0 || strcmp(line, "</cpu>") == 0)
            at = reader->tree.places[at].parent;
        else
            CHECK(strcmp(line, "<system version=\"1\">") == 0 || strcmp(line, "</system>") == 0 ||
                  strncmp(line, "<pci ", 5) == 0 || !*line);
    }
    CHECK_INT(at, -1);
    for (int i = 0; i < reader->n_ways; i++)
        CHECK(reader->ways[i].back);
    reader->in_file = reader->tree.n_cpus;
}

/* The kind of a CPU. */
static enum tccl_cpu cpu_at(const struct reader *reader, const struct sample *sample, int at)
{
    if (at >= reader->in_file)
        return sample->cpu;
    return reader->amd ? TCCL_CPU_AMD : TCCL_CPU_INTEL_ERP;
}

/* Each direction is as fast as NCCL takes the CPU to be that it begins at. */
static void link_cpus(struct reader *reader, const struct sample *sample, int a, int b)
{
    struct tccl_topo *topo = &reader->topo;
    int link = add_links(topo, 0, false);
    enum tccl_cpu from = cpu_at(reader, sample, a), to = cpu_at(reader, sample, b);
    CHECK(link >= 0);
    topo->links[link].gbps = cpu_gbps(from, topo->nccl);
    topo->links[link].to_intel = is_intel(to);
    topo->links[link + 1].gbps = cpu_gbps(to, topo->nccl);
    topo->links[link + 1].to_intel = is_intel(from);
    reader->tree.across[a][b] = link;
    reader->tree.across[b][a] = link + 1;
}

static void link_places(struct reader *reader, const struct sample *sample)
{
    struct tree *tree = &reader->tree;
    struct tccl_topo *topo = &reader->topo;
    for (int i = FIRST_SWITCH; i < PLACES; i++) {
        struct place *here = &tree->places[i];
        if (!here->met)
            continue;
        here->up = add_links(topo, reader->gbps[i], i < FIRST_PORT);
        topo->links[here->up].to_intel =
            here->parent < FIRST_SWITCH && is_intel(cpu_at(reader, sample, here->parent));
        topo->links[here->up + 1].to_old_gpu = i >= FIRST_GPU && i < FIRST_NIC && sample->sm < 80;
    }
    for (int a = 0; a < tree->n_cpus; a++)
        for (int b = 0; b < a; b++)
            link_cpus(reader, sample, a, b);
}

static int bridge_with(const struct reader *reader, tccl_bus bus)
{
    for (int i = FIRST_SWITCH; i < FIRST_SWITCH + reader->bridges; i++)
        if (reader->bus[i] == bus)
            return i;
    return -1;
}

/* Four links by a pair's own way, which is as short as that through the CPU; three, where the NIC's
 * own bridge is linked (-1 in place of the way's). */
static struct tccl_topo_way along(struct reader *reader, const int links[4])
{
    struct tccl_topo_way way = {.gbps = SAME_GBPS, .far = TCCL_FAR_SWITCHES};
    for (int i = 0; i < 4; i++)
        if (links[i] >= 0)
            CHECK_INT(add_step(&reader->topo, links[i], &way), 0);
    return way;
}

static void use_gpu_way(struct reader *reader, int a, int b, int down, int link)
{
    struct tccl_topo *topo = &reader->topo;
    for (int i = 0; i < topo->n_gpus; i++)
        for (int j = 0; j < topo->n_gpus; j++) {
            int from = FIRST_GPU + topo->gpus[i].index, to = FIRST_GPU + topo->gpus[j].index;
            const struct place *first = &reader->tree.places[from],
                               *last = &reader->tree.places[to];
            if (from == a && to == b)
                topo->gpus[i].to_gpu[j] =
                    along(reader, (int[]){first->up, down, link, last->up + 1});
            if (from == b && to == a)
                topo->gpus[i].to_gpu[j] =
                    along(reader, (int[]){first->up, link + 1, down - 1, last->up + 1});
        }
}

static void use_nic_way(struct reader *reader, int nic, int gpu, int down, int link)
{
    struct tccl_topo *topo = &reader->topo;
    int port = reader->tree.places[nic - FIRST_NIC + FIRST_PORT].up,
        up = reader->tree.places[nic].up;
    for (int i = 0; i < topo->n_gpus; i++)
        for (int j = 0; j < topo->n_nics; j++) {
            struct tccl_topo_way *to = &topo->gpus[i].to_nic[j], *from = &topo->nics[j].to_gpu[i];
            int slot = reader->tree.places[gpu].up;
            if (FIRST_GPU + topo->gpus[i].index != gpu || FIRST_NIC + topo->nics[j].index != nic)
                continue;
            *to = along(reader, (int[]){slot, link + 1, down < 0 ? -1 : down - 1, up + 1});
            *from = along(reader, (int[]){up, down, link, slot + 1});
            CHECK_INT(add_step(topo, port + 1, to), 0);
            CHECK_INT(add_step(topo, port, from), 0);
        }
}

/* A pair's way is taken where there is one. */
static void use_ways(struct reader *reader, bool of_nics)
{
    struct tccl_topo *topo = &reader->topo;
    for (int i = 0; i < reader->n_ways; i++) {
        int from = device_below(reader, reader->ways[i].from);
        int to = device_below(reader, bridge_with(reader, reader->ways[i].to));
        int bridge = add_links(topo, 384, true), link = add_links(topo, SAME_GBPS, false);
        CHECK(from >= 0 && to >= 0 && bridge >= 0 && link >= 0);
        if (of_nics && from >= FIRST_NIC)
            use_nic_way(reader, from, to,
                        reader->ways[i].by == reader->bus[reader->ways[i].from] ? -1 : bridge + 1,
                        link);
        if (!of_nics && from < FIRST_NIC)
            use_gpu_way(reader, from, to, bridge + 1, link);
    }
}

static void make_view(struct reader *reader, const struct sample *sample)
{
    struct tccl_topo *topo = &reader->topo;
    struct tccl_machine *machine = &reader->machine;
    machine->cpu = topo->cpu = cpu_at(reader, sample, 0);
    topo->nccl = sample->nccl;
    machine->n_gpus = sample->chain.rings.chains[0].n_gpus;
    machine->n_nics = sample->facts.nics;
    memset(machine->p2p, true, sizeof(machine->p2p));
    memset(machine->gpudirect, true, sizeof(machine->gpudirect));
    for (int i = 0; i < machine->n_gpus; i++)
        machine->gpus[i].sm = sample->sm;
    link_places(reader, sample);
    for (int i = 0; i < reader->tree.n_cpus; i++)
        number_below(machine, &reader->tree, reader->tree.cpus[i], reader->gpus, topo);
    for (int i = 0; i < topo->n_gpus; i++)
        topo->gpus[i].slot = reader->gbps[FIRST_GPU + topo->gpus[i].index];
    for (int i = 0; i < topo->n_nics; i++)
        topo->nics[i].gbps = sample->line;
    CHECK_INT(find_nic_ways(&reader->tree, topo, true, machine), 0);
    use_ways(reader, true);
    CHECK_INT(find_gpu_ways(machine, &reader->tree, topo), 0);
    use_ways(reader, false);
    for (int i = 0; i < topo->n_nics; i++)
        topo->nics[i].nearest = nearest_gpu(topo, i);
}

/* ---- The properties ---- */

static int place_in_view(const struct tccl_topo *topo, tccl_bus gpu)
{
    for (int i = 0; i < topo->n_gpus; i++)
        if (topo->gpus[i].index == (int)(gpu >> 8) - 0x10)
            return i;
    return -1;
}

/* Each edge is P2P or a bounce as planned, and none goes by the network. Where NCCL
 * takes P2P at any distance, that is through AMD's CPUs. */
static bool edges_suit(const struct reader *reader, const struct sample *sample)
{
    const struct shim_chain *chain = &sample->chain;
    int level = reader->amd && sample->facts.far_p2p ? TCCL_FAR_SYSTEM : TCCL_FAR_SWITCHES;
    for (int i = 0; i < tccl_named_edges(&chain->rings.chains[0]); i++) {
        int from = place_in_view(&reader->topo, chain->rings.chains[0].gpus[i]);
        int to = place_in_view(
            &reader->topo, chain->rings.chains[0].gpus[(i + 1) % chain->rings.chains[0].n_gpus]);
        int far = reader->topo.gpus[from].to_gpu[to].far;
        if ((far <= level) != (chain->rings.chains[0].edges[i].kind != TCCL_BOUNCE) ||
            far > TCCL_FAR_SYSTEM)
            return false;
    }
    return true;
}

/* GPUs that are no neighbours are direct to each other where they really are, not by the file. Here
 * they are below no switches, so nowhere. */
static bool others_suit(const struct reader *reader, const struct sample *sample)
{
    const struct shim_chain *chain = &sample->chain;
    int n = chain->rings.chains[0].n_gpus, begin = 0;
    if (!sample->facts.ways)
        return true;
    /* A NIC below the bridge of the first GPUs leaves these together, where there are other NICs.
     */
    while (!chain->rings.chains[0].closed && sample->facts.near_entry && sample->facts.nics > 1 &&
           begin + 1 < n && chain->rings.chains[0].edges[begin].kind != TCCL_BOUNCE)
        begin++;
    if (begin + 1 == n)
        begin = 0;
    for (int i = begin; i < n; i++)
        for (int j = i + 2; j < n; j++) {
            int from = place_in_view(&reader->topo, chain->rings.chains[0].gpus[i]);
            int to = place_in_view(&reader->topo, chain->rings.chains[0].gpus[j]);
            if (!(chain->rings.chains[0].closed && i == 0 && j == n - 1) &&
                (reader->topo.gpus[from].to_gpu[to].far <= TCCL_FAR_SWITCHES ||
                 reader->topo.gpus[to].to_gpu[from].far <= TCCL_FAR_SWITCHES))
                return false;
        }
    return true;
}

static bool ends_suit(const struct reader *reader, const struct sample *sample)
{
    const struct tccl_named_chain *path = &sample->chain.rings.chains[0];
    int head = place_in_view(&reader->topo, path->gpus[0]), nic = 0;
    int tail = place_in_view(&reader->topo, path->gpus[path->n_gpus - 1]);
    while (reader->topo.nics[nic].index != sample->nic)
        nic++;
    return (reader->topo.gpus[head].to_nic[nic].far <= TCCL_FAR_SWITCHES) ==
               sample->facts.near_entry &&
           (reader->topo.gpus[tail].to_nic[nic].far <= TCCL_FAR_SWITCHES) ==
               sample->facts.near_exit;
}

static bool is_along(const struct reader *reader, const struct sample *sample, const uint8_t *gpus)
{
    const struct tccl_named_chain *path = &sample->chain.rings.chains[0];
    int n = path->n_gpus, start = 0;
    while (path->closed && gpus[start] != place_in_view(&reader->topo, path->gpus[0]))
        start++;
    for (int i = 0; i < n; i++)
        if (gpus[(start + i) % n] != place_in_view(&reader->topo, path->gpus[i]))
            return false;
    return true;
}

/* Trees come out as wanted and as foretold, but for one of NCCL's steps here and there. */
static int trees, trees_own, trees_alike, trees_foretold;

static void compare_tree(const struct sample *sample, double gbps)
{
    const struct shim_steer *facts = &sample->facts;
    const double lane_gbps = 0.1875, share = 1.5; /* of a link, and of the tree's rate on it */
    double most = tccl_tree_lanes(1, sample->chain.rings.chains[0].n_gpus,
                                  facts->channels * facts->gbps, facts->tree_gbps) *
                  lane_gbps / share;
    trees++;
    trees_own += !sample->slow_tree;
    trees_alike += !sample->slow_tree && gbps == facts->tree_gbps;
    trees_foretold += gbps == (double)tccl_nccl_rate(false, sample->sm, sample->nccl, most);
}

static bool is_found(struct reader *reader, const struct sample *sample)
{
    struct tccl_rings rings;
    bool closed = sample->chain.rings.chains[0].closed;
    CHECK_INT(tccl_nccl_search(&reader->topo, closed, &rings, ERR), 0);
    if (rings.n_channels != sample->facts.channels || rings.ring.channels != rings.n_channels ||
        (double)rings.ring.intra != sample->facts.gbps ||
        (double)rings.ring.inter != sample->facts.gbps)
        return false;
    if (!closed && sample->chain.rings.chains[0].n_gpus > 2)
        compare_tree(sample, (double)rings.tree.inter * rings.tree.channels);
    for (int i = 0; i < rings.n_channels; i++)
        if (!is_along(reader, sample, rings.gpus[i]) ||
            (!closed && (reader->topo.nics[rings.nics[i][0]].index != sample->nic ||
                         reader->topo.nics[rings.nics[i][1]].index != sample->nic)))
            return false;
    return true;
}

/* An island where all P2P edges are: where a ring has one bounce both are the same. */
static bool is_possible(const struct sample *sample)
{
    const struct tccl_named_chain *path = &sample->chain.rings.chains[0];
    int bounces = 0;
    for (int i = 0; i < tccl_named_edges(path); i++)
        bounces += path->edges[i].kind == TCCL_BOUNCE;
    if (path->closed)
        return bounces != 1;
    /* Below one bridge the NIC is near both ends, or neither. */
    return bounces > 0 || sample->facts.near_entry == sample->facts.near_exit;
}

/* Returns whether there was a file. */
static bool check_one(unsigned long *seed)
{
    bool none[SHIM_GPUS][SHIM_GPUS] = {{false}};
    struct sample sample;
    char file[TEXT] = "";
    struct shim_text text = {file, sizeof(file), 0, false};
    cleanup_free struct reader *reader = calloc(1, sizeof(*reader));
    unsigned long begin = *seed;
    int gpus = 2 + random_below(seed, 8);
    CHECK(reader != NULL);
    random_machine(seed, gpus, &sample);
    random_chain(seed, gpus, &sample);
    sample.facts.far_p2p = sample.pci.amd && gpus <= 2 && random_below(seed, 2);
    random_speed(seed, &sample);
    int answer = is_possible(&sample)
                     ? shim_steer(&sample.chain, &sample.pci, none, &sample.facts, &text, ERR)
                     : 0;
    if (answer) {
        read_file(reader, &sample, file);
        /* NICs that the file does not name are at their NUMA nodes. */
        for (int nic = 0; nic < sample.facts.nics; nic++) {
            int cpu = -1;
            if (reader->tree.places[FIRST_NIC + nic].met)
                continue;
            for (int i = 0; i < reader->tree.n_cpus; i++)
                if (reader->numbers[i] == sample.nic_node[nic])
                    cpu = i;
            put_nic(reader, &sample, nic, cpu >= 0 ? cpu : put_cpu(reader, sample.nic_node[nic]),
                    48);
        }
        make_view(reader, &sample);
        if (!edges_suit(reader, &sample) || !others_suit(reader, &sample) ||
            (!sample.chain.rings.chains[0].closed && !ends_suit(reader, &sample)) ||
            !is_found(reader, &sample)) {
            char chain[TCCL_CHAIN_TEXT];
            tccl_named_format(&sample.chain.rings.chains[0], chain);
            fprintf(stderr,
                    "seed %lu: %s, near %d %d, NICs %d, %d x %g, cpu %d, sm %d, line %g\n%s", begin,
                    chain, sample.facts.near_entry, sample.facts.near_exit, sample.facts.nics,
                    sample.facts.channels, sample.facts.gbps, sample.cpu, sample.sm,
                    (double)sample.line, file);
            CHECK(false);
        }
    }
    return answer;
}

/* GPUs 0 to split - 1, then the others: P2P within both parts, and the last GPU of each is alone at
 * its place, the others are below one switch. */
static void two_islands(struct sample *sample, int gpus, int split, int nics)
{
    struct shim_chain *chain = &sample->chain;
    memset(sample, 0, sizeof(*sample));
    sample->pci.intel = true;
    chain->rings.n = 1;
    sample->pci.n = chain->rings.chains[0].n_gpus = (uint8_t)gpus;
    chain->rings.chains[0].closed = true;
    for (int i = 0; i < gpus; i++) {
        bool last = i == split - 1 || i == gpus - 1;
        sample->pci.devices[i] = (struct shim_pci_device){.bus = (tccl_bus)(0x10 + i) << 8,
                                                          .node = i >= split,
                                                          .depth = !last,
                                                          .above = {i < split ? 0x100 : 0x200}};
        chain->rings.chains[0].gpus[i] = sample->pci.devices[i].bus;
        chain->rings.chains[0].edges[i].kind = last ? TCCL_BOUNCE : TCCL_P2P_WRITE;
    }
    sample->facts = (struct shim_steer){.channels = 1, .gbps = 6, .nics = nics, .ways = true};
}

/* Tags of the file that begin an element. */
static int count_tags(const char *file, const char *tag)
{
    int count = 0;
    for (const char *at = file; (at = strstr(at, tag)); at++)
        count += at[1] != '/';
    return count;
}

/* NCCL reads 256 elements, to which it adds each NIC with its switches, and this rank's GPU. Ways
 * are used for as many pairs as fit in, in all islands together; where they do not, there are none,
 * which the file's maker is told. */
static void check_size(int gpus, int split, int nics, bool ways)
{
    bool none[SHIM_GPUS][SHIM_GPUS] = {{false}};
    struct sample sample;
    char file[TEXT] = "";
    struct shim_text text = {file, sizeof(file), 0, false};
    two_islands(&sample, gpus, split, nics);
    CHECK_INT(shim_steer(&sample.chain, &sample.pci, none, &sample.facts, &text, ERR), 1);
    CHECK((count_tags(file, "<pcilink") > 0) == ways && (check_err.text[0] != '\0') == !ways);
    CHECK(count_tags(file, "<") + 1 + 8 * nics <= 256);
}

/* NCCL's search finds one ring along the file's GPUs: several need a graph file. */
TEST(several)
{
    bool none[SHIM_GPUS][SHIM_GPUS] = {{false}};
    struct sample sample;
    char file[TEXT] = "";
    struct shim_text text = {file, sizeof(file), 0, false};
    two_islands(&sample, 8, 4, 1);
    CHECK_INT(shim_steer(&sample.chain, &sample.pci, none, &sample.facts, &text, ERR), 1);
    sample.chain.rings.chains[1] = sample.chain.rings.chains[0];
    sample.chain.rings.n = 2;
    CHECK_INT(shim_steer(&sample.chain, &sample.pci, none, &sample.facts, &text, ERR), 0);
    CHECK_STR(check_err.text, "the plan has 2 rings");
}

TEST(sizes)
{
    check_size(11, 10, 1, true);  /* 37 ways */
    check_size(13, 12, 1, true);  /* 56 in one island */
    check_size(16, 9, 16, false); /* 29 and 16, where NICs need the room */
    check_size(16, 8, 1, true);
}

TEST(random)
{
    unsigned long seed = check_seed();
    int files = 0, all = 400;
    for (int i = 0; i < all; i++)
        files += check_one(&seed);
    printf("%d files for %d chains; %d of %d trees are alike, %d of %d as foretold\n", files, all,
           trees_alike, trees_own, trees_foretold, trees);
    CHECK(trees_alike > trees_own * 3 / 4 && trees_foretold > trees * 3 / 4 && files > all / 4);
}
