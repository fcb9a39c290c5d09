/* Job scripts. Open MPI's mpirun, started by a job script, starts its daemons by a step on all
 * nodes but its own: the ranks there are its children, and so the script's. No plugin is called for
 * that step here. This node takes part in it all the same, by what the script's JOIN has said. */
#include "tccld/join/running.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/lines.h"
#include "client/step-fields.h"

bool script_is(const struct tccl_step_key *key)
{
    return key->step == TCCL_STEP_BATCH || key->step == TCCL_STEP_INTERACTIVE;
}

struct running_step *script_next_below(const struct running *running,
                                       const struct running_step *script)
{
    struct running_step *step;
    TAILQ_FOREACH(step, &running->live, link)
    if (step->by_script && step->key.job == script->key.job &&
        strcmp(step->key.cluster, script->key.cluster) == 0)
        return step;
    return NULL;
}

/* Takes the place of this node in a step that begins below. */
static void take_place(struct tccl_step *join, const struct running_step *script)
{
    join->node = 0;
    if (!script) {
        snprintf(join->reason, sizeof(join->reason),
                 "this tccld knows of no job script that wants a ring, so the ranks that mpirun "
                 "starts on that node could not have it (sbatch --tccl)");
        join->cause = TCCL_REASON_JOB_SCRIPT;
        return;
    }
    memcpy(join->gres, script->gres, sizeof(join->gres));
    join->n_gres = script->n_gres;
    join->reason[0] = '\0';
}

struct tccl_step *script_join(struct daemon *daemon, const struct tccl_step_key *key,
                              const json_t *below, struct tccl_error *err)
{
    struct tccl_step *join = tccl_join_from_json(below, err);
    const struct running_step *script = running_script(daemon->running, key);
    if (join && (!tccl_key_equal(&join->key, key) || join->launch != TCCL_LAUNCH_BELOW ||
                 (script && script->uid != join->uid))) {
        tccl_step_free(tccl_steal(join));
        tccl_fail(err, "its JOIN is of another step");
    }
    if (join)
        take_place(join, script);
    return join;
}
