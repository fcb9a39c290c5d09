/* table.c: chain tables on disk. Little-endian, no padding:
 *
 *   magic "TCCLCHNS", version u32, machine id (32 hexadecimal digits), source (64 bytes,
 * NUL-filled), GPU mask u32, measured u32, noise f64, number of ports u16, of GPUs u8 (n), of
 * generations of NCCL u8 (g), of different baselines of the node alone u8, of their chains u16, of
 * those of one node of several u8, of their chains u16, of chains without P2P u16, of other chains
 * u16, of ring sets u16, of their rings u16; the generations' first versions, u32 each; the ports,
 * 3 bytes each: NIC, kind of via, index of via; the pairs, row by row: result with n - 1 edges;
 * then the ring, and that without P2P: results with n edges; the baselines of the node alone: for
 * each generation the index of its baseline, u8; then the baselines; the baselines of one node of
 * several in the same way; the chains without P2P: entry port, exit port, result with n - 1 edges;
 * the other chains: closed u8, entry port, exit port, gbps f64, the chain with n edges, of which an
 * open one leaves the last one empty; the ring sets: closed u8, rings u8, gbps f64, bound f64, and
 * for each ring entry port, exit port, and the chain as of the others; the trees, up to the end:
 * the pair's number u32, rising, gbps f64, along f64, NIC u8, the GPUs. XXH3 (64 bits) of all
 * before it. A baseline: gbps f64, number of chains u8, what NCCL says of the ring and of the tree
 * (pattern u8, channels u8, intra f64, inter f64, far_intra u8, far_inter u8), the chains: closed
 * ones with n edges, others with entry port, exit port and n - 1 edges. What two generations have
 * alike is there once. A chain: the GPUs, and for each edge one byte: kind * 16 + memory. A result:
 * gbps f64, bound f64, number of GPUs u8 (n, or 0: no chain), the chain. With 8 GPUs that makes 32
 * bytes a pair. */
#include "ring/table.h"

#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fileio.h"
#include "chain/expressible.h"

enum {
    VERSION = 9, /* 4: no trees, 5: no chains without P2P, 6: no others, 7: no ring sets, 8: chosen
                    by noise, and by models whose caps each copy had for itself */
    MAGIC_SIZE = 8,
    ID_SIZE = TCCL_HASH_HEX - 1,
    HEADER_SIZE = MAGIC_SIZE + 4 + ID_SIZE + TCCL_NAME + 4 + 4 + 8 + 2 + 1 + 1 + 2 * (1 + 2) + 2 +
                  2 + 2 + 2 + 4 * TCCL_GENERATIONS,
    NOMINAL_SIZE = 1 + 1 + 8 + 8 + 1 + 1,
    PORT_SIZE = 3,
    CHECKSUM_SIZE = 8,
    MAX_PORTS = TCCL_MAX_NICS * (TCCL_MAX_GPUS + TCCL_MAX_MEMORIES),
    MAX_HOSTS = TCCL_MAX_NICS * TCCL_MAX_NICS,
    MAX_OTHERS = 512,
    MAX_SETS = 64,
    MAX_FILE = 16 << 20,
};
static const char magic[] = "TCCLCHNS";

static const struct tccl_result unknown = {.bound = INFINITY};

/* Bytes of a chain, of a result, of a baseline, and of a whole table. */
static size_t chain_size(int n_gpus, bool closed)
{
    return (size_t)n_gpus + (closed ? n_gpus : n_gpus - 1);
}

static size_t tree_size(int n_gpus)
{
    return 4 + 8 + 8 + 1 + (size_t)n_gpus;
}

static size_t result_size(int n_gpus, bool closed)
{
    return 8 + 8 + 1 + chain_size(n_gpus, closed);
}

/* The baselines of all generations, without repetitions. */
struct distinct {
    int count;                       /* of baselines */
    int n_chains;                    /* of all of them */
    uint8_t of[TCCL_GENERATIONS];    /* which one each generation has */
    uint8_t first[TCCL_GENERATIONS]; /* the first generation that has it */
};

static size_t baselines_size(int n_gpus, bool closed, const struct distinct *distinct)
{
    return TCCL_GENERATIONS + (size_t)distinct->count * (8 + 1 + 2 * NOMINAL_SIZE) +
           (size_t)distinct->n_chains * (chain_size(n_gpus, closed) + (closed ? 0 : 2 * PORT_SIZE));
}

static size_t host_size(int n_gpus)
{
    return 2 * PORT_SIZE + result_size(n_gpus, false);
}

static size_t other_size(int n_gpus)
{
    return 1 + 2 * PORT_SIZE + 8 + chain_size(n_gpus, true);
}

static size_t ring_size(int n_gpus)
{
    return 2 * PORT_SIZE + chain_size(n_gpus, true);
}

static size_t sets_size(int n_gpus, int n_sets, int n_rings)
{
    return (size_t)n_sets * (1 + 1 + 8 + 8) + (size_t)n_rings * ring_size(n_gpus);
}

static int count_rings(const struct tccl_table *table)
{
    int rings = 0;
    for (int i = 0; i < table->n_sets; i++)
        rings += table->sets[i].set.n;
    return rings;
}

/* Without trees and ring sets. */
static size_t table_size(const struct tccl_table *table, int n_gpus, const struct distinct *rings,
                         const struct distinct *chains)
{
    return HEADER_SIZE + (size_t)table->n_ports * PORT_SIZE +
           (size_t)table->n_ports * table->n_ports * result_size(n_gpus, false) +
           2 * result_size(n_gpus, true) + (size_t)table->n_hosts * host_size(n_gpus) +
           (size_t)table->n_others * other_size(n_gpus) + baselines_size(n_gpus, true, rings) +
           baselines_size(n_gpus, false, chains) + CHECKSUM_SIZE;
}

