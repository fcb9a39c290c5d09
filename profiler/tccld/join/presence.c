/* NODE: has this node the plugin, and has it spoken for a step? Files are looked at by a thread, at
 * most once in ten seconds for all who ask. */
#include "tccld/join/running.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "client/message.h"
#include "gres/gres.h"
#include "gres/slurm-conf.h"
#include "tccld/join/evidence.h"
#include "tccld/join/own.h"
#include "tccld/journal/journal.h"

enum {
    FRESH_MS = 10000, /* what was found is believed that long */
    STOP_MS = 100,
    ASKERS = 256,
};

/* Known to the thread while it looks. */
struct look {
    char node[TCCL_CONF_NAME], conf[PATH_MAX]; /* conf: slurm.conf; "": any */
    uid_t slurm_user;
    struct tccl_slurmd slurmd; /* pid 0: none was found */
    bool missing, named;       /* neither: not known */
    char text[512];            /* why it is missing, or not known */
};

struct asker {
    struct connection *connection;
    json_t *question;
    unsigned look; /* at slurmd's list that it waits for */
};

struct presence {
    struct daemon *daemon;
    struct threads *pool;
    struct look look;
    bool ending;
    unsigned heard;   /* of the looks at slurmd's list, */
    unsigned checked; /* and that after which it was looked whether there is a profile */
    struct tccl_error no_profile;
    int64_t looked_ms;
    struct asker askers[ASKERS];
    int n_askers;
};

/* ---- in the thread ---- */

static void read_stack(const char *path, const char *folders, struct look *look)
{
    cleanup_free struct tccl_plugstack *stack = calloc(1, sizeof(*stack));
    struct tccl_error err = {""};
    char plugin[PATH_MAX];
    if (!stack || tccl_plugstack_read(path, stack, &err) != 0) {
        snprintf(look->text, sizeof(look->text), "%.400s", stack ? err.text : "out of memory");
        return;
    }
    errno = 0;
    look->named = stack->found && tccl_plugstack_locate(stack->plugin, folders, plugin);
    /* slurmstepd, as root, may see what tccld can't. */
    bool hidden = stack->found ? errno != 0 && errno != ENOENT && errno != ENOTDIR : *stack->closed;
    look->missing = !look->named && !hidden;
    if (!look->named && hidden)
        snprintf(look->text, sizeof(look->text), "%.400s can't be read by tccld",
                 stack->found ? plugin : stack->closed);
    else if (!stack->there)
        snprintf(look->text, sizeof(look->text), "there is no %.400s", path);
    else if (!stack->found)
        snprintf(look->text, sizeof(look->text), "%.400s does not name spank_tccl.so", path);
    else if (!look->named)
        snprintf(look->text, sizeof(look->text), "%.200s, which %.200s names, is not there", plugin,
                 path);
}

static void run_look(void *task)
{
    struct look *look = task;
    struct tccl_slurm_conf conf = {.count = 0};
    struct tccl_error err = {""};
    char path[PATH_MAX];
    const char *folders;
    look->missing = look->named = false;
    look->text[0] = '\0';
    int rc = tccl_slurmd_find(look->node, *look->conf ? look->conf : NULL, look->slurm_user,
                              &look->slurmd, &err);
    if (rc > 0)
        tccl_fail(&err, "no slurmd runs here");
    else if (rc == 0 && !*look->slurmd.conf)
        rc = tccl_fail(&err, "where slurmd has its slurm.conf is not known");
    if (rc == 0 && tccl_slurm_conf_read(look->slurmd.conf, &conf, &err) == 0) {
        folders = tccl_slurm_get(&conf, "PluginDir");
        tccl_plugstack_path(&conf, path);
        read_stack(path, folders ? folders : TCCL_PLUGINDIR, look);
    } else {
        snprintf(look->text, sizeof(look->text), "%.400s", err.text);
    }
    tccl_slurm_conf_clear(&conf);
}

/* ---- on the event loop ---- */

/* Has the step of the question sent a JOIN? Returns 1: yes; 0: no; -1: not known, as this tccld, or
 * what it keeps, is younger than the step (since_ms), or it is no step of the asker's. */
static int has_joined(const struct running *running, const struct connection *connection,
                      json_int_t job, json_int_t number, json_int_t since_ms)
{
    const struct running_list *lists[] = {&running->live, &running->past};
    const struct running_step *step;
    int64_t begin = tccl_now_ms() - since_ms;
    for (int i = 0; i < 2; i++)
        TAILQ_FOREACH(step, lists[i], link)
    if (step->key.job == job && step->key.step == number)
        return connection_uid(connection) == step->uid || connection_trusted(connection) ? 1 : -1;
    return begin > running->began_ms && begin > running->forgotten_ms ? 0 : -1;
}

/* A plugin that has spoken is there, whatever the files look like from here. */
static const char *state_of(const struct presence *presence)
{
    if (presence->look.missing)
        return "missing";
    if (presence->daemon->running->joins)
        return "loaded";
    return presence->look.named ? "named" : "unknown";
}

static bool wants_gpus(const json_t *question)
{
    return json_is_true(json_object_get(question, "gpus"));
}

