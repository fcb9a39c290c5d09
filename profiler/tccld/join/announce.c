#include "tccld/join/announce.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "client/hostlist.h"
#include "client/message.h"

enum { DIGEST = 17, DIGEST_LINK = DIGEST + TCCL_HOST_NAME + 1 };

struct announce {
    TAILQ_ENTRY(announce) link;
    struct tccl_step_key key;
    uid_t uid;
    int node, n_nodes;
    char digest[DIGEST]; /* of the node names */
    int gres[TCCL_MAX_GRES], n_gres;
    char *text; /* the message: names of many nodes take far more room as objects */
};

struct announces {
    TAILQ_HEAD(, announce) list; /* the oldest first */
    int count;
};

/* What the JOINs of all nodes of a step have in common. */
static const char *const common[] = {
    "mode", "min_nodes", "min_gpus", "min_gain", "policy",       "uid",           "gid",
    "user", "partition", "job_name", "account",  "array_job_id", "array_task_id",
};

struct announces *announces_new(void)
{
    struct announces *announces = calloc(1, sizeof(*announces));
    if (announces)
        TAILQ_INIT(&announces->list);
    return announces;
}

static void forget(struct announces *announces, struct announce *announce)
{
    TAILQ_REMOVE(&announces->list, announce, link);
    announces->count--;
    free(announce->text);
    free(announce);
}

void announces_free(struct announces *announces)
{
    while (announces && !TAILQ_EMPTY(&announces->list))
        forget(announces, TAILQ_FIRST(&announces->list));
    free(announces);
}

static struct announce *find(const struct announces *announces, const struct tccl_step_key *key)
{
    struct announce *announce;
    TAILQ_FOREACH(announce, &announces->list, link)
    if (announce->key.job == key->job && strcmp(announce->key.cluster, key->cluster) == 0)
        return announce;
    return NULL;
}

void announces_end(struct announces *announces, const struct tccl_step_key *key)
{
    struct announce *announce = find(announces, key);
    if (announce)
        forget(announces, announce);
}

static void digest_nodes(const struct tccl_join *join, char digest[static DIGEST])
{
    uint64_t hash = 0;
    for (int i = 0; i < join->n_nodes; i++) {
        char link[DIGEST_LINK];
        int size =
            snprintf(link, sizeof(link), "%016llx %s", (unsigned long long)hash, join->nodes[i]);
        hash = tccl_hash64(link, (size_t)size);
    }
    snprintf(digest, DIGEST, "%016llx", (unsigned long long)hash);
}

/* NULL with err. */
static struct announce *read_announce(json_t *message, struct tccl_error *err)
{
    struct tccl_join_message *read = tccl_join_from_json(message, err);
    struct announce *announce = read ? calloc(1, sizeof(*announce)) : NULL;
    if (announce) {
        const struct tccl_join *join = &read->join;
        announce->key = join->key;
        announce->uid = join->uid;
        announce->node = join->node;
        announce->n_nodes = join->n_nodes;
        announce->n_gres = join->n_gres;
        memcpy(announce->gres, join->gres, (size_t)join->n_gres * sizeof(*join->gres));
        digest_nodes(join, announce->digest);
        announce->text = tccl_message_text(message);
    }
    tccl_join_free(read);
    if (announce && announce->text)
        return announce;
    free(announce);
    tccl_fail(err, "out of memory");
    return NULL;
}

int announces_put(struct announces *announces, json_t *message, struct tccl_step_key *key,
                  struct tccl_error *err)
{
    struct announce *announce = read_announce(message, err);
    if (!announce)
        return -1;
    *key = announce->key;
    announces_end(announces, key);
    if (announces->count == ANNOUNCES_MOST)
        forget(announces, TAILQ_FIRST(&announces->list));
    TAILQ_INSERT_TAIL(&announces->list, announce, link);
    announces->count++;
    return 0;
}

static bool same_gpus(const int *a, int n_a, const int *b, int n_b)
{
    return n_a == n_b && memcmp(a, b, (size_t)n_a * sizeof(*a)) == 0;
}

json_t *announces_terms(const struct announces *announces, const struct tccl_join_message *message)
{
    const struct tccl_join *join = &message->join;
    const struct announce *announce = find(announces, &join->key);
    char digest[DIGEST];
    if (!announce || join->reason || announce->uid != join->uid || announce->node != join->node ||
        announce->n_nodes != join->n_nodes ||
        !same_gpus(announce->gres, announce->n_gres, join->gres, join->n_gres))
        return NULL;
    digest_nodes(join, digest);
    if (strcmp(digest, announce->digest) != 0)
        return NULL;
    cleanup_json json_t *terms = json_object();
    for (size_t i = 0; i < sizeof(common) / sizeof(*common); i++) {
        json_t *member = json_object_get(message->json, common[i]);
        if (member && json_object_set(terms, common[i], member) != 0)
            return NULL;
    }
    if (json_object_set_new(terms, "nodes", json_string(digest)) != 0)
        return NULL;
    return tccl_steal(terms);
}

/* The announcement with what the step's terms say in its place. NULL without memory. */
static json_t *adopt(const struct announce *announce, const struct tccl_step_key *key,
                     int timeout_ms, const json_t *terms)
{
    cleanup_json json_t *message = tccl_message_parse(announce->text, strlen(announce->text), NULL);
    if (!message || json_object_set_new(message, "key", tccl_key_to_json(key)) != 0 ||
        json_object_set_new(message, "timeout_ms", json_integer(timeout_ms)) != 0)
        return NULL;
    for (size_t i = 0; i < sizeof(common) / sizeof(*common); i++) {
        json_t *member = json_object_get(terms, common[i]);
        if (member && json_object_set(message, common[i], member) != 0)
            return NULL;
    }
    return tccl_steal(message);
}

struct tccl_join_message *announces_join(const struct announces *announces,
                                         const struct tccl_step_key *key, int node, int n_nodes,
                                         int timeout_ms, const json_t *terms)
{
    const struct announce *announce = find(announces, key);
    const char *digest = json_string_value(json_object_get(terms, "nodes"));
    const json_t *uid = json_object_get(terms, "uid");
    if (!announce || !digest || strcmp(digest, announce->digest) != 0 || announce->node != node ||
        announce->n_nodes != n_nodes || !json_is_integer(uid) ||
        json_integer_value(uid) != (json_int_t)announce->uid)
        return NULL;
    cleanup_json json_t *message = adopt(announce, key, timeout_ms, terms);
    return message ? tccl_join_from_json(message, NULL) : NULL;
}

const char *announce_differs(const struct tccl_join *announced, const struct tccl_join *join)
{
    if (join->reason)
        return join->reason;
    if (join->uid != announced->uid || join->node != announced->node ||
        join->n_nodes != announced->n_nodes)
        return "the step is not the one that the job's prolog announced";
    for (int i = 0; i < join->n_nodes; i++)
        if (strcmp(join->nodes[i], announced->nodes[i]) != 0)
            return "the step has other nodes than the job's prolog announced";
    if (!same_gpus(announced->gres, announced->n_gres, join->gres, join->n_gres))
        return "the step has other GPUs here than the job's prolog announced";
    return NULL;
}
