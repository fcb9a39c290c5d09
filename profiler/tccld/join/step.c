#include "tccld/join/step.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "client/message.h"
#include "tccld/join/confirm.h"
#include "tccld/join/late.h"
#include "tccld/join/node-profile.h"
#include "tccld/join/planfile.h"
#include "tccld/join/steprecord.h"
#include "tccld/join/tree.h"
#include "tccld/journal/journal.h"
#include "tccld/main/metrics.h"
#include "tccld/net/liveness.h"

static void on_timer(evutil_socket_t fd, short what, void *argument);

/* Deadlines: the root closes the merging 0.4 T before those who wait give up, so that plans come
 * down by 0.7 T; a node at depth k reports 0.05 k T before that. */
int64_t step_level_time(const struct step *step)
{
    return step->end - step->timeout_ms * (40 + 5 * tree_depth(step->node)) / 100;
}

void step_set_timer(struct step *step, int64_t at)
{
    struct timeval wait = daemon_in(at - tccl_now_ms());
    evtimer_add(step->timer, &wait);
}

/* Steps that are known */

static void free_child(struct child *child)
{
    merge_free(child->merge);
    if (child->peer)
        peer_drop(child->peer);
    if (child->probe)
        link_cancel(child->probe);
    *child = (struct child){.node = child->node, .step = child->step};
}

void step_free(struct step *step)
{
    TAILQ_REMOVE(step->closed ? &step->steps->closed : &step->steps->open, step, link);
    step->steps->count--;
    for (int i = 0; i < step->n_children; i++)
        free_child(&step->children[i]);
    for (int i = 0; i < step->n_waiters; i++)
        local_drop(step->waiters[i]);
    if (step->up)
        link_cancel(step->up);
    if (step->timer)
        event_free(step->timer);
    shared_kind_drop(step->kind);
    tccl_join_free(step->join);
    outcome_clear(&step->outcome);
    json_decref(step->record);
    json_decref(step->terms);
    free(step->parent);
    free(step->path);
    free(step->own_ring);
    free(step->children);
    free(step);
}

static struct step *find_step(const struct steps *steps, const struct tccl_step_key *key)
{
    struct step *step;
    TAILQ_FOREACH(step, &steps->open, link)
    if (tccl_key_equal(&step->key, key))
        return step;
    TAILQ_FOREACH_REVERSE(step, &steps->closed, step_list, link)
    if (tccl_key_equal(&step->key, key))
        return step;
    return NULL;
}

static int add_children(struct step *step)
{
    int count = 0;
    for (int c = step->node; (c = tree_next_child(step->node, c, step->n_nodes)) >= 0;)
        count++;
    step->children = calloc((size_t)count + 1, sizeof(*step->children));
    if (!step->children)
        return -1;
    for (int c = step->node; (c = tree_next_child(step->node, c, step->n_nodes)) >= 0;)
        step->children[step->n_children++] = (struct child){.node = c, .step = step};
    return 0;
}

/* NULL with err: too many steps. */
static struct step *open_step(struct steps *steps, const struct tccl_step_key *key, int node,
                              int n_nodes, int timeout_ms, struct tccl_error *err)
{
    if (steps->count >= STEP_MOST && !TAILQ_EMPTY(&steps->closed))
        step_free(TAILQ_FIRST(&steps->closed));
    struct step *step = steps->count < STEP_MOST ? calloc(1, sizeof(*step)) : NULL;
    if (!step) {
        tccl_fail(err, "tccld has %d steps under way", steps->count);
        return NULL;
    }
    step->steps = steps;
    step->key = *key;
    tccl_key_format(key, step->text);
    step->node = node;
    step->n_nodes = n_nodes;
    step->timeout_ms = timeout_ms;
    step->opened_us = tccl_now_us();
    step->start = time(NULL);
    step->end = INT64_MAX;
    TAILQ_INSERT_TAIL(&steps->open, step, link);
    steps->count++;
    step->timer = evtimer_new(steps->daemon->base, on_timer, step);
    if (!step->timer || add_children(step) != 0) {
        tccl_fail(err, "out of memory");
        step_free(step);
        return NULL;
    }
    return step;
}