static bool nominal_equal(const struct tccl_nominal *a, const struct tccl_nominal *b)
{
    return a->pattern == b->pattern && a->channels == b->channels && a->intra == b->intra &&
           a->inter == b->inter && a->far_intra == b->far_intra && a->far_inter == b->far_inter;
}

bool tccl_baseline_equal(const struct tccl_baseline *a, const struct tccl_baseline *b)
{
    if (a->gbps != b->gbps || a->n_chains != b->n_chains || !nominal_equal(&a->ring, &b->ring) ||
        !nominal_equal(&a->tree, &b->tree))
        return false;
    for (int i = 0; i < a->n_chains; i++)
        if (!tccl_chain_equal(&a->chains[i], &b->chains[i]))
            return false;
    return true;
}

static void find_distinct(const struct tccl_baseline baselines[static TCCL_GENERATIONS],
                          struct distinct *distinct)
{
    *distinct = (struct distinct){0};
    for (int generation = 0; generation < TCCL_GENERATIONS; generation++) {
        const struct tccl_baseline *own = &baselines[generation];
        int at = 0;
        while (at < distinct->count && !tccl_baseline_equal(&baselines[distinct->first[at]], own))
            at++;
        distinct->of[generation] = (uint8_t)at;
        if (at < distinct->count)
            continue;
        distinct->first[distinct->count++] = (uint8_t)generation;
        distinct->n_chains += own->n_chains;
    }
}

static int add_ports(const struct tccl_machine *machine, uint32_t gpus, struct tccl_port *ports)
{
    int n = 0;
    for (int nic = 0; nic < machine->n_nics; nic++) {
        for (int gpu = 0; gpu < machine->n_gpus; gpu++)
            if ((gpus >> gpu & 1) && machine->gpudirect[nic][gpu])
                ports[n++] = (struct tccl_port){nic, {TCCL_GPU, gpu}};
        for (int memory = 0; memory < machine->n_memories; memory++)
            ports[n++] = (struct tccl_port){nic, {TCCL_MEMORY, memory}};
    }
    return n;
}

/* A table for n_ports ports, all results unknown. */
static struct tccl_table *table_alloc(int n_ports)
{
    struct tccl_table *table = calloc(1, sizeof(*table));
    if (!table)
        return NULL;
    table->n_ports = n_ports;
    table->ports = calloc(n_ports + 1, sizeof(*table->ports));
    table->pairs = calloc((size_t)n_ports * n_ports + 1, sizeof(*table->pairs));
    table->hosts = calloc(MAX_HOSTS, sizeof(*table->hosts));
    table->others = calloc(MAX_OTHERS, sizeof(*table->others));
    table->sets = calloc(MAX_SETS, sizeof(*table->sets));
    if (!table->ports || !table->pairs || !table->hosts || !table->others || !table->sets) {
        tccl_table_free(table);
        return NULL;
    }
    for (int i = 0; i < n_ports * n_ports; i++)
        table->pairs[i] = unknown;
    table->ring = table->host_ring = unknown;
    return table;
}

struct tccl_table *tccl_table_new(const struct tccl_machine *machine, uint32_t gpus)
{
    struct tccl_port ports[MAX_PORTS];
    int n_ports = add_ports(machine, gpus, ports);
    struct tccl_table *table = table_alloc(n_ports);
    if (!table)
        return NULL;
    tccl_machine_id(machine, table->machine);
    table->gpus = gpus;
    memcpy(table->ports, ports, n_ports * sizeof(*ports));
    return table;
}

void tccl_table_free(struct tccl_table *table)
{
    if (!table)
        return;
    free(table->ports);
    free(table->pairs);
    free(table->hosts);
    free(table->others);
    free(table->sets);
    free(table);
}

static bool same_nics(const struct tccl_chain *a, const struct tccl_chain *b)
{
    return a->entry.nic == b->entry.nic && a->exit.nic == b->exit.nic;
}

void tccl_table_keep_host(struct tccl_table *table, const struct tccl_result *host)
{
    int at = 0;
    while (at < table->n_hosts && !same_nics(&table->hosts[at].chain, &host->chain))
        at++;
    if (at == MAX_HOSTS || (at < table->n_hosts && table->hosts[at].gbps >= host->gbps))
        return;
    table->n_hosts += at == table->n_hosts;
    table->hosts[at] = *host;
}

static bool has_chain(const struct tccl_table *table, const struct tccl_chain *chain)
{
    for (int i = 0; i < table->n_ports * table->n_ports; i++)
        if (tccl_chain_equal(&table->pairs[i].chain, chain))
            return true;
    for (int i = 0; i < table->n_hosts; i++)
        if (tccl_chain_equal(&table->hosts[i].chain, chain))
            return true;
    for (int i = 0; i < table->n_others; i++)
        if (tccl_chain_equal(&table->others[i].chain, chain))
            return true;
    return tccl_chain_equal(&table->ring.chain, chain) ||
           tccl_chain_equal(&table->host_ring.chain, chain);
}

void tccl_table_keep_other(struct tccl_table *table, const struct tccl_chain *chain, double gbps)
{
    if (table->n_others < MAX_OTHERS && !has_chain(table, chain))
        table->others[table->n_others++] =
            (struct tccl_result){.gbps = gbps, .bound = INFINITY, .chain = *chain};
}

