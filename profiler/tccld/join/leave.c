/* LEAVE: a step has ended on this node. */
#include "tccld/join/leave.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "client/message.h"
#include "tccld/join/planfile.h"
#include "tccld/join/running.h"
#include "tccld/join/script.h"
#include "tccld/join/verdicts.h"
#include "tccld/main/run-dir.h"
#include "tccld/net/liveness.h"

/* A plan that goes; where RunDir does not answer, a sweep removes it. */
struct removal {
    char run_dir[PATH_MAX];
    struct tccl_step_key key;
    struct monitor *monitor;
};

static void remove_plan(void *task)
{
    const struct removal *removal = task;
    planfile_unlink(removal->run_dir, &removal->key);
    planfile_remove(removal->run_dir, &removal->key, removal->monitor);
}

/* Whoever asks for the plan again must not be sent to its file. */
static void forget(struct steps *steps, const struct tccl_step_key *key)
{
    struct step *step = steps_find(steps, key);
    struct removal removal = {.key = *key, .monitor = steps->daemon->monitor};
    strcpy(removal.run_dir, steps->daemon->conf->run_dir);
    if (step && step_is_open(step))
        step_fail(step, TCCL_REASON_CANCELLED,
                  "%s: the step has ended here before it had its plan (cancelled?)",
                  steps->daemon->conf->node);
    alives_forget(steps->daemon, key);
    run_dir_do(steps->daemon->run_dir, remove_plan, NULL, &removal, sizeof(removal), NULL);
    planlist_remove(steps->plans, key);
    running_end(steps->daemon->running, key);
    if (!step || !step_enter(step, STEP_LEAVE))
        return;
    free(step->path);
    step->path = NULL;
}

void step_end_here(struct steps *steps, const struct tccl_step_key *key)
{
    verdicts_end(steps->daemon, key);
    forget(steps, key);
}

void step_gone_here(struct steps *steps, const struct tccl_step_key *key)
{
    verdicts_gone(steps->daemon, key);
    forget(steps, key);
}

void step_leave(struct daemon *daemon, struct connection *connection, json_t *json)
{
    struct tccl_step_key key;
    struct tccl_error err = {0};
    if (tccl_key_from_json(json_object_get(json, "key"), &key, &err) != 0) {
        connection_refuse(connection, err.text);
        return;
    }
    if (script_is(&key))
        script_end(daemon->steps, &key);
    step_end_here(daemon->steps, &key);
    cleanup_json json_t *answer = tccl_message_new("ok");
    connection_answer(connection, answer);
}
