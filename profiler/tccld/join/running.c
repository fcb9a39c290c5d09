/* running.c: the records of this node's steps. One comes by its JOIN, whatever its mode, and goes
 * by its LEAVE, or once its slurmstepd is seen to be gone (sweep.h). It is written down up to 100
 * ms late, but before its tasks hear of a plan, and as soon as they have said what was built. */
#include "tccld/join/running.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fields.h"
#include "client/message.h"
#include "client/step-fields.h"
#include "tccld/join/alongside.h"
#include "tccld/join/planfile.h"
#include "tccld/main/run-dir.h"

enum { SAVE_MS = 100, AGAIN_MS = 10000, LOOK_MS = 100 };

/* ---- written down ---- */

#define AT(member)                                                                                 \
    .at = offsetof(struct running_step, member), .size = sizeof(((struct running_step *)0)->member)

TCCL_IS_LIST(struct running_step, gpus);
TCCL_IS_LIST(struct running_step, baselines);
TCCL_IS_LIST(struct running_step, gres);

/* Those with use need not be there. */
static const struct tccl_field fields[] = {
    {.name = "key", TCCL_FIELD_KEY, AT(key)},
    {.name = "gpus", TCCL_FIELD_BUSES, .max = TCCL_MAX_GPUS, AT(gpus)},
    {.name = "baselines", TCCL_FIELD_BASELINES, .max = TCCL_OUTCOME_BASELINES, AT(baselines)},
    {.name = "said", TCCL_FIELD_JSON, .use = 1, AT(said)},
    {.name = "uid", TCCL_FIELD_INT, .max = UINT32_MAX, AT(uid)},
    {.name = "launch", TCCL_FIELD_INT, .max = TCCL_LAUNCH_BELOW, AT(launch)},
    {.name = "by_script", TCCL_FIELD_BOOL, AT(by_script)},
    {.name = "node", TCCL_FIELD_INT, .max = TCCL_MAX_NODES - 1, AT(node)},
    {.name = "n_nodes", TCCL_FIELD_INT, .min = 1, .max = TCCL_MAX_NODES, AT(n_nodes)},
    {.name = "nodes", TCCL_FIELD_LONG, .max = RUNNING_NODES - 1, AT(nodes)},
    {.name = "parent", TCCL_FIELD_LONG, .max = TCCL_HOST_NAME, AT(parent)},
    {.name = "hidden", TCCL_FIELD_BOOL, AT(hidden)},
    {.name = "gres", TCCL_FIELD_NUMBERS, .max = TCCL_MAX_GRES, AT(gres)},
    {.name = "stepd", TCCL_FIELD_TEXT, .max = STEPD_TEXT - 1, AT(stepd)},
    {.name = "plan", TCCL_FIELD_BOOL, AT(plan)},
    {.name = "ring", TCCL_FIELD_BOOL, AT(ring)},
    {.name = "measure", TCCL_FIELD_BOOL, .use = 1, AT(measure)},
    {.name = "subject", TCCL_FIELD_INT, .use = 1, .max = INT64_MAX, AT(subject)},
    {.name = "promised", TCCL_FIELD_REAL, .use = 1, .max = 1000000000, AT(promised)},
    {.name = "what", TCCL_FIELD_TEXT, .use = 1, .max = TCCL_OUTCOME_CLASS, AT(what)},
    {.name = "partial", TCCL_FIELD_BOOL, AT(partial)},
    {.name = "start", TCCL_FIELD_INT, .max = INT64_MAX, AT(start)},
    {.name = "rings", TCCL_FIELD_LONG, .use = 1, .max = TCCL_RINGS_TEXT - 1, AT(rings)},
    {.name = "gbps", TCCL_FIELD_REAL, .use = 1, .max = 1000000000, AT(gbps)},
    {.name = "alone_gbps", TCCL_FIELD_REAL, .max = 1000000000, AT(alone)},
    {.name = "built", TCCL_FIELD_INT, .max = TCCL_CHAIN_RINGS, AT(built)},
    {.name = "nccl", TCCL_FIELD_INT, .max = INT32_MAX, AT(nccl)},
    {.name = "order", TCCL_FIELD_INT, .use = 1, .max = INT64_MAX / 2, AT(order)},
    {.name = "later", TCCL_FIELD_BOOL, .use = 1, AT(later)},
};
enum { FIELDS = sizeof(fields) / sizeof(*fields) };

