/* HERE: is a node alive from which nothing has come? Each node asks those next to it in the tree:
 * the children whose MERGE is missing, and, once it has sent its own, the parent, which owes the
 * PLAN. A tccld answers at once, whatever its node does. The question carries the names of the
 * nodes below the one that is asked: a node whose JOIN is late asks them all the same, so that a
 * dead one is found at once in any place. */
#include "tccld/join/step.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "client/message.h"
#include "tccld/join/running.h"

enum {
    REPEAT_MS = 1000,
    MORE_PARTS = 3,    /* of the time for the answer: after each more is asked */
    LEAST_MS = 300,    /* for the answer to that */
    SOONER_MS = 50,    /* than the question, it is known that nobody says whether he is busy */
    LIST_US = 3000000, /* for slurmd's list of GPUs, where no ring is required */
    TRIES = 4,         /* to ask at all, where this node is too slow */
    BUSY_TIMES = 4,    /* as long is waited for one that is busy */
    LOOK_MS = 1000,    /* until it is looked whether this node has the plugin */
    SILENT_MS = 3000   /* that others wait for it, and a slurmstepd may be there without a JOIN */
};

/* The question */

static link_done on_answer, on_busy;

/* The names below node, and that of its parent, as far as they are known here. Returns 0 or -1. */
static int put_names(const struct step *step, int node, json_t *message)
{
    const char *above = node > 0 ? step_name(step, node_tree_parent(node)) : NULL;
    char *const *names = step_names(step, node);
    if (step->rounds > 1 || !names)
        return 0;
    cleanup_free char *list = tccl_hosts_fold((const char *const *)names,
                                              (size_t)(node_tree_end(node, step->n_nodes) - node));
    if (!list)
        return -1;
    if (above && json_object_set_new(message, "parent", json_string(above)) != 0)
        return -1;
    return json_object_set_new(message, "nodes", json_string(list));
}

/* Puts the question, for the first or the second time. Returns 0, or -1: no memory. */
static int put_question(struct probe *probe, int try)
{
    struct step *step = probe->step;
    const char *name = step_name(step, probe->node);
    cleanup_json json_t *message = report_new(step, "here", probe->node);
    if (!name || !message || put_names(step, probe->node, message) != 0)
        return -1;
    probe->tries[try] = (struct probe_try){.probe = probe};
    probe->tries[try].link = link_ask(step->steps->daemon, name, message, probe->deadline,
                                      on_answer, &probe->tries[try]);
    if (!probe->tries[try].link)
        return -1;
    link_wait(probe->tries[try].link, probe->deadline - tccl_now_ms());
    return 0;
}

static bool is_under_way(const struct probe *probe)
{
    for (int i = 0; i < PROBE_TRIES; i++)
        if (probe->tries[i].link)
            return true;
    return false;
}

static void ask(struct step *step, int node, struct probe *probe)
{
    int64_t now = tccl_now_ms();
    if (is_under_way(probe))
        return;
    *probe = (struct probe){.step = step,
                            .node = node,
                            .since = probe->since ? probe->since : now,
                            .is_busy = probe->since && probe->is_busy,
                            .deadline = now + deadline_patience(step),
                            .more_at = now + deadline_patience(step) / MORE_PARTS};
    put_question(probe, PROBE_FIRST);
}

/* On a connection of its own: a packet may have been lost, or a firewall have reset the first one.
 * Returns 0, or -1: no memory. */
static int put_again(struct probe *probe)
{
    int64_t least = tccl_now_ms() + LEAST_MS;
    probe->repeated = true;
    if (probe->deadline < least)
        probe->deadline = least;
    return put_question(probe, PROBE_AGAIN);
}

/* The question takes munge of both nodes four times. Where the other one has too much of that
 * already, it is not asked it a second time. */
