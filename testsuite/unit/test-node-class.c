/* The class of a node: the best of its table, and the same after a journey as JSON. */

#include "owned.h"
#include "sample.h"

static struct tccl_machine sample;
static const struct tccl_machine *const machine = &sample;

SETUP
{
    sample = sample_machine();
}

/* In how many memories that are next to none of its GPUs a chain has something to do, as often. */
static int far_memories(const struct tccl_chain *chain, const struct tccl_machine *machine)
{
    int used[TCCL_MAX_GPUS + 2], n = 0, far = 0;
    for (int i = 0; i + 1 < chain->n_gpus; i++)
        if (chain->edges[i].kind == TCCL_BOUNCE)
            used[n++] = chain->edges[i].memory;
    if (chain->entry.via.kind == TCCL_MEMORY)
        used[n++] = chain->entry.via.index;
    if (chain->exit.via.kind == TCCL_MEMORY)
        used[n++] = chain->exit.via.index;
    for (int i = 0; i < n; i++) {
        bool near = false;
        for (int k = 0; k < chain->n_gpus; k++)
            near |= machine->gpus[chain->gpus[k]].numa == used[i];
        far += !near;
    }
    return far;
}

/* Of all that the table has for a pair of NICs, and that is but for the noise as fast as the best:
 * the fewest far memories, then the bandwidth. -1: there is none. */
static double roomy(const struct tccl_table *table, int entry, int exit, double best, bool hidden,
                    const struct tccl_machine *machine)
{
    int fewest = INT_MAX;
    double gbps = -1;
    for (const struct tccl_result *result = NULL;
         (result = tccl_table_next(table, result, TCCL_SINGLES));) {
        const struct tccl_chain *chain = &result->chain;
        if (chain->closed || chain->entry.nic != entry || chain->exit.nic != exit ||
            (hidden && tccl_chain_has_p2p(chain)) || result->gbps < best * (1 - table->noise))
            continue;
        int far = far_memories(chain, machine);
        if (far < fewest || (far == fewest && result->gbps > gbps))
            gbps = result->gbps;
        fewest = far < fewest ? far : fewest;
    }
    return gbps;
}

/* Every cell against a plain search of the table. */
static void check_cells(const struct tccl_table *table, const struct tccl_node_class *class,
                        const struct tccl_machine *machine)
{
    int n = table->n_ports;
    for (int cell = 0; cell < 4; cell++) {
        double gbps = 0, bound = 0;
        for (int i = 0; i < n * n; i++) {
            if (table->ports[i / n].nic != cell / 2 || table->ports[i % n].nic != cell % 2)
                continue;
            gbps = fmax(gbps, table->results[i].gbps);
            bound = fmax(bound, table->results[i].bound);
        }
        if (gbps > 0 && table->gpus != 15) /* others may come to the rest of the node */
            gbps = roomy(table, cell / 2, cell % 2, gbps, false, machine);
        CHECK(class->seen[cell].gbps == gbps && class->seen[cell].bound == fmax(bound, gbps));
        CHECK((class->seen[cell].set.n > 0) == (gbps > 0));
        struct tccl_chain chain;
        char text[TCCL_RINGS_TEXT];
        tccl_class_format(class, &class->seen[cell].set, text);
        CHECK(!*text == !(gbps > 0));
        if (!*text)
            continue;
        CHECK_INT(tccl_chain_parse(text, machine, &chain, NULL), 0);
        CHECK(tccl_chain_equal(&chain, &class->seen[cell].set.rings[0]));
        CHECK(chain.entry.nic == cell / 2 && chain.exit.nic == cell % 2 && !chain.closed);
    }
}

/* The NICs of all chains of the baseline, in ascending order. */
static void check_baseline_nics(const struct tccl_table *table, const struct tccl_node_class *class)
{
    const struct tccl_baseline *baseline = &table->baselines[0][TCCL_NEWEST];
    int entries[2] = {0}, exits[2] = {0};
    CHECK_INT(class->baselines[TCCL_NEWEST].n_chains, baseline->set.n);
    CHECK(class->baselines[TCCL_NEWEST].gbps[0] == baseline->gbps);
    for (int i = 0; i < class->baselines[TCCL_NEWEST].n_chains; i++) {
        entries[baseline->set.rings[i].entry.nic]++;
        exits[baseline->set.rings[i].exit.nic]++;
        entries[class->baselines[TCCL_NEWEST].entry_nics[i]]--;
        exits[class->baselines[TCCL_NEWEST].exit_nics[i]]--;
        CHECK(i == 0 || class->baselines[TCCL_NEWEST].entry_nics[i] >=
                            class->baselines[TCCL_NEWEST].entry_nics[i - 1]);
        CHECK(i == 0 || class->baselines[TCCL_NEWEST].exit_nics[i] >=
                            class->baselines[TCCL_NEWEST].exit_nics[i - 1]);
    }
    CHECK(!entries[0] && !entries[1] && !exits[0] && !exits[1]);
}

