/* MERGE: what children report of their ranges. It is kept until the MERGE of each child is there
 * (step.c), and so is its connection, on which the PLAN goes down (answer.c). */
#include "tccld/join/step.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "client/message.h"
#include "tccld/join/running.h"

const char child_hung_up[] =
    "its tccld closed the connection before it had the plan: was it stopped?";

void child_clear(struct child *child)
{
    merge_free(child->merge);
    if (child->connection)
        connection_drop(child->connection);
    probe_cancel(&child->probe);
    *child = (struct child){.node = child->node, .step = child->step};
}

int children_init(struct step *step)
{
    step->children =
        calloc((size_t)node_tree_children(step->node, step->n_nodes) + 1, sizeof(*step->children));
    if (!step->children)
        return -1;
    for (int c = step->node; (c = node_tree_next_child(step->node, c, step->n_nodes)) >= 0;)
        step->children[step->n_children++] = (struct child){.node = c, .step = step};
    return 0;
}

static int check_name(const struct step *step, int node, const char *name, struct tccl_error *err)
{
    const char *expected = step_name(step, node);
    if (!expected || strcmp(expected, name) == 0)
        return 0;
    return tccl_fail_as(
        err, TCCL_REASON_NODE_LISTS,
        "nodes have different lists of this step's nodes: number %d is %s here, %s there", node,
        expected, name);
}

int children_check(const struct step *step, struct tccl_error *err)
{
    for (int i = 0; i < step->n_children; i++) {
        const struct child *child = &step->children[i];
        if (child->connection &&
            check_name(step, child->node, connection_node(child->connection), err) != 0)
            return -1;
    }
    return 0;
}

const struct child *children_lost(const struct step *step)
{
    for (int i = 0; i < step->n_children; i++)
        if (step->children[i].connection && connection_closed(step->children[i].connection))
            return &step->children[i];
    return NULL;
}

struct merge *children_merge(const struct step *step, struct tccl_error *err)
{
    struct merge *merge = merge_new(step->node);
    int failed = !merge || merge_add(merge, step->class, 1, err) != 0;
    for (int i = 0; !failed && i < step->n_children; i++)
        failed = merge_append(merge, step->children[i].merge, err) != 0;
    if (!failed)
        return merge;
    merge_free(merge);
    tccl_fail_as(err, TCCL_REASON_OVERLOAD, "out of memory");
    tccl_fail_because(err, TCCL_REASON_MESSAGE);
    return NULL;
}

/* MERGE */

int report_read(const json_t *json, int first, struct report *report, struct tccl_error *err)
{
    if (tccl_key_from_json(json_object_get(json, "key"), &report->key, err) != 0 ||
        tccl_get_int(json, "n_nodes", 2, TCCL_MAX_NODES, &report->n_nodes, err) != 0 ||
        tccl_get_int(json, "node", first, report->n_nodes - 1, &report->node, err) != 0 ||
        tccl_get_int(json, "timeout_ms", 1, TCCL_MAX_TIMEOUT_MS, &report->timeout_ms, err) != 0 ||
        tccl_get_int(json, "wait_ms", 0, report->timeout_ms, &report->wait_ms, err) != 0 ||
        tccl_get_optional_text(json, "reason", 511, &report->reason, err) != 0 ||
        tccl_get_optional_text(json, "reason_node", TCCL_HOST_NAME, &report->reason_node, err) !=
            0 ||
        (report->reason && !*report->reason && tccl_fail(err, "reason: is empty") != 0))
        return tccl_fail_in(err, "%s", tccl_message_type(json));
    report->cause = report->reason ? tccl_message_reason(json) : TCCL_REASON_NONE;
    report->required = json_is_true(json_object_get(json, "required"));
    return 0;
}

json_t *report_new(const struct step *step, const char *type, int node)
{
    int64_t wait = step_is_open(step) ? step->end - tccl_now_ms() : 0;
    cleanup_json json_t *message = tccl_message_new(type);
    cleanup_json json_t *rest =
        json_pack("{s:o,s:i,s:i,s:i,s:I}", "key", tccl_key_to_json(&step->key), "node", node,
                  "n_nodes", step->n_nodes, "timeout_ms", step->timeout_ms, "wait_ms",
                  (json_int_t)(wait < 0 ? 0 : wait));
    return json_object_update(message, rest) == 0 ? tccl_steal(message) : NULL;
}

