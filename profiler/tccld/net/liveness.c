/* Steps with a plan on this node, and how often each was asked about within the last second. */
#include "tccld/net/liveness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "client/key.h"
#include "client/step-fields.h"
#include "tccld/join/chain-lines.h"
#include "tccld/join/planfile.h"
#include "tccld/main/run-dir.h"

struct known {
    TAILQ_ENTRY(known) link;
    struct alive alive;
    int64_t second; /* in which it was asked about last */
    int questions;  /* in that second */
};

struct alives {
    TAILQ_HEAD(, known) list; /* the oldest first */
    int count;
};

struct alives *alives_new(void)
{
    struct alives *alives = calloc(1, sizeof(*alives));
    if (alives)
        TAILQ_INIT(&alives->list);
    return alives;
}

static void drop(struct alives *alives, struct known *known)
{
    TAILQ_REMOVE(&alives->list, known, link);
    alives->count--;
    free(known);
}

void alives_free(struct alives *alives)
{
    while (alives && !TAILQ_EMPTY(&alives->list))
        drop(alives, TAILQ_FIRST(&alives->list));
    free(alives);
}

/* The lines "baseline", as far as they are understood. */
static void read_baselines(const struct tccl_lines *plan, struct alive *alive)
{
    char text[256];
    const char *at = NULL;
    while (alive->n_baselines < TCCL_OUTCOME_BASELINES &&
           tccl_line_next(plan, "baseline", &at, text, sizeof(text)) >= 0) {
        struct tccl_outcome_baseline *baseline = &alive->baselines[alive->n_baselines];
        char use[8];
        if (sscanf(text, "%9d %7s %lf", &baseline->first, use, &baseline->gbps) != 3 ||
            !(baseline->gbps >= 0 && baseline->gbps <= 1e9))
            return;
        baseline->better = strcmp(use, "own") == 0;
        alive->n_baselines++;
    }
}

/* A plan as this version of tccld writes it. Returns 0 or -1. */
static int read_plan(const struct tccl_lines *plan, const struct tccl_step_key *key,
                     struct alive *alive)
{
    struct tccl_step_key theirs;
    int64_t uid, index, n_nodes;
    if (tccl_key_from_lines(plan, &theirs, NULL) != 0 || !tccl_key_equal(&theirs, key) ||
        tccl_line_integer(plan, "uid", 0, UINT32_MAX, &uid) != 0 ||
        tccl_line_integer(plan, "n_nodes", 1, TCCL_MAX_NODES, &n_nodes) != 0 ||
        tccl_line_integer(plan, "index", 0, n_nodes - 1, &index) != 0 ||
        tccl_line_integer(plan, "start", 0, INT64_MAX, &alive->start) != 0 ||
        (index > 0 && tccl_line_text(plan, "parent", alive->parent, sizeof(alive->parent)) <= 0))
        return -1;
    tccl_line_text(plan, "node_names", alive->nodes, sizeof(alive->nodes));
    alive->key = *key;
    alive->uid = (uid_t)uid;
    alive->index = (int)index;
    alive->n_nodes = (int)n_nodes;
    alive->n_gpus = chain_lines_get_gpus(plan, alive->gpus);
    if (tccl_line_bool(plan, "hidden", &alive->hidden) != 0)
        alive->hidden = false;
    if (tccl_line_bool(plan, "ring", &alive->ring) != 0)
        alive->ring = true;
    read_baselines(plan, alive);
    return alive->n_gpus > 0 ? 0 : -1;
}

/* A plan that an earlier tccld has written. */
struct reading {
    char run_dir[PATH_MAX];
    struct tccl_step_key key;
    struct alive alive;
    int rc;
};

static void load_plan(void *task)
{
    struct reading *reading = task;
    char text[TCCL_LINES_SIZE];
    struct tccl_lines plan;
    reading->rc = planfile_read(reading->run_dir, &reading->key, text, &plan);
    if (reading->rc == 0)
        reading->rc = read_plan(&plan, &reading->key, &reading->alive);
}

static struct known *load(struct daemon *daemon, const struct tccl_step_key *key)
{
    struct alives *alives = daemon->alives;
    cleanup_free struct known *known = calloc(1, sizeof(*known));
    cleanup_free struct reading *reading = calloc(1, sizeof(*reading));
    if (!known || !reading)
        return NULL;
    strcpy(reading->run_dir, daemon->conf->run_dir);
    reading->key = *key;
    if (run_dir_do(daemon->run_dir, load_plan, NULL, reading, sizeof(*reading), NULL) != 0 ||
        reading->rc != 0)
        return NULL;
    known->alive = reading->alive;
    if (alives->count == ALIVE_MOST)
        drop(alives, TAILQ_FIRST(&alives->list));
    TAILQ_INSERT_TAIL(&alives->list, known, link);
    alives->count++;
    return tccl_steal(known);
}

static struct known *find(const struct alives *alives, const struct tccl_step_key *key)
{
    struct known *known;
    TAILQ_FOREACH(known, &alives->list, link)
    if (tccl_key_equal(&known->alive.key, key))
        return known;
    return NULL;
}

static struct known *find_or_load(struct daemon *daemon, const struct tccl_step_key *key)
{
    struct known *known = find(daemon->alives, key);
    return known ? known : load(daemon, key);
}

struct alive *alives_find(struct daemon *daemon, const struct tccl_step_key *key)
{
    struct known *known = find_or_load(daemon, key);
    return known ? &known->alive : NULL;
}

void alives_forget(struct daemon *daemon, const struct tccl_step_key *key)
{
    struct known *known = find(daemon->alives, key);
    if (known)
        drop(daemon->alives, known);
}

static bool too_often(struct known *known)
{
    int64_t second = tccl_now_ms() / 1000;
    if (known->second != second)
        known->questions = 0;
    known->second = second;
    return ++known->questions > ALIVE_QUESTIONS;
}

struct alive *alives_asked(struct daemon *daemon, const struct connection *connection,
                           const struct tccl_lines *question, struct tccl_error *err)
{
    struct tccl_step_key key;
    uid_t uid = connection_uid(connection);
    if (tccl_key_from_lines(question, &key, err) != 0)
        return NULL;
    struct known *known = find_or_load(daemon, &key);
    if (!known || (known->alive.uid != uid && !daemon_trusts(daemon, uid))) {
        char text[TCCL_KEY_TEXT];
        tccl_key_format(&key, text);
        tccl_fail(err, "uid %u has no step %s with a plan on this node", uid, text);
        return NULL;
    }
    if (too_often(known)) {
        tccl_fail(err, "more than %d questions about this step within a second", ALIVE_QUESTIONS);
        return NULL;
    }
    return &known->alive;
}
