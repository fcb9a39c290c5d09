/* Probes of the tccld of children whose MERGE has not come. One that refuses the connection fails
 * the step at once; of one that listens it is known that its node is up and its step has not
 * started. */
#include "tccld/join/probe.h"

#include <stdio.h>

#include "base/clock.h"
#include "tccld/join/deadline.h"

static void on_probed(void *context, json_t *answer, const struct tccl_error *err)
{
    struct child *child = context;
    (void)answer;
    child->probe = NULL;
    child->listens = !err;
    if (err)
        step_fail(child->step, "%s", err->text);
}

void probe_late(struct step *step)
{
    if (step->phase != STEP_GATHERING || !step_enter(step, STEP_LATE) || !step->join)
        return;
    for (int i = 0; i < step->n_children; i++) {
        struct child *child = &step->children[i];
        if (!child->merge)
            child->probe = link_probe(step->steps->daemon, step->join->nodes[child->node],
                                      deadline_report(step), on_probed, child);
    }
}

void probe_give_up(struct step *step)
{
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
                  step->steps->daemon->conf->node, waited);
        return;
    }
    if (missing > 1)
        snprintf(more, sizeof(more), " (and %d more)", missing - 1);
    snprintf(name, sizeof(name), "node %d", first ? first->node : step->node);
    step_fail(step, "%s: no word from its tccld within %lld ms%s%s",
              first ? step->join->nodes[first->node] : name, waited,
              first && first->listens
                  ? ": the step has not started there (a slow Prolog?), or it hangs"
                  : "",
              more);
}
