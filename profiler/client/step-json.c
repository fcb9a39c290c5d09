/* step-json.c: steps and outcomes in JSON. Each type of member is written and read in one place;
 * what there is of them, and their bounds, is in the table. */
#include "client/step-fields.h"

#include <stdlib.h>
#include <string.h>

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

_Static_assert(offsetof(struct tccl_step, n_gres) ==
                   offsetof(struct tccl_step, gres) + TCCL_MAX_GRES * sizeof(int),
               "how many there are is behind the numbers");

static json_t *numbers_to_json(const int *numbers)
{
    cleanup_json json_t *array = json_array();
    for (int i = 0; i < numbers[TCCL_MAX_GRES]; i++)
        if (json_array_append_new(array, json_integer(numbers[i])) != 0)
            return NULL;
    return tccl_steal(array);
}

int tccl_field_put(json_t *json, const struct tccl_field *field, bool must, const void *object)
{
    const char *member = (const char *)object + field->at, *text = member;
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
        value = numbers_to_json((const void *)member);
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

static int get_numbers(const json_t *array, int *numbers, struct tccl_error *err)
{
    size_t count = json_array_size(array);
    if (!json_is_array(array) || count > TCCL_MAX_GRES)
        return tccl_fail(err, "gres: a list of at most %d numbers is expected", TCCL_MAX_GRES);
    for (size_t i = 0; i < count; i++) {
        const json_t *index = json_array_get(array, i);
        json_int_t value = json_integer_value(index);
        if (!json_is_integer(index) || value < 0 || value > 4095)
            return tccl_fail(err, "gres: entry %zu is not a GPU index", i);
        numbers[i] = (int)value;
    }
    numbers[TCCL_MAX_GRES] = (int)count;
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
        return get_numbers(value, member, err);
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