char *running_text(const struct running_step *step)
{
    cleanup_json json_t *json = json_object();
    for (int i = 0; i < FIELDS; i++)
        if (tccl_field_put(json, &fields[i], !fields[i].use, step) != 0)
            return NULL;
    return json_dumps(json, JSON_INDENT(1) | TCCL_JSON_DIGITS);
}

/* Members that are not known are of a later version. Returns 0, or -1. */
static int from_json(const json_t *json, struct running_step *step)
{
    size_t known = 0;
    for (int i = 0; i < FIELDS; i++) {
        known += json_object_get(json, fields[i].name) != NULL;
        if (tccl_field_get(json, &fields[i], !fields[i].use, step, NULL) != 0)
            return -1;
    }
    if (known != json_object_size(json) || step->node >= step->n_nodes)
        return -1;
    if (step->rings && !*step->rings)
        free(tccl_steal(step->rings));
    return 0;
}

struct saving {
    char run_dir[PATH_MAX], folder[TCCL_KEY_TEXT];
    char *text;
    int rc;
    struct tccl_error err;
};

static void write_record(void *task)
{
    struct saving *saving = task;
    saving->rc = planfile_record(saving->run_dir, saving->folder, saving->text, &saving->err);
}

static void free_text(void *task, int ran UNUSED)
{
    const struct saving *saving = task;
    free(saving->text);
}

int running_save(struct running *running, struct running_step *step)
{
    struct saving saving = {.text = running_text(step), .rc = -1};
    struct daemon *daemon = running->daemon;
    strcpy(saving.run_dir, daemon->conf->run_dir);
    strcpy(saving.folder, step->folder);
    int rc = saving.text ? run_dir_do(daemon->run_dir, write_record, free_text, &saving,
                                      sizeof(saving), &saving.err)
                         : tccl_fail(&saving.err, "out of memory");
    if (rc == 0)
        free(saving.text);
    step->changed = rc != 0 || saving.rc != 0;
    if (step->changed)
        log_limited(&running->trouble,
                    "can't write which steps run here, so tccld will not know after a restart: %s",
                    saving.err.text);
    return rc;
}

static void save_all(struct running *running)
{
    struct running_step *step;
    bool failed = false;
    TAILQ_FOREACH(step, &running->live, link)
    {
        bool hangs = step->changed && running_save(running, step) != 0;
        failed |= step->changed;
        if (hangs)
            break;
    }
    if (failed)
        running_save_in(running, AGAIN_MS);
}

static void on_save(evutil_socket_t fd UNUSED, short what UNUSED, void *argument)
{
    save_all(argument);
    alongside_read_ahead(argument);
}

void running_save_soon(struct running *running, struct running_step *step)
{
    step->changed = true;
    running_save_in(running, SAVE_MS);
}

void running_save_in(struct running *running, int ms)
{
    int64_t at = tccl_now_ms() + ms;
    if (event_pending(running->save, EV_TIMEOUT, NULL) && running->save_at <= at)
        return;
    running->save_at = at;
    daemon_set(running->save, ms);
}

/* ---- the list ---- */

static void free_step(struct running_step *step)
{
    free(step->nodes);
    free(step->parent);
    free(step->rings);
    free(step->slowed);
    json_decref(step->said);
    free(step);
}

static void forget(struct running *running, struct running_step *step)
{
    built_drop(step);
    joint_drop(running, step);
    agree_drop(running, step);
    if (running->forgotten_ms < step->joined_ms)
        running->forgotten_ms = step->joined_ms;
    TAILQ_REMOVE(step->ended ? &running->past : &running->live, step, link);
    running->count--;
    free_step(step);
}

/* Makes room for another one: by one that has ended and of which nothing is awaited; else, for one
 * that begins, by one of whoever has most. Returns whether there is room. */
static bool make_room(struct running *running, bool begins)
{
    struct running_step *old = NULL;
    if (running->count < RUNNING_MOST)
        return true;
    TAILQ_FOREACH_REVERSE(old, &running->past, running_list, link)
    if (!old->verdict)
        break;
    if (!old && begins) {
        /* The oldest step of the user who has most, one that has ended if there is one: nobody
         * drives another one's steps out. */
        enum { USERS = 2 * RUNNING_MOST };
        struct {
            struct running_step *oldest;
            int count;
        } users[USERS] = {0}, *most = users;
        struct running_list *lists[] = {&running->live, &running->past};
        struct running_step *step;
        for (int i = 0; i < 2; i++)
            TAILQ_FOREACH(step, lists[i], link)
            {
                size_t at = step->uid % USERS;
                while (users[at].oldest && users[at].oldest->uid != step->uid)
                    at = (at + 1) % USERS;
                users[at].oldest = step;
                if (++users[at].count > most->count)
                    most = &users[at];
            }
        old = most->oldest;
    }
    if (old)
        forget(running, old);
    return old != NULL;
}

