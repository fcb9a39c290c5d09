/* The chain table: what is written is read back; nothing else is accepted. */

#include "base/fileio.h"
#include "entries.h"
#include "owned.h"
#include "sample.h"

static struct tccl_machine sample;
static const struct tccl_machine *const machine = &sample;

static char path[512];

static bool port_equal(struct tccl_port a, struct tccl_port b)
{
    return a.nic == b.nic && a.via.kind == b.via.kind && a.via.index == b.via.index;
}

static bool result_equal(const struct tccl_result *a, const struct tccl_result *b)
{
    const struct tccl_chain *x = &a->chain, *y = &b->chain;
    if (a->gbps != b->gbps || a->bound != b->bound || (x->n_gpus && a->ends != b->ends) ||
        x->n_gpus != y->n_gpus || a->part != b->part || !a->set != !b->set ||
        (a->set && a->set->n != b->set->n))
        return false;
    for (int i = 0; a->set && i < a->set->n; i++)
        if (!tccl_chain_equal(&a->set->rings[i], &b->set->rings[i]))
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

static bool nominal_equal(const struct tccl_nominal *a, const struct tccl_nominal *b)
{
    return a->pattern == b->pattern && a->channels == b->channels && a->intra == b->intra &&
           a->inter == b->inter && a->far_intra == b->far_intra && a->far_inter == b->far_inter &&
           a->alike == b->alike;
}

static bool baseline_equal(const struct tccl_baseline *a, const struct tccl_baseline *b)
{
    return a->gbps == b->gbps && a->set.n == b->set.n && a->ends == b->ends &&
           memcmp(a->set.rings, b->set.rings, sizeof(a->set.rings)) == 0 &&
           nominal_equal(&a->ring, &b->ring) && nominal_equal(&a->tree, &b->tree);
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
    CHECK_INT(a->n_results, b->n_results);
    CHECK(entries(a, TCCL_SETS) > 0);
    for (int i = 0; i < a->n_results && i < b->n_results; i++)
        CHECK(result_equal(&a->results[i], &b->results[i]));
    for (int i = 0; i < TCCL_GENERATIONS; i++) {
        CHECK(baseline_equal(&a->baselines[1][i], &b->baselines[1][i]));
        CHECK(baseline_equal(&a->baselines[0][i], &b->baselines[0][i]));
    }
}

TEST(new)
{
    owned(table) struct tccl_table *table = tccl_table_new(machine, 0xd);
    CHECK_INT(table->n_ports, 5); /* NIC 0: GPU 0, two memories; NIC 1: two memories */
    CHECK(table->ports[0].via.kind == TCCL_GPU && table->ports[0].via.index == 0);
    CHECK(isinf(table->results[24].bound) && isinf(tccl_table_ring(table)->bound));
}

/* An edge by NICs, directly where the sample can. */
static void go_by_nics(struct tccl_chain *chain)
{
    int from = chain->gpus[0], to = chain->gpus[1];
    struct tccl_edge *edge = &chain->edges[0];
    if (chain->n_gpus < 2)
        return;
    *edge = (struct tccl_edge){.kind = TCCL_BY_NICS,
                               .from = {1, {TCCL_MEMORY, (uint8_t)(from % 2)}},
                               .to = {0, {TCCL_MEMORY, (uint8_t)(to % 2)}}};
    if (from < 2 && to % 2)
        edge->from = (struct tccl_port){0, {TCCL_GPU, (uint8_t)from}};
    if (to < 2)
        edge->to.via = (struct tccl_device){TCCL_GPU, (uint8_t)to};
}

TEST(roundtrip)
{
    for (uint32_t gpus = 1; gpus < 16; gpus++) {
        owned(table) struct tccl_table *table = sample_table(machine, gpus), *copy = NULL;
        for (int i = 0; i < table->n_results; i++) {
            struct tccl_result *own = &table->results[i];
            double tens = pow(10, rand() % 16); /* numbers of few digits, and of many */
            own->ends = i % 7 < 2 ? 0 : (uint8_t)(100 + i % 5 * 25);
            if (i % 5 == 4 && own[-2].chain.n_gpus && own->chain.n_gpus) /* and twice */
                own->gbps = own[-2].gbps, own->bound = own[-2].bound;
            else if (isfinite(own->bound))
                own->bound = i % 2 ? own->gbps * (1 + drand48())
                                   : (ceil(own->gbps * tens) + rand() % 1000) / tens;
        }
        for (int i = 0; i < TCCL_GENERATIONS; i++)
            table->baselines[1][i].ends = table->baselines[1][0].set.n ? 131 : 0;
        for (int i = 3; i < TCCL_GENERATIONS; i++)
            for (int k = 0; k < 2; k++)
                go_by_nics(&table->baselines[k][i].set.rings[0]);
        CHECK_OK(tccl_table_write(table, path, ERR));
        CHECK_OK(tccl_table_read(path, machine, &copy, ERR));
        if (copy)
            check_equal(table, copy);
    }
}

static int write_plain(const char *data, size_t size)
{
    cleanup_file FILE *file = fopen(path, "w");
    return file && fwrite(data, 1, size, file) == size ? 0 : -1;
}

static void check_refused(const struct tccl_machine *machine, const char *data, size_t size)
{
    struct tccl_table *table = NULL;
    CHECK_INT(write_plain(data, size), 0);
    CHECK_INT(tccl_table_read(path, machine, &table, ERR), -1);
    CHECK(table == NULL && strstr(check_err.text, path) == check_err.text);
}

TEST(damage)
{
    owned(table) struct tccl_table *table = sample_table(machine, 5);
    cleanup_free char *data = NULL;
    size_t size = 0;
    CHECK_INT(tccl_table_write(table, path, NULL), 0);
    CHECK_INT(tccl_read_file(path, 1 << 20, &data, &size, NULL), 0);
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

enum { SUM = 21 /* the last line */ };

static void fix_sum(char *data, size_t size)
{
    memcpy(data + size - SUM,
           check_printf("sum %016llx\n", (unsigned long long)tccl_hash64(data, size - SUM)), SUM);
}

/* A file with a right checksum over wrong content: every byte is changed to random values. */
TEST(forged)
{
    struct tccl_table *table = sample_table(machine, 15);
    cleanup_free char *data = NULL;
    size_t size = 0;
    int accepted = 0;
    CHECK_INT(tccl_table_write(table, path, NULL), 0);
    CHECK_INT(tccl_read_file(path, 1 << 20, &data, &size, NULL), 0);
    tccl_table_free(table);
    for (size_t i = 0; i < size - SUM; i++) {
        char old = data[i];
        data[i] = rand();
        fix_sum(data, size);
        CHECK_INT(write_plain(data, size), 0);
        if (tccl_table_read(path, machine, &table, ERR) == 0) {
            accepted++; /* another bandwidth, another edge: still a table */
            tccl_table_free(table);
        } else {
            CHECK(check_err.text[0]);
        }
        data[i] = old;
    }
    printf("%d of %zu forged tables were possible ones\n", accepted, size - SUM);
}

/* More entries than any table has are refused before the rest is read. */
TEST(too_many)
{
    enum { LINES = 4096 };
    owned(table) struct tccl_table *table = sample_table(machine, 15), *copy = NULL;
    cleanup_free char *data = NULL, *more = NULL;
    size_t size = 0, length = 0;
    CHECK_INT(tccl_table_write(table, path, NULL), 0);
    CHECK_INT(tccl_read_file(path, 1 << 20, &data, &size, NULL), 0);
    const char *line = strstr(data, "\nset ");
    int one = line ? (int)strcspn(line + 1, "\n") + 1 : 0;
    FILE *out = open_memstream(&more, &length);
    fwrite(data, 1, size - SUM, out);
    for (int i = 0; i < LINES && line; i++)
        fwrite(line + 1, 1, (size_t)one, out);
    fprintf(out, "no line of a table\n%*s", SUM, "");
    fclose(out);
    fix_sum(more, length);
    CHECK_INT(write_plain(more, length), 0);
    CHECK_SAYS(tccl_table_read(path, machine, &copy, ERR) == -1, "too many chains");
}

/* One that ends before all pairs of ports have been named, though its checksum is right. */
TEST(too_few)
{
    owned(table) struct tccl_table *table = tccl_table_new(machine, 15), *copy = NULL;
    cleanup_free char *data = NULL;
    size_t size = 0;
    CHECK_INT(tccl_table_write(table, path, NULL), 0);
    CHECK_INT(tccl_read_file(path, 1 << 20, &data, &size, NULL), 0);
    char *none = strstr(data, "\nnone ");
    CHECK(none != NULL);
    size = none ? (size_t)(none + 1 - data) + SUM : size;
    fix_sum(data, size);
    CHECK_INT(write_plain(data, size), 0);
    CHECK_SAYS(tccl_table_read(path, machine, &copy, ERR) == -1, "too few pairs of ports");
}

TEST(other_machine)
{
    struct tccl_machine machine = sample_machine();
    owned(table) struct tccl_table *table = sample_table(&machine, 15), *copy = NULL;
    CHECK_INT(tccl_table_write(table, path, NULL), 0);
    snprintf(machine.gpus[2].model, TCCL_NAME, "A100");
    CHECK_SAYS(tccl_table_read(path, &machine, &copy, ERR) == -1, "made for another machine");
}

/* What contradicts itself is not written, and the old file stays. */
TEST(contradiction)
{
    owned(table) struct tccl_table *table = sample_table(machine, 15), *copy = NULL;
    CHECK_INT(tccl_table_write(table, path, NULL), 0);
    tccl_table_ring(table)->bound = tccl_table_ring(table)->gbps / 2;
    CHECK_INT(tccl_table_write(table, path, ERR), -1);
    tccl_table_ring(table)->bound = tccl_table_ring(table)->gbps;
    table->baselines[1][TCCL_NEWEST].set.n = TCCL_MAX_CHANNELS + 1;
    CHECK_INT(tccl_table_write(table, path, ERR), -1);
    table->baselines[1][TCCL_NEWEST].set.n = 1;
    table->baselines[1][TCCL_NEWEST].set.rings[0].closed = false;
    CHECK_INT(tccl_table_write(table, path, ERR), -1);
    CHECK_INT(tccl_table_read(path, machine, &copy, NULL), 0);
}

/* A file of another version: the text says what to run. */
TEST(older)
{
    static const char *const files[] = {"tccl-chains 10\nand what it had, as long as it may be\n",
                                        "tccl-chains 12\nand what it may have then\n"};
    for (int i = 0; i < 2; i++) {
        struct tccl_table *copy = NULL;
        CHECK_INT(write_plain(files[i], 40), 0);
        CHECK_SAYS(tccl_table_read(path, machine, &copy, ERR) == -1,
                   i ? "version 12" : "version 10");
        CHECK(strstr(check_err.text, "tccl-profile run") != NULL && !strchr(check_err.text, '\n'));
    }
}

/* Of sets of as many rings with the same NICs, in any order, the best one stays; what bounds one
 * bounds all of as many rings. */
TEST(keep_set)
{
    owned(table) struct tccl_table *table = tccl_table_new(machine, 15);
    struct tccl_seen set = sample_table_set(table, false, 2), other;
    set.gbps = 5;
    set.bound = INFINITY;
    set.set.rings[0].entry.nic = 0;
    set.set.rings[1].entry.nic = 1;
    tccl_table_keep_set(table, &set.set, set.gbps, set.bound);
    other = set;
    other.set.rings[0] = set.set.rings[1];
    other.set.rings[1] = set.set.rings[0];
    other.gbps = 4;
    other.bound = 7;
    tccl_table_keep_set(table, &other.set, other.gbps, other.bound);
    CHECK_INT(entries(table, TCCL_SETS), 1);
    CHECK(entry(table, TCCL_SETS, 0)->gbps == 5 && entry(table, TCCL_SETS, 0)->bound == 7);
    other.gbps = 6;
    tccl_table_keep_set(table, &other.set, other.gbps, other.bound);
    CHECK_INT(entries(table, TCCL_SETS), 1);
    CHECK(tccl_chain_equal(&entry(table, TCCL_SETS, 0)->set->rings[0], &other.set.rings[0]));
    other.set.rings[0].entry.nic = other.set.rings[1].entry.nic;
    other.gbps = 3;
    other.bound = 2.5; /* was wrong, as bounds by measuring may be */
    tccl_table_keep_set(table, &other.set, other.gbps, other.bound);
    CHECK_INT(entries(table, TCCL_SETS), 2);
    CHECK(entry(table, TCCL_SETS, 0)->bound == 6 && entry(table, TCCL_SETS, 1)->bound == 6);
    other = sample_table_set(table, false, 3);
    tccl_table_keep_set(table, &other.set, other.gbps, other.bound);
    CHECK_INT(entries(table, TCCL_SETS), 3);
    CHECK(entry(table, TCCL_SETS, 0)->bound == 6);
    CHECK_INT(tccl_table_write(table, path, NULL), 0);
    *entry(table, TCCL_SETS, 1)->set = *entry(table, TCCL_SETS, 0)->set;
    CHECK_INT(tccl_table_write(table, path, NULL), -1);
    entry(table, TCCL_SETS, 1)->set->n = 1;
    CHECK_INT(tccl_table_write(table, path, NULL), -1);
}

/* What a node class gets; without P2P those that have none. */
TEST(class_sets)
{
    owned(table) struct tccl_table *table = tccl_table_new(machine, 15);
    struct tccl_seen set = sample_table_set(table, false, 2);
    set.set.rings[0].edges[0] = (struct tccl_edge){TCCL_P2P_WRITE, 0};
    tccl_table_keep_set(table, &set.set, set.gbps, set.bound);
    set = sample_table_set(table, true, 3);
    for (int i = 0; i < 3; i++)
        set.set.rings[i] = sample_host_chain(15, true);
    tccl_table_keep_set(table, &set.set, set.gbps, set.bound);
    cleanup_class struct tccl_node_class *class =
        tccl_node_class_from_table(table, machine, TCCL_VIEW_JOB);
    cleanup_class struct tccl_node_class *hosts =
        tccl_node_class_from_table(table, machine, TCCL_VIEW_HIDDEN);
    CHECK_INT(class->n_seen, 5 + 2);
    CHECK_INT(hosts->n_seen, 5 + 1);
    CHECK_INT(hosts->seen[5].set.n, 3);
    CHECK(hosts->seen[5].gbps == set.gbps && hosts->seen[5].bound == set.bound);
}

TEST(size)
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
    owned(table) struct tccl_table *table = sample_table(&machine, 255), *copy = NULL;
    struct stat st;
    for (int i = 0; i < table->n_results; i++) /* some thousands of numbers of many digits */
        if (isfinite(table->results[i].bound))
            table->results[i].bound = table->results[i].gbps * (1 + drand48());
    CHECK_INT(table->n_ports, 64);
    CHECK_INT(tccl_table_write(table, path, NULL), 0);
    CHECK(stat(path, &st) == 0 && st.st_size <= 500 * 1024);
    CHECK_OK(tccl_table_read(path, &machine, &copy, ERR));
    if (copy)
        check_equal(table, copy);
}

/* As bytes of a file may be. */
TEST(no_such_gpus)
{
    struct tccl_chain chain = {.n_gpus = 2, .gpus = {200, 201}};
    struct tccl_tree tree = {.gbps = 2, .along = 1, .gpus = {200, 201}};
    CHECK(!tccl_tree_fits(&tree, &chain, 1));
    chain.gpus[0] = tree.gpus[0] = 0;
    chain.gpus[1] = tree.gpus[1] = TCCL_MAX_GPUS - 1;
    CHECK(tccl_tree_fits(&tree, &chain, 1));
}

SETUP
{
    sample = sample_machine();
    snprintf(path, sizeof(path), "%s", check_at("table.chains"));
}

TEARDOWN
{
    unlink(path);
    check_nothing_left();
}