/* One GPU at memory 0, and two chains through the NICs that are but for the noise as fast: the one
 * through its own memory is taken, wherever the table has it, unless the node is all its own. */
TEST(leaves_room)
{
    for (int all = 0; all < 2; all++)
        for (int slow = 0; slow < 2; slow++) {
            owned(table) struct tccl_table *table = sample_table(machine, all ? 15 : 1);
            struct tccl_result *other = &table->results[0];
            for (int i = 0; i < tccl_table_pairs(table); i++)
                if (table->results[i].chain.n_gpus && table->results[i].gbps > other->gbps)
                    other = &table->results[i];
            struct tccl_chain chain = other->chain;
            for (int i = 0; i < tccl_table_pairs(table); i++)
                if (&table->results[i] != other)
                    table->results[i] = (struct tccl_result){0}; /* these two alone */
            tccl_table_drop(table, TCCL_HOST);
            int near = machine->gpus[chain.gpus[0]].numa;
            other->chain.entry.via = (struct tccl_device){TCCL_MEMORY, (uint8_t)!near};
            chain.entry.via = (struct tccl_device){TCCL_MEMORY, (uint8_t)near};
            double gbps = other->gbps * (slow ? 0.98 : 0.995);
            tccl_table_keep_other(table, &chain, gbps);
            cleanup_class struct tccl_node_class *class =
                tccl_node_class_from_table(table, machine, TCCL_VIEW_JOB);
            const struct tccl_seen *cell = &class->seen[chain.entry.nic * 2 + chain.exit.nic];
            CHECK(cell->gbps == (all || slow ? other->gbps : gbps));
            CHECK(all || cell->set.rings[0].entry.via.index == (slow ? !near : near));
            CHECK(cell->bound >= other->gbps);
        }
}

TEST(from_table)
{
    for (uint32_t gpus = 1; gpus < 16; gpus++) {
        owned(table) struct tccl_table *table = sample_table(machine, gpus);
        cleanup_class struct tccl_node_class *class =
            tccl_node_class_from_table(table, machine, TCCL_VIEW_JOB);
        CHECK(class != NULL);
        CHECK_INT(class->n_gpus, __builtin_popcount(gpus));
        CHECK_STR(class->machine, table->machine);
        CHECK_STR(class->nics[1].fabric, "ib1");
        check_cells(table, class, machine);
        CHECK(tccl_class_ring(class)->gbps == (class->n_gpus > 1 ? 7.25 : 0));
        CHECK(class->baselines[TCCL_NEWEST].gbps[1] == (class->n_gpus > 1 ? 3.1 : 0));
        CHECK(class->noise == 0.01);
        check_baseline_nics(table, class);
    }
}

/* Without P2P: the best of those chains, wherever the table has them. */
TEST(without_p2p)
{
    for (uint32_t gpus = 3; gpus < 16; gpus += 4) {
        owned(table) struct tccl_table *table = sample_table(machine, gpus);
        cleanup_class struct tccl_node_class *class =
            tccl_node_class_from_table(table, machine, TCCL_VIEW_HIDDEN);
        for (int cell = 0; cell < 4; cell++) {
            double gbps = 0;
            for (const struct tccl_result *own = NULL;
                 (own = tccl_table_next(table, own, 1 << TCCL_BEST | TCCL_HOSTS));)
                if (!own->chain.closed && own->chain.entry.nic == cell / 2 &&
                    own->chain.exit.nic == cell % 2 && !tccl_chain_has_p2p(&own->chain))
                    gbps = fmax(gbps, own->gbps);
            if (gbps > 0 && gpus != 15)
                gbps = roomy(table, cell / 2, cell % 2, gbps, true, machine);
            CHECK(class->seen[cell].gbps == gbps && class->seen[cell].bound >= gbps);
            CHECK((class->seen[cell].set.n > 0) == (gbps > 0));
            CHECK(!tccl_chain_has_p2p(&class->seen[cell].set.rings[0]));
        }
        CHECK(tccl_class_ring(class)->gbps ==
              (tccl_chain_has_p2p(&tccl_table_ring(table)->chain) ? 4.5 : 7.25));
    }
}

