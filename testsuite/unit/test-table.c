/* The chain table: what is written is read back; nothing else is accepted. */
#include "check.h"

#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/fileio.h"
#include "sample.h"

static char path[512];

static bool port_equal(struct tccl_port a, struct tccl_port b)
{
    return a.nic == b.nic && a.via.kind == b.via.kind && a.via.index == b.via.index;
}

static bool result_equal(const struct tccl_result *a, const struct tccl_result *b)
{
    const struct tccl_chain *x = &a->chain, *y = &b->chain;
    if (a->gbps != b->gbps || a->bound != b->bound || x->n_gpus != y->n_gpus)
        return false;
    if (x->n_gpus == 0)
        return true;
    if (x->closed != y->closed || memcmp(x->gpus, y->gpus, x->n_gpus) != 0)
        return false;
    for (int i = 0; i < tccl_chain_edges(x); i++)
        if (x->edges[i].kind != y->edges[i].kind || x->edges[i].memory != y->edges[i].memory)
            return false;
    if (a->tree.gbps != b->tree.gbps || a->tree.along != b->tree.along ||
        a->tree.nic != b->tree.nic || memcmp(a->tree.gpus, b->tree.gpus, TCCL_MAX_GPUS) != 0)
        return false;
    return x->closed || (port_equal(x->entry, y->entry) && port_equal(x->exit, y->exit));
}

static bool baseline_equal(const struct tccl_baseline *a, const struct tccl_baseline *b)
{
    return a->gbps == b->gbps && a->n_chains == b->n_chains &&
           memcmp(a->chains, b->chains, sizeof(a->chains)) == 0 &&
           memcmp(&a->ring, &b->ring, sizeof(a->ring)) == 0 &&
           memcmp(&a->tree, &b->tree, sizeof(a->tree)) == 0;
}

static bool set_equal(const struct tccl_set_result *a, const struct tccl_set_result *b)
{
    bool same = a->gbps == b->gbps && a->bound == b->bound && a->set.n == b->set.n;
    for (int i = 0; same && i < a->set.n; i++)
        same = tccl_chain_equal(&a->set.rings[i], &b->set.rings[i]);
    return same;
}

static void check_equal(const struct tccl_table *a, const struct tccl_table *b)
{
    CHECK_STR(a->machine, b->machine);
    CHECK_STR(a->source, b->source);
    CHECK_INT(a->gpus, b->gpus);
    CHECK_INT(a->measured, b->measured);
    CHECK(a->noise == b->noise);
    CHECK_INT(a->n_ports, b->n_ports);
    for (int i = 0; i < a->n_ports; i++)
        CHECK(port_equal(a->ports[i], b->ports[i]));
    for (int i = 0; i < a->n_ports * a->n_ports; i++)
        CHECK(result_equal(&a->pairs[i], &b->pairs[i]));
    CHECK(result_equal(&a->ring, &b->ring));
    CHECK(result_equal(&a->host_ring, &b->host_ring));
    CHECK_INT(a->n_hosts, b->n_hosts);
    for (int i = 0; i < a->n_hosts; i++)
        CHECK(result_equal(&a->hosts[i], &b->hosts[i]));
    CHECK_INT(a->n_sets, b->n_sets);
    CHECK(a->n_sets > 0);
    for (int i = 0; i < a->n_sets; i++)
        CHECK(set_equal(&a->sets[i], &b->sets[i]));
    for (int i = 0; i < TCCL_GENERATIONS; i++) {
        CHECK(baseline_equal(&a->baseline_ring[i], &b->baseline_ring[i]));
        CHECK(baseline_equal(&a->baseline_chain[i], &b->baseline_chain[i]));
    }
}

static void test_new(const struct tccl_machine *machine)
{
    struct tccl_table *table = tccl_table_new(machine, 0xd);
    CHECK_INT(table->n_ports, 5); /* NIC 0: GPU 0, two memories; NIC 1: two memories */
    CHECK(table->ports[0].via.kind == TCCL_GPU && table->ports[0].via.index == 0);
    CHECK(isinf(table->pairs[24].bound) && isinf(table->ring.bound));
    tccl_table_free(table);
}

