/* table.c: the chain table of a GPU set, and its file.
 *
 * The file, little-endian, without padding:
 *   magic "TCCLCHNS", version u32, machine id (32 hexadecimal digits), source (64 bytes,
 * NUL-filled), GPU mask u32, measured u32, noise f64, number of ports u16, number of GPUs u8, 0 u8;
 *   the ports, 3 bytes each: NIC, kind of via, index of via;
 *   the pairs, row by row: result with n - 1 edges; then ring and NCCL's ring: results with n
 * edges; then NCCL's chain: entry port, exit port, result with n - 1 edges; XXH3 (64 bits) of all
 * before it. A result: gbps f64, bound f64, number of GPUs u8 (n, or 0: no chain), the GPUs, and
 * for each edge one byte: kind * 16 + memory. With 8 GPUs that makes 32 bytes a pair. */
#include "ring/table.h"

#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fileio.h"

enum {
    VERSION = 2, /* 1: one chain of NCCL's own at most */
    MAGIC_SIZE = 8,
    ID_SIZE = TCCL_HASH_HEX - 1,
    HEADER_SIZE = MAGIC_SIZE + 4 + ID_SIZE + TCCL_NAME + 4 + 4 + 8 + 2 + 1 + 1,
    PORT_SIZE = 3,
    CHECKSUM_SIZE = 8,
    MAX_PORTS = TCCL_MAX_NICS * (TCCL_MAX_GPUS + TCCL_MAX_MEMORIES),
    MAX_FILE = 16 << 20,
};
static const char magic[] = "TCCLCHNS";

static const struct tccl_result unknown = {.bound = INFINITY};

/* Bytes of a result, and of a whole table. */
static size_t result_size(int n_gpus, bool closed)
{
    return 8 + 8 + 1 + (size_t)n_gpus + (closed ? n_gpus : n_gpus - 1);
}

static size_t table_size(int n_ports, int n_gpus)
{
    return HEADER_SIZE + (size_t)n_ports * PORT_SIZE +
           (size_t)n_ports * n_ports * result_size(n_gpus, false) + 2 * result_size(n_gpus, true) +
           2 * PORT_SIZE + result_size(n_gpus, false) + CHECKSUM_SIZE;
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

/* A table with room for so many ports, all results unknown. */
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
    table->ring = table->default_ring = table->default_chain = unknown;
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

/* Writing. The buffer has exactly the size that is going to be written. */

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

static void put_result(uint8_t **at, const struct tccl_result *result, int n_gpus, bool closed)
{
    const struct tccl_chain *chain = &result->chain;
    int n = chain->n_gpus;
    put_double(at, result->gbps);
    put_double(at, result->bound);
    put(at, n, 1);
    for (int i = 0; i < n_gpus; i++)
        put(at, n ? chain->gpus[i] : 0, 1);
    for (int i = 0; i < (closed ? n_gpus : n_gpus - 1); i++)
        put(at, n ? chain->edges[i].kind * 16u + chain->edges[i].memory : 0, 1);
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
    put(at, 0, 1);
}

static bool port_equal(struct tccl_port a, struct tccl_port b)
{
    return a.nic == b.nic && a.via.kind == b.via.kind && a.via.index == b.via.index;
}

/* Is a result what its place in the table says: all GPUs of the set, open or closed, its ports, a
 * bandwidth below its bound? */
static bool result_fits(const struct tccl_result *result, uint32_t gpus, bool closed,
                        const struct tccl_port *entry, const struct tccl_port *exit)
{
    const struct tccl_chain *chain = &result->chain;
    if (!(result->gbps >= 0 && isfinite(result->gbps) && result->bound >= result->gbps))
        return false;
    if (chain->n_gpus == 0)
        return result->gbps == 0;
    uint32_t visited = 0;
    for (int i = 0; i < chain->n_gpus && i < TCCL_MAX_GPUS; i++)
        visited |= 1u << (chain->gpus[i] & 31);
    return chain->n_gpus == __builtin_popcount(gpus) && visited == gpus &&
           chain->closed == closed && (!entry || port_equal(chain->entry, *entry)) &&
           (!exit || port_equal(chain->exit, *exit));
}

static bool table_fits(const struct tccl_table *table)
{
    for (int i = 0; i < table->n_ports * table->n_ports; i++)
        if (!result_fits(&table->pairs[i], table->gpus, false, &table->ports[i / table->n_ports],
                         &table->ports[i % table->n_ports]))
            return false;
    return result_fits(&table->ring, table->gpus, true, NULL, NULL) &&
           result_fits(&table->default_ring, table->gpus, true, NULL, NULL) &&
           result_fits(&table->default_chain, table->gpus, false, NULL, NULL);
}

int tccl_table_write(const struct tccl_table *table, const char *path, struct tccl_error *err)
{
    int n_gpus = __builtin_popcount(table->gpus);
    if (n_gpus < 1 || n_gpus > TCCL_MAX_GPUS || table->n_ports > MAX_PORTS || !table_fits(table))
        return tccl_fail(err, "%s: the chain table contradicts itself and is not written", path);
    size_t size = table_size(table->n_ports, n_gpus);
    cleanup_free uint8_t *data = calloc(1, size);
    if (!data)
        return tccl_fail(err, "%s: no memory for %zu bytes", path, size);
    uint8_t *at = data;
    put_header(&at, table, n_gpus);
    for (int i = 0; i < table->n_ports; i++)
        put_port(&at, table->ports[i]);
    for (int i = 0; i < table->n_ports * table->n_ports; i++)
        put_result(&at, &table->pairs[i], n_gpus, false);
    put_result(&at, &table->ring, n_gpus, true);
    put_result(&at, &table->default_ring, n_gpus, true);
    put_port(&at, table->default_chain.chain.entry);
    put_port(&at, table->default_chain.chain.exit);
    put_result(&at, &table->default_chain, n_gpus, false);
    put(&at, tccl_hash64(data, size - CHECKSUM_SIZE), CHECKSUM_SIZE);
    return tccl_write_file(path, 0644, data, size, err);
}

/* Reading. The size has been compared with the header's numbers before anything is taken. */

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
    for (int i = 0; i < n_gpus; i++)
        chain->gpus[i] = take(at, 1);
    for (int i = 0; i < (closed ? n_gpus : n_gpus - 1); i++) {
        uint8_t edge = take(at, 1);
        chain->edges[i] = (struct tccl_edge){edge >> 4, edge & 15};
    }
    if (n && !closed) {
        chain->entry = entry;
        chain->exit = exit;
    }
    return 0;
}