TEST(no_nic)
{
    struct tccl_machine machine = sample_machine();
    machine.n_nics = 0;
    owned(table) struct tccl_table *table = tccl_table_new(&machine, 15);
    cleanup_class struct tccl_node_class *class =
        tccl_node_class_from_table(table, &machine, TCCL_VIEW_JOB);
    CHECK(class && class->n_nics == 0 && class->baselines[TCCL_NEWEST].n_chains == 0 &&
          isinf(tccl_class_ring(class)->bound));
    cleanup_json json_t *json = tccl_node_class_to_json(class);
    cleanup_class struct tccl_node_class *copy = tccl_node_class_from_json(json, NULL);
    CHECK(copy && tccl_node_class_equal(class, copy));
}

TEST(json)
{
    owned(table) struct tccl_table *table = sample_table(machine, 13);
    cleanup_class struct tccl_node_class *class =
        tccl_node_class_from_table(table, machine, TCCL_VIEW_JOB);
    cleanup_json json_t *json = tccl_node_class_to_json(class);
    cleanup_free char *text = json_dumps(json, JSON_COMPACT);
    cleanup_json json_t *again = json_loads(text, 0, NULL);
    cleanup_class struct tccl_node_class *copy = tccl_node_class_from_json(again, NULL);
    CHECK(copy && tccl_node_class_equal(class, copy));
    if (copy) {
        copy->seen[3].bound = 1e5;
        CHECK(!tccl_node_class_equal(class, copy));
    }
}

/* What is worse than measured goes with the class, and makes it another one; a text that no node
 * writes is refused. */
TEST(worse)
{
    owned(table) struct tccl_table *table = sample_table(machine, 13);
    cleanup_class struct tccl_node_class *class =
        tccl_node_class_from_table(table, machine, TCCL_VIEW_JOB);
    strcpy(class->worse, "link of GPU 1 (0000:41:00.0) is x4, not x16 as measured");
    cleanup_json json_t *json = tccl_node_class_to_json(class);
    cleanup_class struct tccl_node_class *copy = tccl_node_class_from_json(json, ERR);
    CHECK(copy && tccl_node_class_equal(class, copy));
    CHECK_STR(copy ? copy->worse : "", class->worse);
    class->worse[0] = '\0';
    CHECK(copy && !tccl_node_class_equal(class, copy));
    json_object_set_new(json, "worse", json_string("two\nlines"));
    CHECK(tccl_node_class_from_json(json, NULL) == NULL);
    json_object_set_new(json, "worse", json_sprintf("%0200d", 1));
    CHECK(tccl_node_class_from_json(json, NULL) == NULL);
    json_object_set_new(json, "worse", json_integer(4));
    CHECK(tccl_node_class_from_json(json, NULL) == NULL);
}

/* Whatever the table has, and however close its bounds are: the class is one that others take. */
TEST(any_table)
{
    static const enum tccl_view views[] = {TCCL_VIEW_JOB, TCCL_VIEW_ALL, TCCL_VIEW_HIDDEN};
    for (int i = 0; i < 15 * 3 * 8; i++) {
        owned(table) struct tccl_table *table = sample_table(machine, 1 + i % 15);
        for (int k = 0; k < table->n_results; k++)
            table->results[k].bound = table->results[k].gbps * (1 + rand() % 3 / 50.0);
        cleanup_class struct tccl_node_class *class =
            tccl_node_class_from_table(table, machine, views[i / 15 % 3]);
        cleanup_json json_t *json = tccl_node_class_to_json(class);
        cleanup_class struct tccl_node_class *copy = tccl_node_class_from_json(json, ERR);
        CHECK_STR(check_err.text, "");
        CHECK(copy && tccl_node_class_equal(class, copy));
    }
}

static void check_refused(const json_t *json)
{
    cleanup_class struct tccl_node_class *class = tccl_node_class_from_json(json, ERR);
    CHECK(class == NULL && check_err.text[0]);
}