static void test_roundtrip(const struct tccl_machine *machine)
{
    for (uint32_t gpus = 1; gpus < 16; gpus++) {
        struct tccl_error err = {""};
        struct tccl_table *table = sample_table(machine, gpus), *copy = NULL;
        CHECK_INT(tccl_table_write(table, path, &err), 0);
        CHECK_INT(tccl_table_read(path, machine, &copy, &err), 0);
        CHECK_STR(err.text, "");
        if (copy)
            check_equal(table, copy);
        tccl_table_free(copy);
        tccl_table_free(table);
    }
}

static void spoil(struct tccl_chain *chain)
{
    chain->edges[0] = (struct tccl_edge){.kind = TCCL_P2P_READ};
}

/* What NCCL can't be made to build is left out, and nothing else. */
static void test_unbuilt(const struct tccl_machine *machine)
{
    struct tccl_table *table = NULL, *copy = NULL;
    struct tccl_error err = {""};
    int pair, n;
    do { /* one with all that is spoiled below, and with other rings than its own */
        tccl_table_free(table);
        table = sample_table(machine, 15);
        n = table->n_ports * table->n_ports;
        for (pair = 0; pair < n && !table->pairs[pair].chain.n_gpus;)
            pair++;
        struct tccl_chain ring = sample_chain(15, true);
        for (int i = 0; i < 2; i++) {
            tccl_table_keep_other(table, &ring, 5);
            spoil(&ring);
        }
    } while (pair == n || table->n_sets == 0 || table->n_others != 2);
    double bound = table->pairs[pair].bound;
    int hosts = table->n_hosts, others = table->n_others, sets = table->n_sets;
    CHECK(pair < n && others == 2 && sets > 0);
    spoil(&table->pairs[pair].chain);
    spoil(&table->ring.chain);
    spoil(&table->sets[0].set.rings[1]);
    CHECK_INT(tccl_table_write(table, path, &err), 0);
    CHECK_INT(tccl_table_read(path, machine, &copy, &err), 0);
    CHECK_STR(err.text, "");
    CHECK(copy->pairs[pair].chain.n_gpus == 0 && copy->pairs[pair].gbps <= 0 &&
          copy->pairs[pair].bound >= bound);
    CHECK(copy->ring.chain.n_gpus == 0 && copy->host_ring.chain.n_gpus == 4);
    CHECK_INT(copy->n_hosts, hosts);
    CHECK_INT(copy->n_others, others - 1);
    CHECK_INT(copy->n_sets, sets - 1);
    for (int i = 0; i < n; i++)
        CHECK(i == pair || result_equal(&copy->pairs[i], &table->pairs[i]));
    CHECK_INT(tccl_table_check(copy, machine, NULL), 0);
    tccl_table_free(copy);
    tccl_table_free(table);
}

static int write_plain(const char *data, size_t size)
{
    cleanup_file FILE *file = fopen(path, "w");
    return file && fwrite(data, 1, size, file) == size ? 0 : -1;
}

static void check_refused(const struct tccl_machine *machine, const char *data, size_t size)
{
    struct tccl_error err = {""};
    struct tccl_table *table = NULL;
    CHECK_INT(write_plain(data, size), 0);
    CHECK_INT(tccl_table_read(path, machine, &table, &err), -1);
    CHECK(table == NULL && strstr(err.text, path) == err.text);
}

static void test_damage(const struct tccl_machine *machine)
{
    struct tccl_table *table = sample_table(machine, 5);
    cleanup_free char *data = NULL;
    size_t size = 0;
    CHECK_INT(tccl_table_write(table, path, NULL), 0);
    CHECK_INT(tccl_read_file(path, 1 << 20, &data, &size, NULL), 0);
    tccl_table_free(table);
    for (size_t i = 0; i < size; i++) {
        data[i] ^= 1 << (i % 8);
        check_refused(machine, data, size);
        data[i] ^= 1 << (i % 8);
        check_refused(machine, data, i);
    }
    cleanup_free char *longer = calloc(1, size + 1);
    memcpy(longer, data, size);
    check_refused(machine, longer, size + 1);
}