/* In the order in which they have come. */
static void add(struct running *running, struct running_step *step)
{
    struct running_step *after = TAILQ_FIRST(&running->live);
    tccl_key_folder(&step->key, step->folder);
    while (after && after->order > step->order)
        after = TAILQ_NEXT(after, link);
    if (after)
        TAILQ_INSERT_BEFORE(after, step, link);
    else
        TAILQ_INSERT_TAIL(&running->live, step, link);
    if (running->latest < step->order)
        running->latest = step->order;
    running->count++;
}

struct running_step *running_find(const struct running *running, const struct tccl_step_key *key)
{
    struct running_step *step;
    TAILQ_FOREACH(step, &running->live, link)
    if (tccl_key_equal(&step->key, key))
        return step;
    return NULL;
}

struct running_step *running_planned(const struct running *running, const struct tccl_step_key *key)
{
    struct running_step *step = running_find(running, key);
    return step && step->plan ? step : NULL;
}

struct running_step *running_folder(const struct running *running, const char *folder, bool *past)
{
    struct running_step *step;
    *past = false;
    TAILQ_FOREACH(step, &running->live, link)
    if (strcmp(step->folder, folder) == 0)
        return step;
    TAILQ_FOREACH(step, &running->past, link)
    *past |= strcmp(step->folder, folder) == 0;
    return NULL;
}

enum tccl_view running_view(const struct running_step *step)
{
    return step->hidden                                  ? TCCL_VIEW_HIDDEN
           : step->rings && strstr(step->rings, " -r> ") ? TCCL_VIEW_READS
                                                         : TCCL_VIEW_WRITES;
}

/* Steps of another component of a heterogeneous job may be here, too; and what a launcher starts
 * may be none of the step's own. */
enum tccl_view running_view_of(const struct running *running, const struct tccl_step *join)
{
    const struct running_step *step;
    bool alone = join->whole && join->launch == TCCL_LAUNCH_TASKS && !join->key.het_job &&
                 !script_is(&join->key);
    TAILQ_FOREACH(step, &running->live, link)
    alone = alone && (step->key.job != join->key.job || script_is(&step->key) ||
                      tccl_key_equal(&step->key, &join->key) ||
                      strcmp(step->key.cluster, join->key.cluster) != 0);
    return join->hidden ? TCCL_VIEW_HIDDEN : alone ? TCCL_VIEW_JOB : TCCL_VIEW_WRITES;
}

bool running_is_script(const struct running_step *step)
{
    return step->launch == TCCL_LAUNCH_SCRIPT || step->launch == TCCL_LAUNCH_SCRIPT_ONLY;
}

struct running_step *running_script(const struct running *running, const struct tccl_step_key *key)
{
    struct running_step *step;
    TAILQ_FOREACH(step, &running->live, link)
    if (running_is_script(step) && step->key.job == key->job &&
        strcmp(step->key.cluster, key->cluster) == 0)
        return step;
    return NULL;
}

struct running_step *running_load(struct running *running, const char *folder)
{
    struct running_step *step = calloc(1, sizeof(*step));
    cleanup_json json_t *json =
        step ? planfile_read_record(running->daemon->conf->run_dir, folder) : NULL;
    char name[TCCL_KEY_TEXT];
    if (json && from_json(json, step) == 0) {
        tccl_key_folder(&step->key, name);
        if (strcmp(name, folder) == 0 && make_room(running, false)) {
            add(running, step);
            return step;
        }
    }
    if (json && running->count < RUNNING_MOST)
        log_line("RunDir: %s/plan has no record of this version, so nothing is known of that step",
                 folder);
    if (step)
        free_step(step);
    return NULL;
}

