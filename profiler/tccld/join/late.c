#include "tccld/join/late.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "client/message.h"

/* Who is late? */

/* Are the GPUs those that the job has announced? Then late nodes can be called. */
void late_compare(struct step *step, const struct tccl_join_message *message)
{
    json_t *terms = announces_terms(step->steps->announces, message);
    step->strange |= !terms;
    json_decref(step->terms);
    step->terms = terms;
}

bool late_as_announced(const struct step *step)
{
    return step->join && step->terms && !step->strange;
}

/* Whatever it answers, its MERGE comes or does not. */
static void on_called(void *context, json_t *answer, const struct tccl_error *err)
{
    struct child *child = context;
    (void)answer;
    (void)err;
    child->probe = NULL;
}

/* Asks a late node to take part with what its job's prolog has announced there. */
static void call(struct child *child)
{
    struct step *step = child->step;
    cleanup_json json_t *message = tccl_message_new("call");
    cleanup_json json_t *content =
        json_pack("{s:o,s:i,s:i,s:i,s:I,s:O}", "key", tccl_key_to_json(&step->key), "node",
                  child->node, "n_nodes", step->n_nodes, "timeout_ms", step->timeout_ms, "wait_ms",
                  (json_int_t)(step->end - tccl_now_ms()), "announced", step->terms);
    if (!content || json_object_update(message, content) != 0)
        return;
    step->called = true;
    child->probe = link_ask(step->steps->daemon, step->join->join.nodes[child->node], message,
                            step_level_time(step), on_called, child);
}

static void on_probed(void *context, json_t *answer, const struct tccl_error *err)
{
    struct child *child = context;
    (void)answer;
    child->probe = NULL;
    child->there = !err;
    if (err)
        step_fail(child->step, "%s", err->text);
    else if (late_as_announced(child->step))
        call(child);
}

/* A tccld that is not there need not be waited for. */
static void probe_children(struct step *step)
{
    step->probed = true;
    step_set_timer(step, step_level_time(step));
    for (int i = 0; step->join && i < step->n_children; i++) {
        struct child *child = &step->children[i];
        if (!child->merge)
            child->probe = link_probe(step->steps->daemon, step->join->join.nodes[child->node],
                                      step_level_time(step), on_probed, child);
    }
}

/* Who has not come, and why that may be. */
void late_fail(struct step *step)
{
    const struct daemon *daemon = step->steps->daemon;
    const struct child *first = NULL;
    char name[32], more[48] = "";
    long long waited = (tccl_now_us() - step->opened_us) / 1000;
    int missing = 0;
    for (int i = step->n_children - 1; i >= 0; i--)
        if (!step->children[i].merge) {
            first = &step->children[i];
            missing++;
        }
    if (!step->join) {
        step_fail(step, "%s: its part of the step has not started within %lld ms (a slow Prolog?)",
                  daemon->conf->node, waited);
        return;
    }
    if (missing > 1)
        snprintf(more, sizeof(more), " (and %d more)", missing - 1);
    snprintf(name, sizeof(name), "node %d", first ? first->node : step->node);
    step_fail(step, "%s: no word from its tccld within %lld ms%s%s",
              first ? step->join->join.nodes[first->node] : name, waited,
              first && first->there
                  ? ": the step has not started there (a slow Prolog?), or it hangs"
                  : "",
              more);
}

/* What stands in for a JOIN */

/* The step has begun on other nodes and not here: until it does, this node takes part with what the
 * job's prolog has announced. */
static void stand_in(struct step *step)
{
    struct tccl_join_message *message = NULL;
    if (step->terms && !step->strange)
        message = announces_join(step->steps->announces, &step->key, step->node, step->n_nodes,
                                 step->timeout_ms, step->terms);
    if (!message)
        return;
    step->stands_in = true;
    step_begin(step, message);
}

/* Some of the nodes are late. */
void late_hurry(struct step *step)
{
    if (!step->join)
        stand_in(step);
    if (!step->closed && !step->reported)
        probe_children(step);
}