/* What the header says; checks it as far as the size of the file and the machine go. */
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
    *at += 1;
    if (strcmp(head->machine, id) != 0)
        return tccl_fail(err, "made for another machine: %.32s, this one is %s", head->machine, id);
    if (head->n_ports > MAX_PORTS || *n_gpus < 1 || head->gpus >> machine->n_gpus ||
        *n_gpus != __builtin_popcount(head->gpus) || size != table_size(head->n_ports, *n_gpus))
        return tccl_fail(err, "sizes do not agree; make the table again");
    if (!(head->noise >= 0 && head->noise < 1))
        return tccl_fail(err, "noise is out of range; make the table again");
    return 0;
}

/* Is it a table of this version, whole and unaltered? */
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
                        &table->pairs[i], err) < 0)
            return -1;
    if (take_result(at, n_gpus, true, none, none, &table->ring, err) < 0 ||
        take_result(at, n_gpus, true, none, none, &table->default_ring, err) < 0)
        return -1;
    struct tccl_port entry = take_port(at), exit = take_port(at);
    return take_result(at, n_gpus, false, entry, exit, &table->default_chain, err);
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

int tccl_table_check(const struct tccl_table *table, const struct tccl_machine *machine,
                     struct tccl_error *err)
{
    int n = table->n_ports;
    for (int i = 0; i < n; i++)
        if (check_port(table->ports[i], table->gpus, machine) < 0)
            return tccl_fail(err, "port %d is not on this machine; make the table again", i);
    for (int i = 0; i < n * n; i++)
        if (check_chain(&table->pairs[i], machine, err) < 0)
            return -1;
    if (check_chain(&table->ring, machine, err) < 0 ||
        check_chain(&table->default_ring, machine, err) < 0 ||
        check_chain(&table->default_chain, machine, err) < 0)
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
    if (check_whole(data, size, err) < 0 ||
        take_header(&at, size, machine, &head, &n_gpus, err) < 0)
        return NULL;
    cleanup_table struct tccl_table *table = table_alloc(head.n_ports);
    if (!table) {
        tccl_fail(err, "no memory for %d ports", head.n_ports);
        return NULL;
    }
    head.ports = table->ports;
    head.pairs = table->pairs;
    *table = head;
    if (take_results(&at, n_gpus, table, err) < 0 || tccl_table_check(table, machine, err) < 0)
        return NULL;
    return tccl_steal(table);
}

int tccl_table_read(const char *path, const struct tccl_machine *machine, struct tccl_table **table,
                    struct tccl_error *err)
{
    cleanup_free char *data = NULL;
    size_t size = 0;
    if (tccl_read_file(path, MAX_FILE, &data, &size, err) < 0)
        return -1;
    struct tccl_error why = {""};
    *table = table_decode((const uint8_t *)data, size, machine, &why);
    return *table ? 0 : tccl_fail(err, "%s: %s", path, why.text);
}
