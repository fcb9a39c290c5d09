/* One timer for each step. What it is set to, and what is done when it fires, is said by the step's
 * phase alone. */
#include "tccld/join/step.h"

#include "base/clock.h"

enum {
    MERGING_MS = 1000, /* before the end, but not more than two fifths of T */
    LEVEL_MS = 125,
    PLAN_MS = 250,
    ASK_MS = 250,
    TICK_MS = 100 /* between two looks at who still waits */
};

static int64_t less(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int64_t deadline_report(const struct step *step)
{
    int64_t all = step->timeout_ms;
    return step->end - less(MERGING_MS, all * 2 / 5) -
           less(LEVEL_MS, all / 20) * node_tree_depth(step->node);
}

int64_t deadline_plan(const struct step *step)
{
    return step->end - less(PLAN_MS, step->timeout_ms / 10);
}

static int64_t alive_ms(const struct step *step)
{
    return less(step->steps->daemon->conf->alive_timeout_ms, step->timeout_ms);
}

static int64_t ask_ms(const struct step *step)
{
    return less(ASK_MS, alive_ms(step) / 4);
}

int64_t deadline_patience(const struct step *step)
{
    return less(alive_ms(step) - ask_ms(step), deadline_plan(step) - tccl_now_ms());
}

/* At who is late, and who still waits. */
static int64_t next_look(const struct step *step)
{
    return less(tccl_now_ms() + TICK_MS, step->ask_at);
}

void deadline_arm(struct step *step)
{
    int64_t at = step->end;
    if (step->end == INT64_MAX) {
        evtimer_del(step->timer); /* nobody waits yet */
        return;
    }
    if (step->phase == STEP_GATHERING)
        at = less(step->ask_at, deadline_report(step));
    else if (step->phase == STEP_PROBING)
        at = less(next_look(step), deadline_report(step));
    else if (step->phase == STEP_REPORTED)
        at = step->rounds ? next_look(step) : step->ask_at;
    daemon_set(step->timer, at - tccl_now_ms());
}

void deadline_expect(struct step *step, int64_t wait_ms)
{
    int64_t end = tccl_now_ms() + wait_ms;
    if (!step_is_open(step) || end >= step->end)
        return;
    step->end = end;
    deadline_arm(step);
}

void deadline_await(struct step *step)
{
    step->ask_at = tccl_now_ms() + ask_ms(step);
    step->rounds = 0;
    deadline_arm(step);
}

void deadline_keep(struct step *step)
{
    step->end = tccl_now_ms() + STEP_KEEP_MS;
    deadline_arm(step);
}

static void on_timer(evutil_socket_t fd UNUSED, short what UNUSED, void *argument)
{
    struct step *step = argument;
    if (!step_is_open(step)) {
        if (step_enter(step, STEP_EXPIRE))
            step_free(step);
    } else if (step->phase == STEP_REPORTED || tccl_now_ms() < deadline_report(step)) {
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