/* The NICs of each ring, in ascending order. */
static void sort_nics(const struct tccl_ring_set *set, uint16_t nics[static TCCL_CHAIN_RINGS])
{
    for (int i = 0; i < set->n; i++) {
        uint16_t own = (uint16_t)(set->rings[i].entry.nic * TCCL_MAX_NICS + set->rings[i].exit.nic);
        int at = i;
        for (; at > 0 && nics[at - 1] > own; at--)
            nics[at] = nics[at - 1];
        nics[at] = own;
    }
}

static bool alike(const struct tccl_ring_set *a, const struct tccl_ring_set *b)
{
    return a->n == b->n && a->rings[0].closed == b->rings[0].closed;
}

static bool same_set_nics(const struct tccl_ring_set *a, const struct tccl_ring_set *b)
{
    uint16_t x[TCCL_CHAIN_RINGS], y[TCCL_CHAIN_RINGS];
    if (!alike(a, b))
        return false;
    sort_nics(a, x);
    sort_nics(b, y);
    return memcmp(x, y, (size_t)a->n * sizeof(*x)) == 0;
}

static int slowest_set(const struct tccl_table *table)
{
    int at = 0;
    for (int i = 1; i < table->n_sets; i++)
        if (table->sets[i].gbps < table->sets[at].gbps)
            at = i;
    return at;
}

void tccl_table_keep_set(struct tccl_table *table, const struct tccl_set_result *set)
{
    double bound = set->bound, most = set->gbps;
    int at = 0;
    while (at < table->n_sets && !same_set_nics(&table->sets[at].set, &set->set))
        at++;
    if (at == MAX_SETS)
        at = slowest_set(table);
    if (at == table->n_sets || table->sets[at].gbps < set->gbps)
        table->sets[at] = *set;
    table->n_sets += at == table->n_sets;
    for (int i = 0; i < table->n_sets; i++)
        if (alike(&table->sets[i].set, &set->set)) {
            bound = fmin(bound, table->sets[i].bound);
            most = fmax(most, table->sets[i].gbps);
        }
    for (int i = 0; i < table->n_sets; i++)
        if (alike(&table->sets[i].set, &set->set))
            table->sets[i].bound = fmax(bound, most);
}

static void cleanup_table_(struct tccl_table **table)
{
    tccl_table_free(*table);
}
#define cleanup_table __attribute__((cleanup(cleanup_table_)))

/* Writing. The buffer has exactly the size of the table, so put needs no bounds. */

static void put(uint8_t **at, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        *(*at)++ = value >> (8 * i);
}

static void put_double(uint8_t **at, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    put(at, bits, 8);
}

static void put_text(uint8_t **at, const char *text, size_t size)
{
    size_t length = strnlen(text, size);
    memcpy(*at, text, length);
    memset(*at + length, 0, size - length);
    *at += size;
}

static void put_port(uint8_t **at, struct tccl_port port)
{
    put(at, port.nic, 1);
    put(at, port.via.kind, 1);
    put(at, port.via.index, 1);
}

static void put_chain(uint8_t **at, const struct tccl_chain *chain, int n_gpus, bool closed)
{
    int n = chain->n_gpus;
    for (int i = 0; i < n_gpus; i++)
        put(at, n ? chain->gpus[i] : 0, 1);
    for (int i = 0; i < (closed ? n_gpus : n_gpus - 1); i++)
        put(at, n ? chain->edges[i].kind * 16u + chain->edges[i].memory : 0, 1);
}

static bool has_tree(const struct tccl_result *result)
{
    return result->tree.gbps > 0;
}

static void put_tree(uint8_t **at, int pair, const struct tccl_tree *tree, int n_gpus)
{
    put(at, (uint64_t)pair, 4);
    put_double(at, tree->gbps);
    put_double(at, tree->along);
    put(at, tree->nic, 1);
    for (int i = 0; i < n_gpus; i++)
        put(at, tree->gpus[i], 1);
}

static void put_result(uint8_t **at, const struct tccl_result *result, int n_gpus, bool closed)
{
    put_double(at, result->gbps);
    put_double(at, result->bound);
    put(at, result->chain.n_gpus, 1);
    put_chain(at, &result->chain, n_gpus, closed);
}

static void put_other(uint8_t **at, const struct tccl_result *other, int n_gpus)
{
    put(at, other->chain.closed, 1);
    put_port(at, other->chain.entry);
    put_port(at, other->chain.exit);
    put_double(at, other->gbps);
    put_chain(at, &other->chain, n_gpus, true);
}

static void put_set(uint8_t **at, const struct tccl_set_result *result, int n_gpus)
{
    put(at, result->set.rings[0].closed, 1);
    put(at, (uint64_t)result->set.n, 1);
    put_double(at, result->gbps);
    put_double(at, result->bound);
    for (int i = 0; i < result->set.n; i++) {
        put_port(at, result->set.rings[i].entry);
        put_port(at, result->set.rings[i].exit);
        put_chain(at, &result->set.rings[i], n_gpus, true);
    }
}

static void put_nominal(uint8_t **at, const struct tccl_nominal *nominal)
{
    put(at, nominal->pattern, 1);
    put(at, nominal->channels, 1);
    put_double(at, nominal->intra);
    put_double(at, nominal->inter);
    put(at, nominal->far_intra, 1);
    put(at, nominal->far_inter, 1);
}

