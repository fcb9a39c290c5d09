/* JOIN: a step starts on this node, and what this node brings along. */
#include "tccld/join/step.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "client/conf.h"
#include "client/message.h"
#include "client/step-fields.h"
#include "tccld/jobs/jobs.h"
#include "tccld/join/alongside.h"
#include "tccld/join/own.h"
#include "tccld/main/metrics.h"

/* The policy says no by what every node knows: no node needs to be told, and the root keeps the
 * record. */
static bool is_too_small(struct step *step)
{
    const struct tccl_step *join = step->join;
    struct tccl_outcome *outcome = &step->outcome;
    if (join->mode != TCCL_MODE_AUTO || join->n_nodes >= join->min_nodes)
        return false;
    outcome->state = TCCL_STATE_FAILED;
    tccl_outcome_say(outcome, TCCL_REASON_POLICY, "policy: %d nodes in this step, MinNodes is %d",
                     join->n_nodes, join->min_nodes);
    step->recorded = step->node != 0;
    step_close(step, STEP_PLAN);
    return true;
}

/* One of the nodes is not to be waited for. All nodes know that by their own tccl.conf; one that
 * doesn't is told. */
static bool is_excluded(struct step *step)
{
    const struct tccl_conf *conf = step->steps->daemon->conf;
    const struct tccl_step *join = step->join;
    int more;
    const struct tccl_peer *peer = tccl_peer_down(conf, join->nodes, join->n_nodes, &more);
    char others[48] = "";
    if (!peer)
        return false;
    if (more > 0)
        snprintf(others, sizeof(others), " (and %d more)", more);
    step_fail_at(step, TCCL_REASON_CONFIGURATION, peer->node,
                 "excluded from rings: it is down%s by [peers] in %.300s:%d", others, conf->path,
                 peer->down);
    return true;
}

/* Slurm's numbers of GPUs have a meaning now, or none. */
static void take_gpus(struct step *step)
{
    const struct daemon *daemon = step->steps->daemon;
    const struct tccl_step *join = step->join;
    struct tccl_error err = {0};
    enum tccl_view view = running_view_of(daemon->running, join);
    step->class =
        own_class(daemon->own, daemon->conf, daemon->gpus, join->gres, join->n_gres, view, &err);
    if (!step->class)
        step_fail_at(step, err.reason, join->nodes[join->node], "%.400s", err.text);
    else
        step->class =
            alongside_see(daemon->running, &step->key, step->class, join->n_nodes == 1, view);
}

void join_take(struct step *step)
{
    struct daemon *daemon = step->steps->daemon;
    const struct tccl_step *join = step->join;
    const char *name = join->nodes[join->node];
    struct tccl_error err = {0};
    if (is_too_small(step) || is_excluded(step))
        return;
    if (join->reason[0])
        tccl_fail_as(&err, join->cause ? join->cause : TCCL_REASON_OTHER, "%s", join->reason);
    else if (strcmp(name, daemon->conf->node) != 0)
        tccl_fail_as(&err, TCCL_REASON_NODE_LISTS,
                     "the tccld there was started for node %s: see --node in tccld(8)",
                     daemon->conf->node);
    else if (children_check(step, &err) == 0)
        claims_take(step, &err);
    if (err.text[0])
        step_fail_at(step, err.reason, name, "%.400s", err.text);
    else if ((step->look = slurm_gpus_look(daemon->gpus)) == 0)
        take_gpus(step);
}

/* One that waits for this look, or an earlier one. */
static struct step *find_waiting(struct steps *steps, unsigned look)
{
    struct step *step;
    TAILQ_FOREACH(step, &steps->open, link)
    if (step->join && !step->class && step->look && (int)(look - step->look) >= 0)
        return step;
    return NULL;
}

void join_heard(struct daemon *daemon, unsigned look)
{
    struct step *step;
    while ((step = find_waiting(daemon->steps, look))) {
        step->look = 0;
        take_gpus(step);
        step_advance(step);
    }
}

