/* step-end.c: libslurm waits for a slurmctld that does not answer for several times MessageTimeout,
 * and has no deadline of its own. So a child asks. */
#include "plugin/plugin.h"

#include <signal.h>

#include <slurm/slurm.h>

static int kill_step(const struct tccl_step_key *key)
{
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(25, 11, 0)
    slurm_step_id_t step = SLURM_STEP_ID_INITIALIZER;
    step.job_id = key->job;
    step.step_id = key->step;
    return slurm_kill_job_step(&step, SIGKILL, 0);
#elif SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(23, 11, 0)
    return slurm_kill_job_step(key->job, key->step, SIGKILL, 0);
#else
    return slurm_kill_job_step(key->job, key->step, SIGKILL);
#endif
}

/* In the child: whether slurmctld will. */
static void ask(const void *key, void *refused)
{
    *(char *)refused = kill_step(key) != 0;
}

int step_end(const struct tccl_step_key *key, struct tccl_error *err)
{
    char refused = 0;
    int heard = child_word(ask, key, &refused, 1, STEP_END_MS, err);
    if (heard > 0)
        return tccl_fail(err, "slurmctld has not answered within %d s", STEP_END_MS / 1000);
    return heard == 0 && refused ? tccl_fail(err, "slurmctld refused") : heard;
}