static void answer(struct presence *presence, struct connection *connection, const json_t *question)
{
    cleanup_json json_t *message = tccl_message_new("node");
    const struct tccl_slurmd *slurmd = &presence->look.slurmd;
    const char *trouble = journal_trouble(presence->daemon->journal);
    json_int_t job = 0, step = 0, since = 0;
    tccl_put_text(message, "version", TCCL_VERSION, 64);
    tccl_put_text(message, "plugin", state_of(presence), 16);
    if (trouble)
        tccl_put_text(message, "trouble", trouble, 511);
    if (slurmd->pid)
        json_object_set_new(message, "slurmd",
                            json_pack("{s:i, s:I, s:b}", "pid", (int)slurmd->pid, "started",
                                      (json_int_t)slurmd->started, "replaced", slurmd->replaced));
    if (*presence->look.text)
        tccl_put_text(message, "text", presence->look.text, sizeof(presence->look.text));
    if (wants_gpus(question)) {
        /* slurmd's list, and whether there is a profile; or why not. */
        struct daemon *daemon = presence->daemon;
        const struct tccl_gres *list;
        struct tccl_error why = {""};
        char text[TCCL_LINES_SIZE];
        if (slurm_gpus_get(daemon->gpus, &list, &why) == 0 && tccl_gres_text(list, 0, 0, text) > 0)
            tccl_put_text(message, "gpus", text, sizeof(text));
        else
            tccl_put_text(message, "gpus_why", *why.text ? why.text : "it is too long", 511);
        /* Once for all who have waited for the same look: a broken profile is read each time. */
        if (presence->checked != presence->heard) {
            presence->checked = presence->heard;
            presence->no_profile = (struct tccl_error){""};
            own_check(daemon->own, daemon->conf, &presence->no_profile);
        }
        if (*presence->no_profile.text)
            tccl_put_text(message, "profile_why", presence->no_profile.text, 511);
    }
    if (json_is_true(json_object_get(question, "evidence")))
        json_object_set_new(message, "evidence", evidence_report(presence->daemon));
    if (tccl_get_int(question, "job", 1, UINT32_MAX, &job, NULL) == 0 &&
        tccl_get_int(question, "step", 0, UINT32_MAX, &step, NULL) == 0 &&
        tccl_get_int(question, "since_ms", 0, INT32_MAX, &since, NULL) == 0) {
        int joined = has_joined(presence->daemon->running, connection, job, step, since);
        if (joined >= 0)
            json_object_set_new(message, "joined", json_boolean(joined));
    }
    connection_answer(connection, message);
}

/* Those who have all that they wait for. */
static void answer_askers(struct presence *presence)
{
    int kept = 0;
    for (int i = 0; i < presence->n_askers; i++) {
        struct asker *asker = &presence->askers[i];
        bool waits = !presence->ending &&
                     (threads_busy(presence->pool) > 0 || (int)(presence->heard - asker->look) < 0);
        if (waits) {
            presence->askers[kept++] = *asker;
            continue;
        }
        if (!presence->ending)
            answer(presence, asker->connection, asker->question);
        connection_drop(asker->connection);
        json_decref(asker->question);
    }
    presence->n_askers = kept;
}

static void on_looked(void *task)
{
    struct presence *presence = (struct presence *)((char *)task - offsetof(struct presence, look));
    presence->looked_ms = tccl_now_ms();
    answer_askers(presence);
}

void presence_heard(struct daemon *daemon, unsigned look)
{
    if (!daemon->presence)
        return;
    daemon->presence->heard = look;
    answer_askers(daemon->presence);
}

static void start(struct presence *presence)
{
    const struct tccl_conf *conf = presence->daemon->conf;
    const char *own = getenv("SLURM_CONF");
    struct look *look = &presence->look;
    if (threads_busy(presence->pool) > 0)
        return;
    snprintf(look->node, sizeof(look->node), "%s", conf->node);
    snprintf(look->conf, sizeof(look->conf), "%s", own ? own : "");
    look->slurm_user = presence->daemon->users.slurm;
    threads_submit(presence->pool, run_look, on_looked, look);
}

static bool is_fresh(struct presence *presence)
{
    const struct tccl_slurmd *slurmd = &presence->look.slurmd;
    bool fresh = threads_busy(presence->pool) == 0 && presence->looked_ms &&
                 tccl_now_ms() < presence->looked_ms + FRESH_MS &&
                 (!slurmd->pid || tccl_slurmd_runs(slurmd));
    if (!fresh)
        start(presence);
    return fresh;
}

const char *presence_missing(struct daemon *daemon)
{
    struct presence *presence = daemon->presence;
    bool known = is_fresh(presence);
    bool spoke =
        presence->daemon->running->joins > 0; /* then it is there, whatever the files look like */
    return known && presence->look.missing && !spoke ? presence->look.text : NULL;
}

void presence_ask(struct daemon *daemon, struct connection *connection, json_t *message)
{
    struct presence *presence = daemon->presence;
    unsigned look = wants_gpus(message) ? slurm_gpus_look(daemon->gpus) : 0;
    bool fresh = is_fresh(presence);
    if (!look && (fresh || threads_busy(presence->pool) == 0)) {
        answer(presence, connection, message);
        return;
    }
    if (presence->n_askers == ASKERS) {
        connection_refuse(connection, "too many ask about this node at the same time");
        return;
    }
    presence->askers[presence->n_askers++] = (struct asker){
        connection_hold(connection), json_incref(message), look ? look : presence->heard};
}

struct presence *presence_new(struct daemon *daemon, struct tccl_error *err)
{
    struct presence *presence = calloc(1, sizeof(*presence));
    if (!presence)
        return tccl_fail_null(err, "out of memory");
    presence->daemon = daemon;
    presence->pool = threads_new(daemon->base, 1, 2, err);
    if (presence->pool)
        return presence;
    free(presence);
    return NULL;
}

void presence_free(struct presence *presence)
{
    if (!presence)
        return;
    presence->ending = true;
    if (threads_free(presence->pool, STOP_MS) != 0)
        return;
    answer_askers(presence);
    free(presence);
}
