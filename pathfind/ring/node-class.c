/* node-class.c: the properties of a node that matter to the ring, from its chain table or from a
 * message. */
#include "ring/node-class.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "chain/beside-text.h"
#include "chain/expressible.h"
#include "ring/class-sets.h"
#include "ring/latency.h"
#include "ring/room.h"

void tccl_node_class_free(struct tccl_node_class *class)
{
    if (!class)
        return;
    free(class->cells);
    free(class->sets);
    free(class->beside);
    free(class);
}

static void cleanup_node_class_(struct tccl_node_class **class)
{
    tccl_node_class_free(*class);
}
#define cleanup_node_class __attribute__((cleanup(cleanup_node_class_)))

/* A class with cells for n_nics NICs. */
static struct tccl_node_class *class_alloc(int n_nics)
{
    struct tccl_node_class *class = calloc(1, sizeof(*class));
    if (!class)
        return NULL;
    class->n_nics = n_nics;
    class->cells = calloc(n_nics * n_nics + 1, sizeof(*class->cells));
    if (!class->cells) {
        free(class);
        return NULL;
    }
    return class;
}

/* From a table. */

static void set_chain(struct tccl_cell *cell, const struct tccl_result *result)
{
    if (!result->chain.n_gpus)
        return;
    cell->gbps = cell->alone = result->gbps;
    cell->share = 1;
    cell->chain = result->chain;
    cell->tree = result->tree;
}

/* For each pair of NICs the best port pair, and the highest bound of all of them. */
static void fill_cells(struct tccl_node_class *class, const struct tccl_table *table)
{
    const int n = table->n_ports;
    for (int i = 0; i < tccl_table_pairs(table); i++) {
        const struct tccl_result *result = &table->results[i];
        struct tccl_cell *cell =
            &class->cells[table->ports[i / n].nic * class->n_nics + table->ports[i % n].nic];
        cell->bound = fmax(cell->bound, result->bound);
        if (result->gbps > cell->gbps)
            set_chain(cell, result);
    }
}

/* The best chain without P2P, which bounds of all chains hold for, too. */
static void offer_host(struct tccl_cell *cell, const struct tccl_result *result)
{
    if (!result->chain.n_gpus || tccl_chain_has_p2p(&result->chain) || result->gbps <= cell->gbps)
        return;
    set_chain(cell, result);
    cell->bound = fmax(cell->bound, cell->gbps);
}

static void fill_host_cells(struct tccl_node_class *class, const struct tccl_table *table)
{
    int n = table->n_ports;
    for (int i = 0; i < n * n; i++) {
        struct tccl_cell *cell =
            &class->cells[table->ports[i / n].nic * class->n_nics + table->ports[i % n].nic];
        cell->bound = fmax(cell->bound, table->results[i].bound);
        offer_host(cell, &table->results[i]);
    }
    for (const struct tccl_result *own = NULL; (own = tccl_table_next(table, own, TCCL_HOSTS));)
        if (!own->chain.closed) {
            struct tccl_cell *cell =
                &class->cells[own->chain.entry.nic * class->n_nics + own->chain.exit.nic];
            cell->bound = fmin(cell->bound, own->bound);
            offer_host(cell, own);
        }
}

/* Takes the chain in place of the cell's, if it is as fast as the best one but for the noise, and
 * leaves more memories to other GPUs; or as many, and is faster. */
static void offer_room(struct tccl_cell *cell, double best, const struct tccl_result *result,
                       double noise, const struct tccl_machine *machine)
{
    if (!(result->gbps > 0) || result->gbps < best * (1 - fmax(noise, 1e-9)))
        return;
    int far = tccl_chain_far(machine, &result->chain);
    int now = tccl_chain_far(machine, &cell->chain);
    if (far > now || (far == now && result->gbps <= cell->gbps))
        return;
    set_chain(cell, result);
    cell->bound = fmax(cell->bound, cell->gbps);
}