/* The step of a message, opened if it is new; NULL with err if it does not fit what is known. */
struct step *step_get(struct steps *steps, const struct tccl_step_key *key, int node, int n_nodes,
                      int timeout_ms, struct tccl_error *err)
{
    struct step *step = find_step(steps, key);
    if (!step)
        return open_step(steps, key, node, n_nodes, timeout_ms, err);
    if (step->node == node && step->n_nodes == n_nodes)
        return step;
    tccl_fail(err, "the node lists of this step do not match: node %d of %d here, %d of %d there",
              step->node, step->n_nodes, node, n_nodes);
    return NULL;
}

/* What begins under the key of a step that has ended here is another run of it: of a requeued job
 * whose steps are not told SLURM_RESTART_COUNT (srun --export=NONE). */
static void forget_ended(struct steps *steps, const struct tccl_step_key *key)
{
    struct step *step = find_step(steps, key);
    if (step && step->closed && step->left && !step->up)
        step_free(step);
}

/* Somebody waits from now on for wait_ms. */
void step_expect(struct step *step, int64_t wait_ms)
{
    int64_t end = tccl_now_ms() + wait_ms;
    if (!step->closed && end < step->end) {
        step->end = end;
        int64_t level = step_level_time(step);
        step_set_timer(step, step->probed ? level : level - step->timeout_ms * 36 / 100);
    }
}

static void sweep(struct steps *steps)
{
    int removed = planlist_sweep(steps->plans, steps->daemon->conf->run_dir);
    if (removed)
        log_line("removed %d forgotten plan files in %s", removed, steps->daemon->conf->run_dir);
}

/* Answers */

/* Once a step; not if this node was asked by its children alone. */
static void count_answer(struct step *step)
{
    const struct outcome *outcome = &step->outcome;
    if (!step->counted && step->n_waiters > 0)
        metrics_answer(step->steps->daemon->metrics, outcome->state, outcome->reason,
                       outcome->baseline_gbps > 0 ? outcome->gbps / outcome->baseline_gbps : 0,
                       tccl_now_us() - step->joined_us);
    step->counted |= step->n_waiters > 0;
}

void step_answer_waiters(struct step *step)
{
    struct tccl_plan plan = {.state = step->outcome.state,
                             .gbps = step->outcome.gbps,
                             .baseline_gbps = step->outcome.baseline_gbps,
                             .ring = step->own_ring};
    strcpy(plan.reason, step->outcome.reason);
    strcpy(plan.policy, step->outcome.policy);
    if (step->path)
        strcpy(plan.path, step->path);
    cleanup_json json_t *message = tccl_plan_to_json(&plan);
    count_answer(step);
    for (int i = 0; i < step->n_waiters; i++) {
        if (message)
            local_answer(step->waiters[i], message);
        local_drop(step->waiters[i]);
    }
    step->n_waiters = 0;
}

static void answer_child(struct step *step, struct child *child)
{
    cleanup_json json_t *plan = outcome_to_json(&step->outcome, &step->key, child->node,
                                                tree_end(child->node, step->n_nodes));
    struct peer *peer = tccl_steal(child->peer);
    if (plan)
        peer_answer(peer, plan);
    else
        peer_drop(peer);
}

static void answer_children(struct step *step)
{
    for (int i = 0; i < step->n_children; i++) {
        if (step->children[i].peer)
            answer_child(step, &step->children[i]);
        free_child(&step->children[i]);
    }
}

static bool anyone_waits(const struct step *step)
{
    for (int i = 0; i < step->n_waiters; i++)
        if (!local_closed(step->waiters[i]))
            return true;
    return false;
}

/* The ring was given out, and this node alone is without. */
void step_go_without(struct step *step, const char *fmt, ...)
{
    const struct tccl_join *join = &step->join->join;
    char why[256];
    va_list args;
    va_start(args, fmt);
    vsnprintf(why, sizeof(why), fmt, args);
    va_end(args);
    step->outcome.state = TCCL_STATE_FALLBACK;
    step->outcome.partial = step->n_nodes > 1;
    free(step->own_ring);
    step->own_ring = NULL;
    snprintf(step->outcome.reason, sizeof(step->outcome.reason), "%.255s: %.250s",
             join->nodes[join->node], why);
    log_limited(&step->steps->trouble, "step %s: %s", step->text, step->outcome.reason);
}

