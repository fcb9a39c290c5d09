/* step-json.c: steps and outcomes in JSON. Each type of member is written and read in one place;
 * what there is of them, and their bounds, is in the table. */
#include "client/step-fields.h"

#include <stdlib.h>
#include <string.h>

#include "base/bus.h"
#include "base/cleanup.h"
#include "client/hostlist.h"
#include "client/message.h"

static bool must_be(const struct tccl_field *field, enum tccl_use use)
{
    switch (use) {
    case TCCL_IN_KEY:
        return true;
    case TCCL_IN_PLAN:
        return field->use & TCCL_MUST_PLAN;
    case TCCL_IN_RECORD:
        return field->use & TCCL_MUST_RECORD;
    default:
        return field->use & TCCL_MUST_JOIN;
    }
}

static json_int_t load_int(const void *member, size_t size)
{
    uint32_t small;
    uint64_t large;
    if (size == sizeof(small)) {
        memcpy(&small, member, sizeof(small));
        return small;
    }
    memcpy(&large, member, sizeof(large));
    return (json_int_t)large;
}

static void store_int(void *member, size_t size, json_int_t value)
{
    uint32_t small = (uint32_t)value;
    uint64_t large = (uint64_t)value;
    if (size == sizeof(small))
        memcpy(member, &small, sizeof(small));
    else
        memcpy(member, &large, sizeof(large));
}

/* Writing */

TCCL_IS_LIST(struct tccl_step, gres);

static json_t *entry_to_json(enum tccl_field_type type, const void *entry)
{
    const struct tccl_outcome_baseline *baseline = entry;
    char bus[TCCL_BUS_TEXT];
    switch (type) {
    case TCCL_FIELD_NUMBERS:
        return json_integer(*(const int *)entry);
    case TCCL_FIELD_BUSES:
        tccl_bus_format(*(const tccl_bus *)entry, bus);
        return json_string(bus);
    default:
        return json_pack("[ifb]", baseline->first, baseline->gbps, baseline->better);
    }
}

static json_t *list_to_json(const struct tccl_field *field, const char *list, int n)
{
    cleanup_json json_t *array = json_array();
    size_t size = field->size / (size_t)field->max;
    for (int i = 0; i < n; i++)
        if (json_array_append_new(array, entry_to_json(field->type, list + size * (size_t)i)) != 0)
            return NULL;
    return tccl_steal(array);
}

int tccl_field_put(json_t *json, const struct tccl_field *field, bool must, const void *object)
{
    const char *member = (const char *)object + field->at, *text = member;
    const int *n = (const void *)(member + field->size); /* of a list */
    const struct tccl_step *step = object;
    cleanup_free char *nodes = NULL;
    json_int_t number;
    double real;
    json_t *value;
    switch (field->type) {
    case TCCL_FIELD_LONG:
        memcpy(&text, member, sizeof(text));
        text = text ? text : "";
        /* fall through */
    case TCCL_FIELD_TEXT:
        return must || *text ? tccl_put_text(json, field->name, text, (size_t)field->max) : 0;
    case TCCL_FIELD_WORD:
        text = field->words[load_int(member, field->size)];
        if (!must && !*text)
            return 0;
        value = json_string(text);
        break;
    case TCCL_FIELD_NODES:
        nodes = tccl_hosts_fold((const char *const *)step->nodes, (size_t)step->n_nodes);
        value = nodes ? json_string(nodes) : NULL;
        break;
    case TCCL_FIELD_NUMBERS:
    case TCCL_FIELD_BUSES:
    case TCCL_FIELD_BASELINES:
        if (!must && *n == 0)
            return 0;
        value = list_to_json(field, member, *n);
        break;
    case TCCL_FIELD_KEY:
        value = tccl_key_to_json((const void *)member);
        break;
    case TCCL_FIELD_JSON:
        memcpy(&value, member, sizeof(value));
        if (!json_incref(value))
            return 0;
        break;
    case TCCL_FIELD_BOOL:
        if (!must && !*(const bool *)member)
            return 0;
        value = json_boolean(*(const bool *)member);
        break;
    case TCCL_FIELD_REAL:
        memcpy(&real, member, sizeof(real));
        if (!must && !(real > 0))
            return 0;
        value = json_real(real);
        break;
    default:
        number = load_int(member, field->size);
        if (!must && !number)
            return 0;
        value = json_integer(number);
    }
    return json_object_set_new(json, field->name, value);
}