/* On a part of a node: chains that are as good stay out of memories that are next to other GPUs
 * only, for steps that come. hidden: without P2P alone. */
static void leave_room(struct tccl_node_class *class, const struct tccl_table *table,
                       const struct tccl_machine *machine, bool hidden)
{
    double best[TCCL_MAX_NICS * TCCL_MAX_NICS], noise = fmin(table->noise, TCCL_MOST_FOR_ROOM);
    if (class->n_gpus == machine->n_gpus)
        return;
    for (int i = 0; i < class->n_nics * class->n_nics; i++)
        best[i] = class->cells[i].gbps;
    for (const struct tccl_result *own = NULL; (own = tccl_table_next(table, own, TCCL_SINGLES));) {
        const struct tccl_chain *chain = &own->chain;
        int cell = chain->entry.nic * class->n_nics + chain->exit.nic;
        if (!chain->closed && !(hidden && tccl_chain_has_p2p(chain)))
            offer_room(&class->cells[cell], best[cell], own, noise, machine);
    }
}

static void add_ascending(uint8_t *nics, int count, uint8_t nic)
{
    for (; count > 0 && nics[count - 1] > nic; count--)
        nics[count] = nics[count - 1];
    nics[count] = nic;
}

static void fill_baseline(struct tccl_class_baseline *baseline, const struct tccl_baseline *rings,
                          const struct tccl_baseline *chains)
{
    baseline->ring_gbps = rings->gbps;
    baseline->chain_gbps = chains->gbps;
    baseline->ring_share = baseline->chain_share = 1;
    baseline->ring_bounces = tccl_bounces(rings->chains, rings->n_chains);
    baseline->chain_bounces = tccl_bounces(chains->chains, chains->n_chains);
    baseline->n_chains = chains->n_chains;
    for (int i = 0; i < chains->n_chains; i++) {
        add_ascending(baseline->entry_nics, i, chains->chains[i].entry.nic);
        add_ascending(baseline->exit_nics, i, chains->chains[i].exit.nic);
    }
    baseline->ring[0] = chains->ring;
    baseline->tree[0] = chains->tree;
    baseline->ring[1] = rings->ring;
    baseline->tree[1] = rings->tree;
}

static bool is_on(const struct tccl_machine *machine, int nic, const char *fabric)
{
    return strcmp(machine->nics[nic].fabric, fabric) == 0;
}

static bool all_on(const struct tccl_machine *machine, const struct tccl_baseline *own,
                   const char *fabric)
{
    for (int i = 0; i < own->n_chains; i++)
        if (!is_on(machine, own->chains[i].entry.nic, fabric) ||
            !is_on(machine, own->chains[i].exit.nic, fabric))
            return false;
    return own->n_chains > 0;
}

const char *tccl_table_fabric(const struct tccl_table *table, const struct tccl_machine *machine)
{
    const struct tccl_baseline *newest = &table->baseline_chain[TCCL_NEWEST];
    bool one = machine->n_nics > 0;
    for (int i = 1; i < machine->n_nics; i++)
        one = one && is_on(machine, i, machine->nics[0].fabric);
    if (one)
        return machine->nics[0].fabric;
    if (newest->n_chains == 0)
        return NULL;
    const char *fabric = machine->nics[newest->chains[0].entry.nic].fabric;
    for (int i = 0; i < TCCL_GENERATIONS; i++)
        if (!all_on(machine, &table->baseline_chain[i], fabric))
            return NULL;
    return fabric;
}

