/* One timer for each step. What it is set to, and what is done when it fires, is said by the step's
 * phase alone. */
#include "tccld/join/deadline.h"

#include "base/clock.h"
#include "tccld/join/probe.h"
#include "tccld/join/tree.h"

/* Percent of T. */
enum { MERGING_CLOSES = 60, LEVEL = 5, PROBE_BEFORE = 36, PLAN_COMES = 90 };

int64_t deadline_report(const struct step *step)
{
    int percent = 100 - MERGING_CLOSES + LEVEL * tree_depth(step->node);
    return step->end - (int64_t)step->timeout_ms * percent / 100;
}

static int64_t probe_time(const struct step *step)
{
    return deadline_report(step) - (int64_t)step->timeout_ms * PROBE_BEFORE / 100;
}

int64_t deadline_plan(const struct step *step)
{
    return step->end - (int64_t)step->timeout_ms * (100 - PLAN_COMES) / 100;
}

void deadline_arm(struct step *step)
{
    int64_t at = step->end;
    if (step->phase == STEP_REPORTED || step->end == INT64_MAX) {
        evtimer_del(step->timer); /* nobody waits yet; or the link upwards has a deadline */
        return;
    }
    if (step->phase == STEP_GATHERING)
        at = probe_time(step);
    else if (step->phase == STEP_PROBING)
        at = deadline_report(step);
    struct timeval wait = daemon_in(at - tccl_now_ms());
    evtimer_add(step->timer, &wait);
}

void deadline_expect(struct step *step, int64_t wait_ms)
{
    int64_t end = tccl_now_ms() + wait_ms;
    if (!step_is_open(step) || end >= step->end)
        return;
    step->end = end;
    deadline_arm(step);
}

void deadline_keep(struct step *step)
{
    step->end = tccl_now_ms() + STEP_KEEP_MS;
    deadline_arm(step);
}

static void on_timer(evutil_socket_t fd, short what, void *argument)
{
    struct step *step = argument;
    (void)fd;
    (void)what;
    if (!step_is_open(step)) {
        if (step_enter(step, STEP_EXPIRE))
            step_free(step);
    } else if (step->phase == STEP_GATHERING && tccl_now_ms() < deadline_report(step)) {
        probe_late(step);
    } else {
        probe_give_up(step);
    }
}

int deadline_init(struct step *step)
{
    step->timer = evtimer_new(step->steps->daemon->base, on_timer, step);
    return step->timer ? 0 : -1;
}