int tccl_fields_put(json_t *json, enum tccl_use use, enum tccl_owner owner, const void *object)
{
    for (int i = 0; i < tccl_n_step_fields; i++) {
        const struct tccl_field *field = &tccl_step_fields[i];
        if (field->use & use && field->owner == owner &&
            tccl_field_put(json, field, must_be(field, use), object) != 0)
            return -1;
    }
    return 0;
}

/* Reading */

static int get_nodes(const json_t *json, const struct tccl_field *field, struct tccl_step *step,
                     struct tccl_error *err)
{
    __attribute__((cleanup(tccl_hosts_clear))) struct tccl_hosts hosts = {0};
    const char *list;
    if (tccl_get_text(json, field->name, (size_t)field->max, &list, err) != 0)
        return -1;
    if (tccl_hosts_expand(list, TCCL_MAX_NODES, &hosts, err) != 0)
        return tccl_fail_in(err, "nodes");
    if (hosts.count == 0)
        return tccl_fail(err, "nodes: a list of 1 to %d nodes is expected", TCCL_MAX_NODES);
    for (size_t i = 0; i < hosts.count; i++)
        if (!tccl_host_valid(hosts.names[i]))
            return tccl_fail(err, "nodes: a node name is expected for entry %zu", i);
    return tccl_step_set_nodes(step, (const char *const *)hosts.names, hosts.count) == 0
               ? 0
               : tccl_fail(err, "out of memory");
}

/* i: of the list. */
static int get_entry(enum tccl_field_type type, json_t *json, size_t i, void *entry)
{
    struct tccl_outcome_baseline *baseline = entry;
    json_int_t number = json_integer_value(json);
    int better;
    switch (type) {
    case TCCL_FIELD_NUMBERS:
        *(int *)entry = (int)number;
        return json_is_integer(json) && number >= 0 && number <= 4095 ? 0 : -1;
    case TCCL_FIELD_BUSES:
        return json_is_string(json) ? tccl_bus_parse(json_string_value(json), entry) : -1;
    default: /* ascending */
        if (json_unpack(json, "[iFb!]", &baseline->first, &baseline->gbps, &better) != 0 ||
            baseline->first <= (i > 0 ? baseline[-1].first : 0) ||
            !(baseline->gbps >= 0 && baseline->gbps <= 1e9))
            return -1;
        baseline->better = better;
        return 0;
    }
}

static int get_list(const json_t *array, const struct tccl_field *field, char *list,
                    struct tccl_error *err)
{
    size_t count = json_array_size(array), size = field->size / (size_t)field->max;
    int n = (int)count;
    if (!json_is_array(array) || count > (size_t)field->max)
        return tccl_fail(err, "%s: a list of at most %lld is expected", field->name, field->max);
    for (size_t i = 0; i < count; i++)
        if (get_entry(field->type, json_array_get(array, i), i, list + size * i) != 0)
            return tccl_fail(err, "%s: entry %zu can't be read", field->name, i);
    memcpy(list + field->size, &n, sizeof(n));
    return 0;
}

/* An unknown one may be of a newer version. */
static int get_word(const json_t *json, const struct tccl_field *field, bool must, void *member,
                    struct tccl_error *err)
{
    const char *word;
    if (tccl_get_text(json, field->name, (size_t)field->max, &word, err) != 0)
        return -1;
    for (int i = 0; field->words[i]; i++)
        if (strcmp(word, field->words[i]) == 0) {
            store_int(member, field->size, i);
            return 0;
        } else if (!must && !field->words[i + 1]) {
            store_int(member, field->size, i);
        }
    return must ? tccl_fail(err, "%s: \"%.32s\" is unknown", field->name, word) : 0;
}

static int get_text(const json_t *json, const struct tccl_field *field, void *member,
                    struct tccl_error *err)
{
    const char *text;
    if (tccl_get_text(json, field->name, (size_t)field->max, &text, err) != 0)
        return -1;
    if (field->type == TCCL_FIELD_TEXT) {
        strcpy(member, text);
        return 0;
    }
    char *copy = strdup(text);
    memcpy(member, &copy, sizeof(copy));
    return copy ? 0 : tccl_fail(err, "out of memory");
}

