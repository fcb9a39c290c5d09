/* The steps that this tccld knows: looked up by key, opened by the first message about them, freed
 * when nobody is expected any more, or, beyond STEP_MOST, the oldest closed one for a new one. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "tccld/join/step.h"

void step_free(struct step *step)
{
    bool open = step_is_open(step);
    TAILQ_REMOVE(open ? &step->steps->open : &step->steps->closed, step, link);
    step->steps->count--;
    for (int i = 0; i < step->n_children; i++)
        child_clear(&step->children[i]);
    for (int i = 0; i < step->n_waiters; i++)
        connection_drop(step->waiters[i]);
    if (step->up)
        link_cancel(step->up);
    probe_cancel(&step->above);
    claims_clear(step);
    daemon_drop(step->timer);
    shared_class_drop(step->class);
    tccl_step_free(step->join);
    tccl_outcome_clear(&step->outcome);
    json_decref(step->record);
    tccl_hosts_clear(&step->below);
    free(step->parent);
    free(step->path);
    free(step->own_ring);
    free(step->children);
    free(step);
}

char *const *step_names(const struct step *step, int node)
{
    if (step->join)
        return step->join->nodes + node;
    return node >= step->node && node < step->node + (int)step->below.count
               ? step->below.names + (node - step->node)
               : NULL;
}

const char *step_name(const struct step *step, int node)
{
    char *const *names = step_names(step, node);
    return names ? *names : NULL;
}

struct step *steps_find(const struct steps *steps, const struct tccl_step_key *key)
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

/* NULL with err: too many steps. */
static struct step *open_step(struct steps *steps, const struct tccl_step_key *key, int node,
                              int n_nodes, int timeout_ms, struct tccl_error *err)
{
    if (steps->count >= STEP_MOST && !TAILQ_EMPTY(&steps->closed))
        step_free(TAILQ_FIRST(&steps->closed));
    struct step *step = steps->count < STEP_MOST ? calloc(1, sizeof(*step)) : NULL;
    if (!step) {
        tccl_fail_as(err, TCCL_REASON_OVERLOAD, "tccld has %d steps under way", steps->count);
        return NULL;
    }
    step->steps = steps;
    step->key = *key;
    tccl_key_format(key, step->text);
    step->node = node;
    step->n_nodes = n_nodes;
    step->timeout_ms = timeout_ms;
    step->phase = STEP_GATHERING;
    step->opened_us = tccl_now_us();
    step->start = time(NULL);
    step->end = step->ask_at = INT64_MAX;
    TAILQ_INSERT_TAIL(&steps->open, step, link);
    steps->count++;
    if (deadline_init(step) != 0 || children_init(step) != 0) {
        tccl_fail_as(err, TCCL_REASON_OVERLOAD, "out of memory");
        step_free(step);
        return NULL;
    }
    return step;
}

struct step *steps_get(struct steps *steps, const struct tccl_step_key *key, int node, int n_nodes,
                       int timeout_ms, struct tccl_error *err)
{
    struct step *step = steps_find(steps, key);
    if (!step)
        return open_step(steps, key, node, n_nodes, timeout_ms, err);
    if (step->node == node && step->n_nodes == n_nodes)
        return step;
    tccl_fail_as(
        err, TCCL_REASON_NODE_LISTS,
        "nodes have different lists of this step's nodes: number %d of %d here, %d of %d there",
        step->node, step->n_nodes, node, n_nodes);
    return NULL;
}

enum { LATE_MS = 10000 }; /* whoever comes later to a step that has ended begins it anew */

bool step_tells_failure(const struct step *step)
{
    int late = step->timeout_ms < LATE_MS ? step->timeout_ms : LATE_MS;
    return !step_is_open(step) && step->outcome.state == TCCL_STATE_FAILED &&
           !step->outcome.partial &&
           (step->phase != STEP_ENDED || tccl_now_ms() < step->end - STEP_KEEP_MS + late);
}

struct steps *steps_new(struct daemon *daemon)
{
    struct steps *steps = calloc(1, sizeof(*steps));
    char path[PATH_MAX];
    if (!steps)
        return NULL;
    steps->daemon = daemon;
    TAILQ_INIT(&steps->open);
    TAILQ_INIT(&steps->closed);
    steps->sockets = stepd_sockets_new();
    if (!steps->sockets) {
        steps_free(steps);
        return NULL;
    }
    /* The plugin's note that the tccld before this one hung (spank/plugin/hung-stamp.c). */
    if (snprintf(path, sizeof(path), "%s/hung", daemon->conf->run_dir) < (int)sizeof(path))
        unlink(path);
    return steps;
}

void steps_stop(struct steps *steps)
{
    struct step *step;
    steps->stopping = true;
    while ((step = TAILQ_FIRST(&steps->open)) != NULL) {
        step->recorded |= step->phase == STEP_REPORTED; /* that is up to its parent */
        step_fail_at(step, TCCL_REASON_NO_DAEMON, steps->daemon->conf->node,
                     "its tccld is being stopped");
    }
}

void steps_free(struct steps *steps)
{
    struct step *step;
    if (!steps)
        return;
    while ((step = TAILQ_FIRST(&steps->open)) || (step = TAILQ_FIRST(&steps->closed)))
        step_free(step);
    stepd_sockets_free(steps->sockets);
    free(steps);
}
