/* step-fields.c: the message JOIN. */
#include "client/step-fields.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "client/hostlist.h"
#include "client/message.h"

static json_t *names_to_json(const char *const *names, int count)
{
    cleanup_json json_t *array = json_array();
    for (int i = 0; i < count; i++)
        if (json_array_append_new(array, json_string(names[i])) != 0)
            return NULL;
    return tccl_steal(array);
}

static json_t *numbers_to_json(const int *numbers, int count)
{
    cleanup_json json_t *array = json_array();
    for (int i = 0; i < count; i++)
        if (json_array_append_new(array, json_integer(numbers[i])) != 0)
            return NULL;
    return tccl_steal(array);
}

static int put_join_texts(json_t *json, const struct tccl_join *join)
{
    return tccl_put_text(json, "user", join->user, 255) ||
                   tccl_put_text(json, "partition", join->partition, 255) ||
                   tccl_put_text(json, "job_name", join->job_name, 255) ||
                   tccl_put_text(json, "account", join->account, 255) ||
                   tccl_put_text(json, "policy", join->policy, TCCL_POLICY_NAME) ||
                   tccl_put_text(json, "reason", join->reason, 511) ||
                   (join->min_gain > 1 &&
                    json_object_set_new(json, "min_gain", json_real(join->min_gain)) != 0)
               ? -1
               : 0;
}

/* As the record has them; of jobs that are no array's, nothing. */
static int put_join_array(json_t *json, const struct tccl_join *join)
{
    return join->array_job &&
                   (json_object_set_new(json, "array_job_id", json_integer(join->array_job)) ||
                    json_object_set_new(json, "array_task_id", json_integer(join->array_task)))
               ? -1
               : 0;
}

json_t *tccl_join_to_json(const struct tccl_join *join, struct tccl_error *err)
{
    cleanup_json json_t *json = tccl_message_new("join");
    if (join->n_gres > TCCL_MAX_GRES || join->n_nodes > TCCL_MAX_NODES) {
        tccl_fail(err, "%d nodes with %d GPUs: at most %d nodes and %d GPUs a node are supported",
                  join->n_nodes, join->n_gres, TCCL_MAX_NODES, TCCL_MAX_GRES);
        return NULL;
    }
    json_t *rest =
        json_pack("{s:o,s:i,s:o,s:o,s:s,s:I,s:I,s:i,s:i,s:i}", "key", tccl_key_to_json(&join->key),
                  "node", join->node, "nodes", names_to_json(join->nodes, join->n_nodes), "gres",
                  numbers_to_json(join->gres, join->n_gres), "mode", tccl_mode_name(join->mode),
                  "uid", (json_int_t)join->uid, "gid", (json_int_t)join->gid, "timeout_ms",
                  join->timeout_ms, "min_nodes", join->min_nodes, "min_gpus", join->min_gpus);
    int failed = json_object_update(json, rest);
    json_decref(rest);
    if (failed || put_join_texts(json, join) != 0 || put_join_array(json, join) != 0) {
        tccl_fail(err, "JOIN can't be written: a node name is not UTF-8, or out of memory");
        return NULL;
    }
    return tccl_steal(json);
}

static int read_join_nodes(struct tccl_join_message *message, struct tccl_error *err)
{
    const json_t *nodes = json_object_get(message->json, "nodes");
    size_t count = json_array_size(nodes);
    if (count == 0 || count > TCCL_MAX_NODES)
        return tccl_fail(err, "nodes: a list of 1 to %d names is expected", TCCL_MAX_NODES);
    message->nodes = calloc(count, sizeof(*message->nodes));
    if (!message->nodes)
        return tccl_fail(err, "out of memory");
    for (size_t i = 0; i < count; i++) {
        message->nodes[i] = json_string_value(json_array_get(nodes, i));
        if (!message->nodes[i] || !tccl_host_valid(message->nodes[i]))
            return tccl_fail(err, "nodes: entry %zu is not a node name", i);
    }
    message->join.nodes = message->nodes;
    message->join.n_nodes = (int)count;
    return 0;
}