/* Writes this node's plan. */
void step_apply(struct step *step)
{
    struct daemon *daemon = step->steps->daemon;
    const struct tccl_join *join = &step->join->join;
    struct tccl_error err = {0};
    char path[PATH_MAX];
    if (!anyone_waits(step)) {
        step_go_without(step,
                        "the step no longer waited for its plan (cancelled, or tccld was late)");
        return;
    }
    cleanup_json json_t *plan =
        outcome_plan(&step->outcome, join, step->kind->kind, own_machine(daemon->own),
                     daemon->conf->socket, &step->own_ring, &err);
    if (plan &&
        planfile_write(daemon->conf->run_dir, &step->key, join->gid, plan, path, &err) == 0) {
        step->path = strdup(path);
        alives_forget(daemon, &step->key);
        planlist_add(step->steps->plans, &step->key);
        return;
    }
    step_go_without(step, "%s", err.text);
}

static void keep_record(struct step *step)
{
    if (step->recorded || !step->join)
        return;
    step->recorded = true;
    json_t *record =
        steprecord(&step->join->join, &step->outcome, step->start, step->solve_us, step->gpus);
    if (!record) {
        log_line("no record of step %s: out of memory", step->text);
        return;
    }
    if (step->node == 0 && step->outcome.state == TCCL_STATE_APPLIED)
        step->record = json_incref(record);
    journal_put(step->steps->daemon->journal, record);
}

/* All that is known of this node's range, or why there is no ring. */
static json_t *merge_message(const struct step *step, const struct merge *merge, const char *reason,
                             struct tccl_error *err)
{
    int64_t wait = step->end - tccl_now_ms();
    cleanup_json json_t *message = tccl_message_new("merge");
    cleanup_json json_t *content = merge ? merge_to_json(merge, err) : json_object();
    cleanup_json json_t *rest =
        json_pack("{s:o,s:i,s:i,s:i,s:I}", "key", tccl_key_to_json(&step->key), "node", step->node,
                  "n_nodes", step->n_nodes, "timeout_ms", step->timeout_ms, "wait_ms",
                  (json_int_t)(step->closed || wait < 0 ? 0 : wait));
    if (!content || json_object_update(message, content) != 0 ||
        json_object_update(message, rest) != 0 ||
        (merge && late_as_announced(step) &&
         json_object_set(message, "announced", step->terms) != 0) ||
        (!merge && tccl_put_text(message, "reason", reason, 511) != 0)) {
        tccl_fail(err, "out of memory");
        return NULL;
    }
    return tccl_steal(message);
}

static void on_told(void *context, json_t *answer, const struct tccl_error *err)
{
    struct step *step = context;
    (void)answer;
    if (err)
        log_limited(&step->steps->trouble,
                    "step %s: its record does not say that it is partial: %s", step->text,
                    err->text);
    step->up = NULL;
    step_advance(step);
}

/* The ring was given out, but a node of this range could not take it: the root puts it on record.
 */
void step_tell_partial(struct step *step, const char *reason)
{
    if (step->node == 0 && step->record) {
        cleanup_json json_t *record = json_deep_copy(step->record);
        if (json_object_set_new(record, "state", json_string("partial")) == 0 &&
            tccl_put_text(record, "reason", reason, sizeof(step->outcome.reason) - 1) == 0)
            journal_put(step->steps->daemon->journal, tccl_steal(record));
        return;
    }
    cleanup_json json_t *message = merge_message(step, NULL, reason, NULL);
    if (message && step->parent && !step->up)
        step->up = link_ask(step->steps->daemon, step->parent, message,
                            tccl_now_ms() + LATE_REPORT_MS, on_told, step);
}

static const char hung_up[] = "its tccld closed the connection before its plan was sent";

static void tell_lost(struct step *step, const struct child *child)
{
    char reason[400];
    snprintf(reason, sizeof(reason), "%.255s: %s", step->join->join.nodes[child->node], hung_up);
    step_tell_partial(step, reason);
}

/* What a closed step no longer needs goes, once this node's part is done. */
static void lighten(struct step *step)
{
    if (!step->join || step->up || !step->recorded || step->stands_in)
        return;
    tccl_join_free(step->join);
    step->join = NULL;
    free(step->outcome.choices);
    step->outcome.choices = NULL;
    free(step->outcome.ring);
    step->outcome.ring = NULL;
    shared_kind_drop(step->kind);
    step->kind = NULL;
}

