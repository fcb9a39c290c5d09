#include "client/wire.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/hash.h"
#include "client/hostlist.h"

/* Frames */

void tccl_frame_header(size_t size, unsigned char header[static TCCL_FRAME_HEADER])
{
    for (int i = 0; i < TCCL_FRAME_HEADER; i++)
        header[i] = (unsigned char)(size >> (8 * (TCCL_FRAME_HEADER - 1 - i)));
}

size_t tccl_frame_size(const unsigned char header[static TCCL_FRAME_HEADER])
{
    size_t size = 0;
    for (int i = 0; i < TCCL_FRAME_HEADER; i++)
        size = size << 8 | header[i];
    return size;
}

/* Waits until fd is ready for events. Returns 0; 1 when the time is over; -1 with err. */
static int wait_ready(int fd, short events, int64_t deadline, struct tccl_error *err)
{
    for (;;) {
        int64_t left = deadline - tccl_now_ms();
        if (left < 0)
            left = 0;
        struct pollfd pollfd = {.fd = fd, .events = events};
        int ready = poll(&pollfd, 1, left > INT32_MAX ? INT32_MAX : (int)left);
        if (ready > 0)
            return 0;
        if (ready == 0)
            return 1;
        if (errno != EINTR)
            return tccl_fail(err, "poll: %s", strerror(errno));
    }
}

