/* slurm-gpus.c: slurmd's list of GPUs. A look costs a few stat calls where nothing has changed;
 * else slurmd -G is run. All of it is done by one thread: files may be on a file system that hangs,
 * and slurmd -G takes seconds where it has to ask the driver.
 *
 * slurmd counts by gres.conf as it was when slurmd was started, and slurmd -G reads it as it is
 * now. So a list counts if gres.conf is older than the running slurmd, or if a list that counted
 * for this slurmd was the same; it is kept in RunDir for a tccld that is started again. */
#include "tccld/join/own.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "gres/gres.h"
#include "gres/slurm-conf.h"
#include "profile/stamp.h"

enum {
    LIST_MS = 10000, /* for slurmd -G, which may wait for the driver */
    FAILED_MS =
        60000,        /* a failure is believed that long, while slurmd and its files are the same */
    ABSENT_MS = 1000, /* no slurmd runs: all processes have to be looked at to know that */
    FETCH_US = 60000000, /* for a slurmd that gets its configuration from slurmctld */
    STOP_MS = 100,
};

/* What slurmd's list depends on. */
struct source {
    struct tccl_slurmd slurmd; /* pid 0: none runs */
    struct tccl_stamp program, slurm_conf, gres_conf;
};

/* Known to the thread while it looks. */
struct look {
    char node[TCCL_CONF_NAME], run_dir[PATH_MAX], conf[PATH_MAX]; /* conf: "": any */
    uid_t slurm_user;
    struct source source;
    struct tccl_gres list; /* valid unless why has a text */
    struct tccl_error why;
    int64_t failed_ms;
    bool loaded; /* the file of an earlier tccld has been looked at */
    /* A list that counts for this slurmd. */
    pid_t known_pid;
    int64_t known_started;
    struct tccl_gres known;
};

struct slurm_gpus {
    struct daemon *daemon;
    void (*heard)(struct daemon *daemon, unsigned look);
    struct threads *pool;
    struct look look;
    bool again;
    unsigned number; /* of the look that runs, or was the last */
    struct tccl_gres list;
    struct tccl_error why; /* there is no list */
    bool absent;           /* because no slurmd runs */
    char said[sizeof(((struct tccl_error *)0)->text)];
};

/* ---- in the thread ---- */

static void take_stamps(struct source *source)
{
    char gres_conf[PATH_MAX];
    tccl_slurm_beside(*source->slurmd.conf ? source->slurmd.conf : "/", "gres.conf", gres_conf);
    source->program = tccl_stamp_take(source->slurmd.program);
    source->slurm_conf = tccl_stamp_take(source->slurmd.conf);
    source->gres_conf = tccl_stamp_take(gres_conf);
}

static bool is_same(const struct source *old)
{
    struct source now = {.slurmd = old->slurmd};
    if (!tccl_slurmd_runs(&old->slurmd))
        return false;
    take_stamps(&now);
    return tccl_stamp_equal(&old->program, &now.program) &&
           tccl_stamp_equal(&old->slurm_conf, &now.slurm_conf) &&
           tccl_stamp_equal(&old->gres_conf, &now.gres_conf);
}

/* Had gres.conf this content when slurmd read it? Moving a file changes its inode's time. */
static bool is_older(const struct source *source)
{
    /* Does slurmd write the files itself, once it has started (configless)? */
    char real[PATH_MAX];
    bool fetched = realpath(source->slurmd.conf, real) && strstr(real, "/conf-cache/");
    const struct timespec *changed = &source->gres_conf.changed;
    int64_t at = (int64_t)changed->tv_sec * 1000000 + changed->tv_nsec / 1000;
    int64_t started = tccl_wall_us() - source->slurmd.age_us;
    return !tccl_stamp_exists(&source->gres_conf) || at < started + (fetched ? FETCH_US : 0);
}

static bool is_known(const struct look *look)
{
    return look->known_pid && look->known_pid == look->source.slurmd.pid &&
           look->known_started == look->source.slurmd.started;
}

static bool same_files(const struct tccl_gres *a, const struct tccl_gres *b)
{
    bool same = a->count == b->count;
    for (int i = 0; same && i < a->count; i++)
        same = strcmp(a->devices[i].file, b->devices[i].file) == 0;
    return same;
}

/* The list that has just been read: is it the one by which slurmd counts? */
static int judge(struct look *look, struct tccl_error *err)
{
    const struct source *source = &look->source;
    if (is_known(look) && !same_files(&look->known, &look->list))
        return tccl_fail(err, "gres.conf or slurm.conf lists other GPUs than when slurmd was "
                              "started: restart slurmd");
    if (!is_known(look) && !is_older(source))
        return tccl_fail(err, "gres.conf has changed since slurmd was started: restart slurmd");
    look->known = look->list;
    look->known_pid = source->slurmd.pid;
    look->known_started = source->slurmd.started;
    return 0;
}

static int read_list(struct look *look, struct tccl_error *err)
{
    struct source *source = &look->source;
    struct tccl_command_output *output = malloc(sizeof(*output));
    char scratch[PATH_MAX];
    int rc = tccl_slurmd_find(look->node, *look->conf ? look->conf : NULL, look->slurm_user,
                              &source->slurmd, err);
    if (rc > 0)
        tccl_fail(err, "no slurmd runs here%s%.200s, so Slurm's numbers of GPUs mean nothing",
                  *look->conf ? " with " : "", look->conf);
    take_stamps(source);
    if (rc == 0 && !output)
        rc = tccl_fail(err, "out of memory");
    snprintf(scratch, sizeof(scratch), "%.*s/slurmd-G", PATH_MAX - 64, look->run_dir);
    if (rc == 0)
        rc = tccl_slurmd_list(&source->slurmd, look->node, scratch, tccl_now_ms() + LIST_MS, output,
                              err);
    if (rc == 0)
        rc = tccl_gres_parse(output->err, &look->list, err);
    free(output);
    return rc == 0 ? judge(look, err) : -1;
}

