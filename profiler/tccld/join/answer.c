/* Gives the outcome of a step out. The outcome is the same for all nodes; where this node alone
 * can't have the ring, `partial` and `reason` in it say so. */
#include "tccld/join/step.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "tccld/join/alongside.h"
#include "tccld/join/own.h"
#include "tccld/join/planfile.h"
#include "tccld/main/metrics.h"
#include "tccld/main/run-dir.h"

/* This node */

/* A ring has been given out, and this node alone is without, for that reason. */
__attribute__((format(printf, 3, 4))) static void
answer_without(struct step *step, enum tccl_reason cause, const char *fmt, ...)
{
    const struct tccl_step *join = step->join;
    char why[256];
    va_list args;
    va_start(args, fmt);
    vsnprintf(why, sizeof(why), fmt, args);
    va_end(args);
    step->outcome.state = TCCL_STATE_FAILED;
    step->outcome.partial = step->n_nodes > 1;
    free(step->own_ring);
    step->own_ring = NULL;
    tccl_outcome_say(&step->outcome, cause, "%.255s: %.250s", join->nodes[join->node], why);
    snprintf(step->outcome.reason_node, sizeof(step->outcome.reason_node), "%s",
             join->nodes[join->node]);
    log_limited(&step->steps->trouble, "step %s: %s", step->text, step->outcome.reason);
}

bool answer_is_awaited(const struct step *step)
{
    for (int i = 0; i < step->n_waiters; i++)
        if (!connection_closed(step->waiters[i]))
            return true;
    return false;
}

/* A plan on its way to RunDir. */
struct writing {
    char run_dir[PATH_MAX];
    struct tccl_step_key key;
    gid_t gid;
    struct monitor *monitor;
    struct tccl_line_writer plan;
    char *record;
    bool link; /* an MPI launcher's ranks find it by a link */
    int rc;
    struct tccl_error err;
    char path[PATH_MAX], text[TCCL_LINES_SIZE];
};

static void write_plan(void *task)
{
    struct writing *writing = task;
    writing->plan.text = writing->text; /* it may be a copy */
    writing->rc = planfile_write(writing->run_dir, &writing->key, writing->gid, writing->record,
                                 &writing->plan, writing->monitor, writing->path, &writing->err);
    if (writing->rc == 0 && writing->link)
        planfile_link(writing->run_dir, &writing->key);
}

/* The step has gone on without it. */
static void take_back(void *task, int ran)
{
    const struct writing *writing = task;
    free(writing->record);
    if (ran)
        planfile_take_back(writing->run_dir, &writing->key, writing->monitor);
}

/* Returns 0, or -1 with err. */
static int put_plan(struct step *step, const struct running_step *record, struct writing *writing)
{
    struct daemon *daemon = step->steps->daemon;
    const struct tccl_step *join = step->join;
    planfile_begin(&writing->plan, writing->text);
    if (outcome_plan(&step->outcome, join, step->class->class, own_machine(daemon->own),
                     daemon->conf->socket, &writing->plan, &step->own_ring, &writing->err) != 0)
        return -1;
    if (!daemon->conf->achieved)
        tccl_line_put_bool(&writing->plan, "measure", false);
    strcpy(writing->run_dir, daemon->conf->run_dir);
    writing->key = step->key;
    writing->gid = join->gid;
    writing->monitor = daemon->monitor;
    writing->link = join->launch == TCCL_LAUNCH_DAEMONS || join->launch == TCCL_LAUNCH_BELOW;
    writing->record = running_text(record);
    if (!writing->record)
        return tccl_fail(&writing->err, "out of memory");
    if (run_dir_do(daemon->run_dir, write_plan, take_back, writing, sizeof(*writing),
                   &writing->err) != 0)
        return -1;
    free(writing->record);
    return writing->rc;
}

void answer_apply(struct step *step)
{
    struct daemon *daemon = step->steps->daemon;
    struct running_step *record = running_find(daemon->running, &step->key);
    struct writing writing = {.rc = -1};
    bool ring = step->outcome.state == TCCL_STATE_PLANNED;
    if (!step->by_script && !answer_is_awaited(step)) {
        if (!ring)
            return;
        answer_without(step, TCCL_REASON_CANCELLED,
                       "the step no longer waited for its plan (cancelled, or tccld was late)");
        return;
    }
    if (record)
        alongside_plan(daemon->running, record, &step->outcome, step->join, step->class->class);
    else
        tccl_fail(&writing.err, "out of memory");
    if (record && put_plan(step, record, &writing) == 0) {
        step->path = strdup(writing.path);
        record->changed = false; /* it is written down, too */
        return;
    }
    if (record) {
        record->plan = record->ring = false;
        free(tccl_steal(record->rings));
        running_save_soon(daemon->running, record);
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
    if (!plan.path && plan.state == TCCL_STATE_PLANNED) { /* LEAVE has removed the plan */
        plan.state = TCCL_STATE_FAILED;
        tccl_outcome_say(&plan, TCCL_REASON_CANCELLED, "%s: the step has ended here",
                         step->steps->daemon->conf->node);
    }
    struct running_step *record = running_find(step->steps->daemon->running, &step->key);
    if (record) {
        record->start = plan.start;
        alongside_began(step->steps->daemon->running, record);
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
                   outcome->rings, tccl_now_us() - step->joined_us + step->waited_us);
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
                      node_tree_end(child->node, step->n_nodes));
        child_clear(child);
    }
}

void answer_late(struct step *step, struct connection *connection)
{
    struct tccl_outcome outcome = step->outcome;
    if (outcome.state == TCCL_STATE_PLANNED) {
        outcome.state = TCCL_STATE_FAILED;
        tccl_outcome_say(&outcome, TCCL_REASON_PLAN_LOST,
                         "%s: the ring was given out before it asked again",
                         connection_node(connection));
    }
    send_plan(connection, &outcome, &step->key, 0, 0);
}

void answer_refused(struct connection *connection, const struct tccl_step_key *key,
                    const struct tccl_error *err)
{
    struct tccl_outcome outcome = {.state = TCCL_STATE_FAILED};
    tccl_outcome_say(&outcome, err->reason, "%s", err->text);
    send_plan(connection, &outcome, key, 0, 0);
}