static int read_join_gres(struct tccl_join_message *message, struct tccl_error *err)
{
    const json_t *gres = json_object_get(message->json, "gres");
    size_t count = json_array_size(gres);
    if (!json_is_array(gres) || count > TCCL_MAX_GRES)
        return tccl_fail(err, "gres: a list of at most %d numbers is expected", TCCL_MAX_GRES);
    for (size_t i = 0; i < count; i++) {
        const json_t *index = json_array_get(gres, i);
        json_int_t value = json_integer_value(index);
        if (!json_is_integer(index) || value < 0 || value > 4095)
            return tccl_fail(err, "gres: entry %zu is not a GPU index", i);
        message->gres[i] = (int)value;
    }
    message->join.gres = message->gres;
    message->join.n_gres = (int)count;
    return 0;
}

static int read_join_numbers(const json_t *json, struct tccl_join *join, struct tccl_error *err)
{
    json_int_t node, uid, gid, timeout, min_nodes, min_gpus;
    const char *mode;
    join->min_gain = 0;
    if (tccl_get_int(json, "node", 0, join->n_nodes - 1, &node, err) != 0 ||
        tccl_get_int(json, "uid", 0, UINT32_MAX, &uid, err) != 0 ||
        tccl_get_int(json, "gid", 0, UINT32_MAX, &gid, err) != 0 ||
        tccl_get_int(json, "timeout_ms", 1, TCCL_MAX_TIMEOUT_MS, &timeout, err) != 0 ||
        tccl_get_int(json, "min_nodes", 0, INT32_MAX, &min_nodes, err) != 0 ||
        tccl_get_int(json, "min_gpus", 0, INT32_MAX, &min_gpus, err) != 0 ||
        (json_object_get(json, "min_gain") &&
         tccl_get_number(json, "min_gain", &join->min_gain, err) != 0) ||
        tccl_get_text(json, "mode", 16, &mode, err) != 0)
        return -1;
    int parsed = tccl_mode_parse(mode, err);
    if (parsed < 0)
        return -1;
    join->node = (int)node;
    join->uid = (uid_t)uid;
    join->gid = (gid_t)gid;
    join->timeout_ms = (int)timeout;
    join->min_nodes = (int)min_nodes;
    join->min_gpus = (int)min_gpus;
    join->mode = (enum tccl_mode)parsed;
    return 0;
}

static int read_join_array(const json_t *json, struct tccl_join *join, struct tccl_error *err)
{
    json_int_t job = 0, task = 0;
    if ((json_object_get(json, "array_job_id") &&
         tccl_get_int(json, "array_job_id", 0, UINT32_MAX, &job, err) != 0) ||
        (json_object_get(json, "array_task_id") &&
         tccl_get_int(json, "array_task_id", 0, UINT32_MAX, &task, err) != 0))
        return -1;
    join->array_job = (uint32_t)job;
    join->array_task = (uint32_t)task;
    return 0;
}

static int read_join(struct tccl_join_message *message, struct tccl_error *err)
{
    const json_t *json = message->json;
    struct tccl_join *join = &message->join;
    if (tccl_key_from_json(json_object_get(json, "key"), &join->key, err) != 0 ||
        read_join_nodes(message, err) != 0 || read_join_gres(message, err) != 0 ||
        read_join_numbers(json, join, err) != 0 || read_join_array(json, join, err) != 0 ||
        tccl_get_optional_text(json, "user", 255, &join->user, err) != 0 ||
        tccl_get_optional_text(json, "partition", 255, &join->partition, err) != 0 ||
        tccl_get_optional_text(json, "job_name", 255, &join->job_name, err) != 0 ||
        tccl_get_optional_text(json, "account", 255, &join->account, err) != 0 ||
        tccl_get_optional_text(json, "policy", TCCL_POLICY_NAME, &join->policy, err) != 0 ||
        tccl_get_optional_text(json, "reason", 511, &join->reason, err) != 0)
        return tccl_fail_in(err, "JOIN");
    return 0;
}

struct tccl_join_message *tccl_join_from_json(json_t *json, struct tccl_error *err)
{
    struct tccl_join_message *message = calloc(1, sizeof(*message));
    if (!message) {
        tccl_fail(err, "out of memory");
        return NULL;
    }
    message->json = json_incref(json);
    if (read_join(message, err) != 0) {
        tccl_join_free(message);
        return NULL;
    }
    return message;
}

void tccl_join_free(struct tccl_join_message *message)
{
    if (!message)
        return;
    json_decref(message->json);
    free(message->nodes);
    free(message);
}