/* A file with a right checksum over wrong content: every byte is changed to random values. */
static void test_forged(const struct tccl_machine *machine)
{
    struct tccl_table *table = sample_table(machine, 15);
    cleanup_free char *data = NULL;
    size_t size = 0;
    int accepted = 0;
    CHECK_INT(tccl_table_write(table, path, NULL), 0);
    CHECK_INT(tccl_read_file(path, 1 << 20, &data, &size, NULL), 0);
    tccl_table_free(table);
    for (size_t i = 0; i < size - 8; i++) {
        char old = data[i];
        struct tccl_error err = {""};
        data[i] = rand();
        uint64_t sum = tccl_hash64(data, size - 8);
        for (int k = 0; k < 8; k++)
            data[size - 8 + k] = sum >> (8 * k);
        CHECK_INT(write_plain(data, size), 0);
        if (tccl_table_read(path, machine, &table, &err) == 0) {
            accepted++; /* another bandwidth, another edge: still a table */
            tccl_table_free(table);
        } else {
            CHECK(err.text[0]);
        }
        data[i] = old;
    }
    printf("%d of %zu forged tables were possible ones\n", accepted, size - 8);
}

static void test_other_machine(struct tccl_machine machine)
{
    struct tccl_table *table = sample_table(&machine, 15), *copy = NULL;
    struct tccl_error err = {""};
    CHECK_INT(tccl_table_write(table, path, NULL), 0);
    snprintf(machine.gpus[2].model, TCCL_NAME, "A100");
    CHECK_INT(tccl_table_read(path, &machine, &copy, &err), -1);
    CHECK(strstr(err.text, "made for another machine") != NULL);
    tccl_table_free(table);
}

/* What contradicts itself is not written, and the old file stays. */
static void test_contradiction(const struct tccl_machine *machine)
{
    struct tccl_table *table = sample_table(machine, 15), *copy = NULL;
    struct tccl_error err = {""};
    CHECK_INT(tccl_table_write(table, path, NULL), 0);
    table->ring.bound = table->ring.gbps / 2;
    CHECK_INT(tccl_table_write(table, path, &err), -1);
    table->ring.bound = table->ring.gbps;
    table->baseline_ring[TCCL_NEWEST].n_chains = TCCL_MAX_CHANNELS + 1;
    CHECK_INT(tccl_table_write(table, path, &err), -1);
    table->baseline_ring[TCCL_NEWEST].n_chains = 1;
    table->baseline_ring[TCCL_NEWEST].chains[0].closed = false;
    CHECK_INT(tccl_table_write(table, path, &err), -1);
    CHECK_INT(tccl_table_read(path, machine, &copy, NULL), 0);
    tccl_table_free(copy);
    tccl_table_free(table);
}

/* A file of the version before, whole otherwise: the text says what to run. */
static void test_older(const struct tccl_machine *machine)
{
    struct tccl_table *table = sample_table(machine, 15), *copy = NULL;
    struct tccl_error err = {""};
    cleanup_free char *data = NULL;
    size_t size = 0;
    CHECK_INT(tccl_table_write(table, path, NULL), 0);
    CHECK_INT(tccl_read_file(path, 1 << 20, &data, &size, NULL), 0);
    data[8] = 7;
    uint64_t sum = tccl_hash64(data, size - 8);
    for (int k = 0; k < 8; k++)
        data[size - 8 + k] = sum >> (8 * k);
    CHECK_INT(write_plain(data, size), 0);
    CHECK_INT(tccl_table_read(path, machine, &copy, &err), -1);
    CHECK(strstr(err.text, "version 7, made before ring sets") != NULL);
    CHECK(strstr(err.text, "tccl-profile run") != NULL && !strchr(err.text, '\n'));
    tccl_table_free(table);
}

/* Of sets of as many rings with the same NICs, in any order, the best one stays; what bounds one
 * bounds all of as many rings. */
static void test_keep_set(const struct tccl_machine *machine)
{
    struct tccl_table *table = tccl_table_new(machine, 15);
    struct tccl_set_result set = sample_table_set(table, false, 2), other;
    set.gbps = 5;
    set.bound = INFINITY;
    set.set.rings[0].entry.nic = 0;
    set.set.rings[1].entry.nic = 1;
    tccl_table_keep_set(table, &set);
    other = set;
    other.set.rings[0] = set.set.rings[1];
    other.set.rings[1] = set.set.rings[0];
    other.gbps = 4;
    other.bound = 7;
    tccl_table_keep_set(table, &other);
    CHECK_INT(table->n_sets, 1);
    CHECK(table->sets[0].gbps == 5 && table->sets[0].bound == 7);
    other.gbps = 6;
    tccl_table_keep_set(table, &other);
    CHECK_INT(table->n_sets, 1);
    CHECK(tccl_chain_equal(&table->sets[0].set.rings[0], &other.set.rings[0]));
    other.set.rings[0].entry.nic = other.set.rings[1].entry.nic;
    other.gbps = 3;
    other.bound = 2.5; /* was wrong, as bounds by measuring may be */
    tccl_table_keep_set(table, &other);
    CHECK_INT(table->n_sets, 2);
    CHECK(table->sets[0].bound == 6 && table->sets[1].bound == 6);
    other = sample_table_set(table, false, 3);
    tccl_table_keep_set(table, &other);
    CHECK_INT(table->n_sets, 3);
    CHECK(table->sets[0].bound == 6);
    CHECK_INT(tccl_table_write(table, path, NULL), 0);
    table->sets[1].set = table->sets[0].set;
    CHECK_INT(tccl_table_write(table, path, NULL), -1);
    table->sets[1].set.n = 1;
    CHECK_INT(tccl_table_write(table, path, NULL), -1);
    tccl_table_free(table);
}