static void join_off(struct daemon *daemon, struct connection *connection, struct tccl_step *join)
{
    const struct tccl_outcome outcome = {.state = TCCL_STATE_OFF,
                                         .start = time(NULL),
                                         .gpus = join->n_nodes == 1 ? join->n_gres : 0};
    cleanup_json json_t *answer = tccl_plan_to_json(&outcome, &join->key, 0, 0);
    bool first = join->node == (join->launch == TCCL_LAUNCH_BELOW) && !join->silent;
    json_t *record = first ? tccl_record_to_json(join, &outcome) : NULL;
    if (record)
        record_put_checked(daemon, record, &join->key, join->uid, join->node == 0);
    if (!join->silent)
        metrics_answer(daemon->metrics, outcome.state, TCCL_REASON_NONE, 0, 0, 0);
    connection_answer(connection, answer);
    struct running_step *step = running_find(daemon->running, &join->key);
    if (step) {
        step->start = outcome.start;
        alongside_began(daemon->running, step);
        alongside_warn(daemon->running, step);
    }
    tccl_step_free(join);
}

/* The step of a JOIN. What begins under the key of one that has ended is another run, of a requeued
 * job whose steps are not told SLURM_RESTART_COUNT (srun --export=NONE). NULL with err. */
static struct step *step_of(struct daemon *daemon, const struct tccl_step *join,
                            struct tccl_error *err)
{
    struct step *step = steps_find(daemon->steps, &join->key);
    if (step && step->phase == STEP_ENDED)
        step_free(step);
    step = steps_get(daemon->steps, &join->key, join->node, join->n_nodes, join->timeout_ms, err);
    if (step && !step_enter(step, STEP_JOIN)) {
        tccl_fail_as(err, TCCL_REASON_MESSAGE, "the step is %s", phase_name(step->phase));
        return NULL;
    }
    return step;
}

/* The first JOIN of this node. */
void step_take_part(struct step *step, struct tccl_step *message)
{
    step->joined_us = tccl_now_us();
    int64_t began = step->joined_us - message->waited_ms * INT64_C(1000);
    step->waited_us = began < step->opened_us ? step->opened_us - began : 0;
    step_begin(step, message);
}

/* It is on this node's list from now on: the first JOIN of its slurmstepd says all of it. One
 * that can't be seen is another one. */
static void note(struct daemon *daemon, const struct connection *connection,
                 const struct tccl_step *message)
{
    struct running_step *known = running_find(daemon->running, &message->key);
    char stepd[STEPD_TEXT];
    stepd_name(connection_pid(connection), stepd);
    if (known && *stepd && strcmp(known->stepd, stepd) == 0)
        return;
    if (known)
        leave_before(daemon, known);
    running_begin(daemon->running, message, stepd);
}

void step_join(struct daemon *daemon, struct connection *connection, json_t *json)
{
    struct tccl_error err = {0};
    struct tccl_step *message = tccl_join_from_json(json, &err);
    if (message && !message->silent)
        metrics_join(daemon->metrics, message->mode);
    if (message)
        note(daemon, connection, message);
    if (message && message->launch == TCCL_LAUNCH_SCRIPT_ONLY) {
        connection_answer_ok(connection);
        tccl_step_free(message);
        return;
    }
    if (message && message->mode == TCCL_MODE_OFF) {
        join_off(daemon, connection, message);
        return;
    }
    struct step *step = message ? step_of(daemon, message, &err) : NULL;
    if (!step) {
        log_limited(&daemon->steps->refused, "refused a JOIN: %s", err.text);
        connection_refuse_as(connection, err.reason ? err.reason : TCCL_REASON_MESSAGE, err.text);
        tccl_step_free(message);
        return;
    }
    if (step->n_waiters == WAITERS)
        connection_refuse_as(connection, TCCL_REASON_OVERLOAD, "too many JOINs for this step");
    else
        step->waiters[step->n_waiters++] = connection_hold(connection);
    if (!step_has_joined(step)) {
        step_take_part(step, message);
        return;
    }
    tccl_step_free(message);
    if (!step_is_open(step))
        answer_waiters(step);
}
