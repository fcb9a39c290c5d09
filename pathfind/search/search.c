/* search.c: the best chain of every port pair, best pairs first. */
#include "search/search.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "nccl/baseline.h"
#include "search/probe.h"
#include "search/route.h"

enum {
    FIRST_STEPS = 20000, /* of one route search, in transfers tried, */
    STEPS = 60000,       /* and of its second try */
    FEW_SETS = 50,    /* that one pair of ports may cost in any case; beyond, all its chains are */
    CHAINS_A_SET = 4, /* measured when it has cost one set for so many of them, or so much search */
    STEPS_A_CHAIN = 8,    /* for each, */
    MANY_CHAINS = 100000, /* unless there are as many as this */
    EFFORT = 15000000,    /* of all route searches of a call, some ten seconds: then it stops */
    MAX_ROUNDS = 500,     /* of measuring suspects before a route search is tried again */
    MAX_GIVEN_UP = 6,     /* how often the route search may give up on one goal */
    MAX_DESCENTS = 8,     /* how often a pair is first asked for nearly its bound */
    WITHOUT_AVOIDED =
        3000000,   /* transfers tried for bounds without failed sets, some two seconds */
    MAX_RUNS = 4,  /* over a table's pairs, where what was proven turns out to be wrong */
    MAX_FIRST = 4, /* chains tried as a pair's first one, while they fail */
};
static const double DESCENT = 0.9;

/* The baseline of the last GPU set, for NCCL's search takes its time. */
struct kept_baseline {
    uint32_t gpus;
    struct tccl_baseline baseline;
};

struct tccl_search {
    const struct tccl_machine *machine;
    struct tccl_probe probe;
    struct tccl_setmap own;       /* measured sets, where the meter doesn't remember them */
    long baselines;               /* of the measured sets, those of baselines */
    struct kept_baseline kept[2]; /* open, closed */
    long pruned;
    bool left_ring; /* stopped, but only as far as the ring goes */
};

struct tccl_search *tccl_search_new(const struct tccl_machine *machine, struct tccl_meter meter,
                                    const struct tccl_symmetry *symmetry)
{
    struct tccl_search *search = calloc(1, sizeof(*search));
    if (!search)
        return NULL;
    search->machine = machine;
    search->probe.meter = meter;
    search->probe.sets = meter.sets ? meter.sets : &search->own;
    search->probe.bounds = tccl_bounds_new(machine, symmetry, search->probe.sets);
    if (!search->probe.bounds) {
        free(search);
        return NULL;
    }
    return search;
}

void tccl_search_free(struct tccl_search *search)
{
    if (!search)
        return;
    tccl_bounds_free(search->probe.bounds);
    tccl_setmap_clear(&search->own);
    free(search);
}

long tccl_search_measured(const struct tccl_search *search)
{
    return search->probe.measured - search->baselines;
}

long tccl_search_failed(const struct tccl_search *search)
{
    return search->probe.failed;
}

static void walk_of_set(const struct tccl_set *set, struct tccl_walk *walk)
{
    walk->count = set->count;
    memcpy(walk->transfers, set->transfers, set->count * sizeof(set->transfers[0]));
}

int tccl_search_measure(struct tccl_search *search, const struct tccl_set *set, double *gbps,
                        struct tccl_error *err)
{
    struct tccl_walk walk;
    walk_of_set(set, &walk);
    long budget = search->probe.budget;
    search->probe.budget = 0;
    search->probe.stopped = false;
    int status = tccl_probe_measure(&search->probe, &walk, gbps, err);
    search->probe.budget = budget;
    struct tccl_known known;
    if (status == 0 && tccl_bounds_find(search->probe.bounds, &walk, &known) && known.failed)
        return tccl_fail(err, "the set could not be measured");
    return status;
}

/* One chain wanted: between two ports, or a ring. */
struct goal {
    struct tccl_port entry, exit;
    struct tccl_result *result;
    bool done;    /* proven within the gap, impossible, or given up */
    long asked;   /* sets that it has cost so far */
    long spent;   /* transfers tried for it in route searches */
    double hard;  /* the lowest threshold that the route search gave up at; 0: none */
    int given_up; /* how often it did */
    int descents;
};

/* One call: the goals over one GPU set. */
struct task {
    struct tccl_search *search;
    const struct tccl_search_options *options;
    struct tccl_error *err;
    uint32_t gpus;
    bool closed;
    double gap;
    struct goal *goals;
    int n_goals;
    int n_done;
    struct tccl_pigeonholes pigeonholes;
    long spent;               /* transfers tried in route searches */
    long effort;              /* that it may cost */
    struct tccl_chain latest; /* the last route tried: the next one starts from it */
    size_t raises;            /* raised limits that the goals' bounds know of */
    bool unproven;            /* what was proven may not be true */
    bool told;                /* of the progress, since something was last reported */
};

