/* goal.c: looks for a better chain between two ports, or a better ring, and for what keeps chains
 * from being better. */
#include "search/task.h"

#include <limits.h>
#include <math.h>

enum {
    FIRST_STEPS = 20000, /* of one route search, in transfers tried, */
    STEPS = 60000,       /* and of its second try */
    FEW_SETS = 50,     /* that one pair of ports may cost in any case; beyond, all its chains are */
    CHAINS_A_SET = 4,  /* measured when it has cost one set for so many, or so much search */
    STEPS_A_CHAIN = 8, /* for each, unless there are TCCL_MANY_CHAINS */
    MAX_ROUNDS = 500,  /* of measuring suspects before a route search is tried again */
    MAX_GIVEN_UP = 6,  /* how often the route search may give up on one goal */
    MAX_DESCENTS = 8,  /* how often a pair is first asked for nearly its bound */
};
static const double DESCENT = 0.9;

int tccl_task_tell(void *context)
{
    struct tccl_task *task = context;
    const struct tccl_search_options *options = task->options;
    struct tccl_search_meter *meter = &task->search->meter;
    struct tccl_search_progress progress = {
        .measured = meter->measured,
        .shared = meter->shared,
        .pruned = task->search->pruned,
        .failed = meter->failed,
        .pairs_done = task->n_done,
        .pairs_total = task->n_goals,
        .ring = task->closed,
    };
    task->told = true;
    if (!meter->stopped && options->progress) {
        int wish = options->progress(options->context, &progress);
        task->search->left_ring = wish == TCCL_SEARCH_LEAVE_RING && task->closed;
        meter->stopped = wish == TCCL_SEARCH_STOP || task->search->left_ring;
    }
    return meter->stopped;
}

bool tccl_task_report(struct tccl_task *task)
{
    if (!task->told)
        tccl_task_tell(task);
    task->told = false;
    return task->search->meter.stopped || task->spent > task->effort;
}

double tccl_task_with_gap(const struct tccl_task *task, double gbps)
{
    return gbps * (1 + task->gap);
}

void tccl_goal_finish(struct tccl_task *task, struct tccl_goal *goal)
{
    if (!goal->done)
        task->n_done++;
    goal->done = true;
}

void tccl_goal_keep(struct tccl_goal *goal, const struct tccl_chain *chain, double gbps)
{
    struct tccl_result *result = goal->result;
    if (gbps <= result->gbps)
        return;
    result->gbps = gbps;
    result->chain = *chain;
    if (result->bound < gbps)
        result->bound = gbps;
}

int tccl_goal_offer(struct tccl_task *task, struct tccl_goal *goal, const struct tccl_chain *chain,
                    double *gbps)
{
    struct tccl_set walk;
    if (*gbps <= goal->result->gbps)
        return 0;
    tccl_chain_walk(chain, &walk);
    int status = tccl_search_meter_measure_itself(&task->search->meter, &walk, gbps, task->err);
    if (status == 0)
        tccl_goal_keep(goal, chain, *gbps);
    return status;
}

struct tccl_route tccl_goal_route(struct tccl_task *task, const struct tccl_goal *goal,
                                  double above)
{
    const struct tccl_chain *like =
        goal->result->chain.n_gpus ? &goal->result->chain : &task->latest;
    return (struct tccl_route){
        .machine = task->search->machine,
        .bounds = task->search->meter.bounds,
        .pigeonholes = &task->pigeonholes,
        .gpus = task->gpus,
        .closed = task->closed,
        .entry = goal->entry,
        .exit = goal->exit,
        .any = task->options->any,
        .shun = task->shun,
        .reads = task->reads,
        .above = above,
        .like = like->n_gpus ? like : NULL,
        .steps = FIRST_STEPS,
        .spent = &task->spent,
        .pruned = &task->search->pruned,
        .poll = tccl_task_tell,
        .poll_context = task,
    };
}

/* Measures a pigeonholes. Returns as tccl_search_meter_measure; *learnt: it is too slow, and the
 * route search knows that now. */