/* Each key removed, and each replaced by values that are wrong everywhere. */
TEST(refused)
{
    owned(table) struct tccl_table *table = sample_table(machine, 15);
    cleanup_class struct tccl_node_class *class =
        tccl_node_class_from_table(table, machine, TCCL_VIEW_JOB);
    cleanup_json json_t *json = tccl_node_class_to_json(class);
    const char *key;
    json_t *value;
    json_object_foreach(json, key, value)
    {
        cleanup_json json_t *less = json_copy(json), *wrong = json_copy(json);
        json_object_del(less, key);
        if (strcmp(key, "sets") != 0) /* an older tccld has none */
            check_refused(less);
        json_object_set_new(wrong, key, json_true());
        check_refused(wrong);
        json_object_set_new(wrong, key, json_integer(-2));
        check_refused(wrong);
        cleanup_free char *big = calloc(1, 5001);
        memset(big, 'x', 5000);
        json_object_set_new(wrong, key, json_string(big));
        check_refused(wrong);
    }
    cleanup_json json_t *other = json_deep_copy(json);
    json_array_append_new(json_object_get(other, "nics"), json_object());
    check_refused(other);
    cleanup_json json_t *cells = json_deep_copy(json);
    json_object_set_new(json_array_get(json_object_get(cells, "cells"), 2), "gbps",
                        json_real(1e300));
    check_refused(cells);
    check_refused(NULL);
    static const char *const nics[] = {
        "[0,0,0,0,0,0,0,0,0]", "[1,0]", "[2]", "[-1]", "[0.5]", "{}"};
    for (size_t i = 0; i < COUNT(nics); i++) {
        json_t *baseline = json_array_get(json_object_get(json, "baselines"), 0);
        json_object_set_new(baseline, "entry_nics", json_loads(nics[i], 0, NULL));
        json_object_set_new(baseline, "exit_nics", json_loads(nics[i], 0, NULL));
        check_refused(json);
    }
}

/* What no NCCL can be made to build is no chain of that node, and its others stay. */
TEST(unbuilt)
{
    owned(table) struct tccl_table *table = sample_table(machine, 15);
    cleanup_class struct tccl_node_class *class =
        tccl_node_class_from_table(table, machine, TCCL_VIEW_JOB);
    struct tccl_seen set = {.set = {.n = 2}};
    set.set.rings[0] = set.set.rings[1] = sample_chain(15, true);
    set.set.rings[1].edges[1] = (struct tccl_edge){.kind = TCCL_P2P_WRITE};
    set.set.rings[1].edges[2] = (struct tccl_edge){.kind = TCCL_P2P_READ};
    set.gbps = 5000; /* better than any of the table's */
    set.bound = INFINITY;
    CHECK_INT(tccl_node_class_add_set(class, &set), 0);
    cleanup_json json_t *json = tccl_node_class_to_json(class);
    json_t *cell = json_array_get(json_object_get(json, "cells"), 0); /* mlx5_0 to mlx5_0 */
    json_object_set_new(cell, "gbps", json_real(5));
    json_object_set_new(cell, "alone", json_real(6));
    json_object_set_new(cell, "bound", json_real(7));
    json_object_set_new(cell, "chain", json_string("mlx5_0 -m0> 0 -w> 1 -w> 2 -w> 3 -g> mlx5_0"));
    cleanup_class struct tccl_node_class *left = tccl_node_class_from_json(json, NULL);
    CHECK(left && left->seen[0].set.n == 0 && left->seen[0].gbps <= 0 && left->seen[0].bound > 6);
    CHECK(left && tccl_class_ring(left)->set.rings[0].n_gpus == 4);
    CHECK_INT(left ? left->n_seen : -1, class->n_seen - 1);
}