/* Tells of the progress. Returns non-zero to stop. */
static int tell(void *context)
{
    struct task *task = context;
    const struct tccl_search_options *options = task->options;
    struct tccl_probe *probe = &task->search->probe;
    struct tccl_search_progress progress = {
        .measured = probe->measured,
        .shared = probe->shared,
        .pruned = task->search->pruned,
        .failed = probe->failed,
        .pairs_done = task->n_done,
        .pairs_total = task->n_goals,
        .ring = task->closed,
    };
    task->told = true;
    if (!probe->stopped && options->progress) {
        int wish = options->progress(options->context, &progress);
        task->search->left_ring = wish == TCCL_SEARCH_LEAVE_RING && task->closed;
        probe->stopped = wish == TCCL_SEARCH_STOP || task->search->left_ring;
    }
    return probe->stopped;
}

/* Tells of the progress, unless the probe did. Returns whether to stop: told so, or this has taken
 * long enough. */
static bool report(struct task *task)
{
    if (!task->told)
        tell(task);
    task->told = false;
    return task->search->probe.stopped || task->spent > task->effort;
}

/* The chain found is good enough for every goal up to this bandwidth. */
static double with_gap(const struct task *task, double gbps)
{
    return gbps * (1 + task->gap);
}

static void finish(struct task *task, struct goal *goal)
{
    if (!goal->done)
        task->n_done++;
    goal->done = true;
}

/* Keeps the chain if it is the best yet. A bound from noisy parts gives way to what was measured.
 */
static void keep(struct goal *goal, const struct tccl_chain *chain, double gbps)
{
    struct tccl_result *result = goal->result;
    if (gbps <= result->gbps)
        return;
    result->gbps = gbps;
    result->chain = *chain;
    if (result->bound < gbps)
        result->bound = gbps;
}

/* Keeps the chain if it is the best yet, and itself measured. Returns as tccl_probe_measure, with
 * its bandwidth. */
static int offer(struct task *task, struct goal *goal, const struct tccl_chain *chain, double *gbps)
{
    struct tccl_walk walk;
    if (*gbps <= goal->result->gbps)
        return 0;
    tccl_route_walk(chain, &walk);
    int status = tccl_probe_measure_itself(&task->search->probe, &walk, gbps, task->err);
    if (status == 0)
        keep(goal, chain, *gbps);
    return status;
}

static struct tccl_route route_to(struct task *task, const struct goal *goal, double above)
{
    const struct tccl_chain *like =
        goal->result->chain.n_gpus ? &goal->result->chain : &task->latest;
    return (struct tccl_route){
        .machine = task->search->machine,
        .bounds = task->search->probe.bounds,
        .pigeonholes = &task->pigeonholes,
        .gpus = task->gpus,
        .closed = task->closed,
        .entry = goal->entry,
        .exit = goal->exit,
        .any = task->options->any,
        .above = above,
        .like = like->n_gpus ? like : NULL,
        .steps = FIRST_STEPS,
        .spent = &task->spent,
        .pruned = &task->search->pruned,
        .poll = tell,
        .poll_context = task,
    };
}

/* Measures a pigeonholes. Returns as tccl_probe_measure; *learnt: it is too slow, and the route
 * search knows that now. */
static int settle_suspect(struct task *task, const struct tccl_walk *walk, double above,
                          bool *learnt)
{
    struct tccl_probe *probe = &task->search->probe;
    double gbps;
    int status = tccl_probe_measure(probe, walk, &gbps, task->err);
    if (status != 0 || gbps > above)
        return status;
    status = tccl_probe_explain(probe, walk, above, task->err);
    if (status == 0 && !*learnt)
        *learnt = tccl_bounds_of(probe->bounds, walk->transfers, walk->count, above) <= above;
    return status;
}

/* Measures the suspects that a route might meet until none of them turns out to be too slow, or
 * there is no room for more limits. Returns as tccl_probe_measure. */
