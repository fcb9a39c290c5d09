/* spank-prolog.c: the plugin beside a job's Prolog and Epilog, which must neither fail nor wait. */
#include "plugin/spank-prolog.h"

#include <stdio.h>
#include <unistd.h>

#include "client/client.h"
#include "plugin/plugin-conf.h"
#include "plugin/step-info.h"

enum { TELL_MS = 200 };

static struct step_items read_items(spank_t spank)
{
    struct step_items items = {.job = 0};
    spank_get_item(spank, S_JOB_ID, &items.job);
    spank_get_item(spank, S_JOB_UID, &items.uid);
    spank_get_item(spank, S_JOB_GID, &items.gid);
    return items;
}

/* A job with GPUs here: what is the job's, slurmd knows, while what is said of its steps is the
 * user's; and of several nodes there may be one to wait for. */
static bool has_gpus(spank_t spank, struct tccl_step *job, struct step_place *place)
{
    struct step_items items = read_items(spank);
    struct tccl_error err = {""};
    if (step_info_read_job(&items, environ, job, place, &err) != 0) {
        slurm_verbose("tccl: job %u is not announced: %s", items.job, err.text);
        return false;
    }
    return job->n_gres > 0;
}

static void announce(int fd, struct tccl_step *job)
{
    job->mode = TCCL_MODE_ON;
    job->timeout_ms = TELL_MS;
    tccl_client_announce(fd, job, TELL_MS, NULL);
}

static void leave(int fd, struct tccl_step *job)
{
    tccl_client_leave(fd, &job->key, TELL_MS, NULL);
}

static void tell(struct tccl_step *job, const char *name, int argc, char **argv,
                 void (*say)(int fd, struct tccl_step *job))
{
    struct tccl_conf conf;
    struct tccl_error err = {""};
    if (plugin_conf_read(argc, argv, name, &conf, &err) != 0) {
        slurm_verbose("tccl: %s", err.text);
        return;
    }
    if (plugin_conf_cluster(&conf)[0])
        snprintf(job->key.cluster, sizeof(job->key.cluster), "%s", plugin_conf_cluster(&conf));
    int fd = tccl_client_connect(conf.socket, TELL_MS, &err);
    if (fd >= 0) {
        say(fd, job);
        close(fd);
    } else {
        slurm_verbose("tccl: %s", err.text);
    }
    tccl_conf_clear(&conf);
}

static int tell_of_job(spank_t spank, int argc, char **argv,
                       void (*say)(int fd, struct tccl_step *job))
{
    struct tccl_step job;
    struct step_place place;
    if (has_gpus(spank, &job, &place))
        tell(&job, place.name, argc, argv, say);
    tccl_step_clear(&job);
    return 0;
}

int prolog_announce(spank_t spank, int argc, char **argv)
{
    return tell_of_job(spank, argc, argv, announce);
}

int epilog_forget(spank_t spank, int argc, char **argv)
{
    return tell_of_job(spank, argc, argv, leave);
}