/* The step has started here after all: if not with what stood in for it, there is no ring, or none
 * here where it has been given out. */
void late_take_over(struct step *step, struct tccl_join_message *message)
{
    const char *why = announce_differs(&step->join->join, &message->join);
    tccl_join_free(step->join);
    step->join = message;
    step->stands_in = false;
    if (step->closed) {
        if (step->given && why)
            step_go_without(step, "%s", why);
        else if (step->given)
            step_apply(step);
        step_answer_waiters(step);
        if (step->outcome.partial)
            step_tell_partial(step, step->outcome.reason);
        step_advance(step);
    } else if (why) {
        if (step->up)
            link_cancel(tccl_steal(step->up));
        step->reported = false;
        step_fail(step, "%s: %s", message->join.nodes[message->join.node], why);
    }
}

static bool same_job(const struct tccl_step_key *a, const struct tccl_step_key *b)
{
    return a->job == b->job && strcmp(a->cluster, b->cluster) == 0;
}

/* What stood in for steps that did not start here stands for those of a requeued job no more. */
static void end_stand_ins(struct steps *steps, const struct tccl_step_key *key)
{
    struct step *step, *next;
    for (step = TAILQ_FIRST(&steps->open); step; step = next) {
        next = TAILQ_NEXT(step, link);
        if (step->stands_in && same_job(&step->key, key)) {
            step_fail(step, "%s: the job has ended here", steps->daemon->conf->node);
            step->left = true;
        }
    }
    for (step = TAILQ_FIRST(&steps->closed); step; step = next) {
        next = TAILQ_NEXT(step, link);
        if (step->stands_in && same_job(&step->key, key) && !step->up)
            step_free(step);
    }
}

void late_end_job(struct steps *steps, const struct tccl_step_key *key)
{
    announces_end(steps->announces, key);
    end_stand_ins(steps, key);
}

void step_announce(struct daemon *daemon, struct local *local, json_t *json)
{
    struct tccl_step_key key;
    struct tccl_error err = {0};
    if (announces_put(daemon->steps->announces, json, &key, &err) != 0) {
        log_limited(&daemon->steps->refused, "refused an ANNOUNCE: %s", err.text);
        local_refuse(local, err.text);
        return;
    }
    end_stand_ins(daemon->steps, &key);
    cleanup_json json_t *answer = tccl_message_new("ok");
    local_answer(local, answer);
}

/* CALL */

static void answer_call(struct peer *peer, const struct tccl_error *err)
{
    cleanup_json json_t *answer = tccl_message_new(err->text[0] ? "error" : "ok");
    if (answer && (!err->text[0] || tccl_put_text(answer, "text", err->text, 511) == 0))
        peer_answer(peer_hold(peer), answer);
}

/* Has the job announced here what a CALL is about? */
static bool is_announced(const struct steps *steps, const struct report *report,
                         const json_t *terms)
{
    struct tccl_join_message *message =
        announces_join(steps->announces, &report->key, (int)report->node, (int)report->n_nodes,
                       (int)report->timeout_ms, terms);
    tccl_join_free(message);
    return message != NULL;
}

void step_call(struct daemon *daemon, struct peer *peer, json_t *json)
{
    struct report report;
    struct tccl_error err = {0};
    struct steps *steps = daemon->steps;
    json_t *terms = json_object_get(json, "announced");
    if (step_read_report(json, &report, &err) != 0) {
        log_limited(&steps->refused, "%s: refused a CALL: %s", peer_node(peer), err.text);
        answer_call(peer, &err);
        return;
    }
    answer_call(peer, &err);
    if (!is_announced(steps, &report, terms))
        return;
    struct step *step = step_get(steps, &report.key, (int)report.node, (int)report.n_nodes,
                                 (int)report.timeout_ms, &err);
    if (!step || step->joined || step->join || step->closed)
        return;
    if (!step->terms)
        step->terms = json_incref(terms);
    step_expect(step, report.wait_ms);
    stand_in(step);
}