/* All but cells and ring. */
static struct tccl_node_class *class_of(const struct tccl_table *table,
                                        const struct tccl_machine *machine)
{
    cleanup_node_class struct tccl_node_class *class = class_alloc(machine->n_nics);
    if (!class)
        return NULL;
    memcpy(class->machine, table->machine, sizeof(class->machine));
    memcpy(class->source, table->source, sizeof(class->source));
    class->gpus = table->gpus;
    class->n_gpus = __builtin_popcount(table->gpus);
    for (int i = 0; i < machine->n_nics; i++) {
        memcpy(class->nics[i].name, machine->nics[i].name, TCCL_NAME);
        memcpy(class->nics[i].fabric, machine->nics[i].fabric, TCCL_NAME);
        class->nics[i].gbps = machine->nics[i].gbps;
    }
    const char *meets = tccl_table_fabric(table, machine);
    snprintf(class->meets, sizeof(class->meets), "%s", meets ? meets : "");
    class->noise = table->noise;
    for (int i = 0; i < TCCL_GENERATIONS; i++)
        fill_baseline(&class->baselines[i], &table->baseline_ring[i], &table->baseline_chain[i]);
    class->ring.bound = class->n_gpus > 1 ? tccl_table_ring(table)->bound : 0;
    return tccl_steal(class);
}

static bool has_p2p(const struct tccl_ring_set *set)
{
    for (int i = 0; i < set->n; i++)
        if (tccl_chain_has_p2p(&set->rings[i]))
            return true;
    return false;
}

/* The best single one that is there. */
static const struct tccl_chain *best_chain(const struct tccl_node_class *class, bool closed)
{
    const struct tccl_cell *best = closed ? &class->ring : &class->cells[0];
    for (int i = 1; i < class->n_nics * class->n_nics && !closed; i++)
        if (class->cells[i].gbps > best->gbps)
            best = &class->cells[i];
    return &best->chain;
}

static bool takes_room(const struct tccl_node_class *class, const struct tccl_ring_set *set,
                       const struct tccl_machine *machine)
{
    return tccl_set_takes_room(machine, set, best_chain(class, set->rings[0].closed));
}

/* Which of a table's sets a class has. */
enum which { JOB, HIDDEN /* without P2P */, ALL };

/* Cells and ring are there. Returns 0, or -1 if out of memory. */
static int fill_sets(struct tccl_node_class *class, const struct tccl_table *table,
                     const struct tccl_machine *machine, enum which which)
{
    for (const struct tccl_result *own = NULL; (own = tccl_table_next(table, own, TCCL_SETS));) {
        struct tccl_class_set set = {.gbps = own->gbps, .bound = own->bound, .set = *own->set};
        if ((which == HIDDEN && has_p2p(&set.set)) ||
            (which != ALL && takes_room(class, &set.set, machine)))
            continue;
        if (tccl_node_class_add_set(class, &set) != 0)
            return -1;
    }
    return 0;
}

static struct tccl_node_class *from_table(const struct tccl_table *table,
                                          const struct tccl_machine *machine, enum which which)
{
    cleanup_node_class struct tccl_node_class *class = class_of(table, machine);
    if (!class)
        return NULL;
    if (which == HIDDEN) {
        fill_host_cells(class, table);
        class->ring.bound = fmin(class->ring.bound, tccl_table_host_ring(table)->bound);
        offer_host(&class->ring, tccl_table_ring(table));
        offer_host(&class->ring, tccl_table_host_ring(table));
    } else {
        fill_cells(class, table);
        set_chain(&class->ring, tccl_table_ring(table));
    }
    leave_room(class, table, machine, which == HIDDEN);
    return fill_sets(class, table, machine, which) == 0 ? tccl_steal(class) : NULL;
}

struct tccl_node_class *tccl_node_class_from_table(const struct tccl_table *table,
                                                   const struct tccl_machine *machine)
{
    return from_table(table, machine, JOB);
}

struct tccl_node_class *tccl_node_class_of_all_sets(const struct tccl_table *table,
                                                    const struct tccl_machine *machine)
{
    return from_table(table, machine, ALL);
}

struct tccl_node_class *tccl_node_class_without_p2p(const struct tccl_table *table,
                                                    const struct tccl_machine *machine)
{
    return from_table(table, machine, HIDDEN);
}