static void ask_busy(struct probe *probe)
{
    struct probe_try *try = &probe->tries[PROBE_BUSY];
    const struct link *first = probe->tries[PROBE_FIRST].link;
    if (probe->repeated || !first || link_failed_here(first))
        return;
    probe->repeated = true;
    *try = (struct probe_try){.probe = probe};
    try->link = link_ask_busy(probe->step->steps->daemon, step_name(probe->step, probe->node),
                              probe->deadline - SOONER_MS, on_busy, try);
}

/* Connections get lost where a port is flooded. */
static void ask_more(struct probe *probe)
{
    if (!is_under_way(probe) || tccl_now_ms() < probe->more_at)
        return;
    probe->more_at += (probe->deadline - probe->more_at) / 2;
    if (!probe->repeated)
        ask_busy(probe);
    else if (probe->tries[PROBE_BUSY].link && !probe->tries[PROBE_AGAIN].link)
        put_again(probe);
}

void probe_cancel(struct probe *probe)
{
    for (int i = 0; i < PROBE_TRIES; i++)
        if (probe->tries[i].link)
            link_cancel(tccl_steal(probe->tries[i].link));
}

/* That says nothing of the node that was to be asked. */
static bool is_asked_again(struct step *step)
{
    if (++step->unasked >= TRIES)
        return false;
    deadline_await(step);
    return true;
}

/* Somebody is there who is busy, or has hung up: it is not waited for in vain yet. */
static bool is_asked_later(const struct probe *probe, const struct link *link)
{
    int64_t patience = deadline_patience(probe->step) * (probe->is_busy ? BUSY_TIMES : 1);
    if ((!probe->is_busy && !link_connected(link)) || tccl_now_ms() >= probe->since + patience)
        return false;
    deadline_await(probe->step);
    return true;
}

static void conclude(struct probe *probe, const json_t *answer, const struct tccl_error *err)
{
    struct step *step = probe->step;
    probe_cancel(probe);
    probe->since = 0;
    if (probe != &step->above) {
        int node = probe->node;
        const char *reason = NULL, *where = step_name(step, node);
        for (int i = 0; i < step->n_children; i++)
            if (step->children[i].node == node)
                step->children[i].listens = !err;
        if (err)
            step_fail(step, err->reason, where, "%s", err->text);
        else if (strcmp(tccl_message_type(answer), "here") != 0)
            step_fail_at(step, TCCL_REASON_VERSION, where,
                         "its tccld does not know the message HERE: update it");
        else if (tccl_get_optional_text(answer, "reason", 511, &reason, NULL) == 0 && reason &&
                 tccl_get_optional_text(answer, "reason_node", TCCL_HOST_NAME, &where, NULL) == 0)
            step_fail(step, tccl_message_reason(answer), where, "%s",
                      reason); /* it has failed there, and can't say so itself */
    } else if (err && step->phase == STEP_REPORTED)
        report_lost(step, err);
}

static void on_answer(void *context, json_t *answer, const struct tccl_error *err)
{
    struct probe_try *try = context;
    struct probe *probe = try->probe;
    const struct link *link = tccl_steal(try->link);
    if (err && is_under_way(probe))
        return; /* another question decides */
    if (err && link_failed_here(link) && is_asked_again(probe->step))
        return;
    if (err && !link_failed_here(link) && !probe->repeated && put_again(probe) == 0)
        return;
    if (err && !link_failed_here(link) && is_asked_later(probe, link))
        return;
    conclude(probe, answer, err);
}

/* Who is busy has more time. Where somebody has spoken, or hung up, who is not, the question may
 * have got lost. */