static int settle_suspects(struct task *task, const struct tccl_route *route)
{
    struct tccl_walk walks[TCCL_MAX_SUSPECTS];
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

/* A chain that may be better than above: 1; 0: there is none; -1: gave up. *status: as
 * tccl_probe_measure. */
static int find_route(struct task *task, const struct goal *goal, double above,
                      struct tccl_chain *chain, int *status)
{
    struct tccl_route route = route_to(task, goal, above);
    *status = 0;
    int found = tccl_route_find(&route, chain);
    if (found >= 0)
        return found;
    *status = settle_suspects(task, &route);
    route.steps = STEPS;
    return *status == 0 ? tccl_route_find(&route, chain) : -1;
}

/* Too hard at this threshold: a lower one is asked next, down to what is known already. */
static void give_up(struct task *task, struct goal *goal, double above)
{
    goal->hard = above;
    if (++goal->given_up >= MAX_GIVEN_UP || above <= goal->result->gbps * (1 + task->gap) * 1.01)
        finish(task, goal);
}

enum improvement { FAILED = -1, PROVEN, BETTER, STOPPED, LEARNED };

/* Tries one chain that may be better than above. BETTER: it is. LEARNED: it is not, and what makes
 * it slow is known now. PROVEN: there is none, and above bounds the goal; where the route search
 * gives up, the goal is finished with the bound that it has. */
static enum improvement try_one(struct task *task, struct goal *goal, double above)
{
    struct tccl_probe *probe = &task->search->probe;
    struct tccl_chain chain;
    struct tccl_walk walk;
    struct tccl_known known;
    double gbps;
    int status;
    int found = find_route(task, goal, above, &chain, &status);
    if (status != 0)
        return status < 0 ? FAILED : STOPPED;
    if (found == 0)
        goal->result->bound = fmax(fmin(goal->result->bound, above), goal->result->gbps);
    if (found < 0)
        give_up(task, goal, above);
    if (found <= 0)
        return PROVEN;
    tccl_route_walk(&chain, &walk);
    status = tccl_probe_measure(probe, &walk, &gbps, task->err);
    if (status == 0) {
        task->latest = chain;
        status = offer(task, goal, &chain, &gbps);
    }
    if (status == 0 && gbps <= above) {
        status = tccl_probe_explain(probe, &walk, above, task->err);
        if (status == 0 && tccl_bounds_find(probe->bounds, &walk, &known)) {
            gbps = known.gbps; /* measured again, it may be better */
            status = offer(task, goal, &chain, &gbps);
        }
    }
    if (status == 0 && gbps > above)
        return report(task) ? STOPPED : BETTER;
    if (status != 0)
        return status < 0 ? FAILED : STOPPED;
    if (tccl_bounds_of(probe->bounds, walk.transfers, walk.count, above) > above)
        finish(task, goal); /* no room for what was learnt */
    if (goal->done)
        return PROVEN;
    return report(task) ? STOPPED : LEARNED;
}

/* Where learning has cost as much as measuring a good part of all chains: measures all that are
 * left. */
struct visit {
    struct task *task;
    struct goal *goal;
    enum improvement outcome;
    struct tccl_walk failed; /* the chain that it ended with; count 0: none */
};

static bool has_failed(const struct task *task, const struct tccl_walk *walk)
{
    struct tccl_known known;
    return tccl_bounds_find(task->search->probe.bounds, walk, &known) && known.failed;
}

static int visit(void *context, const struct tccl_chain *chain, double *above)
{
    struct visit *visit = context;
    struct tccl_walk walk;
    double gbps;
    tccl_route_walk(chain, &walk);
    int status = tccl_probe_measure(&visit->task->search->probe, &walk, &gbps, visit->task->err);
    if (status == 0)
        status = offer(visit->task, visit->goal, chain, &gbps);
    if (status == 0) {
        *above = fmax(*above, with_gap(visit->task, visit->goal->result->gbps));
    }
    if (status == 0 && report(visit->task))
        status = 1;
    if (status != 0)
        visit->outcome = status < 0 ? FAILED : STOPPED;
    if (status == 0 && has_failed(visit->task, &walk)) {
        visit->failed = walk;
        visit->outcome = LEARNED;
        return 1;
    }
    return status;
}

static enum improvement visit_all(struct task *task, struct goal *goal)
{
    struct visit all = {.task = task, .goal = goal, .outcome = PROVEN};
    struct tccl_route route = route_to(task, goal, with_gap(task, goal->result->gbps));
    struct tccl_chain chain;
    route.visit = visit;
    route.context = &all;
    route.steps = LONG_MAX;
    int found = tccl_route_find(&route, &chain);
    if (found == 0)
        goal->result->bound =
            fmax(fmin(goal->result->bound, with_gap(task, goal->result->gbps)), goal->result->gbps);
    if (all.failed.count > 0) {
        int status = tccl_probe_explain(&task->search->probe, &all.failed, 0, task->err);
        return status < 0 ? FAILED : status > 0 ? STOPPED : LEARNED;
    }
    return found < 0 ? STOPPED : all.outcome;
}

static bool better_visit_all(struct task *task, const struct goal *goal)
{
    struct tccl_route route = route_to(task, goal, 0);
    long chains = tccl_route_count(&route, MANY_CHAINS);
    return chains < MANY_CHAINS && goal->asked > FEW_SETS &&
           (goal->asked > chains / CHAINS_A_SET || goal->spent > chains * STEPS_A_CHAIN);
}

/* As try_one, or with all chains at once. */
static enum improvement try_some(struct task *task, struct goal *goal, double above)
{
    if (better_visit_all(task, goal))
        return visit_all(task, goal);
    long asked = task->search->probe.asked, spent = task->spent;
    enum improvement outcome = try_one(task, goal, above);
    goal->asked += task->search->probe.asked - asked;
    goal->spent += task->spent - spent;
    return outcome;
}

/* Tries chains until one is better than above, or none is left. */
static enum improvement improve(struct task *task, struct goal *goal, double above)
{
    enum improvement outcome;
    do
        outcome = try_some(task, goal, above);
    while (outcome == LEARNED);
    return outcome;
}

/* What to ask of a goal whose bound is above with_gap(best): first nearly its bound, since what
 * stands in the way of a good chain is what is worth knowing, then just more than the best. */
static double ask(const struct task *task, struct goal *goal, double best)
{
    double least = with_gap(task, best);
    if (goal->hard > 0)
        return fmax(goal->result->gbps * (1 + task->gap), sqrt(goal->result->gbps * goal->hard));
    if (!isfinite(goal->result->bound) || goal->descents >= MAX_DESCENTS)
        return least;
    goal->descents++;
    return fmax(least, goal->result->bound * DESCENT);
}

static double lifted(const struct tccl_raise *raises, size_t first, size_t count, double bound)
{
    for (size_t i = first; i < count; i++)
        if (raises[i].low <= bound && bound < raises[i].high)
            bound = raises[i].high;
    return bound;
}

/* What was proven with limits that were raised since holds no more; less still does. */
static void lift_bounds(struct task *task)
{
    const struct tccl_raise *raises;
    size_t count = tccl_bounds_raises(task->search->probe.bounds, &raises);
    if (count == task->raises)
        return;
    for (int i = 0; i < task->n_goals; i++) {
        struct tccl_result *result = task->goals[i].result;
        bool was_proven = result->bound <= with_gap(task, result->gbps);
        result->bound = lifted(raises, task->raises, count, result->bound);
        task->unproven |= was_proven && result->bound > with_gap(task, result->gbps);
    }
    task->raises = count;
    task->pigeonholes = (struct tccl_pigeonholes){0};
}

/* Without the symmetry, what was proven with it has to be proven anew. */
static int give_up_symmetry(struct task *task)
{
    struct tccl_probe *probe = &task->search->probe;
    if (!tccl_bounds_assumes(probe->bounds))
        return 0;
    if (tccl_bounds_distrust(probe->bounds) < 0)
        return tccl_fail(task->err, "out of memory");
    for (int i = 0; i < task->n_goals; i++)
        task->goals[i].result->bound = INFINITY;
    task->pigeonholes = (struct tccl_pigeonholes){0};
    task->unproven = true;
    return 0;
}

/* Brings the bounds up to date with what was learnt of measurements that were wrong. Returns 0, or
 * -1 with err. */
static int reconsider(struct task *task)
{
    lift_bounds(task);
    return task->search->probe.distrusts ? give_up_symmetry(task) : 0;
}

typedef bool goal_filter(const struct goal *goal, const void *context);

/* The goals not done with the best bandwidth (*best) and with the highest bound (*open); NULL if
 * none. */
static void leaders(struct task *task, goal_filter *filter, const void *context, struct goal **best,
                    struct goal **open)
{
    *best = *open = NULL;
    for (int i = 0; i < task->n_goals; i++) {
        struct goal *goal = &task->goals[i];
        if (goal->done || (filter && !filter(goal, context)))
            continue;
        if (!*best || goal->result->gbps > (*best)->result->gbps)
            *best = goal;
        if (!*open || goal->result->bound > (*open)->result->bound)
            *open = goal;
    }
}

/* Proves the best goals, one after the other: as soon as no bound is above the best bandwidth by
 * more than the gap, that best one is done. Returns 0; 1 when stopped; -1 with err. */
static int prove_best(struct task *task, int wanted, goal_filter *filter, const void *context)
{
    struct goal *best, *open;
    while (wanted > 0) {
        if (reconsider(task) < 0)
            return -1;
        leaders(task, filter, context, &best, &open);
        if (!best)
            return 0;
        if (open->result->bound <= with_gap(task, best->result->gbps) || open->result->bound <= 0) {
            best->result->bound = fmin(best->result->bound, open->result->bound);
            finish(task, best);
            wanted--;
            if (report(task))
                return 1;
            continue;
        }
        enum improvement outcome = improve(task, open, ask(task, open, best->result->gbps));
        if (outcome == FAILED)
            return -1;
        if (outcome == STOPPED || report(task))
            return 1;
    }
    return 0;
}

/* Tries one chain above some share of the goal's bound. Returns as tccl_probe_measure; *found: as
 * tccl_route_find. */
static int try_first(struct task *task, struct goal *goal, double above, int *found)
{
    struct tccl_probe *probe = &task->search->probe;
    struct tccl_chain chain;
    struct tccl_walk walk;
    double gbps;
    int status;
    *found = find_route(task, goal, above, &chain, &status);
    if (status != 0 || *found < 0)
        return status;
    if (*found == 0) {
        goal->result->bound = fmax(above, goal->result->gbps);
        return 0;
    }
    tccl_route_walk(&chain, &walk);
    status = tccl_probe_measure(probe, &walk, &gbps, task->err);
    if (status == 0)
        status = offer(task, goal, &chain, &gbps);
    if (status == 0 && has_failed(task, &walk))
        status = tccl_probe_explain(probe, &walk, 0, task->err);
    return status;
}

/* A first chain for a goal that nobody proves: one as good as what is known allows. */
static int first_chain(struct task *task, struct goal *goal)
{
    static const double share[] = {0.97, 0.8, 0.5, 0};
    double bound = isfinite(goal->result->bound) ? goal->result->bound : 0;
    int tries = 0;
    for (size_t i = 0; i < sizeof(share) / sizeof(share[0]) && tries < MAX_FIRST;) {
        int found;
        int status = try_first(task, goal, bound * share[i], &found);
        if (status != 0 || found < 0 || goal->result->gbps > 0)
            return status;
        i += found == 0;
        tries += found > 0;
    }
    return 0;
}

static int first_chains(struct task *task)
{
    for (int i = 0; i < task->n_goals; i++) {
        struct goal *goal = &task->goals[i];
        if (goal->done || goal->result->gbps > 0)
            continue;
        int status = first_chain(task, goal);
        if (status != 0)
            return status;
        finish(task, goal);
        if (report(task))
            return 1;
    }
    return 0;
}

/* One transfer alone: lowers the goal's bound to its bandwidth, which then limits all that contain
 * it; to 0 if it failed. Returns as tccl_probe_measure. */
static int bound_by(struct task *task, tccl_transfer transfer, struct tccl_result *result)
{
    struct tccl_probe *probe = &task->search->probe;
    struct tccl_walk one = {.count = 1, .transfers = {transfer}};
    struct tccl_known known = {0};
    double gbps;
    int status = tccl_probe_measure(probe, &one, &gbps, task->err);
    if (status != 0)
        return status;
    tccl_bounds_find(probe->bounds, &one, &known);
    double most = fmax(known.upper, tccl_bounds_floor(probe->bounds, &one));
    if (known.failed || tccl_bounds_alone(probe->bounds, transfer) > most)
        status = tccl_probe_explain(probe, &one, most, task->err);
    double alone = known.failed ? 0 : tccl_bounds_alone(probe->bounds, transfer);
    result->bound = fmax(fmin(result->bound, alone), result->gbps);
    return status;
}

/* Each NIC's own transfers alone give every pair of ports a first bound. */
static int bound_ports(struct task *task)
{
    for (int i = 0; i < task->n_goals; i++) {
        struct goal *goal = &task->goals[i];
        tccl_transfer in[2], out[2];
        tccl_entry_transfers(goal->entry, 0, in);
        tccl_exit_transfers(goal->exit, 0, out);
        int status = bound_by(task, in[0], goal->result);
        if (status == 0)
            status = bound_by(task, out[0], goal->result);
        if (status != 0)
            return status;
    }
    return 0;
}

struct nic_pair {
    int entry, exit;
};

static bool joins(const struct goal *goal, const void *context)
{
    const struct nic_pair *pair = context;
    return goal->entry.nic == pair->entry && goal->exit.nic == pair->exit;
}

/* Has a pair of NICs a goal that is proven to be its best? */
static bool cell_done(const struct task *task, const struct nic_pair *pair)
{
    double best = 0, bound = 0;
    for (int i = 0; i < task->n_goals; i++) {
        if (joins(&task->goals[i], pair)) {
            best = fmax(best, task->goals[i].result->gbps);
            bound = fmax(bound, task->goals[i].result->bound);
        }
    }
    return bound <= with_gap(task, best);
}

/* Hops depend on the NICs, so a network that joins only some of them needs the best of each pair.
 */
static int prove_cells(struct task *task)
{
    int nics = task->search->machine->n_nics;
    for (int i = 0; i < nics * nics; i++) {
        struct nic_pair pair = {i / nics, i % nics};
        if (cell_done(task, &pair))
            continue;
        int status = prove_best(task, 1, joins, &pair);
        if (status != 0)
            return status;
    }
    return 0;
}

static int run_once(struct task *task)
{
    bool all = task->options->pairs <= 0 || task->options->pairs >= task->n_goals;
    int status = 0;
    if (!all)
        status = bound_ports(task);
    if (status == 0)
        status = prove_best(task, all ? task->n_goals : task->options->pairs, NULL, NULL);
    if (status == 0 && !all)
        status = prove_cells(task);
    if (status == 0 && !all)
        status = first_chains(task);
    if (reconsider(task) < 0)
        return -1;
    return status;
}

/* Once is enough, unless measurements turned out to be wrong after something was proven. */
static int run(struct task *task)
{
    int status = 0;
    for (int round = 0; status == 0 && round < MAX_RUNS && (round == 0 || task->unproven);
         round++) {
        task->unproven = false;
        task->n_done = 0;
        for (int i = 0; i < task->n_goals; i++)
            task->goals[i].done = false;
        status = run_once(task);
    }
    return status;
}

/* ---- bounds without sets that failed ---- */

/* Looks for a chain that may be better than above: one that was measured may not. */
static int visit_rest(void *context, const struct tccl_chain *chain, double *above)
{
    const struct task *task = context;
    struct tccl_walk walk;
    struct tccl_known known;
    tccl_route_walk(chain, &walk);
    return !tccl_bounds_find(task->search->probe.bounds, &walk, &known) || known.failed ||
           known.gbps > *above;
}

/* Is it proven that no chain is above, whatever the failed sets may reach? */
static bool is_proven(struct task *task, const struct goal *goal, double above)
{
    struct tccl_chain chain;
    struct tccl_pigeonholes none = {0};
    struct tccl_route route = route_to(task, goal, above);
    route.pigeonholes = &none;
    route.visit = visit_rest;
    route.context = task;
    return task->spent < task->effort && tccl_route_find(&route, &chain) == 0;
}

/* The lowest of the limits from least on that is a proven bound, by halving their list; infinity if
 * none is. */
static double lowest_proven(struct task *task, const struct goal *goal, double least)
{
    const double *values;
    size_t low = 0, count = tccl_bounds_values(task->search->probe.bounds, &values);
    size_t high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (values[middle] >= least && is_proven(task, goal, values[middle]))
            high = middle;
        else
            low = middle + 1;
    }
    return high < count ? values[high] : INFINITY;
}