void tccl_node_class_format(const struct tccl_node_class *class, const struct tccl_chain *chain,
                            char text[static TCCL_CHAIN_TEXT])
{
    struct tccl_named_chain named;
    bool ports = chain->n_gpus && !chain->closed;
    tccl_chain_name_nics(chain, ports ? class->nics[chain->entry.nic].name : "",
                         ports ? class->nics[chain->exit.nic].name : "", &named);
    tccl_named_format(&named, text);
}

/* JSON. An unknown bound (infinite) is null. */

static json_t *cell_to_json(const struct tccl_node_class *class, const struct tccl_cell *cell)
{
    char text[TCCL_CHAIN_TEXT];
    tccl_node_class_format(class, &cell->chain, text);
    return json_pack("{s:f, s:f, s:f, s:b, s:s, s:o, s:o}", "gbps", cell->gbps, "alone",
                     cell->alone, "share", cell->share, "harms", (int)cell->harms, "basis",
                     tccl_basis_name(cell->basis), "bound",
                     isfinite(cell->bound) ? json_real(cell->bound) : json_null(), "chain",
                     *text ? json_string(text) : json_null());
}

static json_t *numbers_to_json(const uint8_t *numbers, int count)
{
    json_t *json = json_array();
    for (int i = 0; i < count; i++)
        json_array_append_new(json, json_integer(numbers[i]));
    return json;
}

static bool baseline_equal(const struct tccl_class_baseline *a, const struct tccl_class_baseline *b)
{
    return a->ring_gbps == b->ring_gbps && a->chain_gbps == b->chain_gbps &&
           a->ring_share == b->ring_share && a->chain_share == b->chain_share &&
           a->ring_bounces == b->ring_bounces && a->chain_bounces == b->chain_bounces &&
           a->n_chains == b->n_chains && memcmp(a->entry_nics, b->entry_nics, a->n_chains) == 0 &&
           memcmp(a->exit_nics, b->exit_nics, a->n_chains) == 0;
}

static json_t *baseline_to_json(const struct tccl_class_baseline *baseline)
{
    return json_pack("{s:f, s:f, s:f, s:f, s:i, s:i, s:o, s:o}", "ring_gbps", baseline->ring_gbps,
                     "chain_gbps", baseline->chain_gbps, "ring_share", baseline->ring_share,
                     "chain_share", baseline->chain_share, "ring_bounces", baseline->ring_bounces,
                     "chain_bounces", baseline->chain_bounces, "entry_nics",
                     numbers_to_json(baseline->entry_nics, baseline->n_chains), "exit_nics",
                     numbers_to_json(baseline->exit_nics, baseline->n_chains));
}

/* Most generations have the baseline of the one before: that is null. */
static json_t *baselines_to_json(const struct tccl_node_class *class)
{
    json_t *json = json_array();
    for (int i = 0; i < TCCL_GENERATIONS; i++)
        json_array_append_new(
            json, i > 0 && baseline_equal(&class->baselines[i], &class->baselines[i - 1])
                      ? json_null()
                      : baseline_to_json(&class->baselines[i]));
    return json;
}

json_t *tccl_node_class_to_json(const struct tccl_node_class *class)
{
    json_t *nics = json_array(), *cells = json_array();
    for (int i = 0; i < class->n_nics; i++)
        json_array_append_new(nics,
                              json_pack("{s:s, s:s, s:f}", "name", class->nics[i].name, "fabric",
                                        class->nics[i].fabric, "gbps", class->nics[i].gbps));
    for (int i = 0; i < class->n_nics * class->n_nics; i++)
        json_array_append_new(cells, cell_to_json(class, &class->cells[i]));
    return json_pack("{s:s, s:s, s:I, s:i, s:s*, s:o, s:o, s:o, s:o, s:f, s:o}", "machine",
                     class->machine, "source", class->source, "gpus", (json_int_t) class->gpus,
                     "neighbours", class->neighbours, "beside", class->beside, "nics", nics,
                     "cells", cells, "ring", cell_to_json(class, &class->ring), "sets",
                     tccl_class_sets_to_json(class), "noise", class->noise, "baselines",
                     baselines_to_json(class));
}