static void on_busy(void *context, json_t *answer, const struct tccl_error *err)
{
    struct probe_try *try = context;
    struct probe *probe = try->probe;
    const struct link *link = tccl_steal(try->link);
    struct tccl_error why = {""};
    bool late = tccl_now_ms() >= probe->deadline - SOONER_MS;
    bool busy = answer && strcmp(tccl_message_type(answer), LINK_BUSY) == 0;
    if (answer) /* else it is as busy as it said it was */
        probe->is_busy = busy;
    if (!busy && !late && link_connected(link) && !probe->tries[PROBE_AGAIN].link &&
        put_again(probe) == 0)
        return;
    if (is_under_way(probe) || (probe->is_busy && is_asked_later(probe, link)))
        return;
    tccl_fail_as(&why, TCCL_REASON_NO_ANSWER, "%s: no answer within %lld ms: its tccld is busy",
                 step_name(probe->step, probe->node), (long long)(tccl_now_ms() - probe->since));
    conclude(probe, NULL, err ? err : &why);
}

void probe_late(struct step *step)
{
    const struct child *lost = children_lost(step);
    /* Has everybody here hung up who waited? It was cancelled, or its slurmstepd killed. */
    if (step->n_nodes > 1 && step->n_waiters > 0 && !answer_is_awaited(step)) {
        step_fail_at(step, TCCL_REASON_CANCELLED, step_name(step, step->node),
                     "the step no longer waits for its plan (cancelled?)");
        return;
    }
    /* Where its driver hangs, slurmd may never say which GPUs it has. */
    if (step->join && !step->class && step->look && step->join->mode != TCCL_MODE_REQUIRE &&
        tccl_now_us() - step->joined_us > LIST_US) {
        step_fail_at(step, TCCL_REASON_UNKNOWN_GPU, step_name(step, step->node),
                     "slurmd has not said within %d s which GPUs it has", LIST_US / 1000000);
        return;
    }
    if (lost && step->phase != STEP_REPORTED) {
        step_fail_at(step, TCCL_REASON_PLAN_LOST, connection_node(lost->connection), "%s",
                     child_hung_up);
        return;
    }
    if (step->phase == STEP_GATHERING && !step_enter(step, STEP_LATE))
        return;
    ask_more(&step->above);
    for (int i = 0; i < step->n_children; i++)
        ask_more(&step->children[i].probe);
    if (step_names(step, step->node) && tccl_now_ms() >= step->ask_at) {
        int64_t now = tccl_now_ms();
        step->rounds++;
        step->ask_at = now + REPEAT_MS;
        if (step->phase != STEP_PROBING)
            ask(step, node_tree_parent(step->node), &step->above);
        /* Children that have come are asked from the second time on: one that dies then is not
         * waited for either. */
        for (int i = 0; step->phase == STEP_PROBING && i < step->n_children; i++)
            if (!step->children[i].merge || step->rounds > 1)
                ask(step, step->children[i].node, &step->children[i].probe);
    }
    deadline_arm(step);
}

void probe_give_up(struct step *step)
{
    const struct child *first = NULL;
    char more[48] = "";
    long long waited = step->timeout_ms - (step->end - tccl_now_ms()); /* also elsewhere */
    int missing = 0;
    struct tccl_error err = {0};
    for (int i = step->n_children - 1; i >= 0; i--)
        if (!step->children[i].merge) {
            first = &step->children[i];
            missing++;
        }
    if (!step->join) {
        step_fail_at(step, TCCL_REASON_LATE_START, step->steps->daemon->conf->node,
                     "the step has not started there within %lld ms (a slow Prolog?)", waited);
        return;
    }
    if (!first) {
        if (!claims_are_awaited(step, &err))
            tccl_fail_as(&err, TCCL_REASON_UNKNOWN_GPU,
                         "slurmd has not said within %lld ms which GPUs it has", waited);
        step_fail_at(step, err.reason, step->join->nodes[step->node], "%.400s", err.text);
        return;
    }
    if (missing > 1)
        snprintf(more, sizeof(more), " (and %d more)", missing - 1);
    if (first->listens)
        step_fail_at(step, TCCL_REASON_LATE_START, step_name(step, first->node),
                     "the step has not started there within %lld ms (a slow Prolog?)%s", waited,
                     more);
    else
        step_fail_at(step, TCCL_REASON_NO_ANSWER, step_name(step, first->node),
                     "no answer from its tccld within %lld ms%s", waited, more);
}