static int settle_suspect(struct tccl_task *task, const struct tccl_set *walk, double above,
                          bool *learnt)
{
    struct tccl_search_meter *meter = &task->search->meter;
    double gbps;
    if (tccl_bounds_excepted(meter->bounds, walk))
        return 0;
    int status = tccl_search_meter_measure(meter, walk, &gbps, task->err);
    if (status != 0 || gbps > above)
        return status;
    status = tccl_search_meter_explain(meter, walk, above, task->err);
    if (status == 0 && !*learnt)
        *learnt = tccl_bounds_of(meter->bounds, walk->transfers, walk->count, above) <= above;
    return status;
}

/* Measures the suspects that a route might meet until none of them turns out to be too slow, or
 * there is no room for more limits. Returns as tccl_search_meter_measure. */
static int settle_suspects(struct tccl_task *task, const struct tccl_route *route)
{
    struct tccl_set walks[TCCL_MAX_SUSPECTS];
    bool learnt = true;
    for (int round = 0; learnt && round < MAX_ROUNDS; round++) {
        learnt = false;
        int count = tccl_route_suspects(route, walks);
        for (int i = 0; i < count; i++) {
            int status = settle_suspect(task, &walks[i], route->above, &learnt);
            if (status != 0)
                return status;
        }
    }
    return 0;
}

int tccl_goal_find_route(struct tccl_task *task, const struct tccl_goal *goal, double above,
                         struct tccl_chain *chain, int *status)
{
    struct tccl_route route = tccl_goal_route(task, goal, above);
    *status = 0;
    int found = tccl_route_find(&route, chain);
    if (found >= 0)
        return found;
    *status = settle_suspects(task, &route);
    route.steps = STEPS;
    return *status == 0 ? tccl_route_find(&route, chain) : -1;
}

/* Tries one chain that may be better than above. TCCL_GOAL_BETTER: it is. TCCL_GOAL_LEARNED: it is
 * not, and what makes it slow is known now. TCCL_GOAL_PROVEN: there is none, and above bounds the
 * goal; where the route search gives up, the goal is finished with the bound that it has. */
static enum tccl_improvement try_one(struct tccl_task *task, struct tccl_goal *goal, double above)
{
    struct tccl_search_meter *meter = &task->search->meter;
    struct tccl_chain chain;
    struct tccl_set walk;
    struct tccl_known known;
    double gbps;
    int status;
    int found = tccl_goal_find_route(task, goal, above, &chain, &status);
    if (status != 0)
        return status < 0 ? TCCL_GOAL_FAILED : TCCL_GOAL_STOPPED;
    if (found == 0)
        goal->result->bound = fmax(fmin(goal->result->bound, above), goal->result->gbps);
    if (found < 0) { /* too hard: a lower one is asked next */
        goal->hard = above;
        if (++goal->given_up >= MAX_GIVEN_UP ||
            above <= goal->result->gbps * (1 + task->gap) * 1.01)
            tccl_goal_finish(task, goal);
    }
    if (found <= 0)
        return TCCL_GOAL_PROVEN;
    tccl_chain_walk(&chain, &walk);
    status = tccl_search_meter_measure(meter, &walk, &gbps, task->err);
    if (status == 0) {
        task->latest = chain;
        status = tccl_goal_offer(task, goal, &chain, &gbps);
    }
    if (status == 0 && gbps <= above) {
        status = tccl_search_meter_explain(meter, &walk, above, task->err);
        if (status == 0 && tccl_bounds_find(meter->bounds, &walk, &known)) {
            gbps = known.gbps; /* measured again, it may be better */
            status = tccl_goal_offer(task, goal, &chain, &gbps);
        }
    }
    if (status == 0 && gbps > above)
        return tccl_task_report(task) ? TCCL_GOAL_STOPPED : TCCL_GOAL_BETTER;
    if (status != 0)
        return status < 0 ? TCCL_GOAL_FAILED : TCCL_GOAL_STOPPED;
    if (tccl_bounds_of(meter->bounds, walk.transfers, walk.count, above) > above)
        tccl_goal_finish(task, goal); /* no room for what was learnt */
    if (goal->done)
        return TCCL_GOAL_PROVEN;
    return tccl_task_report(task) ? TCCL_GOAL_STOPPED : TCCL_GOAL_LEARNED;
}