/* Copies a name of printable ASCII characters. Returns 0, or -1. */
static int take_name(const char *text, char *name, size_t size, bool may_be_empty)
{
    size_t length = strlen(text);
    if (length >= size || (length == 0 && !may_be_empty))
        return -1;
    for (const char *at = text; *at; at++)
        if (*at < ' ' || *at > '~')
            return -1;
    memcpy(name, text, length + 1);
    return 0;
}

static bool is_rate(double gbps)
{
    return gbps >= 0 && gbps <= 1e6;
}

static bool is_share(double share)
{
    return share >= 0 && share <= 1;
}

/* A chain over the GPUs of the class, between these NICs; entry < 0: the closed one. */
static int chain_from_text(const char *text, const struct tccl_node_class *class, int entry,
                           int exit, struct tccl_chain *chain)
{
    struct tccl_named_chain named;
    uint32_t gpus = 0;
    if (tccl_named_parse(text, &named, NULL) != 0 || named.closed != (entry < 0) ||
        tccl_chain_resolve_nics(&named, entry, exit, chain, NULL) != 0)
        return -1;
    for (int i = 0; i < chain->n_gpus; i++)
        gpus |= UINT32_C(1) << chain->gpus[i];
    if (gpus != class->gpus)
        return -1;
    return named.closed || (strcmp(named.entry.nic, class->nics[entry].name) == 0 &&
                            strcmp(named.exit.nic, class->nics[exit].name) == 0)
               ? 0
               : -1;
}

static int cell_from_json(json_t *json, const struct tccl_node_class *class, int entry, int exit,
                          struct tccl_cell *cell)
{
    json_t *bound, *chain;
    const char *basis;
    int harms;
    if (json_unpack(json, "{s:F, s:F, s:F, s:b, s:s, s:o, s:o!}", "gbps", &cell->gbps, "alone",
                    &cell->alone, "share", &cell->share, "harms", &harms, "basis", &basis, "bound",
                    &bound, "chain", &chain) != 0 ||
        tccl_basis_parse(basis) < 0)
        return -1;
    cell->basis = (enum tccl_basis)tccl_basis_parse(basis);
    cell->harms = harms;
    cell->bound = json_is_null(bound) ? INFINITY : json_number_value(bound);
    if (!is_rate(cell->gbps) || !is_rate(cell->alone) || !(cell->alone >= cell->gbps) ||
        !is_share(cell->share) || !(cell->bound >= cell->gbps) ||
        !(json_is_null(bound) || (json_is_number(bound) && is_rate(cell->bound))))
        return -1;
    if (json_is_null(chain))
        return cell->gbps == 0 ? 0 : -1;
    if (!json_is_string(chain) ||
        chain_from_text(json_string_value(chain), class, entry, exit, &cell->chain) != 0)
        return -1;
    if (tccl_expressible(NULL, &cell->chain, 1, NULL) != 0)
        *cell = (struct tccl_cell){.bound = cell->bound, .share = 1};
    return 0;
}

static int nic_from_json(json_t *json, struct tccl_node_class *class, int i)
{
    const char *name, *fabric;
    if (json_unpack(json, "{s:s, s:s, s:F!}", "name", &name, "fabric", &fabric, "gbps",
                    &class->nics[i].gbps) != 0 ||
        !is_rate(class->nics[i].gbps) ||
        take_name(name, class->nics[i].name, TCCL_NAME, false) != 0)
        return -1;
    return take_name(fabric, class->nics[i].fabric, TCCL_NAME, true);
}

/* An array of count NICs in ascending order. */
static int nics_from_json(const json_t *json, int n_nics, size_t count, uint8_t *nics)
{
    json_int_t least = 0;
    if (!json_is_array(json) || json_array_size(json) != count)
        return -1;
    for (size_t i = 0; i < count; i++) {
        const json_t *entry = json_array_get(json, i);
        json_int_t nic = json_is_integer(entry) ? json_integer_value(entry) : -1;
        if (nic < least || nic >= n_nics)
            return -1;
        nics[i] = (uint8_t)nic;
        least = nic;
    }
    return 0;
}