static void run_look(void *task)
{
    struct look *look = task;
    struct tccl_gres before;
    tccl_gres_copy(&before, &look->list);
    bool same = is_same(&look->source), failed = look->why.text[0] != '\0';
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%.*s/" TCCL_GRES_NAME, PATH_MAX - 64, look->run_dir);
    if (!look->loaded) {
        int pid;
        look->known_pid = 0;
        if (tccl_gres_load(&look->known, path, &pid, &look->known_started, NULL) == 0)
            look->known_pid = pid;
        look->loaded = true;
    }
    bool absent = failed && look->source.slurmd.pid == 0;
    if (failed && (same || absent) &&
        tccl_now_ms() < look->failed_ms + (absent ? ABSENT_MS : FAILED_MS))
        return;
    if (!same || failed) {
        look->why = (struct tccl_error){""};
        int rc = read_list(look, &look->why);
        look->failed_ms = tccl_now_ms();
        if (rc != 0)
            return;
    }
    tccl_gres_locate(&look->list, NULL);
    /* For the next tccld and the plugin. They can do without. */
    if (!same || failed || !tccl_gres_equal(&before, &look->list))
        tccl_gres_save(&look->list, path, look->source.slurmd.pid, look->source.slurmd.started,
                       NULL);
}

/* ---- on the event loop ---- */

static void start(struct slurm_gpus *gpus);

static void say(struct slurm_gpus *gpus)
{
    const struct tccl_conf *conf = gpus->daemon->conf;
    char text[sizeof(gpus->said)];
    if (gpus->absent && strcmp(conf->node, conf->accounting_host) == 0)
        return; /* it is here for the records */
    if (gpus->why.text[0])
        snprintf(text, sizeof(text), "%s", gpus->why.text);
    else
        snprintf(text, sizeof(text), "slurmd lists %d GPUs, the first is %.100s", gpus->list.count,
                 gpus->list.devices[0].file);
    if (strcmp(text, gpus->said) != 0)
        log_line("%s", text);
    strcpy(gpus->said, text);
}

static void on_looked(void *task)
{
    struct slurm_gpus *gpus =
        (struct slurm_gpus *)((char *)task - offsetof(struct slurm_gpus, look));
    unsigned number = gpus->number;
    gpus->why = gpus->look.why;
    gpus->absent = gpus->look.source.slurmd.pid == 0;
    tccl_gres_copy(&gpus->list, &gpus->look.list);
    say(gpus);
    if (gpus->again && gpus->heard)
        start(gpus);
    if (gpus->heard)
        gpus->heard(gpus->daemon, threads_busy(gpus->pool) > 0 ? number : gpus->number);
}

static void start(struct slurm_gpus *gpus)
{
    const struct tccl_conf *conf = gpus->daemon->conf;
    const char *own = getenv("SLURM_CONF");
    struct look *look = &gpus->look;
    snprintf(look->node, sizeof(look->node), "%s", conf->node);
    snprintf(look->run_dir, sizeof(look->run_dir), "%s", conf->run_dir);
    look->slurm_user = gpus->daemon->users.slurm;
    snprintf(look->conf, sizeof(look->conf), "%s", own ? own : "");
    gpus->again = false;
    gpus->number++;
    if (threads_submit(gpus->pool, run_look, on_looked, look) == 0)
        return;
    gpus->absent = false;
    gpus->why = (struct tccl_error){""};
    tccl_fail(&gpus->why, "out of memory");
}

unsigned slurm_gpus_look(struct slurm_gpus *gpus)
{
    if (gpus->daemon->alone)
        return 0;
    if (threads_busy(gpus->pool) == 0)
        start(gpus);
    else
        gpus->again = true;
    return threads_busy(gpus->pool) > 0 ? gpus->number + gpus->again : 0;
}

int slurm_gpus_get(const struct slurm_gpus *gpus, const struct tccl_gres **list,
                   struct tccl_error *err)
{
    *list = &gpus->list;
    if (gpus->daemon->alone)
        return 2;
    if (!gpus->why.text[0])
        return 0;
    tccl_fail(err, "%s", gpus->why.text);
    return gpus->absent ? 1 : -1;
}

struct slurm_gpus *slurm_gpus_new(struct daemon *daemon,
                                  void (*heard)(struct daemon *daemon, unsigned look),
                                  struct tccl_error *err)
{
    struct slurm_gpus *gpus = calloc(1, sizeof(*gpus));
    if (!gpus)
        return tccl_fail_null(err, "out of memory");
    gpus->daemon = daemon;
    gpus->heard = heard;
    gpus->pool = threads_new(daemon->base, 1, 2, err);
    if (!gpus->pool) {
        free(gpus);
        return NULL;
    }
    if (!daemon->alone)
        start(gpus);
    return gpus;
}

void slurm_gpus_free(struct slurm_gpus *gpus)
{
    if (!gpus)
        return;
    gpus->heard = NULL;
    if (threads_free(gpus->pool, STOP_MS) == 0)
        free(gpus);
}
