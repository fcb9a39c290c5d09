/* table.c: chain tables on disk. Little-endian, no padding:
 *
 *   magic "TCCLCHNS", version u32, machine id (32 hexadecimal digits), source (64 bytes,
 * NUL-filled), GPU mask u32, measured u32, noise f64, number of ports u16, of GPUs u8 (n), of the
 * baseline's rings u8, of its chains u8;
 *   the ports, 3 bytes each: NIC, kind of via, index of via;
 *   the pairs, row by row: result with n - 1 edges; then the ring: result with n edges;
 *   the baseline of the node alone: gbps f64, its rings with n edges each; the baseline of one node
 * of several: gbps f64, for each chain entry port, exit port and the chain with n - 1 edges;
 *   XXH3 (64 bits) of all before it.
 * A chain: the GPUs, and for each edge one byte: kind * 16 + memory. A result: gbps f64, bound f64,
 * number of GPUs u8 (n, or 0: no chain), the chain. With 8 GPUs that makes 32 bytes a pair. */
#include "ring/table.h"

#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fileio.h"

enum {
    VERSION = 3, /* 2: the first chain of the baseline only */
    MAGIC_SIZE = 8,
    ID_SIZE = TCCL_HASH_HEX - 1,
    HEADER_SIZE = MAGIC_SIZE + 4 + ID_SIZE + TCCL_NAME + 4 + 4 + 8 + 2 + 1 + 1 + 1,
    PORT_SIZE = 3,
    CHECKSUM_SIZE = 8,
    MAX_PORTS = TCCL_MAX_NICS * (TCCL_MAX_GPUS + TCCL_MAX_MEMORIES),
    MAX_FILE = 16 << 20,
};
static const char magic[] = "TCCLCHNS";

static const struct tccl_result unknown = {.bound = INFINITY};

/* Bytes of a chain, of a result, of a baseline, and of a whole table. */
static size_t chain_size(int n_gpus, bool closed)
{
    return (size_t)n_gpus + (closed ? n_gpus : n_gpus - 1);
}

static size_t result_size(int n_gpus, bool closed)
{
    return 8 + 8 + 1 + chain_size(n_gpus, closed);
}

static size_t baseline_size(int n_gpus, bool closed, int n_chains)
{
    return 8 + n_chains * (chain_size(n_gpus, closed) + (closed ? 0 : 2 * PORT_SIZE));
}

static size_t table_size(int n_ports, int n_gpus, int n_rings, int n_chains)
{
    return HEADER_SIZE + (size_t)n_ports * PORT_SIZE +
           (size_t)n_ports * n_ports * result_size(n_gpus, false) + result_size(n_gpus, true) +
           baseline_size(n_gpus, true, n_rings) + baseline_size(n_gpus, false, n_chains) +
           CHECKSUM_SIZE;
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
    if (!table->ports || !table->pairs) {
        tccl_table_free(table);
        return NULL;
    }
    for (int i = 0; i < n_ports * n_ports; i++)
        table->pairs[i] = unknown;
    table->ring = unknown;
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
    free(table);
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

static void put_result(uint8_t **at, const struct tccl_result *result, int n_gpus, bool closed)
{
    put_double(at, result->gbps);
    put_double(at, result->bound);
    put(at, result->chain.n_gpus, 1);
    put_chain(at, &result->chain, n_gpus, closed);
}

static void put_baseline(uint8_t **at, const struct tccl_baseline *baseline, int n_gpus,
                         bool closed)
{
    put_double(at, baseline->gbps);
    for (int i = 0; i < baseline->n_chains; i++) {
        const struct tccl_chain *chain = &baseline->chains[i];
        if (!closed) {
            put_port(at, chain->entry);
            put_port(at, chain->exit);
        }
        put_chain(at, chain, n_gpus, closed);
    }
}

static void put_header(uint8_t **at, const struct tccl_table *table, int n_gpus)
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
    put(at, table->baseline_ring.n_chains, 1);
    put(at, table->baseline_chain.n_chains, 1);
}

static bool port_equal(struct tccl_port a, struct tccl_port b)
{
    return a.nic == b.nic && a.via.kind == b.via.kind && a.via.index == b.via.index;
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
    if (chain->n_gpus == 0)
        return result->gbps == 0;
    return chain_fits(chain, gpus, closed) && (!entry || port_equal(chain->entry, *entry)) &&
           (!exit || port_equal(chain->exit, *exit));
}

static bool baseline_fits(const struct tccl_baseline *baseline, uint32_t gpus, bool closed)
{
    int n = baseline->n_chains;
    if (n < 0 || n > TCCL_MAX_CHANNELS || !(baseline->gbps >= 0 && isfinite(baseline->gbps)) ||
        (n == 0 && baseline->gbps > 0))
        return false;
    for (int i = 0; i < n; i++)
        if (!chain_fits(&baseline->chains[i], gpus, closed))
            return false;
    return true;
}

