/* The life of a step: from phase to phase (phase.h) until its outcome is there, and what is done
 * then. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "client/step-fields.h"
#include "tccld/jobs/jobs.h"
#include "tccld/join/alongside.h"
#include "tccld/join/evidence.h"
#include "tccld/join/step.h"

bool step_enter(struct step *step, enum step_event event)
{
    enum step_phase next = phase_after(step->phase, event);
    if (next == STEP_REFUSED) {
        unsigned *logged = &step->steps->logged[step->phase];
        if (!(*logged & 1U << event))
            log_line(
                "step %s: %s does not fit its phase, %s, and is ignored: a bug, please report it",
                step->text, phase_event_name(event), phase_name(step->phase));
        *logged |= 1U << event;
        return false;
    }
    if (next != step->phase) {
        step->phase = next;
        deadline_arm(step);
    }
    return true;
}

/* Does node 0's plugin end the step, because a node requires a ring? It does if it waits for the
 * plan. Other nodes have that from node 0's PLAN. */
static void decide_end(struct step *step)
{
    if (step->node == 0)
        step->outcome.required = step->outcome.state == TCCL_STATE_FAILED && step->required &&
                                 step->n_waiters > 0 && step->join && !step->join->reason[0];
}

void step_begin(struct step *step, struct tccl_step *message)
{
    step->join = message;
    step->uid = message->uid;
    step->required |= message->mode == TCCL_MODE_REQUIRE;
    free(step->parent);
    step->parent = step->node > 0 ? strdup(message->nodes[node_tree_parent(step->node)]) : NULL;
    if (step_is_open(step)) {
        deadline_expect(step, message->timeout_ms);
        deadline_await(step);
        join_take(step);
    } else {
        decide_end(step);
        answer_join(step);
    }
    step_advance(step);
}

/* Once closed */

static void keep_record(struct step *step)
{
    if (step->recorded || !step->join)
        return;
    step->recorded = true;
    if (step->node == 0 && step->class)
        alongside_describe(step->steps->daemon->running, step->join, step->class->class,
                           &step->outcome);
    struct tccl_outcome shown = step->outcome; /* which owns what it points to */
    shown.state = tccl_outcome_told(&shown);
    json_t *record = tccl_record_to_json(step->join, &shown);
    if (!record) {
        log_line("step %s: out of memory: it has no record", step->text);
        return;
    }
    if (step->node == 0 && step->outcome.state == TCCL_STATE_PLANNED)
        step->record = json_incref(record);
    record_put_checked(step->steps->daemon, record, &step->key, step->uid, step->node == 0);
}

/* What is only needed until this node has its plan goes: closed steps are kept for a while. */
static void drop_details(struct step *step)
{
    if (!step_has_joined(step))
        return;
    tccl_step_free(tccl_steal(step->join));
    free(tccl_steal(step->outcome.choices));
    free(tccl_steal(step->outcome.ring));
    free(tccl_steal(step->outcome.beside));
    free(tccl_steal(step->outcome.baseline_rings));
    shared_class_drop(tccl_steal(step->class));
}

void step_settle(struct step *step)
{
    if (!step_enter(step, STEP_SETTLE))
        return;
    step_advance(step);
}

/* May its communicators over some of these GPUs want a chain? Of two GPUs on its one node none can.
 */
static bool has_groups(const struct step *step)
{
    int least = step->n_nodes == 1 ? 3 : 2;
    return step->outcome.groups && step->class && step->class->class->n_gpus >= least;
}

void step_close(struct step *step, enum step_event event)
{
    struct steps *steps = step->steps;
    const struct child *lost = children_lost(step);
    if (!step_enter(step, event))
        return;
    probe_cancel(&step->above);
    step->outcome.solve_us = tccl_now_us() - step->opened_us + step->waited_us;
    if (step->outcome.start == 0)
        step->outcome.start = step->start;
    TAILQ_REMOVE(&steps->open, step, link);
    TAILQ_INSERT_TAIL(&steps->closed, step, link);
    deadline_keep(step);
    step->recorded |= step->outcome.recorded;
    step->outcome.recorded = step->recorded || step->join; /* then it is seen to here */
    decide_end(step);
    answer_children(step);
    if (step_has_joined(step)) {
        if (step_has_ring(step) || step->outcome.measure || has_groups(step))
            answer_apply(step);
        answer_join(step);
    }
    if (step->node == 0)
        keep_record(step);
    else if (step->outcome.partial)
        report_partial(step, step->outcome.cause, step->outcome.reason_node, step->outcome.reason);
    else if (step_has_ring(step) && lost) {
        const char *node = step->join->nodes[lost->node];
        char reason[400];
        snprintf(reason, sizeof(reason), "%.255s: %s", node, child_hung_up);
        report_partial(step, TCCL_REASON_PLAN_LOST, node, reason);
    }
}

void step_fail(struct step *step, enum tccl_reason cause, const char *node, const char *fmt, ...)
{
    char reason[sizeof(step->outcome.reason)];
    va_list args;
    if (!step_is_open(step))
        return;
    if (step->up)
        link_cancel(tccl_steal(step->up)); /* its parent hears the reason instead */
    va_start(args, fmt);
    vsnprintf(reason, sizeof(reason), fmt, args);
    va_end(args);
    tccl_outcome_say(&step->outcome, cause, "%s", reason);
    snprintf(step->outcome.reason_node, sizeof(step->outcome.reason_node), "%s", node ? node : "");
    step->outcome.state = TCCL_STATE_FAILED;
    step_close(step, STEP_FAIL);
    step_advance(step);
}

/* What can be done now */

/* All of this node's range is there: solved by the root, else reported. */
static void complete(struct step *step)
{
    struct tccl_error err = {0};
    const struct child *lost = children_lost(step);
    if (lost) {
        step_fail_at(step, TCCL_REASON_PLAN_LOST, step->join->nodes[lost->node], "%s",
                     child_hung_up);
        return;
    }
    int checked = claims_check(step, &err);
    if (checked < 0)
        step_fail_at(step, err.reason, step->join->nodes[step->node], "%.400s", err.text);
    if (checked != 0)
        return;
    struct merge *merge = children_merge(step, &err);
    if (!merge) {
        step_fail(step, err.reason, NULL, "%s", err.text);
    } else if (step->node == 0) {
        outcome_solve(&step->outcome, merge, step->join,
                      step->join->max_rings ? step->join->max_rings
                                            : step->steps->daemon->conf->max_rings);
        evidence_apply(step->steps->daemon, &step->outcome, step->join);
        step_close(step, STEP_PLAN);
        step_advance(step);
    } else {
        report_range(step, merge);
    }
    merge_free(merge);
}

void step_advance(struct step *step)
{
    switch (step->phase) {
    case STEP_GATHERING:
    case STEP_PROBING:
        if (step->join && step->class && step->n_arrived == step->n_children)
            complete(step);
        break;
    case STEP_FAILED:
        if (step->parent && !step->steps->stopping)
            report_failure(step, step->outcome.cause, step->outcome.reason_node,
                           step->outcome.reason);
        else if (step->join)
            step_settle(step);
        break;
    case STEP_SETTLED:
    case STEP_ENDED:
        keep_record(step);
        drop_details(step);
        break;
    default:
        break;
    }
}