static void put_baseline(uint8_t **at, const struct tccl_baseline *baseline, int n_gpus,
                         bool closed)
{
    put_double(at, baseline->gbps);
    put(at, baseline->n_chains, 1);
    put_nominal(at, &baseline->ring);
    put_nominal(at, &baseline->tree);
    for (int i = 0; i < baseline->n_chains; i++) {
        const struct tccl_chain *chain = &baseline->chains[i];
        if (!closed) {
            put_port(at, chain->entry);
            put_port(at, chain->exit);
        }
        put_chain(at, chain, n_gpus, closed);
    }
}

static void put_baselines(uint8_t **at, const struct tccl_baseline *baselines,
                          const struct distinct *distinct, int n_gpus, bool closed)
{
    for (int i = 0; i < TCCL_GENERATIONS; i++)
        put(at, distinct->of[i], 1);
    for (int i = 0; i < distinct->count; i++)
        put_baseline(at, &baselines[distinct->first[i]], n_gpus, closed);
}

static void put_header(uint8_t **at, const struct tccl_table *table, int n_gpus,
                       const struct distinct *rings, const struct distinct *chains)
{
    put_text(at, magic, MAGIC_SIZE);
    put(at, VERSION, 4);
    put_text(at, table->machine, ID_SIZE);
    put_text(at, table->source, TCCL_NAME);
    put(at, table->gpus, 4);
    put(at, table->measured, 4);
    put_double(at, table->noise);
    put(at, table->n_ports, 2);
    put(at, n_gpus, 1);
    put(at, TCCL_GENERATIONS, 1);
    put(at, rings->count, 1);
    put(at, rings->n_chains, 2);
    put(at, chains->count, 1);
    put(at, chains->n_chains, 2);
    put(at, table->n_hosts, 2);
    put(at, table->n_others, 2);
    put(at, table->n_sets, 2);
    put(at, (uint64_t)count_rings(table), 2);
    for (int i = 0; i < TCCL_GENERATIONS; i++)
        put(at, tccl_generation(i)->first, 4);
}

/* Does the chain visit all GPUs of the set, and is it open or closed as required? */
static bool chain_fits(const struct tccl_chain *chain, uint32_t gpus, bool closed)
{
    uint32_t visited = 0;
    for (int i = 0; i < chain->n_gpus && i < TCCL_MAX_GPUS; i++)
        visited |= 1u << (chain->gpus[i] & 31);
    return chain->n_gpus == __builtin_popcount(gpus) && visited == gpus && chain->closed == closed;
}

/* The same for a result; also checks its ports, and that its bandwidth is at most its bound. */
static bool result_fits(const struct tccl_result *result, uint32_t gpus, bool closed,
                        const struct tccl_port *entry, const struct tccl_port *exit)
{
    const struct tccl_chain *chain = &result->chain;
    if (!(result->gbps >= 0 && isfinite(result->gbps) && result->bound >= result->gbps))
        return false;
    if (!tccl_tree_fits(&result->tree, chain, TCCL_MAX_NICS))
        return false;
    if (chain->n_gpus == 0)
        return result->gbps == 0;
    return chain_fits(chain, gpus, closed) && (!entry || tccl_port_equal(chain->entry, *entry)) &&
           (!exit || tccl_port_equal(chain->exit, *exit));
}

static bool nominal_fits(const struct tccl_nominal *nominal)
{
    return nominal->intra >= 0 && isfinite(nominal->intra) && nominal->inter >= 0 &&
           isfinite(nominal->inter);
}

static bool baseline_fits(const struct tccl_baseline *baseline, uint32_t gpus, bool closed)
{
    int n = baseline->n_chains;
    if (!nominal_fits(&baseline->ring) || !nominal_fits(&baseline->tree) || n < 0 ||
        n > TCCL_MAX_CHANNELS || !(baseline->gbps >= 0 && isfinite(baseline->gbps)) ||
        (n == 0 && baseline->gbps > 0))
        return false;
    for (int i = 0; i < n; i++)
        if (!chain_fits(&baseline->chains[i], gpus, closed))
            return false;
    return true;
}

/* Chains without P2P, each of another pair of NICs. */
static bool hosts_fit(const struct tccl_table *table)
{
    if (table->n_hosts > MAX_HOSTS || tccl_chain_has_p2p(&table->host_ring.chain) ||
        !result_fits(&table->host_ring, table->gpus, true, NULL, NULL))
        return false;
    for (int i = 0; i < table->n_hosts; i++) {
        const struct tccl_result *host = &table->hosts[i];
        if (!host->chain.n_gpus || tccl_chain_has_p2p(&host->chain) ||
            !result_fits(host, table->gpus, false, NULL, NULL))
            return false;
        for (int k = 0; k < i; k++)
            if (same_nics(&table->hosts[k].chain, &host->chain))
                return false;
    }
    return true;
}

static bool others_fit(const struct tccl_table *table)
{
    if (table->n_others > MAX_OTHERS)
        return false;
    for (int i = 0; i < table->n_others; i++) {
        const struct tccl_result *other = &table->others[i];
        if (!other->chain.n_gpus ||
            !result_fits(other, table->gpus, other->chain.closed, NULL, NULL))
            return false;
    }
    return true;
}

/* Several rings over all GPUs of the set, either all open or all closed. */
static bool set_fits(const struct tccl_set_result *result, uint32_t gpus)
{
    const struct tccl_ring_set *set = &result->set;
    if (set->n < 2 || set->n > TCCL_CHAIN_RINGS || !(result->gbps > 0 && isfinite(result->gbps)) ||
        !(result->bound >= result->gbps))
        return false;
    for (int i = 0; i < set->n; i++)
        if (!chain_fits(&set->rings[i], gpus, set->rings[0].closed))
            return false;
    return true;
}

