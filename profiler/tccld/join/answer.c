/* Gives the outcome of a step out. The outcome is the same for all nodes; where this node alone
 * can't have the ring, `partial` and `reason` in it say so. */
#include "tccld/join/answer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "tccld/join/children.h"
#include "tccld/join/node-profile.h"
#include "tccld/join/planfile.h"
#include "tccld/join/running.h"
#include "tccld/join/script.h"
#include "tccld/join/stepd.h"
#include "tccld/join/tree.h"
#include "tccld/main/metrics.h"
#include "tccld/main/run-dir.h"
#include "tccld/net/liveness.h"

/* This node */

void answer_without(struct step *step, enum tccl_reason cause, const char *fmt, ...)
{
    const struct tccl_step *join = step->join;
    char why[256];
    va_list args;
    va_start(args, fmt);
    vsnprintf(why, sizeof(why), fmt, args);
    va_end(args);
    step->outcome.state = TCCL_STATE_FALLBACK;
    step->outcome.partial = step->n_nodes > 1;
    free(step->own_ring);
    step->own_ring = NULL;
    tccl_outcome_say(&step->outcome, cause, "%.255s: %.250s", join->nodes[join->node], why);
    log_limited(&step->steps->trouble, "step %s: %s", step->text, step->outcome.reason);
}

static bool anyone_waits(const struct step *step)
{
    for (int i = 0; i < step->n_waiters; i++)
        if (!connection_closed(step->waiters[i]))
            return true;
    return false;
}

/* Whose end is the plan's, with or without a LEAVE (sweep.h). */
static void put_stepd(const struct step *step, struct tccl_line_writer *plan)
{
    char text[STEPD_TEXT] = "";
    if (step->by_script)
        script_stepd(step->steps->daemon, &step->key, text);
    for (int i = 0; i < step->n_waiters && !*text; i++)
        if (!connection_closed(step->waiters[i]))
            stepd_name(connection_pid(step->waiters[i]), text);
    if (*text)
        tccl_line_put(plan, "stepd", "%s", text);
}

/* A plan on its way to RunDir. */
struct writing {
    char run_dir[PATH_MAX];
    struct tccl_step_key key;
    gid_t gid;
    struct monitor *monitor;
    struct tccl_line_writer plan;
    bool link; /* an MPI launcher's ranks find it by a link */
    int rc;
    struct tccl_error err;
    char path[PATH_MAX], text[TCCL_LINES_SIZE];
};

static void write_plan(void *task)
{
    struct writing *writing = task;
    writing->plan.text = writing->text; /* it may be a copy */
    writing->rc = planfile_write(writing->run_dir, &writing->key, writing->gid, &writing->plan,
                                 writing->monitor, writing->path, &writing->err);
    if (writing->rc == 0 && writing->link)
        planfile_link(writing->run_dir, &writing->key);
}

/* The step has gone on without it. */
static void take_back(void *task, int ran)
{
    const struct writing *writing = task;
    if (!ran)
        return;
    planfile_unlink(writing->run_dir, &writing->key);
    planfile_remove(writing->run_dir, &writing->key, writing->monitor);
}

/* Returns 0, or -1 with err. */
static int put_plan(struct step *step, struct writing *writing)
{
    struct daemon *daemon = step->steps->daemon;
    const struct tccl_step *join = step->join;
    planfile_begin(&writing->plan, writing->text);
    put_stepd(step, &writing->plan);
    if (outcome_plan(&step->outcome, join, step->class->class, own_machine(daemon->own),
                     daemon->conf->socket, &writing->plan, &step->own_ring, &writing->err) != 0)
        return -1;
    strcpy(writing->run_dir, daemon->conf->run_dir);
    writing->key = step->key;
    writing->gid = join->gid;
    writing->monitor = daemon->monitor;
    writing->link = join->launch == TCCL_LAUNCH_DAEMONS || join->launch == TCCL_LAUNCH_BELOW;
    if (run_dir_do(daemon->run_dir, write_plan, take_back, writing, sizeof(*writing),
                   &writing->err) != 0)
        return -1;
    return writing->rc;
}