static double bound_without(struct task *task, const struct goal *goal)
{
    double bound = goal->result->bound;
    if (!isfinite(bound) || is_proven(task, goal, bound))
        return bound;
    return lowest_proven(task, goal, bound);
}

/* The search kept off sets that failed; what they reach is not known. */
static void bound_without_avoided(struct task *task)
{
    struct tccl_bounds *bounds = task->search->probe.bounds;
    if (!tccl_bounds_avoids(bounds))
        return;
    tccl_bounds_ignore_avoided(bounds, true);
    task->effort =
        task->spent < LONG_MAX - WITHOUT_AVOIDED ? task->spent + WITHOUT_AVOIDED : LONG_MAX;
    for (int i = 0; i < task->n_goals; i++)
        task->goals[i].result->bound = bound_without(task, &task->goals[i]);
    tccl_bounds_ignore_avoided(bounds, false);
}

static bool can_measure(const struct tccl_search_options *options, const tccl_transfer *transfers,
                        int count)
{
    for (int i = 0; options->can && i < count; i++)
        if (!options->can(options->context, transfers[i]))
            return false;
    return true;
}

/* Measures for comparison: such sets are not counted. Returns as tccl_probe_measure. */
static int measure_own(struct tccl_search *search, const struct tccl_set *set, double *gbps,
                       struct tccl_error *err)
{
    struct tccl_walk walk;
    walk_of_set(set, &walk);
    long before = search->probe.measured;
    int status = tccl_probe_measure_itself(&search->probe, &walk, gbps, err);
    search->baselines += search->probe.measured - before;
    if (status != 0)
        *gbps = 0;
    return status;
}