static bool are_bounces(int bounces)
{
    return bounces >= 0 && bounces <= TCCL_MAX_GPUS + 1;
}

static int baseline_from_json(json_t *json, int n_nics, struct tccl_class_baseline *baseline)
{
    json_t *entries, *exits;
    if (json_unpack(json, "{s:F, s:F, s:F, s:F, s:i, s:i, s:o, s:o!}", "ring_gbps",
                    &baseline->ring_gbps, "chain_gbps", &baseline->chain_gbps, "ring_share",
                    &baseline->ring_share, "chain_share", &baseline->chain_share, "ring_bounces",
                    &baseline->ring_bounces, "chain_bounces", &baseline->chain_bounces,
                    "entry_nics", &entries, "exit_nics", &exits) != 0)
        return -1;
    size_t count = json_array_size(entries);
    if (!is_rate(baseline->ring_gbps) || !is_rate(baseline->chain_gbps) ||
        !is_share(baseline->ring_share) || !is_share(baseline->chain_share) ||
        !are_bounces(baseline->ring_bounces) || !are_bounces(baseline->chain_bounces) ||
        count > TCCL_MAX_CHANNELS || (count == 0 && baseline->chain_gbps > 0))
        return -1;
    baseline->n_chains = (int)count;
    if (nics_from_json(entries, n_nics, count, baseline->entry_nics) != 0)
        return -1;
    return nics_from_json(exits, n_nics, count, baseline->exit_nics);
}

static int baselines_from_json(json_t *json, struct tccl_node_class *class)
{
    const json_t *list = json_object_get(json, "baselines");
    if (json_unpack(json, "{s:F}", "noise", &class->noise) != 0 ||
        !(class->noise >= 0 && class->noise < 1) || json_array_size(list) != TCCL_GENERATIONS)
        return -1;
    for (int i = 0; i < TCCL_GENERATIONS; i++) {
        json_t *own = json_array_get(list, (size_t)i);
        if (i > 0 && json_is_null(own))
            class->baselines[i] = class->baselines[i - 1];
        else if (baseline_from_json(own, class->n_nics, &class->baselines[i]) != 0)
            return -1;
    }
    return 0;
}

static int identity_from_json(json_t *json, struct tccl_node_class *class)
{
    const char *machine, *source;
    json_int_t gpus;
    if (json_unpack(json, "{s:s, s:s, s:I, s:i}", "machine", &machine, "source", &source, "gpus",
                    &gpus, "neighbours", &class->neighbours) != 0 ||
        class->neighbours < 0 || class->neighbours > TCCL_MAX_GPUS)
        return -1;
    if (strlen(machine) != TCCL_HASH_HEX - 1 ||
        strspn(machine, "0123456789abcdef") != TCCL_HASH_HEX - 1 || gpus < 1 ||
        gpus >= 1 << TCCL_MAX_GPUS)
        return -1;
    memcpy(class->machine, machine, TCCL_HASH_HEX);
    class->gpus = gpus;
    class->n_gpus = __builtin_popcount(class->gpus);
    return take_name(source, class->source, TCCL_NAME, true);
}

/* Returns 0, or -1: it is no such text, or too long. */
static int beside_from_json(const json_t *json, struct tccl_node_class *class)
{
    const char *text = json_string_value(json);
    if (!json)
        return 0;
    if (!text || strlen(text) > TCCL_BESIDE_TEXT)
        return -1;
    cleanup_free struct tccl_neighbour *list = calloc(TCCL_MAX_BESIDE, sizeof(*list));
    class->beside = list && tccl_beside_parse(text, list, NULL) >= 0 ? strdup(text) : NULL;
    return class->beside ? 0 : -1;
}