void answer_apply(struct step *step)
{
    struct daemon *daemon = step->steps->daemon;
    const struct tccl_step *join = step->join;
    struct writing writing = {.rc = -1};
    bool ring = step->outcome.state == TCCL_STATE_APPLIED;
    if (!step->by_script && !anyone_waits(step)) {
        if (!ring)
            return;
        answer_without(step, TCCL_REASON_CANCELLED,
                       "the step no longer waited for its plan (cancelled, or tccld was late)");
        return;
    }
    if (put_plan(step, &writing) == 0) {
        step->path = strdup(writing.path);
        alives_forget(daemon, &step->key);
        if (ring)
            running_ring(daemon->running, &step->outcome, join, step->class->class);
        if (step->by_script)
            planlist_add_of_script(step->steps->plans, &step->key);
        else
            planlist_add(step->steps->plans, &step->key);
        return;
    }
    if (ring)
        answer_without(step, TCCL_REASON_PLAN_LOST, "%s", writing.err.text);
    else
        log_limited(&step->steps->trouble, "step %s: no chains for its groups: %s", step->text,
                    writing.err.text);
}

void answer_waiters(struct step *step)
{
    struct tccl_outcome plan = step->outcome; /* and the step's */
    plan.ring = step->own_ring;
    plan.path = step->path;
    if (tccl_outcome_told(&plan) != plan.state) { /* nothing is promised, and the plan is there */
        plan.state = tccl_outcome_told(&plan);
        plan.gbps = 0;
    }
    if (!plan.path && plan.state == TCCL_STATE_APPLIED) { /* LEAVE has removed the plan */
        plan.state = TCCL_STATE_FALLBACK;
        tccl_outcome_say(&plan, TCCL_REASON_CANCELLED, "%s: the step has ended here",
                         step->steps->daemon->conf->node);
    }
    cleanup_json json_t *message = tccl_plan_to_json(&plan, &step->key, 0, 0);
    for (int i = 0; i < step->n_waiters; i++) {
        if (message)
            connection_answer(step->waiters[i], message);
        connection_drop(step->waiters[i]);
    }
    step->n_waiters = 0;
}

void answer_join(struct step *step)
{
    const struct tccl_outcome *outcome = &step->outcome;
    metrics_answer(step->steps->daemon->metrics, tccl_outcome_told(outcome), outcome->cause,
                   outcome->baseline_gbps > 0 ? outcome->gbps / outcome->baseline_gbps : 0,
                   outcome->rings, tccl_now_us() - step->joined_us);
    answer_waiters(step);
}

/* Children */

static void send_plan(struct connection *connection, const struct tccl_outcome *outcome,
                      const struct tccl_step_key *key, int first, int end)
{
    cleanup_json json_t *plan = outcome_to_json(outcome, key, first, end);
    if (plan)
        connection_answer(connection, plan);
}

void answer_children(struct step *step)
{
    for (int i = 0; i < step->n_children; i++) {
        struct child *child = &step->children[i];
        if (child->connection)
            send_plan(child->connection, &step->outcome, &step->key, child->node,
                      tree_end(child->node, step->n_nodes));
        child_clear(child);
    }
}

void answer_late(struct step *step, struct connection *connection)
{
    struct tccl_outcome outcome = step->outcome;
    if (outcome.state == TCCL_STATE_APPLIED) {
        outcome.state = TCCL_STATE_FALLBACK;
        tccl_outcome_say(&outcome, TCCL_REASON_PLAN_LOST,
                         "%s: the ring was given out before it asked again",
                         connection_node(connection));
    }
    send_plan(connection, &outcome, &step->key, 0, 0);
}

void answer_refused(struct connection *connection, const struct tccl_step_key *key,
                    const struct tccl_error *err)
{
    struct tccl_outcome outcome = {.state = TCCL_STATE_FALLBACK};
    tccl_outcome_say(&outcome, err->reason, "%s", err->text);
    send_plan(connection, &outcome, key, 0, 0);
}