/* A child that has hung up can't be given its plan. */
static const struct child *lost_child(const struct step *step)
{
    for (int i = 0; i < step->n_children; i++)
        if (step->children[i].peer && peer_closed(step->children[i].peer))
            return &step->children[i];
    return NULL;
}

/* The step's outcome is there: everybody who waits gets it. */
static void close_step(struct step *step)
{
    struct steps *steps = step->steps;
    bool root = step->node == 0;
    const struct child *lost = lost_child(step);
    step->closed = true;
    step->solve_us = tccl_now_us() - step->opened_us;
    TAILQ_REMOVE(&steps->open, step, link);
    TAILQ_INSERT_TAIL(&steps->closed, step, link);
    step->end =
        tccl_now_ms() + (step->called || step->stands_in ? STEP_KEEP_LATE_MS : STEP_KEEP_MS);
    step_set_timer(step, step->end);
    step->recorded = step->recorded || step->outcome.recorded;
    step->outcome.recorded = step->recorded || step->join; /* then it is seen to here */
    answer_children(step);
    step->given = step->outcome.state == TCCL_STATE_APPLIED;
    if (step->given && !step->stands_in)
        step_apply(step);
    step_answer_waiters(step);
    if (root)
        keep_record(step);
    else if (step->outcome.partial)
        step_tell_partial(step, step->outcome.reason);
    else if (step->given && lost)
        tell_lost(step, lost);
    step_advance(step);
}

/* No ring on any node: the first reason counts. */
void step_fail(struct step *step, const char *fmt, ...)
{
    va_list args;
    if (step->closed)
        return;
    va_start(args, fmt);
    vsnprintf(step->outcome.reason, sizeof(step->outcome.reason), fmt, args);
    va_end(args);
    step->outcome.state = TCCL_STATE_FALLBACK;
    close_step(step);
}

/* Up the tree */

static void on_plan(void *context, json_t *answer, const struct tccl_error *why)
{
    struct step *step = context;
    struct outcome outcome = {0};
    struct tccl_error err = {0};
    int end = tree_end(step->node, step->n_nodes);
    step->up = NULL;
    if (!answer)
        tccl_fail(&err, "%s", why->text);
    else if (outcome_from_json(&outcome, answer, &step->key, step->node, end, &err) != 0)
        tccl_fail_in(&err, "%s: its plan", step->join->join.nodes[tree_parent(step->node)]);
    if (!step->closed && err.text[0]) {
        step->reported = false; /* once more, as others may have been given the ring */
        step->lost = true;
        step_fail(step, "%s", err.text);
    } else if (!step->closed) {
        outcome_clear(&step->outcome);
        step->outcome = outcome;
        close_step(step);
        return;
    }
    /* It was closed, here, before the answer came: who keeps the record? */
    step->recorded = step->recorded || outcome.recorded;
    outcome_clear(&outcome);
    step_advance(step);
}

static void report(struct step *step, const struct merge *merge)
{
    int64_t deadline =
        step->closed ? tccl_now_ms() + LATE_REPORT_MS : step->end - step->timeout_ms / 10;
    const struct tccl_join *join = &step->join->join;
    const char *own = join->nodes[step->node];
    char reason[sizeof(step->outcome.reason)];
    struct tccl_error err = {0};
    snprintf(reason, sizeof(reason), step->lost ? "%.200s: no plan came from %.300s" : "%s%s",
             step->lost ? own : "", step->outcome.reason);
    cleanup_json json_t *message = merge_message(step, merge, reason, &err);
    step->reported = true;
    if (message)
        step->up = link_ask(step->steps->daemon, join->nodes[tree_parent(step->node)], message,
                            deadline, on_plan, step);
    if (!step->up)
        step_fail(step, "%s: %s", own, err.text[0] ? err.text : "out of memory");
}

/* This node and all below it, in order. NULL with err. */
static struct merge *merge_all(struct step *step, struct tccl_error *err)
{
    struct merge *merge = merge_new(step->node);
    int failed = !merge || merge_add(merge, step->kind, 1, err) != 0;
    for (int i = 0; !failed && i < step->n_children; i++)
        failed = merge_append(merge, step->children[i].merge, err) != 0;
    if (!failed)
        return merge;
    merge_free(merge);
    tccl_fail(err, "out of memory");
    return NULL;
}