/* The baseline of the GPUs, and all of its transfers, if they can be measured. */
static bool find_baseline(struct tccl_search *search, const struct tccl_search_options *options,
                          uint32_t gpus, bool closed, struct tccl_baseline *baseline,
                          struct tccl_set *set)
{
    struct kept_baseline *kept = &search->kept[closed];
    if (kept->gpus != gpus &&
        tccl_baseline_find(search->machine, gpus, closed, &kept->baseline, NULL, NULL) != 0)
        kept->baseline.n_chains = 0;
    kept->gpus = gpus;
    *baseline = kept->baseline;
    return baseline->n_chains > 0 && tccl_baseline_set(baseline, set, NULL) == 0 &&
           can_measure(options, set->transfers, set->count);
}

/* The baseline, measured; no chains where there is none, or where it can't be measured. */
static int measure_baseline(struct tccl_search *search, const struct tccl_search_options *options,
                            uint32_t gpus, bool closed, struct tccl_baseline *baseline,
                            struct tccl_error *err)
{
    struct tccl_set set;
    double gbps = 0;
    int status = 0;
    if (find_baseline(search, options, gpus, closed, baseline, &set))
        status = measure_own(search, &set, &gbps, err);
    if (gbps > 0)
        baseline->gbps = tccl_baseline_gbps(baseline, gbps);
    else
        *baseline = (struct tccl_baseline){0};
    return status;
}