int tccl_field_get(const json_t *json, const struct tccl_field *field, bool must, void *object,
                   struct tccl_error *err)
{
    const json_t *value = json_object_get(json, field->name);
    void *member = (char *)object + field->at;
    json_int_t number;
    double real;
    if (!must && (!value || json_is_null(value))) {
        memset(member, 0, field->size);
        return 0;
    }
    switch (field->type) {
    case TCCL_FIELD_TEXT:
    case TCCL_FIELD_LONG:
        return get_text(json, field, member, err);
    case TCCL_FIELD_WORD:
        return get_word(json, field, must, member, err);
    case TCCL_FIELD_NODES:
        return get_nodes(json, field, object, err);
    case TCCL_FIELD_NUMBERS:
    case TCCL_FIELD_BUSES:
    case TCCL_FIELD_BASELINES:
        return get_list(value, field, member, err);
    case TCCL_FIELD_KEY:
        return tccl_key_from_json(value, member, err);
    case TCCL_FIELD_JSON:
        *(json_t **)member = json_incref((json_t *)value);
        return 0;
    case TCCL_FIELD_BOOL:
        *(bool *)member = json_is_true(value);
        return 0;
    case TCCL_FIELD_INT:
    case TCCL_FIELD_COUNT:
    case TCCL_FIELD_TIME:
    case TCCL_FIELD_MICROSECONDS:
        if (tccl_get_int(json, field->name, field->min, field->max, &number, err) != 0)
            return -1;
        store_int(member, field->size, number);
        return 0;
    case TCCL_FIELD_REAL:
        if (tccl_get_number(json, field->name, &real, err) != 0)
            return -1;
        if (real > (double)field->max)
            return tccl_fail(err, "%s: more than %lld", field->name, field->max);
        memcpy(member, &real, sizeof(real));
        return 0;
    }
    return -1;
}

int tccl_fields_get(const json_t *json, enum tccl_use use, enum tccl_owner owner, void *object,
                    struct tccl_error *err)
{
    for (int i = 0; i < tccl_n_step_fields; i++) {
        const struct tccl_field *field = &tccl_step_fields[i];
        if (field->use & use && field->owner == owner &&
            tccl_field_get(json, field, must_be(field, use), object, err) != 0)
            return -1;
    }
    return 0;
}

/* Keys (key.h) */

json_t *tccl_key_to_json(const struct tccl_step_key *key)
{
    cleanup_json json_t *json = json_object();
    struct tccl_step step = {.key = *key};
    return tccl_fields_put(json, TCCL_IN_KEY, TCCL_OF_STEP, &step) == 0 ? tccl_steal(json) : NULL;
}

int tccl_key_from_json(const json_t *json, struct tccl_step_key *key, struct tccl_error *err)
{
    struct tccl_step step = {.n_nodes = 0};
    int failed = tccl_fields_get(json, TCCL_IN_KEY, TCCL_OF_STEP, &step, err);
    *key = step.key;
    return failed ? tccl_fail_in(err, "key") : 0;
}

/* JOIN */

json_t *tccl_join_to_json(const struct tccl_step *step, struct tccl_error *err)
{
    cleanup_json json_t *json = tccl_message_new("join");
    if (step->n_gres > TCCL_MAX_GRES || step->n_nodes > TCCL_MAX_NODES)
        return tccl_fail_null(
            err, "%d nodes with %d GPUs: at most %d nodes and %d GPUs a node are supported",
            step->n_nodes, step->n_gres, TCCL_MAX_NODES, TCCL_MAX_GRES);
    if (json_object_set_new(json, "key", tccl_key_to_json(&step->key)) != 0 ||
        tccl_fields_put(json, TCCL_IN_JOIN, TCCL_OF_STEP, step) != 0)
        return tccl_fail_null(err,
                              "JOIN can't be written: a node name is not UTF-8, or out of memory");
    return tccl_steal(json);
}

struct tccl_step *tccl_join_from_json(const json_t *json, struct tccl_error *err)
{
    struct tccl_step *step = calloc(1, sizeof(*step));
    if (!step)
        return tccl_fail_null(err, "out of memory");
    int failed = tccl_key_from_json(json_object_get(json, "key"), &step->key, err) != 0 ||
                 tccl_fields_get(json, TCCL_IN_JOIN, TCCL_OF_STEP, step, err) != 0;
    if (!failed && step->node >= step->n_nodes)
        failed = tccl_fail(err, "node: %d is not below %d", step->node, step->n_nodes);
    if (!failed)
        return step;
    tccl_fail_in(err, "JOIN");
    tccl_step_free(step);
    return NULL;
}

/* Records */

json_t *tccl_record_to_json(const struct tccl_step *step, const struct tccl_outcome *outcome)
{
    cleanup_json json_t *record = json_object();
    if (tccl_fields_put(record, TCCL_IN_RECORD, TCCL_OF_STEP, step) != 0 ||
        tccl_fields_put(record, TCCL_IN_RECORD, TCCL_OF_OUTCOME, outcome) != 0 ||
        (outcome->partial &&
         json_object_set_new(record, "state", json_string(tccl_state_name(TCCL_STATE_PLANNED))) !=
             0))
        return NULL;
    return tccl_steal(record);
}