static int write_all(int fd, const char *data, size_t size, int64_t deadline,
                     struct tccl_error *err)
{
    while (size > 0) {
        ssize_t done = send(fd, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (done >= 0) {
            data += done;
            size -= (size_t)done;
            continue;
        }
        if (errno != EINTR && errno != EAGAIN)
            return tccl_fail(err, "write: %s", strerror(errno));
        int late = wait_ready(fd, POLLOUT, deadline, err);
        if (late)
            return late;
    }
    return 0;
}

static int read_all(int fd, char *data, size_t size, int64_t deadline, struct tccl_error *err)
{
    while (size > 0) {
        ssize_t done = recv(fd, data, size, MSG_DONTWAIT);
        if (done == 0)
            return tccl_fail(err, "the connection was closed");
        if (done > 0) {
            data += done;
            size -= (size_t)done;
            continue;
        }
        if (errno != EINTR && errno != EAGAIN)
            return tccl_fail(err, "read: %s", strerror(errno));
        int late = wait_ready(fd, POLLIN, deadline, err);
        if (late)
            return late;
    }
    return 0;
}

int tccl_frame_write(int fd, const char *data, size_t size, size_t limit, int64_t deadline,
                     struct tccl_error *err)
{
    if (size == 0 || size > limit)
        return tccl_fail(err, "a message of %zu bytes is beyond the limit of %zu", size, limit);
    unsigned char header[TCCL_FRAME_HEADER];
    tccl_frame_header(size, header);
    int late = write_all(fd, (char *)header, sizeof(header), deadline, err);
    return late ? late : write_all(fd, data, size, deadline, err);
}

int tccl_frame_read(int fd, size_t limit, int64_t deadline, char **data, size_t *size,
                    struct tccl_error *err)
{
    unsigned char header[TCCL_FRAME_HEADER];
    int late = read_all(fd, (char *)header, sizeof(header), deadline, err);
    if (late)
        return late;
    *size = tccl_frame_size(header);
    if (*size == 0 || *size > limit)
        return tccl_fail(err, "a message of %zu bytes is beyond the limit of %zu", *size, limit);
    cleanup_free char *text = malloc(*size + 1);
    if (!text)
        return tccl_fail(err, "out of memory");
    late = read_all(fd, text, *size, deadline, err);
    if (late)
        return late;
    text[*size] = '\0';
    *data = tccl_steal(text);
    return 0;
}

/* Messages and their members */

json_t *tccl_message_parse(const char *data, size_t size, struct tccl_error *err)
{
    json_error_t where;
    cleanup_json json_t *message = json_loadb(data, size, JSON_REJECT_DUPLICATES, &where);
    json_int_t version;
    const char *type;
    if (!message) {
        tccl_fail(err, "not a message: byte %d: %s", where.position, where.text);
        return NULL;
    }
    if (!json_is_object(message)) {
        tccl_fail(err, "not a message: an object is expected");
        return NULL;
    }
    if (tccl_get_int(message, "v", 0, INT32_MAX, &version, err) != 0)
        return NULL;
    if (version != TCCL_WIRE_VERSION) {
        tccl_fail(err, "message of version %d, this is version %d: update the older side",
                  (int)version, TCCL_WIRE_VERSION);
        return NULL;
    }
    if (tccl_get_text(message, "type", 32, &type, err) != 0)
        return NULL;
    return tccl_steal(message);
}

char *tccl_message_text(const json_t *message)
{
    return json_dumps(message, JSON_COMPACT);
}

const char *tccl_message_type(const json_t *message)
{
    return json_string_value(json_object_get(message, "type"));
}

json_t *tccl_message_new(const char *type)
{
    return json_pack("{s:i,s:s}", "v", TCCL_WIRE_VERSION, "type", type);
}

int tccl_get_int(const json_t *object, const char *name, json_int_t min, json_int_t max,
                 json_int_t *value, struct tccl_error *err)
{
    const json_t *member = json_object_get(object, name);
    if (!json_is_integer(member))
        return tccl_fail(err, "%s: a whole number is expected", name);
    *value = json_integer_value(member);
    if (*value < min || *value > max)
        return tccl_fail(err, "%s: %lld is not within %lld to %lld", name, (long long)*value,
                         (long long)min, (long long)max);
    return 0;
}

int tccl_get_number(const json_t *object, const char *name, double *value, struct tccl_error *err)
{
    const json_t *member = json_object_get(object, name);
    *value = json_number_value(member);
    if (!json_is_number(member) || !isfinite(*value) || *value < 0)
        return tccl_fail(err, "%s: a number of at least 0 is expected", name);
    return 0;
}

int tccl_get_text(const json_t *object, const char *name, size_t max, const char **text,
                  struct tccl_error *err)
{
    if (!json_is_string(json_object_get(object, name)))
        return tccl_fail(err, "%s: a text is expected", name);
    return tccl_get_optional_text(object, name, max, text, err);
}

int tccl_get_optional_text(const json_t *object, const char *name, size_t max, const char **text,
                           struct tccl_error *err)
{
    const json_t *member = json_object_get(object, name);
    *text = NULL;
    if (!member || json_is_null(member))
        return 0;
    if (!json_is_string(member))
        return tccl_fail(err, "%s: a text is expected", name);
    if (json_string_length(member) > max)
        return tccl_fail(err, "%s: longer than %zu bytes", name, max);
    *text = json_string_value(member);
    return 0;
}

int tccl_put_text(json_t *object, const char *name, const char *text, size_t max)
{
    if (!text)
        return 0;
    size_t length = strnlen(text, max);
    while (length > 0 && (text[length] & 0xc0) == 0x80)
        length--; /* no half character at the cut */
    cleanup_free char *copy = strndup(text, length);
    if (!copy)
        return -1;
    json_t *value = json_string(copy);
    if (!value) {
        for (char *c = copy; *c; c++)
            if (*c & 0x80)
                *c = '?';
        value = json_string(copy);
    }
    return json_object_set_new(object, name, value);
}

/* Envelopes */

static int nonce_make(char nonce[static TCCL_NONCE], struct tccl_error *err)
{
    unsigned char bytes[(TCCL_NONCE - 1) / 2];
    if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
        return tccl_fail(err, "getrandom: %s", strerror(errno));
    for (size_t i = 0; i < sizeof(bytes); i++)
        snprintf(nonce + 2 * i, 3, "%02x", bytes[i]);
    return 0;
}

int tccl_envelope_put(json_t *message, struct tccl_envelope *envelope, struct tccl_error *err)
{
    if (nonce_make(envelope->nonce, err) != 0)
        return -1;
    if (json_object_set_new(message, "to", json_string(envelope->to)) != 0 ||
        json_object_set_new(message, "from", json_string(envelope->from)) != 0 ||
        json_object_set_new(message, "epoch", json_integer(envelope->epoch)) != 0 ||
        json_object_set_new(message, "nonce", json_string(envelope->nonce)) != 0)
        return tccl_fail(err, "out of memory");
    return 0;
}

int tccl_envelope_get(const json_t *message, struct tccl_envelope *envelope, struct tccl_error *err)
{
    const char *nonce;
    if (tccl_get_text(message, "to", TCCL_HOST_NAME, &envelope->to, err) != 0 ||
        tccl_get_text(message, "from", TCCL_HOST_NAME, &envelope->from, err) != 0 ||
        tccl_get_int(message, "epoch", 0, INT64_MAX, &envelope->epoch, err) != 0 ||
        tccl_get_text(message, "nonce", TCCL_NONCE - 1, &nonce, err) != 0)
        return -1;
    if (strlen(nonce) != TCCL_NONCE - 1)
        return tccl_fail(err, "nonce: %d hexadecimal digits are expected", TCCL_NONCE - 1);
    memcpy(envelope->nonce, nonce, TCCL_NONCE);
    return 0;
}

/* Keys */

json_t *tccl_key_to_json(const struct tccl_step_key *key)
{
    return json_pack("{s:s,s:I,s:I,s:I,s:I,s:I,s:I}", "cluster", key->cluster, "job",
                     (json_int_t)key->job, "het_job", (json_int_t)key->het_job, "het_offset",
                     (json_int_t)key->het_offset, "step", (json_int_t)key->step, "restart",
                     (json_int_t)key->restart, "run", (json_int_t)key->run);
}

static int get_u32(const json_t *object, const char *name, uint32_t *value, struct tccl_error *err)
{
    json_int_t number;
    if (tccl_get_int(object, name, 0, UINT32_MAX, &number, err) != 0)
        return -1;
    *value = (uint32_t)number;
    return 0;
}

int tccl_key_from_json(const json_t *json, struct tccl_step_key *key, struct tccl_error *err)
{
    const char *cluster;
    json_int_t run;
    memset(key, 0, sizeof(*key));
    if (tccl_get_text(json, "cluster", sizeof(key->cluster) - 1, &cluster, err) != 0 ||
        get_u32(json, "job", &key->job, err) != 0 ||
        get_u32(json, "het_job", &key->het_job, err) != 0 ||
        get_u32(json, "het_offset", &key->het_offset, err) != 0 ||
        get_u32(json, "step", &key->step, err) != 0 ||
        get_u32(json, "restart", &key->restart, err) != 0 ||
        tccl_get_int(json, "run", 0, TCCL_MAX_RUN, &run, err) != 0)
        return tccl_fail_in(err, "key");
    snprintf(key->cluster, sizeof(key->cluster), "%s", cluster);
    key->run = (uint64_t)run;
    return 0;
}

bool tccl_key_equal(const struct tccl_step_key *a, const struct tccl_step_key *b)
{
    return strcmp(a->cluster, b->cluster) == 0 && a->job == b->job && a->het_job == b->het_job &&
           a->het_offset == b->het_offset && a->step == b->step && a->restart == b->restart &&
           a->run == b->run;
}

/* Slurm's numbers for steps that have none (slurm.h, SLURM_BATCH_SCRIPT and its neighbours). */
static void step_format(uint32_t step, char *text, size_t size)
{
    switch (step) {
    case 0xfffffffb:
        snprintf(text, size, "batch");
        break;
    case 0xfffffffc:
        snprintf(text, size, "extern");
        break;
    case 0xfffffffa:
        snprintf(text, size, "interactive");
        break;
    default:
        snprintf(text, size, "%u", step);
    }
}

void tccl_key_format(const struct tccl_step_key *key, char text[static TCCL_KEY_TEXT])
{
    char step[16], offset[16] = "", restart[24] = "";
    step_format(key->step, step, sizeof(step));
    if (key->het_job)
        snprintf(offset, sizeof(offset), "+%u", key->het_offset);
    if (key->restart)
        snprintf(restart, sizeof(restart), " restart %u", key->restart);
    snprintf(text, TCCL_KEY_TEXT, "%.24s%s%u%s.%s%s", key->cluster, *key->cluster ? ":" : "",
             key->het_job ? key->het_job : key->job, offset, step, restart);
}

void tccl_key_folder(const struct tccl_step_key *key, char text[static TCCL_KEY_TEXT])
{
    char all[256];
    int size =
        snprintf(all, sizeof(all), "%s/%u/%u/%u/%u/%u/%llu", key->cluster, key->job, key->het_job,
                 key->het_offset, key->step, key->restart, (unsigned long long)key->run);
    snprintf(text, TCCL_KEY_TEXT, "%u.%u.%u-%016llx", key->job, key->step, key->restart,
             (unsigned long long)tccl_hash64(all, (size_t)size));
}

/* JOIN */

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

/* PLAN */

static const char *const state_names[] = {"off", "applied", "fallback", "nothing-to-do"};

const char *tccl_state_name(enum tccl_state state)
{
    return state_names[state];
}

int tccl_state_parse(const char *name, struct tccl_error *err)
{
    for (int i = 0; i < (int)(sizeof(state_names) / sizeof(*state_names)); i++)
        if (strcmp(name, state_names[i]) == 0)
            return i;
    return tccl_fail(err, "state: \"%.32s\" is unknown", name);
}

json_t *tccl_plan_to_json(const struct tccl_plan *plan)
{
    cleanup_json json_t *json = tccl_message_new("plan");
    if (json_object_set_new(json, "state", json_string(tccl_state_name(plan->state))) != 0 ||
        json_object_set_new(json, "gbps", json_real(plan->gbps)) != 0 ||
        json_object_set_new(json, "baseline_gbps", json_real(plan->baseline_gbps)) != 0 ||
        tccl_put_text(json, "reason", plan->reason, sizeof(plan->reason) - 1) != 0 ||
        tccl_put_text(json, "path", plan->path, sizeof(plan->path) - 1) != 0 ||
        tccl_put_text(json, "policy", plan->policy, TCCL_POLICY_NAME) != 0 ||
        tccl_put_text(json, "ring", plan->ring, TCCL_FRAME_UNIX / 2) != 0)
        return NULL;
    return tccl_steal(json);
}

int tccl_plan_from_json(const json_t *json, struct tccl_plan *plan, struct tccl_error *err)
{
    const char *state, *reason, *path, *policy, *ring;
    memset(plan, 0, sizeof(*plan));
    if (tccl_get_text(json, "state", 32, &state, err) != 0 ||
        tccl_get_text(json, "reason", sizeof(plan->reason) - 1, &reason, err) != 0 ||
        tccl_get_text(json, "path", sizeof(plan->path) - 1, &path, err) != 0 ||
        tccl_get_optional_text(json, "policy", TCCL_POLICY_NAME, &policy, err) != 0 ||
        tccl_get_optional_text(json, "ring", TCCL_FRAME_UNIX, &ring, err) != 0 ||
        tccl_get_number(json, "gbps", &plan->gbps, err) != 0 ||
        tccl_get_number(json, "baseline_gbps", &plan->baseline_gbps, err) != 0)
        return tccl_fail_in(err, "PLAN");
    int parsed = tccl_state_parse(state, err);
    if (parsed < 0)
        return tccl_fail_in(err, "PLAN");
    plan->state = (enum tccl_state)parsed;
    strcpy(plan->reason, reason);
    strcpy(plan->path, path);
    strcpy(plan->policy, policy ? policy : "");
    if (ring && !(plan->ring = strdup(ring)))
        return tccl_fail(err, "out of memory");
    return 0;
}

void tccl_plan_clear(struct tccl_plan *plan)
{
    free(plan->ring);
    memset(plan, 0, sizeof(*plan));
}