static bool same_port(struct tccl_port a, struct tccl_port b)
{
    return a.nic == b.nic && a.via.kind == b.via.kind && a.via.index == b.via.index;
}

/* Keeps the chain for the goals that it serves, with its bandwidth alone. Returns as
 * tccl_probe_measure. */
static int keep_own(struct task *task, const struct tccl_chain *chain)
{
    struct tccl_set set;
    double gbps;
    if (!task->options->any && tccl_chain_expressible(chain, NULL) < 0)
        return 0;
    tccl_chain_set(chain, &set);
    int status = measure_own(task->search, &set, &gbps, task->err);
    for (int i = 0; status == 0 && gbps > 0 && i < task->n_goals; i++) {
        struct goal *goal = &task->goals[i];
        if (task->closed ||
            (same_port(goal->entry, chain->entry) && same_port(goal->exit, chain->exit)))
            keep(goal, chain, gbps);
    }
    return status;
}

/* Each of the baseline's chains may be the best one; so it is also a beginning. Returns as
 * tccl_probe_measure. */
static int keep_baseline(struct task *task)
{
    struct tccl_baseline baseline;
    struct tccl_set set;
    int status = 0;
    if (!find_baseline(task->search, task->options, task->gpus, task->closed, &baseline, &set))
        return 0;
    for (int i = 0; status == 0 && i < baseline.n_chains; i++)
        status = keep_own(task, &baseline.chains[i]);
    return status;
}