static int parts_from_json(const json_t *json, struct tccl_node_class *class,
                           struct tccl_error *err)
{
    json_t *object = (json_t *)json, *nics = json_object_get(json, "nics");
    json_t *cells = json_object_get(json, "cells");
    if (identity_from_json(object, class) != 0)
        return tccl_fail(err, "machine, source or gpus of a node class is missing or wrong");
    if (baselines_from_json(object, class) != 0)
        return tccl_fail(err, "noise or baselines of a node class is missing or wrong");
    for (int i = 0; i < class->n_nics; i++)
        if (nic_from_json(json_array_get(nics, i), class, i) != 0)
            return tccl_fail(err, "NIC %d of a node class is wrong", i);
    for (int i = 0; i < class->n_nics * class->n_nics; i++)
        if (cell_from_json(json_array_get(cells, i), class, i / class->n_nics, i % class->n_nics,
                           &class->cells[i]) != 0)
            return tccl_fail(err, "cell %d of a node class is wrong", i);
    if (cell_from_json(json_object_get(json, "ring"), class, -1, -1, &class->ring) != 0)
        return tccl_fail(err, "the ring of a node class is missing or wrong");
    if (beside_from_json(json_object_get(json, "beside"), class) != 0)
        return tccl_fail(err, "the neighbours of a node class are wrong");
    return tccl_class_sets_from_json(json_object_get(json, "sets"), class, err);
}

struct tccl_node_class *tccl_node_class_from_json(const json_t *json, struct tccl_error *err)
{
    const json_t *nics = json_object_get(json, "nics"), *cells = json_object_get(json, "cells");
    size_t n = json_array_size(nics);
    if (!json_is_array(nics) || n > TCCL_MAX_NICS || json_array_size(cells) != n * n) {
        tccl_fail(err, "nics and cells of a node class do not fit together");
        return NULL;
    }
    cleanup_node_class struct tccl_node_class *class = class_alloc(n);
    if (!class) {
        tccl_fail(err, "out of memory");
        return NULL;
    }
    return parts_from_json(json, class, err) != 0 ? NULL : tccl_steal(class);
}

/* Comparison. */

static bool cell_equal(const struct tccl_cell *a, const struct tccl_cell *b)
{
    return a->gbps == b->gbps && a->bound == b->bound && a->alone == b->alone &&
           a->share == b->share && a->harms == b->harms && a->basis == b->basis &&
           tccl_chain_equal(&a->chain, &b->chain);
}

static bool nics_equal(const struct tccl_node_class *a, const struct tccl_node_class *b)
{
    for (int i = 0; i < a->n_nics; i++)
        if (strcmp(a->nics[i].name, b->nics[i].name) != 0 ||
            strcmp(a->nics[i].fabric, b->nics[i].fabric) != 0 || a->nics[i].gbps != b->nics[i].gbps)
            return false;
    return true;
}

static bool baselines_equal(const struct tccl_node_class *a, const struct tccl_node_class *b)
{
    for (int i = 0; i < TCCL_GENERATIONS; i++)
        if (!baseline_equal(&a->baselines[i], &b->baselines[i]))
            return false;
    return true;
}

bool tccl_node_class_equal(const struct tccl_node_class *a, const struct tccl_node_class *b)
{
    if (strcmp(a->beside ? a->beside : "", b->beside ? b->beside : "") != 0 ||
        strcmp(a->machine, b->machine) != 0 || strcmp(a->source, b->source) != 0 ||
        a->gpus != b->gpus || a->neighbours != b->neighbours || a->n_nics != b->n_nics ||
        !nics_equal(a, b) || a->noise != b->noise || !baselines_equal(a, b) ||
        !cell_equal(&a->ring, &b->ring) || !tccl_class_sets_equal(a, b))
        return false;
    for (int i = 0; i < a->n_nics * a->n_nics; i++)
        if (!cell_equal(&a->cells[i], &b->cells[i]))
            return false;
    return true;
}