static void complete(struct step *step)
{
    const struct tccl_join *join = &step->join->join;
    struct tccl_error err = {0};
    const struct child *lost = lost_child(step);
    if (lost) {
        step_fail(step, "%s: %s", join->nodes[lost->node], hung_up);
        return;
    }
    struct merge *merge = merge_all(step, &err);
    if (!merge) {
        step_fail(step, "%s", err.text);
    } else if (step->node == 0) {
        step->gpus = merge_gpus(merge);
        step->outcome.start = step->start;
        outcome_solve(&step->outcome, merge, join);
        close_step(step);
    } else {
        report(step, merge);
    }
    merge_free(merge);
}

/* Does what can be done now. */
void step_advance(struct step *step)
{
    if (!step->closed) {
        if (step->join && step->kind && step->n_arrived == step->n_children && !step->reported)
            complete(step);
        return;
    }
    if (!step->join)
        return;
    if (step->node != 0 && !step->reported)
        report(step, NULL);
    if (!step->up)
        keep_record(step);
    lighten(step);
}

/* Time */

static void on_timer(evutil_socket_t fd, short what, void *argument)
{
    struct step *step = argument;
    (void)fd;
    (void)what;
    if (step->closed)
        step_free(step);
    else if (step->reported)
        return; /* the link's deadline counts */
    else if (!step->probed && tccl_now_ms() < step_level_time(step))
        late_hurry(step);
    else
        late_fail(step);
}

/* JOIN */

/* Are the children that have come before this node's JOIN those that it names? Returns 0, or -1
 * with err. */
static int check_children(const struct step *step, struct tccl_error *err)
{
    for (int i = 0; i < step->n_children; i++) {
        const struct child *child = &step->children[i];
        const char *name = step->join->join.nodes[child->node];
        if (child->peer && strcmp(peer_node(child->peer), name) != 0)
            return tccl_fail(
                err, "the node lists of this step do not match: node %d is %s here, %s there",
                child->node, name, peer_node(child->peer));
    }
    return 0;
}

/* Sets the kind of this node, or fails the step. */
static void take_join(struct step *step)
{
    struct daemon *daemon = step->steps->daemon;
    const struct tccl_join *join = &step->join->join;
    const char *name = join->nodes[join->node];
    struct tccl_error err = {0};
    if (join->mode == TCCL_MODE_AUTO && join->n_nodes < join->min_nodes) {
        step->reported = true; /* all nodes know this by themselves */
        step->recorded = step->node != 0;
        step_fail(step, "policy: %d nodes in this step, MinNodes is %d", join->n_nodes,
                  join->min_nodes);
        return;
    }
    if (join->reason)
        tccl_fail(&err, "%s", join->reason);
    else if (strcmp(name, daemon->conf->node) != 0)
        tccl_fail(&err, "the tccld there was started for node %s: see --node in tccld(8)",
                  daemon->conf->node);
    else if (check_children(step, &err) == 0)
        step->kind = own_kind(daemon->own, daemon->conf, join->gres, join->n_gres, &err);
    if (!step->kind)
        step_fail(step, "%s: %.400s", name, err.text);
}

/* The node takes part, with a JOIN of its own or with what stands in for it. */
void step_begin(struct step *step, struct tccl_join_message *message)
{
    step->join = message;
    if (step->node > 0)
        step->parent = strdup(message->join.nodes[tree_parent(step->node)]);
    if (step->closed) {
        step_answer_waiters(step);
        step_advance(step);
        return;
    }
    step_expect(step, message->join.timeout_ms);
    take_join(step);
    if (!step->closed)
        step_advance(step);
}

static void record_off(struct daemon *daemon, const struct tccl_join *join)
{
    struct outcome outcome = {.state = TCCL_STATE_OFF};
    long gpus = join->n_nodes == 1 ? join->n_gres : 0;
    json_t *record = join->node == 0 ? steprecord(join, &outcome, time(NULL), 0, gpus) : NULL;
    if (record)
        journal_put(daemon->journal, record);
}