static void set_up(struct task *task, struct tccl_search *search,
                   const struct tccl_search_options *options, uint32_t gpus, struct tccl_error *err)
{
    *task = (struct task){
        .search = search,
        .options = options,
        .err = err,
        .gpus = gpus,
        .gap = fmax(options->gap, options->noise),
    };
    struct tccl_route chains = {.machine = search->machine, .gpus = gpus, .any = options->any};
    /* What can be counted out is proven, however long it takes. */
    task->effort = tccl_route_count(&chains, MANY_CHAINS) < MANY_CHAINS ? LONG_MAX : EFFORT;
    search->probe.budget = options->budget > 0 ? search->probe.measured + options->budget : 0;
    search->probe.noise = options->noise;
    search->probe.poll = tell;
    search->probe.context = task;
    const struct tccl_raise *raises;
    task->raises = tccl_bounds_raises(search->probe.bounds, &raises);
}

/* The best ring, one chain after the other. Returns 0; 1 when stopped; -1 with err. */
static int search_ring(struct task *task, struct goal *goal)
{
    while (!goal->done && goal->result->bound > with_gap(task, goal->result->gbps)) {
        enum improvement outcome = try_some(task, goal, ask(task, goal, goal->result->gbps));
        if (outcome == FAILED || reconsider(task) < 0)
            return -1;
        if (outcome == STOPPED)
            return 1;
    }
    return 0;
}

/* Searches until the best ring is proven, also after what the baseline teaches; it may be the best
 * one. Returns as search_ring. */
static int prove_ring(struct task *task, struct goal *goal)
{
    struct tccl_baseline baseline;
    int status = 0;
    for (int round = 0; round < MAX_RUNS && status == 0; round++) {
        status = search_ring(task, goal);
        if (status < 0 ||
            measure_baseline(task->search, task->options, task->gpus, true, &baseline, task->err) <
                0 ||
            keep_baseline(task) < 0 || reconsider(task) < 0)
            return -1;
        if (goal->done || goal->result->bound <= with_gap(task, goal->result->gbps))
            break;
    }
    return status;
}

/* The ring of tccl_search_ring. */
static int find_ring(struct tccl_search *search, uint32_t gpus,
                     const struct tccl_search_options *options, struct tccl_result *result,
                     struct tccl_error *err)
{
    struct task task;
    struct goal goal = {.result = result};
    *result = (struct tccl_result){.bound = INFINITY};
    if (__builtin_popcount(gpus) < 2) {
        result->bound = 0;
        return 0;
    }
    set_up(&task, search, options, gpus, err);
    task.closed = true;
    task.goals = &goal;
    task.n_goals = 1;
    int status = prove_ring(&task, &goal);
    if (status >= 0 && !isfinite(result->bound))
        result->bound = lowest_proven(&task, &goal, result->gbps);
    if (status >= 0)
        bound_without_avoided(&task);
    search->probe.poll = NULL;
    return status;
}

int tccl_search_ring(struct tccl_search *search, uint32_t gpus,
                     const struct tccl_search_options *options, struct tccl_result *result,
                     struct tccl_error *err)
{
    search->probe.stopped = false;
    return find_ring(search, gpus, options, result, err);
}

/* The transfers of the NICs themselves, whichever GPUs are the ends. */
static bool can_reach(const struct task *task, struct tccl_port entry, struct tccl_port exit)
{
    tccl_transfer in[2], out[2];
    tccl_entry_transfers(entry, 0, in);
    tccl_exit_transfers(exit, 0, out);
    return can_measure(task->options, in, 1) && can_measure(task->options, out, 1);
}

/* A GPU is not both ends of a chain of several; and a chain of one has one NIC for both, or NCCL
 * can't be made to build it. */
static bool can_be_ends(const struct task *task, struct tccl_port entry, struct tccl_port exit)
{
    if (__builtin_popcount(task->gpus) == 1)
        return task->options->any || (entry.nic == exit.nic && (entry.via.kind != TCCL_MEMORY ||
                                                                exit.via.kind != TCCL_MEMORY ||
                                                                entry.via.index == exit.via.index));
    return entry.via.kind != TCCL_GPU || exit.via.kind != TCCL_GPU ||
           entry.via.index != exit.via.index;
}