static bool table_fits(const struct tccl_table *table)
{
    for (int i = 0; i < table->n_ports * table->n_ports; i++)
        if (!result_fits(&table->pairs[i], table->gpus, false, &table->ports[i / table->n_ports],
                         &table->ports[i % table->n_ports]))
            return false;
    return result_fits(&table->ring, table->gpus, true, NULL, NULL) &&
           baseline_fits(&table->baseline_ring, table->gpus, true) &&
           baseline_fits(&table->baseline_chain, table->gpus, false);
}

int tccl_table_write(const struct tccl_table *table, const char *path, struct tccl_error *err)
{
    int n_gpus = __builtin_popcount(table->gpus);
    if (n_gpus < 1 || n_gpus > TCCL_MAX_GPUS || table->n_ports > MAX_PORTS || !table_fits(table))
        return tccl_fail(err, "%s: the chain table is inconsistent and is not written", path);
    size_t size = table_size(table->n_ports, n_gpus, table->baseline_ring.n_chains,
                             table->baseline_chain.n_chains);
    cleanup_free uint8_t *data = calloc(1, size);
    if (!data)
        return tccl_fail(err, "%s: out of memory", path);
    uint8_t *at = data;
    put_header(&at, table, n_gpus);
    for (int i = 0; i < table->n_ports; i++)
        put_port(&at, table->ports[i]);
    for (int i = 0; i < table->n_ports * table->n_ports; i++)
        put_result(&at, &table->pairs[i], n_gpus, false);
    put_result(&at, &table->ring, n_gpus, true);
    put_baseline(&at, &table->baseline_ring, n_gpus, true);
    put_baseline(&at, &table->baseline_chain, n_gpus, false);
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

/* n_chains is in the header. */
static void take_baseline(const uint8_t **at, int n_gpus, bool closed,
                          struct tccl_baseline *baseline)
{
    baseline->gbps = take_double(at);
    for (int i = 0; i < baseline->n_chains; i++) {
        struct tccl_chain *chain = &baseline->chains[i];
        *chain = (struct tccl_chain){.n_gpus = n_gpus, .closed = closed};
        if (!closed) {
            chain->entry = take_port(at);
            chain->exit = take_port(at);
        }
        take_chain(at, n_gpus, closed, chain);
    }
}

/* Reads the header, and checks it against the size of the file and the machine. */
static int take_header(const uint8_t **at, size_t size, const struct tccl_machine *machine,
                       struct tccl_table *head, int *n_gpus, struct tccl_error *err)
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
    head->baseline_ring.n_chains = take(at, 1);
    head->baseline_chain.n_chains = take(at, 1);
    if (strcmp(head->machine, id) != 0)
        return tccl_fail(err, "made for another machine: %.32s, this one is %s", head->machine, id);
    if (head->n_ports > MAX_PORTS || *n_gpus < 1 || head->gpus >> machine->n_gpus ||
        head->baseline_ring.n_chains > TCCL_MAX_CHANNELS ||
        head->baseline_chain.n_chains > TCCL_MAX_CHANNELS ||
        *n_gpus != __builtin_popcount(head->gpus) ||
        size != table_size(head->n_ports, *n_gpus, head->baseline_ring.n_chains,
                           head->baseline_chain.n_chains))
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
        return tccl_fail(err, "version %u, this program reads version %d; make it again", version,
                         VERSION);
    return 0;
}

static int take_results(const uint8_t **at, int n_gpus, struct tccl_table *table,
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
    if (take_result(at, n_gpus, true, none, none, &table->ring, err) != 0)
        return -1;
    take_baseline(at, n_gpus, true, &table->baseline_ring);
    take_baseline(at, n_gpus, false, &table->baseline_chain);
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
    if (check_chain(&table->ring, machine, err) != 0 ||
        check_baseline(&table->baseline_ring, machine, err) != 0 ||
        check_baseline(&table->baseline_chain, machine, err) != 0)
        return -1;
    if (!table_fits(table))
        return tccl_fail(err, "the chain table contradicts itself; make it again");
    return 0;
}

static struct tccl_table *table_decode(const uint8_t *data, size_t size,
                                       const struct tccl_machine *machine, struct tccl_error *err)
{
    struct tccl_table head = {0};
    const uint8_t *at = data;
    int n_gpus = 0;
    if (check_whole(data, size, err) != 0 ||
        take_header(&at, size, machine, &head, &n_gpus, err) != 0)
        return NULL;
    cleanup_table struct tccl_table *table = table_alloc(head.n_ports);
    if (!table) {
        tccl_fail(err, "out of memory");
        return NULL;
    }
    head.ports = table->ports;
    head.pairs = table->pairs;
    *table = head;
    if (take_results(&at, n_gpus, table, err) != 0 || tccl_table_check(table, machine, err) != 0)
        return NULL;
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