/* The answer */

/* Takes the names over that a question brings, if this node's JOIN has not. */
static void learn_names(struct step *step, const json_t *json)
{
    const char *list = NULL, *parent = NULL;
    size_t size = (size_t)(node_tree_end(step->node, step->n_nodes) - step->node);
    if (step_names(step, step->node) ||
        tccl_get_optional_text(json, "nodes", TCCL_MAX_NODE_LIST, &list, NULL) != 0 || !list ||
        tccl_get_optional_text(json, "parent", TCCL_HOST_NAME, &parent, NULL) != 0 ||
        tccl_hosts_expand(list, size, &step->below, NULL) != 0)
        return;
    if (step->below.count != size || (parent && !tccl_host_valid(parent))) {
        tccl_hosts_clear(&step->below);
        return;
    }
    if (parent && step->node > 0 && !step->parent)
        step->parent = strdup(parent);
    deadline_await(step);
}

/* The plugin here will not speak: Slurm has none, whether the step has begun here, has ended, or is
 * still to come; or the step has begun, and the plugin can't read tccl.conf, or takes tccld for
 * hung. The others need not wait, but as long as a slurmstepd may need that starts now. */
static void fail_silent(struct step *step)
{
    struct daemon *daemon = step->steps->daemon;
    int64_t waited = step->timeout_ms - (step->end - tccl_now_ms()); /* also elsewhere */
    if (step_has_joined(step) || waited < LOOK_MS)
        return;
    const char *missing = presence_missing(daemon), *node = daemon->conf->node;
    if (waited < SILENT_MS)
        return;
    if (missing)
        step_fail_at(step, TCCL_REASON_CONFIGURATION, node, "Slurm has no plugin there: %.400s",
                     missing);
    else if (stepd_sockets_age(step->steps->sockets, node, &step->key) >= SILENT_MS)
        step_fail_at(step, TCCL_REASON_CONFIGURATION, node,
                     "the step has started there, but its plugin has not spoken for %d s: run "
                     "tccl-check there",
                     SILENT_MS / 1000);
}

static void answer(struct connection *connection, const struct step *step)
{
    cleanup_json json_t *message = tccl_message_new("here");
    if (step_tells_failure(step)) {
        tccl_put_text(message, "reason", step->outcome.reason, 511);
        tccl_message_put_reason(message, step->outcome.cause, step->outcome.reason_node);
    }
    connection_answer(connection, message);
}

void step_alive(struct daemon *daemon UNUSED, struct connection *connection, json_t *json UNUSED)
{
    cleanup_json json_t *message = tccl_message_new("alive");
    connection_answer(connection, message);
}

void step_here(struct daemon *daemon, struct connection *connection, json_t *json)
{
    struct report report = {.reason = NULL};
    struct tccl_error err = {0};
    struct step *step = report_read(json, 0, &report, &err) == 0
                            ? steps_get(daemon->steps, &report.key, (int)report.node,
                                        (int)report.n_nodes, (int)report.timeout_ms, &err)
                            : NULL;
    if (!step) {
        tccl_fail_in(&err, "%s", connection_node(connection));
        log_limited(&daemon->steps->refused, "refused a HERE: %s", err.text);
        connection_refuse_as(connection, err.reason ? err.reason : TCCL_REASON_MESSAGE, err.text);
        return;
    }
    if (step_is_open(step)) {
        learn_names(step, json);
        /* A question of the parent says that it is alive, where ours doesn't get through to it. */
        if (step->phase == STEP_REPORTED &&
            strcmp(connection_node(connection), step->parent) == 0) {
            probe_cancel(&step->above);
            step->above.since = 0;
        }
        deadline_expect(step, report.wait_ms);
        fail_silent(step);
    }
    answer(connection, step);
}
