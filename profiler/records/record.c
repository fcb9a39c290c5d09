/* record.c: checks records from outside and brings them into their stored form. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fields.h"
#include "client/hostlist.h"
#include "client/key.h"
#include "records/record.h"

#define RATIO 1000000000 /* the largest */

/* Cuts a UTF-8 text to max bytes at a character and marks the cut. */
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

/* Cuts a node list after the last name or bracket that fits. */
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
    return tccl_fail_null(err, "out of memory for a record");
}

/* An array of node names as hostlist text. */
static json_t *fold_nodes(const json_t *array, struct tccl_error *err)
{
    size_t count = json_array_size(array);
    cleanup_free const char **names =
        count < TCCL_MAX_NODE_LIST ? calloc(count + 1, sizeof(*names)) : NULL;
    if (!names)
        return no_memory(err);
    for (size_t i = 0; i < count; i++) {
        names[i] = json_string_value(json_array_get(array, i));
        if (!names[i] || !tccl_host_valid(names[i]))
            return tccl_fail_null(err, "nodes: entry %zu is not the name of a node", i);
    }
    cleanup_free char *text = tccl_hosts_fold(names, count);
    return text ? cut_nodes(text, TCCL_MAX_NODE_LIST) : no_memory(err);
}

static json_t *normal_text(const struct tccl_field *field, const json_t *value,
                           struct tccl_error *err)
{
    bool nodes = field->type == TCCL_FIELD_NODES;
    if (nodes && json_is_array(value))
        return fold_nodes(value, err);
    const char *text = value ? json_string_value(value) : "";
    if (!text)
        return tccl_fail_null(err, "%s: must be a text", field->name);
    if ((long long)strlen(text) < field->min)
        return tccl_fail_null(err, "%s: is empty", field->name);
    return nodes ? cut_nodes(text, (size_t)field->max) : cut_text(text, (size_t)field->max);
}

static json_t *normal_number(const struct tccl_field *field, const json_t *value, bool must,
                             struct tccl_error *err)
{
    bool whole = field->type != TCCL_FIELD_REAL;
    if (value && !(whole ? json_is_integer(value) : json_is_number(value)))
        return tccl_fail_null(err, "%s: must be a %snumber", field->name, whole ? "whole " : "");
    double real = json_number_value(value);
    if (!(real >= (double)field->min && real <= (double)field->max) && (value || must))
        return tccl_fail_null(err, "%s: must be from %lld to %lld", field->name, field->min,
                              field->max);
    return whole ? json_integer(json_integer_value(value)) : json_real(real);
}

/* The value of one field in its stored form. A new reference, or NULL with err. */
static json_t *normal_field(const struct tccl_field *field, const json_t *record,
                            struct tccl_error *err)
{
    const json_t *value = json_object_get(record, field->name);
    if (json_is_null(value))
        value = NULL;
    bool must = field->use & TCCL_MUST_RECORD;
    if (!value && must)
        return tccl_fail_null(err, "%s: is missing", field->name);
    json_t *normal = tccl_field_is_text(field) ? normal_text(field, value, err)
                                               : normal_number(field, value, must, err);
    return normal ? normal : no_memory(err);
}

/* Derives absent fields from others. Returns 0, or -1 with err. */
static int complete(json_t *record, struct tccl_error *err)
{
    double baseline = tccl_real_of(record, "baseline_gbps");
    if (tccl_real_of(record, "ratio") == 0 && baseline > 0) {
        double ratio = tccl_real_of(record, "gbps") / baseline;
        json_object_set_new(record, "ratio", json_real(ratio < RATIO ? ratio : RATIO));
    }
    const char *nodes = json_string_value(json_object_get(record, "nodes"));
    const char *first = json_string_value(json_object_get(record, "first_node"));
    if (!*nodes || (*first && tccl_real_of(record, "n_nodes") > 0))
        return 0;
    __attribute__((cleanup(tccl_hosts_clear))) struct tccl_hosts hosts = {0};
    if (tccl_hosts_expand(nodes, TCCL_MAX_NODE_LIST, &hosts, err) != 0)
        return tccl_fail_in(err, "nodes");
    if (!*first)
        json_object_set_new(record, "first_node", json_string(hosts.names[0]));
    if (tccl_real_of(record, "n_nodes") == 0)
        json_object_set_new(record, "n_nodes", json_integer((json_int_t)hosts.count));
    return 0;
}

/* All fields used there, in their stored form. A new reference, or NULL with err. */
static json_t *normal_fields(const json_t *record, unsigned use, struct tccl_error *err)
{
    cleanup_json json_t *normal = json_object();
    for (int i = 0; i < tccl_n_step_fields; i++) {
        const struct tccl_field *field = &tccl_step_fields[i];
        if (!(field->use & use))
            continue;
        json_t *value = normal_field(field, record, err);
        if (!value || json_object_set_new(normal, field->name, value) != 0)
            return value ? no_memory(err) : NULL;
    }
    return tccl_steal(normal);
}

json_t *tccl_record_normal(const json_t *record, struct tccl_error *err)
{
    struct tccl_error own = {0};
    if (!json_is_object(record))
        return tccl_fail_null(err, "a record must be an object");
    cleanup_json json_t *normal =
        normal_fields(record, TCCL_IN_RECORD | TCCL_IN_CONFIRMATION, &own);
    if (normal && complete(normal, &own) == 0)
        return tccl_steal(normal);
    return tccl_fail_null(err, "record: %s", own.text);
}

bool tccl_record_confirms(const json_t *record)
{
    return json_object_get(record, "built") && !json_object_get(record, "state");
}

json_t *tccl_confirmation_normal(const json_t *record, struct tccl_error *err)
{
    struct tccl_error own = {0};
    cleanup_json json_t *normal = normal_fields(record, TCCL_IN_CONFIRMATION, &own);
    if (normal && tccl_built_rank(json_string_value(json_object_get(normal, "built"))) > 0)
        return tccl_steal(normal);
    return tccl_fail_null(err, "confirmation: %s", normal ? "built: unknown word" : own.text);
}

double tccl_achieved_share(double achieved, const char *with, const char *built, double gbps,
                           double nccl_gbps, double baseline_gbps)
{
    double foretold = 0;
    if (strcmp(with, "rings") == 0)
        foretold = tccl_built_rank(built) == TCCL_BUILT_YES ? gbps : 0;
    else if (strcmp(with, "own") == 0)
        foretold = nccl_gbps > 0 ? nccl_gbps : baseline_gbps;
    double share = foretold > 0 ? achieved / foretold : 0;
    return share > 0 && share <= TCCL_SHARE_MOST ? share : 0;
}

int tccl_record_key(const json_t *record, char key[static TCCL_RECORD_KEY], struct tccl_error *err)
{
    struct tccl_error own = {0};
    cleanup_json json_t *normal = normal_fields(record, TCCL_IN_KEY, &own);
    const char *name;
    json_t *value;
    size_t used = 0;
    if (!normal)
        return tccl_fail(err, "record: %s", own.text);
    json_object_foreach(normal, name, value)
    {
        const char *slash = used ? "/" : "";
        int length = json_is_string(value)
                         ? snprintf(key + used, TCCL_RECORD_KEY - used, "%s%s", slash,
                                    json_string_value(value))
                         : snprintf(key + used, TCCL_RECORD_KEY - used, "%s%" JSON_INTEGER_FORMAT,
                                    slash, json_integer_value(value));
        used += (size_t)length;
    }
    return 0;
}
