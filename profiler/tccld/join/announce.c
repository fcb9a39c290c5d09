/* Announcements of jobs, the last ANNOUNCES_MOST of them. The names of a job's nodes are compared
 * by a hash, since MERGE and CALL carry it along. */
#include "tccld/join/announce.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "client/hostlist.h"
#include "client/step-json.h"

enum { DIGEST = 17, DIGEST_LINK = DIGEST + TCCL_HOST_NAME + 1 };

struct announce {
    TAILQ_ENTRY(announce) link;
    struct tccl_step *step;
    char digest[DIGEST]; /* of the node names */
};

struct announces {
    TAILQ_HEAD(, announce) list; /* the oldest first */
    int count;
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
    tccl_step_free(announce->step);
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
    if (announce->step->key.job == key->job &&
        strcmp(announce->step->key.cluster, key->cluster) == 0)
        return announce;
    return NULL;
}

void announces_end(struct announces *announces, const struct tccl_step_key *key)
{
    struct announce *announce = find(announces, key);
    if (announce)
        forget(announces, announce);
}

static void digest_nodes(const struct tccl_step *join, char digest[static DIGEST])
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
static struct announce *read_announce(const json_t *message, struct tccl_error *err)
{
    struct tccl_step *step = tccl_join_from_json(message, err);
    struct announce *announce = step ? calloc(1, sizeof(*announce)) : NULL;
    if (announce) {
        announce->step = step;
        digest_nodes(step, announce->digest);
        return announce;
    }
    tccl_step_free(step);
    tccl_fail(err, "out of memory");
    return NULL;
}

int announces_put(struct announces *announces, const json_t *message, struct tccl_step_key *key,
                  struct tccl_error *err)
{
    struct announce *announce = read_announce(message, err);
    if (!announce)
        return -1;
    *key = announce->step->key;
    announces_end(announces, key);
    if (announces->count == ANNOUNCES_MOST)
        forget(announces, TAILQ_FIRST(&announces->list));
    TAILQ_INSERT_TAIL(&announces->list, announce, link);
    announces->count++;
    return 0;
}

static bool same_gpus(const struct tccl_step *a, const struct tccl_step *b)
{
    return a->n_gres == b->n_gres &&
           memcmp(a->gres, b->gres, (size_t)a->n_gres * sizeof(*a->gres)) == 0;
}

json_t *announces_terms(const struct announces *announces, const struct tccl_step *join)
{
    const struct announce *announce = find(announces, &join->key);
    char digest[DIGEST];
    if (!announce || join->reason[0] || announce->step->uid != join->uid ||
        announce->step->node != join->node || announce->step->n_nodes != join->n_nodes ||
        !same_gpus(announce->step, join))
        return NULL;
    digest_nodes(join, digest);
    if (strcmp(digest, announce->digest) != 0)
        return NULL;
    cleanup_json json_t *terms = json_object();
    if (tccl_fields_put(terms, TCCL_IN_TERMS, TCCL_OF_STEP, join) != 0 ||
        json_object_set_new(terms, "nodes", json_string(digest)) != 0)
        return NULL;
    return tccl_steal(terms);
}

/* The announcement with what the step's terms say in its place. NULL: they can't be read, or no
 * memory. */
static struct tccl_step *adopt(const struct announce *announce, const struct tccl_step_key *key,
                               int timeout_ms, const json_t *terms)
{
    struct tccl_step *step = tccl_step_copy(announce->step);
    if (!step || tccl_fields_get(terms, TCCL_IN_TERMS, TCCL_OF_STEP, step, NULL) != 0) {
        tccl_step_free(step);
        return NULL;
    }
    step->key = *key;
    step->timeout_ms = timeout_ms;
    return step;
}

struct tccl_step *announces_join(const struct announces *announces, const struct tccl_step_key *key,
                                 int node, int n_nodes, int timeout_ms, const json_t *terms)
{
    const struct announce *announce = find(announces, key);
    const char *digest = json_string_value(json_object_get(terms, "nodes"));
    const json_t *uid = json_object_get(terms, "uid");
    if (!announce || !digest || strcmp(digest, announce->digest) != 0 ||
        announce->step->node != node || announce->step->n_nodes != n_nodes ||
        !json_is_integer(uid) || json_integer_value(uid) != (json_int_t)announce->step->uid)
        return NULL;
    return adopt(announce, key, timeout_ms, terms);
}

/* Takes the fact in place of the claim, and says so where they differ. */
static void correct_text(char *claim, const char *fact, const char *what, struct tccl_step *join)
{
    if (!fact[0] || strcmp(claim, fact) == 0)
        return;
    if (claim[0] && !join->reason[0])
        snprintf(join->reason, sizeof(join->reason),
                 "the step's environment says %s %.80s, the job's is %.80s", what, claim, fact);
    snprintf(claim, TCCL_STEP_TEXT + 1, "%s", fact);
}

void announces_correct(const struct announces *announces, struct tccl_step *join)
{
    const struct announce *announce = find(announces, &join->key);
    const struct tccl_step *job = announce ? announce->step : NULL;
    if (!job || job->uid != join->uid)
        return;
    correct_text(join->partition, job->partition, "partition", join);
    correct_text(join->account, job->account, "account", join);
}

const char *announce_differs(const struct tccl_step *announced, const struct tccl_step *join)
{
    if (join->reason[0])
        return join->reason;
    if (join->uid != announced->uid || join->node != announced->node ||
        join->n_nodes != announced->n_nodes)
        return "the step is not the one that the job's prolog announced";
    for (int i = 0; i < join->n_nodes; i++)
        if (strcmp(join->nodes[i], announced->nodes[i]) != 0)
            return "the step has other nodes than the job's prolog announced";
    if (!same_gpus(announced, join))
        return "the step has other GPUs here than the job's prolog announced";
    return NULL;
}