/* What a node class gets; without P2P those that have none. */
static void test_class_sets(const struct tccl_machine *machine)
{
    struct tccl_table *table = tccl_table_new(machine, 15);
    struct tccl_set_result set = sample_table_set(table, false, 2);
    set.set.rings[0].edges[0] = (struct tccl_edge){TCCL_P2P_WRITE, 0};
    tccl_table_keep_set(table, &set);
    set = sample_table_set(table, true, 3);
    for (int i = 0; i < 3; i++)
        set.set.rings[i] = sample_host_chain(15, true);
    tccl_table_keep_set(table, &set);
    struct tccl_node_class *class = tccl_node_class_from_table(table, machine);
    struct tccl_node_class *hosts = tccl_node_class_without_p2p(table, machine);
    CHECK_INT(class->n_sets, 2);
    CHECK_INT(hosts->n_sets, 1);
    CHECK_INT(hosts->sets[0].set.n, 3);
    CHECK(hosts->sets[0].gbps == set.gbps && hosts->sets[0].bound == set.bound);
    tccl_node_class_free(class);
    tccl_node_class_free(hosts);
    tccl_table_free(table);
}

static void test_size(void)
{
    struct tccl_machine machine = sample_machine();
    machine.n_gpus = machine.n_memories = 8;
    machine.n_nics = 4;
    for (int i = 0; i < 8; i++) {
        machine.gpus[i] = machine.gpus[0];
        snprintf(machine.gpus[i].busid, TCCL_BUSID, "0000:%02x:00.0", 0x10 + i);
        for (int nic = 0; nic < 4; nic++)
            machine.gpudirect[nic][i] = true;
        for (int j = 0; j < 8; j++)
            machine.p2p[i][j] = i != j;
    }
    for (int nic = 1; nic < 4; nic++)
        machine.nics[nic] = machine.nics[0];
    struct tccl_table *table = sample_table(&machine, 255);
    struct stat st;
    CHECK_INT(table->n_ports, 64);
    CHECK_INT(tccl_table_write(table, path, NULL), 0);
    /* Of which up to 24 baselines of up to 8 chains each are 5 KiB, the trees 4, and the sets 2. */
    CHECK(stat(path, &st) == 0 && st.st_size <= 141 * 1024);
    tccl_table_free(table);
}

/* As bytes of a file may be. */
static void test_no_such_gpus(void)
{
    struct tccl_chain chain = {.n_gpus = 2, .gpus = {200, 201}};
    struct tccl_tree tree = {.gbps = 2, .along = 1, .gpus = {200, 201}};
    CHECK(!tccl_tree_fits(&tree, &chain, 1));
    chain.gpus[0] = tree.gpus[0] = 0;
    chain.gpus[1] = tree.gpus[1] = TCCL_MAX_GPUS - 1;
    CHECK(tccl_tree_fits(&tree, &chain, 1));
}

int main(void)
{
    srand(check_seed());
    sample_path("table.chains", path, sizeof(path));
    struct tccl_machine machine = sample_machine();
    test_new(&machine);
    test_unbuilt(&machine);
    test_roundtrip(&machine);
    test_damage(&machine);
    test_forged(&machine);
    test_other_machine(machine);
    test_contradiction(&machine);
    test_older(&machine);
    test_keep_set(&machine);
    test_class_sets(&machine);
    test_size();
    test_no_such_gpus();
    sample_remove(path);
    return check_result();
}