static struct goal *list_goals(const struct task *task, struct tccl_table *table, int *count)
{
    struct goal *goals = calloc((size_t)table->n_ports * table->n_ports + 1, sizeof(*goals));
    *count = 0;
    for (int i = 0; goals && i < table->n_ports * table->n_ports; i++) {
        struct tccl_port entry = table->ports[i / table->n_ports];
        struct tccl_port exit = table->ports[i % table->n_ports];
        table->pairs[i] = (struct tccl_result){.bound = INFINITY};
        if (!can_be_ends(task, entry, exit)) {
            table->pairs[i].bound = 0;
            continue;
        }
        if (!can_reach(task, entry, exit))
            continue;
        goals[(*count)++] = (struct goal){.entry = entry, .exit = exit, .result = &table->pairs[i]};
    }
    return goals;
}

static int search_pairs(struct task *task, struct tccl_table *table)
{
    int status = measure_baseline(task->search, task->options, task->gpus, false,
                                  &table->baseline_chain, task->err);
    if (status == 0)
        status = keep_baseline(task);
    if (status == 0)
        status = run(task);
    if (status >= 0)
        bound_without_avoided(task);
    return status;
}

static int find_pairs(struct tccl_search *search, struct tccl_table *table,
                      const struct tccl_search_options *options, struct tccl_error *err)
{
    struct task task;
    set_up(&task, search, options, table->gpus, err);
    cleanup_free struct goal *goals = list_goals(&task, table, &task.n_goals);
    if (!goals)
        return tccl_fail(err, "out of memory for %d port pairs", table->n_ports * table->n_ports);
    task.goals = goals;
    int status = search_pairs(&task, table);
    search->probe.poll = NULL;
    return status;
}

/* What is left of the budget, one set at least. */
static struct tccl_search_options left_of(const struct tccl_search_options *options, long used)
{
    struct tccl_search_options rest = *options;
    if (options->budget > 0)
        rest.budget = options->budget > used ? options->budget - used : 1;
    return rest;
}

static double ratio_of(const struct tccl_result *result)
{
    return result->gbps > 0 ? result->bound / result->gbps : INFINITY;
}

/* What the pairs taught of measurements that were wrong concerns the ring, too: if it is proven no
 * more, it is looked for again. */
static int reconsider_ring(struct tccl_search *search, struct tccl_table *table, size_t raises_then,
                           bool assumed_then, const struct tccl_search_options *options,
                           struct tccl_error *err)
{
    const struct tccl_raise *raises;
    double most = 1 + fmax(options->gap, options->noise), ratio = ratio_of(&table->ring);
    size_t count = tccl_bounds_raises(search->probe.bounds, &raises);
    table->ring.bound = lifted(raises, raises_then, count, table->ring.bound);
    if ((assumed_then && !tccl_bounds_assumes(search->probe.bounds)) ||
        (ratio <= most * (1 + 1e-9) && ratio_of(&table->ring) > most * (1 + 1e-9)))
        return find_ring(search, table->gpus, options, &table->ring, err);
    return 0;
}

/* The ring, the pairs, and the ring once more where they changed it. */
static int find_all(struct tccl_search *search, struct tccl_table *table,
                    const struct tccl_search_options *options, struct tccl_error *err)
{
    const struct tccl_raise *raises;
    const struct tccl_bounds *bounds = search->probe.bounds;
    long before = search->probe.measured;
    int status = find_ring(search, table->gpus, options, &table->ring, err);
    if (search->left_ring)
        search->probe.stopped = false;
    if (status < 0 ||
        measure_baseline(search, options, table->gpus, true, &table->baseline_ring, err) < 0)
        return -1;
    size_t raises_then = tccl_bounds_raises(bounds, &raises);
    bool assumed_then = tccl_bounds_assumes(bounds);
    struct tccl_search_options rest = left_of(options, search->probe.measured - before);
    int pairs = find_pairs(search, table, &rest, err);
    if (pairs < 0)
        return -1;
    size_t pairs_then = tccl_bounds_raises(bounds, &raises);
    rest = left_of(options, search->probe.measured - before);
    int ring = reconsider_ring(search, table, raises_then, assumed_then, &rest, err);
    size_t count = tccl_bounds_raises(bounds, &raises);
    for (int i = 0; i < table->n_ports * table->n_ports; i++)
        table->pairs[i].bound = lifted(raises, pairs_then, count, table->pairs[i].bound);
    return ring < 0 ? -1 : pairs | status | ring;
}

int tccl_search_table(struct tccl_search *search, struct tccl_table *table,
                      const struct tccl_search_options *options, struct tccl_error *err)
{
    long before = search->probe.measured;
    search->probe.stopped = false;
    int status = find_all(search, table, options, err);
    table->noise = options->noise;
    table->measured += search->probe.measured - before;
    return status;
}