/* The place of the sender below this node; NULL with err if it is not what its name says. */
static struct child *find_child(struct step *step, int node, const char *name,
                                struct tccl_error *err)
{
    if (check_name(step, node, name, err) != 0)
        return NULL;
    for (int i = 0; i < step->n_children; i++)
        if (step->children[i].node == node)
            return &step->children[i];
    tccl_fail_as(err, TCCL_REASON_NODE_LISTS, "node %d is not below node %d", node, step->node);
    return NULL;
}

/* Takes a MERGE in. Returns 0, or -1 with err, where it can't be believed; *child is its place
 * then, if it has one. */
static int take_merge(struct step *step, struct child **child, struct connection *connection,
                      const json_t *json, const struct report *report, struct tccl_error *err)
{
    struct merge *merge;
    *child = find_child(step, (int)report->node, connection_node(connection), err);
    if (!*child)
        return -1;
    if (report->reason) {
        step_fail(step, report->cause, report->reason_node, "%s", report->reason);
        answer_late(step, connection);
        return 0;
    }
    if (claims_hear(step, json, err) != 0)
        return -1;
    merge =
        merge_from_json(json, (*child)->node, node_tree_end((*child)->node, step->n_nodes), err);
    if (!merge)
        return -1;
    step->n_arrived += !(*child)->merge;
    child_clear(*child);
    (*child)->merge = merge;
    (*child)->connection = connection_hold(connection);
    deadline_expect(step, report->wait_ms);
    step_advance(step);
    return 0;
}

/* The step of a MERGE that could be read. NULL with err. */
static struct step *step_of(struct daemon *daemon, const struct report *report,
                            struct tccl_error *err)
{
    struct step *step = steps_find(daemon->steps, &report->key);
    if (!report->reason && step && step->phase == STEP_ENDED && !step_tells_failure(step))
        step_free(step);
    step = steps_get(daemon->steps, &report->key, node_tree_parent((int)report->node),
                     (int)report->n_nodes, (int)report->timeout_ms, err);
    if (step && !step_enter(step, STEP_MERGE))
        return tccl_fail_null(err, "the step is %s", phase_name(step->phase));
    return step;
}

/* The first word of a step in which this node takes part by its job script. Returns 0, also where
 * it is no such step, or -1 with err. */
static int join_by_script(struct step *step, const json_t *json, struct tccl_error *err)
{
    const json_t *below = step->node == 0 ? json_object_get(json, "join") : NULL;
    if (!below)
        return 0;
    struct daemon *daemon = step->steps->daemon;
    struct tccl_step *join = script_join(daemon, &step->key, below, err);
    if (!join)
        return -1;
    if (join->n_nodes != step->n_nodes) {
        tccl_step_free(join);
        return tccl_fail(err, "its JOIN is of another step");
    }
    struct running_step *before = running_find(daemon->running, &step->key);
    if (before)
        leave_before(daemon, before);
    const struct running_step *script = running_script(daemon->running, &step->key);
    struct running_step *known =
        script ? running_begin(daemon->running, join, script->stepd) : NULL;
    if (known)
        known->by_script = true;
    step->by_script = true;
    step_take_part(step, join);
    return 0;
}

void step_merge(struct daemon *daemon, struct connection *connection, json_t *json)
{
    struct report report = {.reason = NULL};
    struct tccl_error err = {0};
    struct child *child = NULL;
    struct step *step = NULL;
    if (report_read(json, 1, &report, &err) == 0)
        step = step_of(daemon, &report, &err);
    else
        memset(&report.key, 0, sizeof(report.key));
    if (step)
        step->required |= report.required;
    bool good = step && (step_has_joined(step) || join_by_script(step, json, &err) == 0);
    if (good && !step_is_open(step)) {
        answer_late(step, connection);
        if (report.reason && step_has_ring(step))
            report_partial(step, report.cause, report.reason_node, report.reason);
        return;
    }
    if (good && take_merge(step, &child, connection, json, &report, &err) == 0)
        return;
    tccl_fail_in(&err, "%s", connection_node(connection));
    tccl_fail_because(&err, TCCL_REASON_MESSAGE);
    log_limited(&daemon->steps->refused, "refused a MERGE: %s", err.text);
    answer_refused(connection, &report.key, &err);
    if (child)
        step_fail(step, err.reason, connection_node(connection), "%s", err.text);
}