static bool sets_fit(const struct tccl_table *table)
{
    if (table->n_sets > MAX_SETS)
        return false;
    for (int i = 0; i < table->n_sets; i++) {
        if (!set_fits(&table->sets[i], table->gpus))
            return false;
        for (int k = 0; k < i; k++)
            if (same_set_nics(&table->sets[k].set, &table->sets[i].set))
                return false;
    }
    return true;
}

static bool table_fits(const struct tccl_table *table)
{
    for (int i = 0; i < table->n_ports * table->n_ports; i++)
        if (!result_fits(&table->pairs[i], table->gpus, false, &table->ports[i / table->n_ports],
                         &table->ports[i % table->n_ports]))
            return false;
    for (int i = 0; i < TCCL_GENERATIONS; i++)
        if (!baseline_fits(&table->baseline_ring[i], table->gpus, true) ||
            !baseline_fits(&table->baseline_chain[i], table->gpus, false))
            return false;
    return result_fits(&table->ring, table->gpus, true, NULL, NULL) && hosts_fit(table) &&
           others_fit(table) && sets_fit(table);
}

int tccl_table_write(const struct tccl_table *table, const char *path, struct tccl_error *err)
{
    int n_gpus = __builtin_popcount(table->gpus);
    if (n_gpus < 1 || n_gpus > TCCL_MAX_GPUS || table->n_ports > MAX_PORTS || !table_fits(table))
        return tccl_fail(err, "%s: the chain table is inconsistent and is not written", path);
    struct distinct rings, chains;
    find_distinct(table->baseline_ring, &rings);
    find_distinct(table->baseline_chain, &chains);
    size_t size = table_size(table, n_gpus, &rings, &chains) +
                  sets_size(n_gpus, table->n_sets, count_rings(table));
    for (int i = 0; i < table->n_ports * table->n_ports; i++)
        size += has_tree(&table->pairs[i]) ? tree_size(n_gpus) : 0;
    cleanup_free uint8_t *data = calloc(1, size);
    if (!data)
        return tccl_fail(err, "%s: out of memory", path);
    uint8_t *at = data;
    put_header(&at, table, n_gpus, &rings, &chains);
    for (int i = 0; i < table->n_ports; i++)
        put_port(&at, table->ports[i]);
    for (int i = 0; i < table->n_ports * table->n_ports; i++)
        put_result(&at, &table->pairs[i], n_gpus, false);
    put_result(&at, &table->ring, n_gpus, true);
    put_result(&at, &table->host_ring, n_gpus, true);
    put_baselines(&at, table->baseline_ring, &rings, n_gpus, true);
    put_baselines(&at, table->baseline_chain, &chains, n_gpus, false);
    for (int i = 0; i < table->n_hosts; i++) {
        put_port(&at, table->hosts[i].chain.entry);
        put_port(&at, table->hosts[i].chain.exit);
        put_result(&at, &table->hosts[i], n_gpus, false);
    }
    for (int i = 0; i < table->n_others; i++)
        put_other(&at, &table->others[i], n_gpus);
    for (int i = 0; i < table->n_sets; i++)
        put_set(&at, &table->sets[i], n_gpus);
    for (int i = 0; i < table->n_ports * table->n_ports; i++)
        if (has_tree(&table->pairs[i]))
            put_tree(&at, i, &table->pairs[i].tree, n_gpus);
    put(&at, tccl_hash64(data, size - CHECKSUM_SIZE), CHECKSUM_SIZE);
    return tccl_write_file(path, 0644, data, size, err);
}

/* Reading. The header is checked against the size of the file first, so take needs no bounds. */

static uint64_t take(const uint8_t **at, int bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++) {
        uint64_t byte = *(*at)++;
        value |= byte << (8 * i);
    }
    return value;
}

