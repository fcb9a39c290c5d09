#include "plugin/spank-prolog.h"

#include <unistd.h>

#include "client/step-fields.h"
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

/* A job of several nodes with GPUs: there may be a node to wait for. */
static bool has_ring(spank_t spank, struct step_info *job)
{
    struct step_items items = read_items(spank);
    struct tccl_error err = {""};
    if (step_info_read_job(&items, environ, job, &err) != 0) {
        slurm_verbose("tccl: job %u is not announced: %s", items.job, err.text);
        return false;
    }
    return job->n_gres > 0 && job->hosts.count > 1;
}

static void announce(int fd, const struct step_info *job)
{
    struct tccl_join join;
    step_info_join(job, &join);
    join.mode = TCCL_MODE_ON;
    join.timeout_ms = TELL_MS;
    tccl_client_announce(fd, &join, TELL_MS, NULL);
}

static void leave(int fd, const struct step_info *job)
{
    tccl_client_leave(fd, &job->key, TELL_MS, NULL);
}

static void tell(const struct step_info *job, int argc, char **argv,
                 void (*say)(int fd, const struct step_info *job))
{
    struct tccl_conf conf;
    struct tccl_error err = {""};
    if (plugin_conf_read(argc, argv, job->name, &conf, &err) != 0) {
        slurm_verbose("tccl: %s", err.text);
        return;
    }
    int fd = tccl_client_connect(conf.socket, TELL_MS, &err);
    if (fd >= 0) {
        say(fd, job);
        close(fd);
    } else {
        slurm_verbose("tccl: %s", err.text);
    }
    tccl_conf_clear(&conf);
}

int prolog_announce(spank_t spank, int argc, char **argv)
{
    struct step_info job;
    if (has_ring(spank, &job))
        tell(&job, argc, argv, announce);
    step_info_clear(&job);
    return 0;
}

int epilog_forget(spank_t spank, int argc, char **argv)
{
    struct step_info job;
    if (has_ring(spank, &job))
        tell(&job, argc, argv, leave);
    step_info_clear(&job);
    return 0;
}
