/* LEAVE: a step has ended on this node. */
#include "tccld/join/step.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "client/message.h"
#include "tccld/join/planfile.h"
#include "tccld/join/running.h"
#include "tccld/main/run-dir.h"

/* A folder that goes; where RunDir does not answer, a sweep removes it. */
struct removal {
    char run_dir[PATH_MAX];
    struct tccl_step_key key;
    struct monitor *monitor;
};

static void remove_folder(void *task)
{
    const struct removal *removal = task;
    planfile_remove(removal->run_dir, &removal->key, removal->monitor);
}

/* Its record (step; NULL: it is there no more), and its plan. */
static void end_record(struct daemon *daemon, const struct tccl_step_key *key,
                       struct running_step *step, bool silent)
{
    struct removal removal = {.key = *key, .monitor = daemon->monitor};
    if (step && step->plan)
        built_end(daemon->running, step, silent);
    strcpy(removal.run_dir, daemon->conf->run_dir);
    run_dir_do(daemon->run_dir, remove_folder, NULL, &removal, sizeof(removal), NULL);
    if (step)
        running_end(daemon->running, step);
}

/* Whoever asks for the plan again must not be sent to its file. */
static void leave(struct step *step)
{
    if (step && step_enter(step, STEP_LEAVE))
        free(tccl_steal(step->path));
}

void leave_before(struct daemon *daemon, struct running_step *run)
{
    struct step *step = steps_find(daemon->steps, &run->key);
    end_record(daemon, &run->key, run, true);
    if (step &&
        step_has_joined(step)) /* else it is the new run, of which nodes below have spoken */
        leave(step);
}

static void end_one(struct steps *steps, const struct tccl_step_key *key, bool silent)
{
    struct step *step = steps_find(steps, key);
    if (step && step_is_open(step))
        step_fail_at(step, TCCL_REASON_CANCELLED, steps->daemon->conf->node,
                     "the step has ended here before it had its plan (cancelled?)");
    end_record(steps->daemon, key, running_find(steps->daemon->running, key), silent);
    leave(step);
}

void leave_end(struct steps *steps, const struct tccl_step_key *key, bool silent)
{
    const struct running *running = steps->daemon->running;
    const struct running_step *script = running_find(running, key), *below = NULL;
    const struct tccl_step_key own = *key;
    while (script && running_is_script(script) && (below = script_next_below(running, script))) {
        const struct tccl_step_key of_below = below->key;
        end_one(steps, &of_below, silent);
    }
    end_one(steps, &own, silent);
}

void step_leave(struct daemon *daemon, struct connection *connection, json_t *json)
{
    struct tccl_step_key key;
    struct tccl_error err = {0};
    if (tccl_key_from_json(json_object_get(json, "key"), &key, &err) != 0) {
        connection_refuse(connection, err.text);
        return;
    }
    leave_end(daemon->steps, &key, false);
    connection_answer_ok(connection);
}
