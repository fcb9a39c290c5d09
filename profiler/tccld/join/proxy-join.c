/* ANNOUNCE, CALL, and the proxies that they make for JOINs of late nodes. A proxy may be merged and
 * solved, but no plan is written by it: what counts is the JOIN that comes after all. */
#include "tccld/join/proxy-join.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "client/message.h"
#include "tccld/join/answer.h"
#include "tccld/join/children.h"
#include "tccld/join/deadline.h"
#include "tccld/join/report.h"

/* What is announced */

static bool all_as_announced(const struct step *step)
{
    return json_is_object(step->announced);
}

/* Once a node was not as announced, the step is not. */
static void hear(struct step *step, json_t *terms)
{
    bool differs = !json_is_object(terms) || json_is_null(step->announced);
    json_t *next = differs ? json_null() : json_incref(terms);
    json_decref(step->announced);
    step->announced = next;
}

void proxy_hear_join(struct step *step, const struct tccl_step *message)
{
    cleanup_json json_t *terms = announces_terms(step->steps->announces, message);
    hear(step, terms);
}

void proxy_hear(struct step *step, json_t *announced)
{
    if (!step->announced || !json_is_object(announced))
        hear(step, announced);
}

int proxy_put_terms(const struct step *step, json_t *message)
{
    return all_as_announced(step) ? json_object_set(message, "announced", step->announced) : 0;
}

/* Late children */

/* Whatever it answers, its MERGE comes or does not. */
static void on_called(void *context, json_t *answer, const struct tccl_error *err)
{
    struct child *child = context;
    (void)answer;
    (void)err;
    child->probe = NULL;
}

void proxy_call(struct child *child)
{
    struct step *step = child->step;
    if (!step->join || !all_as_announced(step))
        return;
    cleanup_json json_t *message = tccl_message_new("call");
    cleanup_json json_t *content =
        json_pack("{s:o,s:i,s:i,s:i,s:I,s:O}", "key", tccl_key_to_json(&step->key), "node",
                  child->node, "n_nodes", step->n_nodes, "timeout_ms", step->timeout_ms, "wait_ms",
                  (json_int_t)(step->end - tccl_now_ms()), "announced", step->announced);
    if (!content || json_object_update(message, content) != 0)
        return;
    step->called = true;
    child->probe = link_ask(step->steps->daemon, step->join->nodes[child->node], message,
                            deadline_report(step), on_called, child);
}

/* The proxy of this node */

bool proxy_stands(const struct step *step)
{
    return step->join && !step_has_joined(step);
}

bool proxy_is_awaited(const struct step *step)
{
    return step->called || proxy_stands(step);
}

void proxy_take_part(struct step *step)
{
    if (step->join || !all_as_announced(step))
        return;
    struct tccl_step *message = announces_join(step->steps->announces, &step->key, step->node,
                                               step->n_nodes, step->timeout_ms, step->announced);
    if (message)
        step_begin(step, message);
}

static void replace_closed(struct step *step, const char *why)
{
    if (step_has_ring(step) && why)
        answer_without(step, "%s", why);
    else if (step_has_ring(step))
        answer_apply(step);
    answer_join(step);
    if (step->outcome.partial)
        report_partial(step, step->outcome.reason);
    step_advance(step);
}

void proxy_replace(struct step *step, struct tccl_step *message)
{
    const char *why = announce_differs(step->join, message);
    tccl_step_free(step->join);
    step->join = message;
    if (!step_is_open(step))
        replace_closed(step, why);
    else if (why)
        step_fail(step, "%s: %s", message->nodes[message->node], why);
}

static bool same_job(const struct tccl_step_key *a, const struct tccl_step_key *b)
{
    return a->job == b->job && strcmp(a->cluster, b->cluster) == 0;
}

/* A proxy of a step that did not start here is none for the same step of a requeued job. */
static void end_proxies(struct steps *steps, const struct tccl_step_key *key)
{
    struct step *step, *next;
    for (step = TAILQ_FIRST(&steps->open); step; step = next) {
        next = TAILQ_NEXT(step, link);
        if (proxy_stands(step) && same_job(&step->key, key)) {
            step_fail(step, "%s: the job has ended here", steps->daemon->conf->node);
            step_enter(step, STEP_LEAVE);
        }
    }
    for (step = TAILQ_FIRST(&steps->closed); step; step = next) {
        next = TAILQ_NEXT(step, link);
        if (proxy_stands(step) && same_job(&step->key, key) && !step->up)
            step_free(step);
    }
}

void proxy_end_job(struct steps *steps, const struct tccl_step_key *key)
{
    announces_end(steps->announces, key);
    end_proxies(steps, key);
}

/* Messages */

void step_announce(struct daemon *daemon, struct connection *connection, json_t *json)
{
    struct tccl_step_key key;
    struct tccl_error err = {0};
    if (announces_put(daemon->steps->announces, json, &key, &err) != 0) {
        log_limited(&daemon->steps->refused, "refused an ANNOUNCE: %s", err.text);
        connection_refuse(connection, err.text);
        return;
    }
    end_proxies(daemon->steps, &key);
    cleanup_json json_t *answer = tccl_message_new("ok");
    connection_answer(connection, answer);
}

static void answer_call(struct connection *connection, const struct tccl_error *err)
{
    cleanup_json json_t *answer = tccl_message_new(err->text[0] ? "error" : "ok");
    if (answer && (!err->text[0] || tccl_put_text(answer, "text", err->text, 511) == 0))
        connection_answer(connection, answer);
}

/* Has the job announced here what a CALL is about? */
static bool is_announced(const struct steps *steps, const struct report *report,
                         const json_t *terms)
{
    struct tccl_step *message =
        announces_join(steps->announces, &report->key, (int)report->node, (int)report->n_nodes,
                       (int)report->timeout_ms, terms);
    tccl_step_free(message);
    return message != NULL;
}

void step_call(struct daemon *daemon, struct connection *connection, json_t *json)
{
    struct report report;
    struct tccl_error err = {0};
    struct steps *steps = daemon->steps;
    json_t *terms = json_object_get(json, "announced");
    if (report_read(json, &report, &err) != 0) {
        log_limited(&steps->refused, "%s: refused a CALL: %s", connection_node(connection),
                    err.text);
        answer_call(connection, &err);
        return;
    }
    answer_call(connection, &err);
    if (!is_announced(steps, &report, terms))
        return;
    struct step *step = steps_get(steps, &report.key, (int)report.node, (int)report.n_nodes,
                                  (int)report.timeout_ms, &err);
    if (!step || step->join || phase_after(step->phase, STEP_CALL) == STEP_REFUSED)
        return;
    if (!step->announced)
        step->announced = json_incref(terms);
    deadline_expect(step, report.wait_ms);
    proxy_take_part(step);
}