struct running *running_new(struct daemon *daemon)
{
    struct running *running = calloc(1, sizeof(*running));
    cleanup_dir DIR *folder = opendir(daemon->conf->run_dir);
    const struct dirent *entry;
    if (!running)
        return NULL;
    running->daemon = daemon;
    running->began_ms = tccl_now_ms();
    TAILQ_INIT(&running->live);
    TAILQ_INIT(&running->past);
    TAILQ_INIT(&running->joints);
    TAILQ_INIT(&running->agreements);
    running->save = event_new(daemon->base, -1, 0, on_save, running);
    running->place = event_new(daemon->base, -1, 0, alongside_on_place, running);
    running->look = event_new(daemon->base, -1, 0, alongside_on_look, running);
    if (!running->save || !running->place || !running->look) {
        running_free(running);
        return NULL;
    }
    while (folder && running->count < RUNNING_MOST && (entry = readdir(folder)) != NULL)
        if (planfile_is_folder(entry->d_name))
            running_load(running, entry->d_name);
    return running;
}

void running_free(struct running *running)
{
    struct running_step *step;
    if (!running)
        return;
    if (running->save && event_pending(running->save, EV_TIMEOUT, NULL))
        save_all(running);
    while ((step = TAILQ_FIRST(&running->live)) || (step = TAILQ_FIRST(&running->past)))
        forget(running, step);
    daemon_drop(running->save);
    daemon_drop(running->place);
    daemon_drop(running->look);
    free(running);
}

/* ---- what comes and goes ---- */

struct running_step *running_begin(struct running *running, const struct tccl_step *join,
                                   const char *stepd)
{
    struct running_step *step = calloc(1, sizeof(*step));
    int parent = node_tree_parent(join->node);
    char *nodes = join->nodes
                      ? tccl_hosts_fold((const char *const *)join->nodes, (size_t)join->n_nodes)
                      : NULL;
    if (nodes && strlen(nodes) >= RUNNING_NODES)
        *nodes = '\0';
    if (!step) {
        free(nodes);
        return NULL;
    }
    step->key = join->key;
    step->uid = join->uid;
    step->launch = join->launch;
    step->node = join->node;
    step->n_nodes = join->n_nodes;
    step->nodes = nodes ? nodes : strdup("");
    step->parent = strdup(parent >= 0 && join->nodes ? join->nodes[parent] : "");
    step->hidden = join->hidden;
    memcpy(step->gres, join->gres, sizeof(step->gres));
    step->n_gres = join->n_gres;
    snprintf(step->stepd, sizeof(step->stepd), "%s", stepd);
    step->joined_ms = tccl_now_ms();
    step->order = tccl_wall_us() > running->latest ? tccl_wall_us() : running->latest + 1;
    step->built = TCCL_CHAIN_RINGS;
    if (!step->nodes || !step->parent) {
        free_step(step);
        return NULL;
    }
    make_room(running, true);
    add(running, step);
    running->joins++;
    running_save_soon(running, step);
    return step;
}

void running_built(struct running *running, struct running_step *step, int rings, int nccl)
{
    if (step->built == rings && step->nccl == nccl)
        return;
    step->built = rings;
    step->nccl = nccl;
    running_save_soon(running, step);
}

void running_end(struct running *running, struct running_step *step)
{
    TAILQ_REMOVE(&running->live, step, link);
    TAILQ_INSERT_HEAD(&running->past, step, link);
    step->ended = true;
    joint_drop(running, step);
    free(tccl_steal(step->rings));
    json_decref(tccl_steal(step->said));
}

/* Not at each of a flood of questions: it looks at a process for each step. */
void running_sweep(struct running *running)
{
    struct running_step *step;
    int64_t now = tccl_now_ms();
    if (now - running->swept < LOOK_MS)
        return;
    running->swept = now;
    TAILQ_FOREACH(step, &running->live, link)
    if (stepd_look(step->stepd) == STEPD_GONE)
        step->n_gres = 0;
}

/* ---- questions ---- */

struct running_step *running_asked(struct daemon *daemon, const struct connection *connection,
                                   const struct tccl_lines *question, struct tccl_error *err)
{
    struct tccl_step_key key;
    uid_t uid = connection_uid(connection);
    int64_t second = tccl_now_ms() / 1000;
    if (tccl_key_from_lines(question, &key, err) != 0)
        return NULL;
    struct running_step *step = running_planned(daemon->running, &key);
    if (!step || (step->uid != uid && !daemon_trusts(daemon, uid))) {
        char text[TCCL_KEY_TEXT];
        tccl_key_format(&key, text);
        return tccl_fail_null(err, "uid %u has no step %s with a plan on this node", uid, text);
    }
    if (step->second != second)
        step->questions = 0;
    step->second = second;
    if (++step->questions <= RUNNING_QUESTIONS)
        return step;
    return tccl_fail_null(err, "more than %d questions about this step within a second",
                          RUNNING_QUESTIONS);
}