static double take_double(const uint8_t **at)
{
    uint64_t bits = take(at, 8);
    double value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static struct tccl_port take_port(const uint8_t **at)
{
    struct tccl_port port = {.nic = take(at, 1)};
    port.via.kind = take(at, 1);
    port.via.index = take(at, 1);
    return port;
}

static void take_chain(const uint8_t **at, int n_gpus, bool closed, struct tccl_chain *chain)
{
    for (int i = 0; i < n_gpus; i++)
        chain->gpus[i] = take(at, 1);
    for (int i = 0; i < (closed ? n_gpus : n_gpus - 1); i++) {
        uint8_t edge = take(at, 1);
        chain->edges[i] = (struct tccl_edge){edge >> 4, edge & 15};
    }
}

static void take_tree(const uint8_t **at, int n_gpus, struct tccl_tree *tree)
{
    memset(tree, 0, sizeof(*tree));
    tree->gbps = take_double(at);
    tree->along = take_double(at);
    tree->nic = take(at, 1);
    for (int i = 0; i < n_gpus; i++)
        tree->gpus[i] = take(at, 1);
}

static int take_result(const uint8_t **at, int n_gpus, bool closed, struct tccl_port entry,
                       struct tccl_port exit, struct tccl_result *result, struct tccl_error *err)
{
    struct tccl_chain *chain = &result->chain;
    *result = (struct tccl_result){.gbps = take_double(at)};
    result->bound = take_double(at);
    int n = take(at, 1);
    if (n != 0 && n != n_gpus)
        return tccl_fail(err, "a chain has %d GPUs instead of %d", n, n_gpus);
    chain->n_gpus = n;
    chain->closed = n && closed;
    take_chain(at, n_gpus, closed, chain);
    if (n && !closed) {
        chain->entry = entry;
        chain->exit = exit;
    }
    return 0;
}

static void take_nominal(const uint8_t **at, struct tccl_nominal *nominal)
{
    nominal->pattern = take(at, 1);
    nominal->channels = take(at, 1);
    nominal->intra = (float)take_double(at);
    nominal->inter = (float)take_double(at);
    nominal->far_intra = take(at, 1);
    nominal->far_inter = take(at, 1);
}

/* left: the chains that the rest of the data has room for. */
static int take_baseline(const uint8_t **at, int n_gpus, bool closed, int *left,
                         struct tccl_baseline *baseline, struct tccl_error *err)
{
    *baseline = (struct tccl_baseline){.gbps = take_double(at)};
    baseline->n_chains = take(at, 1);
    *left -= baseline->n_chains;
    if (baseline->n_chains > TCCL_MAX_CHANNELS || *left < 0)
        return tccl_fail(err, "a baseline has %d chains", baseline->n_chains);
    take_nominal(at, &baseline->ring);
    take_nominal(at, &baseline->tree);
    for (int i = 0; i < baseline->n_chains; i++) {
        struct tccl_chain *chain = &baseline->chains[i];
        *chain = (struct tccl_chain){.n_gpus = n_gpus, .closed = closed};
        if (!closed) {
            chain->entry = take_port(at);
            chain->exit = take_port(at);
        }
        take_chain(at, n_gpus, closed, chain);
    }
    return 0;
}

static int take_baselines(const uint8_t **at, int n_gpus, bool closed,
                          const struct distinct *distinct,
                          struct tccl_baseline baselines[static TCCL_GENERATIONS],
                          struct tccl_error *err)
{
    struct tccl_baseline list[TCCL_GENERATIONS];
    const uint8_t *of = *at;
    int left = distinct->n_chains;
    *at += TCCL_GENERATIONS;
    for (int i = 0; i < distinct->count; i++)
        if (take_baseline(at, n_gpus, closed, &left, &list[i], err) != 0)
            return -1;
    if (left != 0)
        return tccl_fail(err, "its baselines have %d chains less than it says", left);
    for (int i = 0; i < TCCL_GENERATIONS; i++) {
        if (of[i] >= distinct->count)
            return tccl_fail(err, "NCCL %s has no baseline", tccl_generation(i)->name);
        baselines[i] = list[of[i]];
    }
    return 0;
}

/* n_rings: of all ring sets. */
static int take_generations(const uint8_t **at, struct distinct *rings, struct distinct *chains,
                            int *n_rings, struct tccl_table *head, struct tccl_error *err)
{
    int count = take(at, 1);
    *rings = (struct distinct){.count = take(at, 1)};
    rings->n_chains = take(at, 2);
    *chains = (struct distinct){.count = take(at, 1)};
    chains->n_chains = take(at, 2);
    head->n_hosts = take(at, 2);
    head->n_others = take(at, 2);
    head->n_sets = take(at, 2);
    *n_rings = take(at, 2);
    bool same = count == TCCL_GENERATIONS;
    for (int i = 0; i < TCCL_GENERATIONS; i++)
        same = (int)take(at, 4) == tccl_generation(i)->first && same;
    if (!same)
        return tccl_fail(err, "made for other versions of NCCL; make the table again");
    if (head->n_hosts > MAX_HOSTS || head->n_others > MAX_OTHERS || rings->count < 1 ||
        rings->count > TCCL_GENERATIONS || chains->count < 1 || chains->count > TCCL_GENERATIONS)
        return tccl_fail(err, "numbers of baselines are out of range; make the table again");
    if (head->n_sets > MAX_SETS || *n_rings > MAX_SETS * TCCL_CHAIN_RINGS)
        return tccl_fail(err, "the number of ring sets is out of range; make the table again");
    return 0;
}

/* A pair has one tree at the most. */
static bool size_fits(size_t size, const struct tccl_table *head, int n_gpus,
                      const struct distinct *rings, const struct distinct *chains, int n_rings)
{
    int n_ports = head->n_ports;
    size_t least =
        table_size(head, n_gpus, rings, chains) + sets_size(n_gpus, head->n_sets, n_rings);
    size_t each = tree_size(n_gpus);
    return size >= least && (size - least) % each == 0 &&
           (size - least) / each <= (size_t)n_ports * n_ports;
}

/* Reads the header, and checks it against the size of the file and the machine. */
static int take_header(const uint8_t **at, size_t size, const struct tccl_machine *machine,
                       struct tccl_table *head, int *n_gpus, struct distinct *rings,
                       struct distinct *chains, int *n_rings, struct tccl_error *err)
{
    char id[TCCL_HASH_HEX];
    tccl_machine_id(machine, id);
    *at += MAGIC_SIZE + 4;
    memcpy(head->machine, *at, ID_SIZE);
    *at += ID_SIZE;
    memcpy(head->source, *at, TCCL_NAME - 1);
    *at += TCCL_NAME;
    head->gpus = take(at, 4);
    head->measured = take(at, 4);
    head->noise = take_double(at);
    head->n_ports = take(at, 2);
    *n_gpus = take(at, 1);
    if (take_generations(at, rings, chains, n_rings, head, err) != 0)
        return -1;
    if (strcmp(head->machine, id) != 0)
        return tccl_fail(err, "made for another machine: %.32s, this one is %s", head->machine, id);
    if (head->n_ports > MAX_PORTS || *n_gpus < 1 || head->gpus >> machine->n_gpus ||
        *n_gpus != __builtin_popcount(head->gpus) ||
        !size_fits(size, head, *n_gpus, rings, chains, *n_rings))
        return tccl_fail(err, "sizes do not agree; make the table again");
    if (!(head->noise >= 0 && head->noise < 1))
        return tccl_fail(err, "noise is out of range; make the table again");
    return 0;
}

/* Is it a table of this version, complete and unaltered? */
static int check_whole(const uint8_t *data, size_t size, struct tccl_error *err)
{
    if (size < HEADER_SIZE + CHECKSUM_SIZE || memcmp(data, magic, MAGIC_SIZE) != 0)
        return tccl_fail(err, "not a chain table, or truncated; make it again");
    const uint8_t *at = data + MAGIC_SIZE;
    uint32_t version = take(&at, 4);
    at = data + size - CHECKSUM_SIZE;
    if (take(&at, CHECKSUM_SIZE) != tccl_hash64(data, size - CHECKSUM_SIZE))
        return tccl_fail(err, "checksum does not match (altered or truncated); make it again");
    if (version != VERSION)
        return tccl_fail(
            err, "version %u, %sthis program reads version %d; make it again (tccl-profile run)",
            version, version < 8 ? "made before ring sets; " : "", VERSION);
    return 0;
}

static int take_results(const uint8_t **at, int n_gpus, const struct distinct *rings,
                        const struct distinct *chains, struct tccl_table *table,
                        struct tccl_error *err)
{
    const struct tccl_port none = {0};
    int n = table->n_ports;
    for (int i = 0; i < n; i++)
        table->ports[i] = take_port(at);
    for (int i = 0; i < n * n; i++)
        if (take_result(at, n_gpus, false, table->ports[i / n], table->ports[i % n],
                        &table->pairs[i], err) != 0)
            return -1;
    if (take_result(at, n_gpus, true, none, none, &table->ring, err) != 0 ||
        take_result(at, n_gpus, true, none, none, &table->host_ring, err) != 0)
        return -1;
    if (take_baselines(at, n_gpus, true, rings, table->baseline_ring, err) != 0)
        return -1;
    return take_baselines(at, n_gpus, false, chains, table->baseline_chain, err);
}

static int take_hosts(const uint8_t **at, int n_gpus, struct tccl_table *table,
                      struct tccl_error *err)
{
    for (int i = 0; i < table->n_hosts; i++) {
        struct tccl_port entry = take_port(at), exit = take_port(at);
        if (take_result(at, n_gpus, false, entry, exit, &table->hosts[i], err) != 0)
            return -1;
    }
    return 0;
}

static int take_others(const uint8_t **at, int n_gpus, struct tccl_table *table,
                       struct tccl_error *err)
{
    for (int i = 0; i < table->n_others; i++) {
        struct tccl_chain chain = {.n_gpus = n_gpus};
        uint8_t closed = take(at, 1);
        if (closed > 1)
            return tccl_fail(err, "a chain is neither open nor closed");
        chain.closed = closed;
        chain.entry = take_port(at);
        chain.exit = take_port(at);
        double gbps = take_double(at);
        take_chain(at, n_gpus, true, &chain);
        table->others[i] = (struct tccl_result){.gbps = gbps, .bound = INFINITY, .chain = chain};
    }
    return 0;
}

static int take_set(const uint8_t **at, int n_gpus, int *left, struct tccl_set_result *result,
                    struct tccl_error *err)
{
    struct tccl_ring_set *set = &result->set;
    uint8_t closed = take(at, 1);
    set->n = take(at, 1);
    *left -= set->n;
    if (closed > 1 || set->n < 2 || set->n > TCCL_CHAIN_RINGS || *left < 0)
        return tccl_fail(err, "a ring set has %d rings, or they are neither open nor closed",
                         set->n);
    result->gbps = take_double(at);
    result->bound = take_double(at);
    for (int i = 0; i < set->n; i++) {
        set->rings[i] = (struct tccl_chain){.n_gpus = n_gpus, .closed = closed};
        set->rings[i].entry = take_port(at);
        set->rings[i].exit = take_port(at);
        take_chain(at, n_gpus, true, &set->rings[i]);
    }
    return 0;
}

/* n_rings: of all of them. */
static int take_sets(const uint8_t **at, int n_gpus, int n_rings, struct tccl_table *table,
                     struct tccl_error *err)
{
    for (int i = 0; i < table->n_sets; i++)
        if (take_set(at, n_gpus, &n_rings, &table->sets[i], err) != 0)
            return -1;
    return n_rings == 0 ? 0 : tccl_fail(err, "its ring sets have fewer rings than it says");
}

/* The trees, up to the end. */
static int take_trees(const uint8_t **at, const uint8_t *end, int n_gpus, struct tccl_table *table,
                      struct tccl_error *err)
{
    uint64_t next = 0;
    while (*at < end) {
        uint64_t pair = take(at, 4);
        if (pair < next || pair >= (uint64_t)table->n_ports * table->n_ports)
            return tccl_fail(err, "a tree belongs to no pair of ports");
        take_tree(at, n_gpus, &table->pairs[pair].tree);
        next = pair + 1;
    }
    return 0;
}

static int check_port(struct tccl_port port, uint32_t gpus, const struct tccl_machine *machine)
{
    if (port.nic >= machine->n_nics)
        return -1;
    if (port.via.kind == TCCL_MEMORY)
        return port.via.index < machine->n_memories ? 0 : -1;
    return port.via.kind == TCCL_GPU && port.via.index < machine->n_gpus &&
                   (gpus >> port.via.index & 1) && machine->gpudirect[port.nic][port.via.index]
               ? 0
               : -1;
}

static int check_chain(const struct tccl_result *result, const struct tccl_machine *machine,
                       struct tccl_error *err)
{
    if (!tccl_tree_fits(&result->tree, &result->chain, machine->n_nics))
        return tccl_fail(err, "a tree is not on this machine; make the table again");
    return result->chain.n_gpus ? tccl_chain_check(&result->chain, machine, err) : 0;
}

static int check_baseline(const struct tccl_baseline *baseline, const struct tccl_machine *machine,
                          struct tccl_error *err)
{
    for (int i = 0; i < baseline->n_chains; i++)
        if (tccl_chain_check(&baseline->chains[i], machine, err) != 0)
            return -1;
    return 0;
}

int tccl_table_check(const struct tccl_table *table, const struct tccl_machine *machine,
                     struct tccl_error *err)
{
    int n = table->n_ports;
    for (int i = 0; i < n; i++)
        if (check_port(table->ports[i], table->gpus, machine) != 0)
            return tccl_fail(err, "port %d is not on this machine; make the table again", i);
    for (int i = 0; i < n * n; i++)
        if (check_chain(&table->pairs[i], machine, err) != 0)
            return -1;
    for (int i = 0; i < table->n_hosts; i++)
        if (check_chain(&table->hosts[i], machine, err) != 0)
            return -1;
    for (int i = 0; i < table->n_others; i++)
        if (check_chain(&table->others[i], machine, err) != 0)
            return -1;
    for (int i = 0; i < table->n_sets; i++)
        if (tccl_ring_set_check(&table->sets[i].set, machine, err) != 0)
            return -1;
    if (check_chain(&table->ring, machine, err) != 0 ||
        check_chain(&table->host_ring, machine, err) != 0)
        return -1;
    for (int i = 0; i < TCCL_GENERATIONS; i++)
        if (check_baseline(&table->baseline_ring[i], machine, err) != 0 ||
            check_baseline(&table->baseline_chain[i], machine, err) != 0)
            return -1;
    if (!table_fits(table))
        return tccl_fail(err, "the chain table contradicts itself; make it again");
    return 0;
}

static bool is_built(const struct tccl_result *result, const struct tccl_machine *machine)
{
    return tccl_expressible(machine, &result->chain, 1, NULL) == 0;
}

/* The chain goes, and its bound stays. */
static void drop_chain(struct tccl_result *result, const struct tccl_machine *machine)
{
    if (!is_built(result, machine))
        *result = (struct tccl_result){.bound = result->bound};
}

static int drop_results(struct tccl_result *results, int n, const struct tccl_machine *machine)
{
    int left = 0;
    for (int i = 0; i < n; i++)
        if (is_built(&results[i], machine))
            results[left++] = results[i];
    return left;
}

/* What NCCL can't be made to build, as a release before this one may have kept it. */
static void drop_unbuilt(struct tccl_table *table, const struct tccl_machine *machine)
{
    int left = 0;
    for (int i = 0; i < table->n_ports * table->n_ports; i++)
        drop_chain(&table->pairs[i], machine);
    drop_chain(&table->ring, machine);
    drop_chain(&table->host_ring, machine);
    table->n_hosts = drop_results(table->hosts, table->n_hosts, machine);
    table->n_others = drop_results(table->others, table->n_others, machine);
    for (int i = 0; i < table->n_sets; i++)
        if (tccl_expressible(machine, table->sets[i].set.rings, table->sets[i].set.n, NULL) == 0)
            table->sets[left++] = table->sets[i];
    table->n_sets = left;
}

static struct tccl_table *table_decode(const uint8_t *data, size_t size,
                                       const struct tccl_machine *machine, struct tccl_error *err)
{
    struct tccl_table head = {0};
    const uint8_t *at = data;
    struct distinct rings, chains;
    int n_gpus = 0, n_rings = 0;
    if (check_whole(data, size, err) != 0 ||
        take_header(&at, size, machine, &head, &n_gpus, &rings, &chains, &n_rings, err) != 0)
        return NULL;
    cleanup_table struct tccl_table *table = table_alloc(head.n_ports);
    if (!table) {
        tccl_fail(err, "out of memory");
        return NULL;
    }
    head.ports = table->ports;
    head.pairs = table->pairs;
    head.hosts = table->hosts;
    head.others = table->others;
    head.sets = table->sets;
    *table = head;
    if (take_results(&at, n_gpus, &rings, &chains, table, err) != 0 ||
        take_hosts(&at, n_gpus, table, err) != 0 || take_others(&at, n_gpus, table, err) != 0 ||
        take_sets(&at, n_gpus, n_rings, table, err) != 0 ||
        take_trees(&at, data + size - CHECKSUM_SIZE, n_gpus, table, err) != 0 ||
        tccl_table_check(table, machine, err) != 0)
        return NULL;
    drop_unbuilt(table, machine);
    return tccl_steal(table);
}

int tccl_table_read(const char *path, const struct tccl_machine *machine, struct tccl_table **table,
                    struct tccl_error *err)
{
    cleanup_free char *data = NULL;
    size_t size = 0;
    if (tccl_read_file(path, MAX_FILE, &data, &size, err) != 0)
        return -1;
    struct tccl_error why = {""};
    *table = table_decode((const uint8_t *)data, size, machine, &why);
    return *table ? 0 : tccl_fail(err, "%s: %s", path, why.text);
}