/* What another node says of its chains is believed only as far as it fits the rest. */
TEST(chains_refused)
{
    static const char *const chains[] = {
        "mlx5_0 -m0> 0 -w> 1 -m0> mlx5_1",                  /* not over all GPUs */
        "mlx5_0 -m0> 0 -w> 1 -w> 2 -w> 4 -m0> mlx5_1",      /* over another one */
        "mlx5_1 -m0> 0 -w> 1 -w> 2 -w> 3 -m0> mlx5_1",      /* in by another NIC */
        "mlx5_0 -m0> 0 -w> 1 -w> 2 -w> 3 -m0> mlx5_0",      /* out by another NIC */
        "mlx5_0 -m0> 0 -w> 1 -w> 2 -w> 3 -m16> mlx5_1",     /* no machine has so many memories */
        "0 -w> 1 -w> 2 -w> 3 -w> 0",                        /* closed */
        "mlx5_0 -m0> 0 -w> 1 -w> 2 -w> 3 -m0> mlx5_1] n2[", /* more than a chain */
        "mlx5_0 -m0> 0000:21:00.0 -w> 0000:41:00.0 -w> 0000:61:00.0 -w> 0000:81:00.0 -m0> mlx5_1",
        "",
    };
    owned(table) struct tccl_table *table = sample_table(machine, 15);
    cleanup_class struct tccl_node_class *class =
        tccl_node_class_from_table(table, machine, TCCL_VIEW_JOB);
    cleanup_json json_t *json = tccl_node_class_to_json(class);
    json_t *cell = json_array_get(json_object_get(json, "cells"), 1); /* mlx5_0 to mlx5_1 */
    json_object_set_new(cell, "chain", json_string("mlx5_0-m0>0-w>1-w>2-w>3-m0>mlx5_1"));
    cleanup_class struct tccl_node_class *good = tccl_node_class_from_json(json, NULL);
    CHECK(good && good->seen[1].set.n == 1 && good->seen[1].set.rings[0].n_gpus == 4 &&
          good->seen[1].set.rings[0].exit.nic == 1);
    for (size_t i = 0; i < COUNT(chains); i++) {
        json_object_set_new(cell, "chain", json_string(chains[i]));
        check_refused(json);
    }
    json_object_set_new(cell, "chain", json_string("mlx5_0-m0>0-w>1-w>2-w>3-m0>mlx5_1"));
    json_object_set_new(json_object_get(json, "ring"), "chain", json_string("0 -w> 1 -w> 0"));
    check_refused(json);
}

/* A class with random sets; the four NIC pairs of the sample machine are on four fabric pairs. */
static struct tccl_node_class *class_with_sets(const struct tccl_machine *machine, uint32_t gpus)
{
    owned(table) struct tccl_table *table = sample_table(machine, gpus);
    struct tccl_node_class *class = tccl_node_class_from_table(table, machine, TCCL_VIEW_JOB);
    for (int i = 0; i < 12; i++) {
        struct tccl_seen set = sample_set(gpus, 2 + rand() % 3, rand() % 4 == 0);
        set.bound = rand() % 2 ? set.gbps * 1.5 : INFINITY;
        CHECK_INT(tccl_node_class_add_set(class, &set), 0);
    }
    return class;
}

/* The number of rings and, of open ones, how many have each pair of NICs: by that sets are told
 * apart. */
static int way_of(const struct tccl_ring_set *set)
{
    int way = set->n * 2 + set->rings[0].closed;
    int counts[4] = {0};
    for (int r = 0; r < set->n && !set->rings[0].closed; r++)
        counts[set->rings[r].entry.nic * 2 + set->rings[r].exit.nic]++;
    for (int i = 0; i < 4; i++)
        way = way * 10 + counts[i];
    return way;
}

/* The fastest one, open or closed: the sample's line rates are above all of them. */
static void check_best(const struct tccl_node_class *class)
{
    for (int closed = 0; closed < 2; closed++) {
        const struct tccl_seen *best = tccl_class_best_set(class, closed);
        double most = 0;
        for (int i = tccl_class_first_set(class); i < class->n_seen; i++)
            if (class->seen[i].set.rings[0].closed == closed)
                most = fmax(most, class->seen[i].gbps);
        CHECK(!best == !(most > 0) && (!best || best->set.rings[0].closed == closed));
        CHECK(!best || best->gbps == most);
    }
}

/* The same way, and both write, or read. */
static bool twins(const struct tccl_ring_set *a, const struct tccl_ring_set *b)
{
    return way_of(a) == way_of(b) && tccl_ring_set_reads(a) == tccl_ring_set_reads(b);
}

/* The best set of each way and kind stays, and is found by its NICs in any order; a journey as JSON
 * changes nothing. */
