/* record.c: the fields of a step record and their bounds. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "client/hostlist.h"
#include "client/key.h"
#include "records/record.h"

#define LATEST 253402300799LL /* the end of the year 9999 */
#define MICROSECONDS 1000000000000LL
#define COUNT 1000000000
#define GBPS 1000000000

#define NAME(name)                                                                                 \
    {                                                                                              \
        name, TCCL_RECORD_TEXT, false, 0, TCCL_RECORD_NAME                                         \
    }
#define WORD(name)                                                                                 \
    {                                                                                              \
        name, TCCL_RECORD_TEXT, false, 0, TCCL_RECORD_WORD                                         \
    }
#define NUMBER(name, must, min, max)                                                               \
    {                                                                                              \
        name, TCCL_RECORD_INT, must, min, max                                                      \
    }
#define RATE(name)                                                                                 \
    {                                                                                              \
        name, TCCL_RECORD_REAL, false, 0, GBPS                                                     \
    }

const struct tccl_record_field tccl_record_fields[TCCL_RECORD_FIELDS] = {
    NAME("cluster"),
    NUMBER("job", true, 1, UINT32_MAX),
    NUMBER("het_job", false, 0, UINT32_MAX),
    NUMBER("het_offset", false, 0, UINT32_MAX),
    NUMBER("step", true, 0, UINT32_MAX),
    NUMBER("restart", false, 0, UINT32_MAX),
    NUMBER("run", false, 0, TCCL_MAX_RUN),
    NUMBER("array_job_id", false, 0, UINT32_MAX),
    NUMBER("array_task_id", false, 0, UINT32_MAX),
    NUMBER("uid", true, 0, UINT32_MAX),
    NAME("user"),
    NAME("account"),
    NAME("partition"),
    NAME("job_name"),
    {"nodes", TCCL_RECORD_TEXT, false, 0, TCCL_RECORD_NODES},
    NAME("first_node"),
    NUMBER("n_nodes", false, 0, COUNT),
    NUMBER("gpus", false, 0, COUNT),
    WORD("mode"),
    NAME("policy"),
    {"state", TCCL_RECORD_TEXT, true, 1, TCCL_RECORD_WORD},
    {"reason", TCCL_RECORD_TEXT, false, 0, TCCL_RECORD_REASON},
    RATE("gbps"),
    RATE("baseline_gbps"),
    RATE("ratio"),
    RATE("bound_gbps"),
    NUMBER("solve_us", false, 0, MICROSECONDS),
    {"ring", TCCL_RECORD_TEXT, false, 0, TCCL_RECORD_RING},
    WORD("source"),
    NUMBER("start", true, 0, LATEST),
    NUMBER("reporter", true, 0, COUNT),
    WORD("built"),
    {"built_reason", TCCL_RECORD_TEXT, false, 0, TCCL_RECORD_REASON},
};

/* Cuts a UTF-8 text to max bytes, at a character, and shows that it was cut. */
static json_t *cut_text(const char *text, size_t max)
{
    static const char dots[] = "…";
    if (strlen(text) <= max)
        return json_string(text);
    size_t length = max - strlen(dots);
    while (length > 0 && ((unsigned char)text[length] & 0xc0) == 0x80)
        length--;
    return json_sprintf("%.*s%s", (int)length, text, dots);
}

/* Cuts a node list behind the last name, or bracket, that fits whole. */
static json_t *cut_nodes(const char *text, size_t max)
{
    size_t end = 0;
    bool inside = false;
    if (strlen(text) <= max)
        return json_string(text);
    for (size_t i = 0; i <= max; i++) {
        inside = text[i] == '[' || (inside && text[i] != ']');
        if (text[i] == ',' && !inside)
            end = i;
    }
    return json_stringn(text, end);
}

static json_t *no_memory(struct tccl_error *err)
{
    tccl_fail(err, "no memory for a record");
    return NULL;
}

/* An array of node names as hostlist text. */
static json_t *fold_nodes(const json_t *array, struct tccl_error *err)
{
    size_t count = json_array_size(array);
    cleanup_free const char **names =
        count < TCCL_RECORD_NODES ? calloc(count + 1, sizeof *names) : NULL;
    if (!names)
        return no_memory(err);
    for (size_t i = 0; i < count; i++) {
        names[i] = json_string_value(json_array_get(array, i));
        if (!names[i] || !tccl_host_valid(names[i])) {
            tccl_fail(err, "nodes: entry %zu is not the name of a node", i);
            return NULL;
        }
    }
    cleanup_free char *text = tccl_hosts_fold(names, count);
    return text ? cut_nodes(text, TCCL_RECORD_NODES) : no_memory(err);
}

static json_t *normal_text(const struct tccl_record_field *field, const json_t *value,
                           struct tccl_error *err)
{
    bool nodes = !strcmp(field->name, "nodes");
    if (nodes && json_is_array(value))
        return fold_nodes(value, err);
    const char *text = value ? json_string_value(value) : "";
    if (!text) {
        tccl_fail(err, "%s: must be a text", field->name);
        return NULL;
    }
    if ((long long)strlen(text) < field->min) {
        tccl_fail(err, "%s: is empty", field->name);
        return NULL;
    }
    return nodes ? cut_nodes(text, (size_t)field->max) : cut_text(text, (size_t)field->max);
}