static void join_off(struct daemon *daemon, struct local *local, struct tccl_join_message *message)
{
    struct tccl_plan plan = {.state = TCCL_STATE_OFF};
    cleanup_json json_t *answer = tccl_plan_to_json(&plan);
    record_off(daemon, &message->join);
    metrics_answer(daemon->metrics, plan.state, "", 0, 0);
    local_answer(local, answer);
    tccl_join_free(message);
}

static void add_waiter(struct step *step, struct local *local)
{
    if (step->n_waiters == WAITERS)
        local_refuse(local, "this step has been joined too often");
    else
        step->waiters[step->n_waiters++] = local_hold(local);
}

void step_join(struct daemon *daemon, struct local *local, json_t *json)
{
    struct tccl_error err = {0};
    struct tccl_join_message *message = tccl_join_from_json(json, &err);
    if (message)
        metrics_join(daemon->metrics, message->join.mode);
    if (message && message->join.mode == TCCL_MODE_OFF) {
        join_off(daemon, local, message);
        return;
    }
    const struct tccl_join *join = message ? &message->join : NULL;
    if (join)
        forget_ended(daemon->steps, &join->key);
    struct step *step = join ? step_get(daemon->steps, &join->key, join->node, join->n_nodes,
                                        join->timeout_ms, &err)
                             : NULL;
    if (!step) {
        log_limited(&daemon->steps->refused, "refused a JOIN: %s", err.text);
        local_refuse(local, err.text);
        tccl_join_free(message);
        return;
    }
    add_waiter(step, local);
    if (step->joined) { /* again */
        tccl_join_free(message);
        if (step->closed)
            step_answer_waiters(step);
        return;
    }
    step->joined = true;
    step->joined_us = tccl_now_us();
    if (step->stands_in) {
        late_take_over(step, message);
        return;
    }
    late_compare(step, message);
    step_begin(step, message);
}

/* The plan is gone: whoever asks for it again must not be sent there. */
static void end_plan(struct steps *steps, const struct tccl_step_key *key)
{
    struct step *step = find_step(steps, key);
    confirm_end(steps->daemon, key);
    alives_forget(steps->daemon, key);
    planfile_remove(steps->daemon->conf->run_dir, key);
    planlist_remove(steps->plans, key);
    if (step)
        step->left = step->closed;
    if (!step || !step->path)
        return;
    free(step->path);
    step->path = NULL;
    step->outcome.state = TCCL_STATE_FALLBACK;
    snprintf(step->outcome.reason, sizeof(step->outcome.reason), "%s: the step has ended here",
             steps->daemon->conf->node);
}

void step_leave(struct daemon *daemon, struct local *local, json_t *json)
{
    struct tccl_step_key key;
    struct tccl_error err = {0};
    if (tccl_key_from_json(json_object_get(json, "key"), &key, &err) != 0) {
        local_refuse(local, err.text);
        return;
    }
    if (key.step == TCCL_NO_STEP)
        late_end_job(daemon->steps, &key);
    else
        end_plan(daemon->steps, &key);
    cleanup_json json_t *answer = tccl_message_new("ok");
    local_answer(local, answer);
    sweep(daemon->steps);
}

/* MERGE */

int step_read_report(const json_t *json, struct report *report, struct tccl_error *err)
{
    if (tccl_key_from_json(json_object_get(json, "key"), &report->key, err) != 0 ||
        tccl_get_int(json, "n_nodes", 2, TCCL_MAX_NODES, &report->n_nodes, err) != 0 ||
        tccl_get_int(json, "node", 1, report->n_nodes - 1, &report->node, err) != 0 ||
        tccl_get_int(json, "timeout_ms", 1, TCCL_MAX_TIMEOUT_MS, &report->timeout_ms, err) != 0 ||
        tccl_get_int(json, "wait_ms", 0, report->timeout_ms, &report->wait_ms, err) != 0 ||
        tccl_get_optional_text(json, "reason", 511, &report->reason, err) != 0)
        return tccl_fail_in(err, "MERGE");
    return 0;
}

/* The place of the sender below this node; NULL with err if it is not what its name says. */
static struct child *find_child(struct step *step, int node, const char *name,
                                struct tccl_error *err)
{
    if (step->join && strcmp(step->join->join.nodes[node], name) != 0) {
        tccl_fail(err, "the node lists of this step do not match: node %d is %s here, %s there",
                  node, step->join->join.nodes[node], name);
        return NULL;
    }
    for (int i = 0; i < step->n_children; i++)
        if (step->children[i].node == node)
            return &step->children[i];
    tccl_fail(err, "node %d is not below node %d", node, step->node);
    return NULL;
}