TEST(sets)
{
    for (int round = 0; round < 100 && !check_failures; round++) {
        cleanup_class struct tccl_node_class *class = class_with_sets(machine, 15);
        struct tccl_seen set = sample_set(15, 2 + rand() % 3, rand() % 4 == 0);
        double best = set.gbps, found = 0;
        int before = class->n_seen, same = 0;
        check_best(class);
        for (int i = 0; i < before; i++) {
            if (!twins(&class->seen[i].set, &set.set))
                continue;
            best = fmax(best, class->seen[i].gbps);
            same++;
        }
        CHECK(same <= 1);
        CHECK_INT(tccl_node_class_add_set(class, &set), 0);
        CHECK_INT(class->n_seen, before + 1 - same);
        for (int i = tccl_class_first_set(class); i < class->n_seen; i++)
            if (twins(&class->seen[i].set, &set.set))
                found = class->seen[i].gbps;
        CHECK(found == best);
        double fastest = best;
        for (int i = tccl_class_first_set(class); i < class->n_seen; i++)
            if (way_of(&class->seen[i].set) == way_of(&set.set))
                fastest = fmax(fastest, class->seen[i].gbps);
        int in[TCCL_CHAIN_RINGS], out[TCCL_CHAIN_RINGS], n = set.set.n;
        uint8_t order[TCCL_CHAIN_RINGS];
        tccl_set_nics(&set.set, in, out);
        int swap = in[0];
        in[0] = in[n - 1];
        in[n - 1] = swap;
        swap = out[0];
        out[0] = out[n - 1];
        out[n - 1] = swap;
        const struct tccl_seen *own = tccl_class_find(class, in, out, n, order);
        CHECK(own && own->gbps == fastest && own->share == 1);
        for (int r = 0; own && r < n && in[0] >= 0; r++)
            CHECK(own->set.rings[order[r]].entry.nic == in[r] &&
                  own->set.rings[order[r]].exit.nic == out[r]);
        cleanup_json json_t *json = tccl_node_class_to_json(class);
        cleanup_class struct tccl_node_class *copy = tccl_node_class_from_json(json, ERR);
        CHECK_STR(check_err.text, "");
        CHECK(copy && tccl_node_class_equal(class, copy));
        if (copy)
            copy->seen[5].set.rings[1].gpus[0] ^= 1;
        CHECK(copy && !tccl_node_class_equal(class, copy));
        if (copy)
            copy->seen[5].set.rings[1].gpus[0] ^= 1, copy->moved = true;
        cleanup_json json_t *moved = copy ? tccl_node_class_to_json(copy) : NULL;
        cleanup_class struct tccl_node_class *again = tccl_node_class_from_json(moved, ERR);
        CHECK(again && again->moved && !tccl_node_class_equal(class, again));
        json_object_del(json, "sets");
        cleanup_class struct tccl_node_class *older = tccl_node_class_from_json(json, ERR);
        CHECK(older && older->n_seen == 5 && !tccl_node_class_equal(class, older));
    }
}

TEST(sets_refused)
{
#define A "mlx5_0 -m0> 0 -w> 1 -w> 2 -w> 3 -m0> mlx5_1"
    static const struct {
        const char *key, *value;
    } bad[] = {
        {"rings", "\"" A "\""},                                               /* one */
        {"rings", "\"" A " | mlx5_0 -m0> 0 -w> 1 -m0> mlx5_1\""},             /* over other GPUs */
        {"rings", "\"" A " | mlx5_2 -m0> 0 -w> 1 -w> 2 -w> 3 -m0> mlx5_1\""}, /* no such NIC */
        {"rings", "\"" A " | 0 -w> 1 -w> 2 -w> 3 -w> 0\""},                   /* open and closed */
        {"rings", "\"" A "|" A "|" A "|" A "|" A "|" A "|" A "|" A "|" A "\""}, /* nine */
        {"rings", "\"\""},
        {"rings", "7"},
        {"gbps", "0"},
        {"gbps", "-1"},
        {"gbps", "1e300"},
        {"gbps", "\"fast\""},
        {"alone", "0"},
        {"share", "1.5"},
        {"basis", "\"hearsay\""},
        {"bound", "0.001"},
        {"bound", "\"none\""},
        {"more", "1"},
    };
    struct tccl_node_class *class = class_with_sets(machine, 15);
    cleanup_json json_t *json = tccl_node_class_to_json(class);
    json_t *sets = json_object_get(json, "sets"), *own = json_array_get(sets, 0);
    cleanup_json json_t *good = json_deep_copy(own);
    json_object_set_new(own, "rings", json_string(A " | " A));
    struct tccl_node_class *copy = tccl_node_class_from_json(json, NULL);
    CHECK(copy != NULL);
    tccl_node_class_free(copy);
    for (size_t i = 0; i < COUNT(bad); i++) {
        json_t *wrong = json_deep_copy(good);
        json_object_set_new(wrong, bad[i].key, json_loads(bad[i].value, JSON_DECODE_ANY, NULL));
        json_array_set_new(sets, 0, wrong);
        check_refused(json);
    }
    json_array_set(sets, 0, good);
    while (json_array_size(sets) <= TCCL_CLASS_SETS)
        json_array_append(sets, good);
    check_refused(json);
    tccl_node_class_free(class);
#undef A
}