static json_t *normal_number(const struct tccl_record_field *field, const json_t *value,
                             struct tccl_error *err)
{
    bool whole = field->type == TCCL_RECORD_INT;
    if (value && !(whole ? json_is_integer(value) : json_is_number(value))) {
        tccl_fail(err, "%s: must be a %snumber", field->name, whole ? "whole " : "");
        return NULL;
    }
    double real = json_number_value(value);
    if (!(real >= (double)field->min && real <= (double)field->max) && (value || field->must)) {
        tccl_fail(err, "%s: must be from %lld to %lld", field->name, field->min, field->max);
        return NULL;
    }
    return whole ? json_integer(json_integer_value(value)) : json_real(real);
}

/* The value of one field in its stored form. A new reference, or NULL with err. */
static json_t *normal_field(const struct tccl_record_field *field, const json_t *record,
                            struct tccl_error *err)
{
    const json_t *value = json_object_get(record, field->name);
    if (json_is_null(value))
        value = NULL;
    if (!value && field->must) {
        tccl_fail(err, "%s: is missing", field->name);
        return NULL;
    }
    json_t *normal = field->type == TCCL_RECORD_TEXT ? normal_text(field, value, err)
                                                     : normal_number(field, value, err);
    return normal ? normal : no_memory(err);
}

static double real_of(const json_t *record, const char *name)
{
    return json_number_value(json_object_get(record, name));
}

/* Works out what follows from other fields, where it isn't given. Returns 0, or -1 with err. */
static int complete(json_t *record, struct tccl_error *err)
{
    double baseline = real_of(record, "baseline_gbps");
    if (real_of(record, "ratio") == 0 && baseline > 0) {
        double ratio = real_of(record, "gbps") / baseline;
        json_object_set_new(record, "ratio", json_real(ratio < GBPS ? ratio : GBPS));
    }
    const char *nodes = json_string_value(json_object_get(record, "nodes"));
    const char *first = json_string_value(json_object_get(record, "first_node"));
    if (!*nodes || (*first && real_of(record, "n_nodes") > 0))
        return 0;
    __attribute__((cleanup(tccl_hosts_clear))) struct tccl_hosts hosts = {0};
    if (tccl_hosts_expand(nodes, TCCL_RECORD_NODES, &hosts, err) != 0)
        return tccl_fail_in(err, "nodes");
    if (!*first)
        json_object_set_new(record, "first_node", json_string(hosts.names[0]));
    if (real_of(record, "n_nodes") == 0)
        json_object_set_new(record, "n_nodes", json_integer((json_int_t)hosts.count));
    return 0;
}

json_t *tccl_record_normal(const json_t *record, struct tccl_error *err)
{
    struct tccl_error own = {0};
    cleanup_json json_t *normal = json_object();
    if (!normal)
        return no_memory(err);
    if (!json_is_object(record)) {
        tccl_fail(err, "a record must be an object");
        return NULL;
    }
    for (int i = 0; i < TCCL_RECORD_FIELDS; i++) {
        const struct tccl_record_field *field = &tccl_record_fields[i];
        json_t *value = normal_field(field, record, &own);
        if (!value || json_object_set_new(normal, field->name, value) != 0) {
            tccl_fail(err, "record: %s", own.text);
            return NULL;
        }
    }
    if (complete(normal, &own) == 0)
        return tccl_steal(normal);
    tccl_fail(err, "record: %s", own.text);
    return NULL;
}

static const char *const built_names[] = {
    [TCCL_BUILT_NOTHING] = "",        [TCCL_BUILT_NOT_USED] = "not used",
    [TCCL_BUILT_UNKNOWN] = "unknown", [TCCL_BUILT_APPLIED] = "applied",
    [TCCL_BUILT_DIFFERS] = "differs",
};

int tccl_built_rank(const char *name)
{
    for (int i = 0; i <= TCCL_BUILT_DIFFERS; i++)
        if (strcmp(name, built_names[i]) == 0)
            return i;
    return -1;
}

const char *tccl_built_name(int rank)
{
    return built_names[rank];
}

bool tccl_record_confirms(const json_t *record)
{
    return json_object_get(record, "built") && !json_object_get(record, "state");
}

json_t *tccl_confirmation_normal(const json_t *record, struct tccl_error *err)
{
    struct tccl_error own = {0};
    cleanup_json json_t *normal = json_object();
    for (int i = 0; i < TCCL_RECORD_FIELDS; i++) {
        const struct tccl_record_field *field = &tccl_record_fields[i];
        if (i >= TCCL_RECORD_KEY_FIELDS && i < TCCL_RECORD_OWN && strcmp(field->name, "start") != 0)
            continue;
        json_t *value = normal_field(field, record, &own);
        if (!value || json_object_set_new(normal, field->name, value) != 0) {
            tccl_fail(err, "confirmation: %s", own.text);
            return NULL;
        }
    }
    if (tccl_built_rank(json_string_value(json_object_get(normal, "built"))) > 0)
        return tccl_steal(normal);
    tccl_fail(err, "confirmation: built: not one of the words for it");
    return NULL;
}

int tccl_record_key(const json_t *record, char key[static TCCL_RECORD_KEY], struct tccl_error *err)
{
    size_t used = 0;
    for (int i = 0; i < TCCL_RECORD_KEY_FIELDS; i++) {
        struct tccl_error own = {0};
        cleanup_json json_t *value = normal_field(&tccl_record_fields[i], record, &own);
        if (!value)
            return tccl_fail(err, "record: %s", own.text);
        int length = i == 0 ? snprintf(key, TCCL_RECORD_KEY, "%s", json_string_value(value))
                            : snprintf(key + used, TCCL_RECORD_KEY - used, "/%" JSON_INTEGER_FORMAT,
                                       json_integer_value(value));
        used += (size_t)length;
    }
    return 0;
}