static void refuse(struct step *step, struct peer *peer, const struct report *report,
                   const char *reason)
{
    struct outcome outcome = {.state = TCCL_STATE_FALLBACK};
    snprintf(outcome.reason, sizeof(outcome.reason), "%s", reason);
    cleanup_json json_t *plan = outcome_to_json(&outcome, &report->key, 0, 0);
    if (plan)
        peer_answer(peer_hold(peer), plan);
    if (step)
        step_fail(step, "%s", reason);
}

/* A child that asks (again) after the step has closed: there is no ring for it any more. */
static void answer_late(struct step *step, struct peer *peer)
{
    struct outcome outcome = step->outcome;
    if (outcome.state == TCCL_STATE_APPLIED) {
        outcome.state = TCCL_STATE_FALLBACK;
        snprintf(outcome.reason, sizeof(outcome.reason),
                 "%s: the ring was given out before it asked again", peer_node(peer));
    }
    cleanup_json json_t *plan = outcome_to_json(&outcome, &step->key, 0, 0);
    if (plan)
        peer_answer(peer_hold(peer), plan);
}

static void arrive(struct step *step, struct child *child, struct peer *peer, struct merge *merge,
                   json_t *terms)
{
    step->strange |= !json_is_object(terms);
    if (!step->terms && !step->strange)
        step->terms = json_incref(terms);
    step->n_arrived += !child->merge;
    free_child(child);
    child->merge = merge;
    child->peer = peer_hold(peer);
    child->there = true;
}

void step_merge(struct daemon *daemon, struct peer *peer, json_t *json)
{
    struct report report;
    struct tccl_error err = {0};
    struct step *step = NULL;
    struct child *child = NULL;
    struct merge *merge = NULL;
    bool good = step_read_report(json, &report, &err) == 0;
    if (good && !report.reason)
        forget_ended(daemon->steps, &report.key);
    if (good)
        step = step_get(daemon->steps, &report.key, tree_parent((int)report.node),
                        (int)report.n_nodes, (int)report.timeout_ms, &err);
    else
        memset(&report.key, 0, sizeof(report.key));
    if (step && step->closed) {
        answer_late(step, peer);
        if (report.reason && step->given)
            step_tell_partial(step, report.reason);
        return;
    }
    if (step)
        child = find_child(step, (int)report.node, peer_node(peer), &err);
    if (child && !report.reason)
        merge = merge_from_json(json, child->node, tree_end(child->node, step->n_nodes), &err);
    if (child && report.reason) {
        step_fail(step, "%s", report.reason);
        answer_late(step, peer);
        return;
    }
    if (!merge) {
        tccl_fail_in(&err, "%s", peer_node(peer));
        log_limited(&daemon->steps->refused, "refused a MERGE: %s", err.text);
        refuse(child ? step : NULL, peer, &report, err.text);
        return;
    }
    arrive(step, child, peer, merge, json_object_get(json, "announced"));
    step_expect(step, report.wait_ms);
    step_advance(step);
}

/* Life */

struct steps *steps_new(struct daemon *daemon)
{
    struct steps *steps = calloc(1, sizeof(*steps));
    if (!steps)
        return NULL;
    steps->daemon = daemon;
    TAILQ_INIT(&steps->open);
    TAILQ_INIT(&steps->closed);
    steps->plans = planlist_new();
    steps->announces = announces_new();
    if (!steps->plans || !steps->announces) {
        steps_free(steps);
        return NULL;
    }
    sweep(steps);
    return steps;
}

void steps_stop(struct steps *steps)
{
    struct step *step;
    while ((step = TAILQ_FIRST(&steps->open)) != NULL) {
        step->reported = true; /* no more questions */
        step_fail(step, "%s: its tccld is being stopped", steps->daemon->conf->node);
    }
}

void steps_free(struct steps *steps)
{
    struct step *step;
    if (!steps)
        return;
    while ((step = TAILQ_FIRST(&steps->open)) || (step = TAILQ_FIRST(&steps->closed)))
        step_free(step);
    planlist_free(steps->plans);
    announces_free(steps->announces);
    free(steps);
}
