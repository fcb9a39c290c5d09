/* table-json.c: the export form of a chain table. */
#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fields.h"
#include "chain/chain-text.h"
#include "ring/table.h"

static const char *const result_members[] = {"gbps", "bound_gbps", "chain", NULL};
static const char *const pair_members[] = {"gbps", "bound_gbps", "chain", "entry", "exit", NULL};
static const char *const table_members[] = {"machine",      "source",        "gpus",  "measured",
                                            "noise",        "ports",         "pairs", "ring",
                                            "default_ring", "default_chain", NULL};

/* Writing. */

static json_t *result_to_json(const struct tccl_result *result, const struct tccl_machine *machine)
{
    char text[TCCL_CHAIN_TEXT] = "";
    if (result->chain.n_gpus)
        tccl_chain_format(&result->chain, machine, text);
    return json_pack("{s:f, s:o, s:o}", "gbps", result->gbps, "bound_gbps",
                     isfinite(result->bound) ? json_real(result->bound) : json_null(), "chain",
                     result->chain.n_gpus ? json_string(text) : json_null());
}

static json_t *port_to_json(struct tccl_port port, const struct tccl_machine *machine)
{
    bool gpu = port.via.kind == TCCL_GPU;
    return json_pack("{s:s, s:s, s:i}", "nic", machine->nics[port.nic].name, "via",
                     gpu ? "gpu" : "memory", gpu ? "gpu" : "memory", port.via.index);
}

static json_t *pairs_to_json(const struct tccl_table *table, const struct tccl_machine *machine)
{
    json_t *pairs = json_array();
    for (int i = 0; i < table->n_ports * table->n_ports; i++) {
        json_t *pair = result_to_json(&table->pairs[i], machine);
        json_object_set_new(pair, "entry", json_integer(i / table->n_ports));
        json_object_set_new(pair, "exit", json_integer(i % table->n_ports));
        json_array_append_new(pairs, pair);
    }
    return pairs;
}

static json_t *gpus_to_json(const struct tccl_table *table, const struct tccl_machine *machine)
{
    json_t *gpus = json_array();
    for (int i = 0; i < machine->n_gpus; i++)
        if (table->gpus >> i & 1)
            json_array_append_new(gpus, json_integer(i));
    return gpus;
}

static json_t *ports_to_json(const struct tccl_table *table, const struct tccl_machine *machine)
{
    json_t *ports = json_array();
    for (int i = 0; i < table->n_ports; i++)
        json_array_append_new(ports, port_to_json(table->ports[i], machine));
    return ports;
}

json_t *tccl_table_to_json(const struct tccl_table *table, const struct tccl_machine *machine)
{
    return json_pack("{s:s, s:s, s:o, s:I, s:f, s:o, s:o, s:o, s:o, s:o}", "machine",
                     table->machine, "source", table->source, "gpus", gpus_to_json(table, machine),
                     "measured", (json_int_t)table->measured, "noise", table->noise, "ports",
                     ports_to_json(table, machine), "pairs", pairs_to_json(table, machine), "ring",
                     result_to_json(&table->ring, machine), "default_ring",
                     result_to_json(&table->default_ring, machine), "default_chain",
                     result_to_json(&table->default_chain, machine));
}

/* Reading. */

static int result_from_json(const json_t *json, const char *const *members,
                            const struct tccl_machine *machine, struct tccl_result *result,
                            struct tccl_error *err)
{
    char text[TCCL_CHAIN_TEXT] = "";
    *result = (struct tccl_result){.bound = INFINITY};
    if (tccl_fields_known(json, members, err) < 0 ||
        tccl_field_number(json, "gbps", 1, 0, HUGE_VAL, &result->gbps, err) < 0 ||
        tccl_field_number(json, "bound_gbps", 0, 0, HUGE_VAL, &result->bound, err) < 0 ||
        tccl_field_text(json, "chain", 0, text, sizeof(text), err) < 0)
        return -1;
    return text[0] ? tccl_chain_parse(text, machine, &result->chain, err) : 0;
}

static int member_from_json(const json_t *json, const char *name,
                            const struct tccl_machine *machine, struct tccl_result *result,
                            struct tccl_error *err)
{
    struct tccl_error why = {""};
    const json_t *member = json_object_get(json, name);
    if (!member)
        return tccl_fail(err, "\"%s\" is missing", name);
    if (result_from_json(member, result_members, machine, result, &why) < 0)
        return tccl_fail(err, "\"%s\": %s", name, why.text);
    return 0;
}

