/* Up the tree. One message of a step is under way at a time, on a connection of its own (link.h);
 * `up` in the step says that there is one. */
#include "tccld/join/step.h"

#include <stdio.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "client/conf.h"
#include "client/message.h"
#include "client/step-fields.h"
#include "tccld/jobs/jobs.h"
#include "tccld/join/running.h"

/* For the parent to hear of a failure, when the PLAN is of no use any more. */
enum { FAILURE_MS = 20000 };

/* A MERGE with the range, or with a reason. NULL with err. */
static json_t *new_message(const struct step *step, const struct merge *merge,
                           enum tccl_reason cause, const char *node, const char *reason,
                           struct tccl_error *err)
{
    cleanup_json json_t *message = report_new(step, "merge", step->node);
    cleanup_json json_t *content = merge ? merge_to_json(merge, err) : json_object();
    if (!content || json_object_update(message, content) != 0 ||
        (merge && claims_put(step, message) != 0) ||
        (!merge && (tccl_put_text(message, "reason", reason, 511) != 0 ||
                    tccl_message_put_reason(message, cause, node) != 0)) ||
        (step->required && json_object_set_new(message, "required", json_true()) != 0))
        return tccl_fail_null(err, "out of memory");
    if (step->join && step->join->launch == TCCL_LAUNCH_BELOW &&
        node_tree_parent(step->node) == 0 &&
        json_object_set_new(message, "join", tccl_join_to_json(step->join, err)) != 0)
        return NULL;
    return tccl_steal(message);
}

/* Returns 0, or -1: nothing is under way then. */
static int send_up(struct step *step, json_t *message, int64_t deadline, link_done *done)
{
    if (message && step->parent)
        step->up = link_ask(step->steps->daemon, step->parent, message, deadline, done, step);
    if (!step->up)
        return -1;
    if (step_enter(step, STEP_SEND))
        return 0;
    link_cancel(tccl_steal(step->up));
    return -1;
}

/* The reason that counts is the one here; the parent is told whom it is missing. */
void report_lost(struct step *step, const struct tccl_error *err)
{
    char reason[sizeof(step->outcome.reason)];
    if (step->up)
        link_cancel(tccl_steal(step->up));
    snprintf(reason, sizeof(reason), "%.200s: no plan came from %.280s",
             step->join->nodes[step->node], err->text);
    tccl_outcome_say(&step->outcome, err->reason, "%s", err->text);
    snprintf(step->outcome.reason_node, sizeof(step->outcome.reason_node), "%s", step->parent);
    step->outcome.state = TCCL_STATE_FAILED;
    step_close(step, STEP_LOST);
    report_failure(step, err->reason, step->parent,
                   reason); /* others may have been given the ring */
}

static int read_plan(struct step *step, const json_t *answer, struct tccl_outcome *outcome,
                     struct tccl_error *err)
{
    int end = node_tree_end(step->node, step->n_nodes);
    if (tccl_plan_from_json(answer, &step->key, step->node, end, outcome, err) == 0)
        return 0;
    tccl_fail_because(err, TCCL_REASON_PLAN_LOST);
    return tccl_fail_in(err, "%s: its plan", step->parent);
}

static link_done on_plan;

/* Once more, on a new connection, where there was none: its tccld may have been started again just
 * now, or a firewall have reset the first one. Returns 0, or -1: it is not sent. */
static int resend_range(struct step *step, const struct link *link)
{
    if (step->resent || link_connected(link) || link_failed_here(link))
        return -1;
    step->resent = true;
    struct merge *merge = children_merge(step, NULL);
    cleanup_json json_t *message =
        merge ? new_message(step, merge, TCCL_REASON_NONE, NULL, NULL, NULL) : NULL;
    merge_free(merge);
    if (message)
        step->up = link_ask(step->steps->daemon, step->parent, message, deadline_plan(step),
                            on_plan, step);
    return step->up ? 0 : -1;
}

static void on_plan(void *context, json_t *answer, const struct tccl_error *why)
{
    struct step *step = context;
    struct tccl_outcome outcome = {0};
    struct tccl_error err = {0};
    const struct link *link = tccl_steal(step->up);
    if (!answer && resend_range(step, link) == 0)
        return;
    if (!answer || read_plan(step, answer, &outcome, &err) != 0) {
        tccl_outcome_clear(&outcome);
        report_lost(step, answer ? &err : why);
        return;
    }
    tccl_outcome_clear(&step->outcome);
    step->outcome = outcome;
    step_close(step, STEP_PLAN);
    step_advance(step);
}

void report_range(struct step *step, const struct merge *merge)
{
    struct tccl_error err = {0};
    cleanup_json json_t *message = new_message(step, merge, TCCL_REASON_NONE, NULL, NULL, &err);
    if (send_up(step, message, deadline_plan(step), on_plan) == 0)
        deadline_await(step);
    else
        step_fail_at(step, TCCL_REASON_OVERLOAD, step->join->nodes[step->node], "%s",
                     err.text[0] ? err.text : "out of memory");
}

static void on_failure_heard(void *context, json_t *answer, const struct tccl_error *err UNUSED)
{
    struct step *step = context;
    struct tccl_outcome outcome = {0};
    step->up = NULL;
    if (answer && read_plan(step, answer, &outcome, NULL) == 0)
        step->recorded |= outcome.recorded;
    tccl_outcome_clear(&outcome);
    step_settle(step);
}

void report_failure(struct step *step, enum tccl_reason cause, const char *node, const char *reason)
{
    int more;
    bool down = step->parent && /* by [peers]: nobody listens there */
                tccl_peer_down(step->steps->daemon->conf, &step->parent, 1, &more) != NULL;
    cleanup_json json_t *message = down ? NULL : new_message(step, NULL, cause, node, reason, NULL);
    if (send_up(step, message, tccl_now_ms() + FAILURE_MS, on_failure_heard) != 0)
        step_settle(step);
}

static void on_partial_heard(void *context, json_t *answer UNUSED, const struct tccl_error *err)
{
    struct step *step = context;
    if (err)
        log_limited(&step->steps->trouble,
                    "step %s: a node has no ring, but the record says that all have it: can't "
                    "tell the step's first node: %s",
                    step->text, err->text);
    step->up = NULL;
    step_settle(step);
}

void report_partial(struct step *step, enum tccl_reason cause, const char *node, const char *reason)
{
    struct running *running = step->steps->daemon->running;
    struct running_step *known = step->node == 0 ? running_planned(running, &step->key) : NULL;
    if (known) {
        known->partial = true;
        running_save_soon(running, known);
    }
    cleanup_json json_t *record = step->node == 0 ? json_deep_copy(step->record) : NULL;
    if (record && tccl_put_text(record, "reason", reason, sizeof(step->outcome.reason) - 1) == 0 &&
        tccl_message_put_reason(record, cause, node) == 0)
        record_put_checked(step->steps->daemon, tccl_steal(record), &step->key, step->uid, true);
    if (step->node == 0 || step->up)
        return;
    cleanup_json json_t *message = new_message(step, NULL, cause, node, reason, NULL);
    send_up(step, message, tccl_now_ms() + FAILURE_MS, on_partial_heard);
}