/* Where learning has cost as much as measuring a good part of all chains: measures all that are
 * left. */
struct visit {
    struct tccl_task *task;
    struct tccl_goal *goal;
    enum tccl_improvement outcome;
    struct tccl_set failed; /* the chain that it ended with; count 0: none */
};

bool tccl_task_has_failed(const struct tccl_task *task, const struct tccl_set *walk)
{
    struct tccl_known known;
    return tccl_bounds_find(task->search->meter.bounds, walk, &known) && known.failed;
}

static int visit(void *context, const struct tccl_chain *chain, double *above)
{
    struct visit *visit = context;
    struct tccl_set walk;
    double gbps;
    tccl_chain_walk(chain, &walk);
    int status =
        tccl_search_meter_measure(&visit->task->search->meter, &walk, &gbps, visit->task->err);
    if (status == 0)
        status = tccl_goal_offer(visit->task, visit->goal, chain, &gbps);
    if (status == 0)
        *above = fmax(*above, tccl_task_with_gap(visit->task, visit->goal->result->gbps));
    if (status == 0 && tccl_task_report(visit->task))
        status = 1;
    if (status != 0)
        visit->outcome = status < 0 ? TCCL_GOAL_FAILED : TCCL_GOAL_STOPPED;
    if (status == 0 && tccl_task_has_failed(visit->task, &walk)) {
        visit->failed = walk;
        visit->outcome = TCCL_GOAL_LEARNED;
        return 1;
    }
    return status;
}

static enum tccl_improvement visit_all(struct tccl_task *task, struct tccl_goal *goal)
{
    struct visit all = {.task = task, .goal = goal, .outcome = TCCL_GOAL_PROVEN};
    struct tccl_route route =
        tccl_goal_route(task, goal, tccl_task_with_gap(task, goal->result->gbps));
    struct tccl_chain chain;
    route.visit = visit;
    route.context = &all;
    route.steps = LONG_MAX;
    int found = tccl_route_find(&route, &chain);
    if (found == 0)
        goal->result->bound =
            fmax(fmin(goal->result->bound, tccl_task_with_gap(task, goal->result->gbps)),
                 goal->result->gbps);
    if (all.failed.count > 0) {
        int status = tccl_search_meter_explain(&task->search->meter, &all.failed, 0, task->err);
        return status < 0 ? TCCL_GOAL_FAILED : status > 0 ? TCCL_GOAL_STOPPED : TCCL_GOAL_LEARNED;
    }
    return found < 0 ? TCCL_GOAL_STOPPED : all.outcome;
}

enum tccl_improvement tccl_goal_try(struct tccl_task *task, struct tccl_goal *goal, double above)
{
    struct tccl_route route = tccl_goal_route(task, goal, 0);
    long chains = tccl_route_count(&route, TCCL_MANY_CHAINS);
    if (chains < TCCL_MANY_CHAINS && goal->asked > FEW_SETS &&
        (goal->asked > chains / CHAINS_A_SET || goal->spent > chains * STEPS_A_CHAIN))
        return visit_all(task, goal);
    long asked = task->search->meter.asked, spent = task->spent;
    enum tccl_improvement outcome = try_one(task, goal, above);
    goal->asked += task->search->meter.asked - asked;
    goal->spent += task->spent - spent;
    return outcome;
}

enum tccl_improvement tccl_goal_improve(struct tccl_task *task, struct tccl_goal *goal,
                                        double above)
{
    enum tccl_improvement outcome;
    do
        outcome = tccl_goal_try(task, goal, above);
    while (outcome == TCCL_GOAL_LEARNED);
    return outcome;
}

double tccl_goal_ask(const struct tccl_task *task, struct tccl_goal *goal, double best)
{
    double least = tccl_task_with_gap(task, best);
    if (goal->hard > 0)
        return fmax(goal->result->gbps * (1 + task->gap), sqrt(goal->result->gbps * goal->hard));
    if (!isfinite(goal->result->bound) || goal->descents >= MAX_DESCENTS)
        return least;
    goal->descents++;
    return fmax(least, goal->result->bound * DESCENT);
}