static int gpus_from_json(const json_t *json, const struct tccl_machine *machine, uint32_t *gpus,
                          struct tccl_error *err)
{
    json_t *list = NULL;
    *gpus = 0;
    if (tccl_field_list(json, "gpus", 1, TCCL_MAX_GPUS, &list, err) < 0)
        return -1;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *entry = json_array_get(list, i);
        json_int_t gpu = json_is_integer(entry) ? json_integer_value(entry) : -1;
        if (gpu < 0 || gpu >= machine->n_gpus || (*gpus >> gpu & 1))
            return tccl_fail(err, "\"gpus\" names a GPU twice, or one that the machine has not");
        *gpus |= UINT32_C(1) << gpu;
    }
    return *gpus ? 0 : tccl_fail(err, "\"gpus\" is empty");
}

/* The ports follow from the GPU set: they only have to be the same. */
static int check_ports(const json_t *json, const struct tccl_table *table,
                       const struct tccl_machine *machine, struct tccl_error *err)
{
    cleanup_json json_t *expected = ports_to_json(table, machine);
    if (json_equal(expected, json_object_get(json, "ports")))
        return 0;
    return tccl_fail(err, "\"ports\" are not the %d that these GPUs have on the machine",
                     table->n_ports);
}

/* One of the pairs, each of which stands there once. */
static int take_pair(const json_t *json, const struct tccl_machine *machine,
                     struct tccl_table *table, bool *taken, struct tccl_error *err)
{
    struct tccl_result result;
    int entry, exit, last = table->n_ports - 1;
    if (result_from_json(json, pair_members, machine, &result, err) < 0 ||
        tccl_field_int(json, "entry", 1, 0, last, &entry, err) < 0 ||
        tccl_field_int(json, "exit", 1, 0, last, &exit, err) < 0)
        return -1;
    int i = entry * table->n_ports + exit;
    if (taken[i])
        return tccl_fail(err, "ports %d and %d stand there twice", entry, exit);
    taken[i] = true;
    table->pairs[i] = result;
    return 0;
}

static int pairs_from_json(const json_t *json, const struct tccl_machine *machine,
                           struct tccl_table *table, struct tccl_error *err)
{
    size_t count = (size_t)table->n_ports * (size_t)table->n_ports;
    json_t *list = NULL;
    if (tccl_field_list(json, "pairs", 1, count, &list, err) < 0)
        return -1;
    if (json_array_size(list) != count)
        return tccl_fail(err, "\"pairs\" has %zu entries instead of %zu", json_array_size(list),
                         count);
    cleanup_free bool *taken = calloc(count + 1, sizeof(*taken));
    if (!taken)
        return tccl_fail(err, "no memory");
    for (size_t i = 0; i < count; i++) {
        struct tccl_error why = {""};
        if (take_pair(json_array_get(list, i), machine, table, taken, &why) < 0)
            return tccl_fail(err, "\"pairs\"[%zu]: %s", i, why.text);
    }
    return 0;
}

/* All but GPUs and ports. */
static int fill_table(const json_t *json, const struct tccl_machine *machine,
                      struct tccl_table *table, struct tccl_error *err)
{
    const json_t *measured = json_object_get(json, "measured");
    char id[TCCL_HASH_HEX];
    if (tccl_field_text(json, "machine", 1, id, sizeof(id), err) < 0 ||
        tccl_field_text(json, "source", 1, table->source, sizeof(table->source), err) < 0 ||
        tccl_field_number(json, "noise", 1, 0, 1, &table->noise, err) < 0)
        return -1;
    if (strcmp(id, table->machine) != 0)
        return tccl_fail(err, "made for another machine: %s, this one is %s", id, table->machine);
    if (!json_is_integer(measured) || json_integer_value(measured) < 0 ||
        json_integer_value(measured) > UINT32_MAX || table->noise >= 1)
        return tccl_fail(err, "\"measured\" or \"noise\" is out of range");
    table->measured = (uint32_t)json_integer_value(measured);
    if (check_ports(json, table, machine, err) < 0 ||
        pairs_from_json(json, machine, table, err) < 0)
        return -1;
    if (member_from_json(json, "ring", machine, &table->ring, err) < 0 ||
        member_from_json(json, "default_ring", machine, &table->default_ring, err) < 0 ||
        member_from_json(json, "default_chain", machine, &table->default_chain, err) < 0)
        return -1;
    return tccl_table_check(table, machine, err);
}

int tccl_table_from_json(const json_t *json, const struct tccl_machine *machine,
                         struct tccl_table **table, struct tccl_error *err)
{
    uint32_t gpus;
    *table = NULL;
    if (tccl_fields_known(json, table_members, err) < 0 ||
        gpus_from_json(json, machine, &gpus, err) < 0)
        return -1;
    struct tccl_table *made = tccl_table_new(machine, gpus);
    if (!made)
        return tccl_fail(err, "no memory");
    if (fill_table(json, machine, made, err) < 0) {
        tccl_table_free(made);
        return -1;
    }
    *table = made;
    return 0;
}
