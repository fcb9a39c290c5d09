/* search.c: the best chain of every port pair, best pairs first. */
#include "search.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "lazy.h"

enum {
    FIRST_STEPS = 20000, /* of one route search, in transfers tried, */
    STEPS = 60000,       /* and of its second try */
    BOLD = 16,           /* sets to have saved before a whole chain is tried */
    PATIENCE = 600, /* sets more than the plain search surely needs, where ties hide what it does */
    FEW_SETS = 50,  /* that one pair of ports may cost in any case; beyond, all its chains are */
    CHAINS_A_SET = 4, /* measured when it has cost one set for so many of them, or so much search */
    STEPS_A_CHAIN = 8,    /* for each, */
    MANY_CHAINS = 100000, /* unless there are as many as this */
    EFFORT = 15000000,    /* of all route searches of a call, some ten seconds: then it stops */
    MAX_ROUNDS = 500,     /* of measuring crowds before a route search is tried again */
    MAX_GIVEN_UP = 6,     /* how often the route search may give up on one goal */
    MAX_DESCENTS = 8,     /* how often a pair is first asked for nearly its bound */
};
static const double DESCENT = 0.9;

struct tccl_search {
    const struct tccl_machine *machine;
    struct tccl_probe probe;
    long defaults; /* of the measured sets, NCCL's own choices */
};

struct tccl_search *tccl_search_new(const struct tccl_machine *machine, struct tccl_meter meter,
                                    const struct tccl_symmetry *symmetry)
{
    struct tccl_search *search = calloc(1, sizeof(*search));
    if (!search)
        return NULL;
    search->machine = machine;
    search->probe.meter = meter;
    search->probe.knowledge = tccl_knowledge_new(machine, symmetry);
    if (!search->probe.knowledge) {
        free(search);
        return NULL;
    }
    return search;
}

void tccl_search_free(struct tccl_search *search)
{
    if (!search)
        return;
    tccl_knowledge_free(search->probe.knowledge);
    tccl_setmap_clear(&search->probe.archive);
    free(search);
}

long tccl_search_measured(const struct tccl_search *search)
{
    return search->probe.measured - search->defaults;
}

static void walk_of_set(const struct tccl_set *set, struct tccl_walk *walk)
{
    walk->count = set->count;
    memcpy(walk->transfers, set->transfers, set->count * sizeof(set->transfers[0]));
}

int tccl_search_know(struct tccl_search *search, const struct tccl_set *set, double gbps)
{
    return tccl_setmap_add(&search->probe.archive, set, gbps) < 0 ? -1 : 0;
}

int tccl_search_measure(struct tccl_search *search, const struct tccl_set *set, double *gbps,
                        struct tccl_error *err)
{
    struct tccl_walk walk;
    walk_of_set(set, &walk);
    long budget = search->probe.budget;
    search->probe.budget = 0;
    int status = tccl_probe_measure(&search->probe, &walk, gbps, err);
    search->probe.budget = budget;
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
    struct tccl_crowd crowd;
    long spent;               /* transfers tried in route searches */
    long effort;              /* that it may cost */
    bool patient;             /* never measure more than the plain search would */
    struct tccl_chain latest; /* the last route tried: the next one starts from it */
};

/* Tells of the progress. Returns whether to stop: told so, or this has taken long enough. */
static bool report(struct task *task)
{
    const struct tccl_search_options *options = task->options;
    struct tccl_search_progress progress = {
        task->search->probe.measured,
        task->search->probe.shared,
        task->n_done,
        task->n_goals,
    };
    return (options->progress && options->progress(options->context, &progress) != 0) ||
           task->spent > task->effort;
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

static struct tccl_route route_to(struct task *task, const struct goal *goal, double above)
{
    const struct tccl_chain *like =
        goal->result->chain.n_gpus ? &goal->result->chain : &task->latest;
    return (struct tccl_route){
        .machine = task->search->machine,
        .knowledge = task->search->probe.knowledge,
        .crowd = &task->crowd,
        .gpus = task->gpus,
        .closed = task->closed,
        .entry = goal->entry,
        .exit = goal->exit,
        .any = task->options->any,
        .above = above,
        .like = like->n_gpus ? like : NULL,
        .steps = FIRST_STEPS,
        .spent = &task->spent,
    };
}

/* Measures a crowd. Returns as tccl_probe_measure; *learnt: it is too slow, and the route search
 * knows that now. */
static int settle_crowd(struct task *task, const struct tccl_walk *walk, double above, bool *learnt)
{
    struct tccl_probe *probe = &task->search->probe;
    double gbps;
    int status = tccl_probe_measure(probe, walk, &gbps, task->err);
    if (status != 0 || gbps > above)
        return status;
    status = tccl_probe_explain(probe, walk, above, task->err);
    if (status == 0 && !*learnt)
        *learnt =
            tccl_knowledge_bound(probe->knowledge, walk->transfers, walk->count, above) <= above;
    return status;
}

/* Measures the crowds that a route might meet until none of them turns out to be too slow, or there
 * is no room for more limits. Returns as tccl_probe_measure. */
static int settle_crowds(struct task *task, const struct tccl_route *route)
{
    struct tccl_walk walks[TCCL_MAX_SUSPECTS];
    bool learnt = true;
    for (int round = 0; learnt && round < MAX_ROUNDS; round++) {
        learnt = false;
        int count = tccl_route_suspects(route, walks);
        for (int i = 0; i < count; i++) {
            int status = settle_crowd(task, &walks[i], route->above, &learnt);
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
    *status = settle_crowds(task, &route);
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
        keep(goal, &chain, gbps);
        if (gbps > above)
            return report(task) ? STOPPED : BETTER;
        status = tccl_probe_explain(probe, &walk, above, task->err);
    }
    if (status != 0)
        return status < 0 ? FAILED : STOPPED;
    if (tccl_knowledge_bound(probe->knowledge, walk.transfers, walk.count, above) > above)
        finish(task, goal); /* no room for what was learnt */
    if (goal->done)
        return PROVEN;
    return report(task) ? STOPPED : LEARNED;
}

/* The chain found is good enough for every goal up to this bandwidth. */
static double with_gap(const struct task *task, double gbps)
{
    return gbps * (1 + task->gap);
}

/* Where learning has cost as much as measuring a good part of all chains: measures all that are
 * left. */
struct visit {
    struct task *task;
    struct goal *goal;
    enum improvement outcome;
};

static int visit(void *context, const struct tccl_chain *chain, double *above)
{
    struct visit *visit = context;
    struct tccl_walk walk;
    double gbps;
    tccl_route_walk(chain, &walk);
    int status = tccl_probe_measure(&visit->task->search->probe, &walk, &gbps, visit->task->err);
    if (status == 0) {
        keep(visit->goal, chain, gbps);
        *above = fmax(*above, with_gap(visit->task, visit->goal->result->gbps));
    }
    if (status == 0 && report(visit->task))
        status = 1;
    if (status != 0)
        visit->outcome = status < 0 ? FAILED : STOPPED;
    return status;
}

static enum improvement visit_all(struct task *task, struct goal *goal)
{
    struct visit all = {task, goal, PROVEN};
    struct tccl_route route = route_to(task, goal, with_gap(task, goal->result->gbps));
    struct tccl_chain chain;
    route.visit = visit;
    route.context = &all;
    route.steps = LONG_MAX;
    if (tccl_route_find(&route, &chain) == 0)
        goal->result->bound =
            fmax(fmin(goal->result->bound, with_gap(task, goal->result->gbps)), goal->result->gbps);
    return all.outcome;
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

/* A first chain for a goal that nobody proves: one as good as what is known allows. */
static int first_chain(struct task *task, struct goal *goal)
{
    static const double share[] = {0.97, 0.8, 0.5, 0};
    double bound = isfinite(goal->result->bound) ? goal->result->bound : 0;
    for (size_t i = 0; i < sizeof(share) / sizeof(share[0]); i++) {
        struct tccl_chain chain;
        struct tccl_walk walk;
        double gbps;
        int status;
        int found = find_route(task, goal, bound * share[i], &chain, &status);
        if (status != 0)
            return status;
        if (found < 0)
            break;
        if (found == 0) {
            goal->result->bound = fmax(bound * share[i], goal->result->gbps);
            continue;
        }
        tccl_route_walk(&chain, &walk);
        status = tccl_probe_measure(&task->search->probe, &walk, &gbps, task->err);
        if (status == 0)
            keep(goal, &chain, gbps);
        return status;
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

/* One transfer alone: lowers *bound to its bandwidth, which then limits all that contain it.
 * Returns as tccl_probe_measure. */
static int bound_by(struct task *task, tccl_transfer transfer, double *bound)
{
    struct tccl_probe *probe = &task->search->probe;
    struct tccl_walk one = {.count = 1, .transfers = {transfer}};
    double gbps;
    int status = tccl_probe_measure(probe, &one, &gbps, task->err);
    if (status != 0)
        return status;
    if (tccl_knowledge_alone(probe->knowledge, transfer) > gbps &&
        tccl_knowledge_limit(probe->knowledge, &one, gbps) < 0)
        return tccl_fail(task->err, "no memory for the limits");
    *bound = fmin(*bound, gbps);
    return 0;
}

/* Each NIC's own transfers alone give every pair of ports a first bound. */
static int bound_ports(struct task *task)
{
    for (int i = 0; i < task->n_goals; i++) {
        struct goal *goal = &task->goals[i];
        tccl_transfer in[2], out[2];
        tccl_entry_transfers(goal->entry, 0, in);
        tccl_exit_transfers(goal->exit, 0, out);
        int status = bound_by(task, in[0], &goal->result->bound);
        if (status == 0)
            status = bound_by(task, out[0], &goal->result->bound);
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

static int run(struct task *task)
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
    return status;
}

/* NCCL's own choice, measured. chain.n_gpus = 0 where it has none. */
static int measure_default(struct tccl_search *search, uint32_t gpus, bool closed,
                           struct tccl_result *result, struct tccl_error *err)
{
    struct tccl_walk walk;
    *result = (struct tccl_result){0};
    if (__builtin_popcount(gpus) < (closed ? 2 : 1) ||
        tccl_chain_default(search->machine, gpus, closed, &result->chain, NULL) < 0) {
        result->chain.n_gpus = 0;
        return 0;
    }
    tccl_route_walk(&result->chain, &walk);
    long before = search->probe.measured;
    int status = tccl_probe_measure(&search->probe, &walk, &result->gbps, err);
    search->defaults += search->probe.measured - before;
    result->bound = result->gbps;
    if (status != 0)
        result->chain.n_gpus = 0;
    return status;
}

static bool may_serve(const struct task *task, const struct tccl_result *result)
{
    return result->chain.n_gpus > 0 &&
           (task->options->any || tccl_chain_expressible(&result->chain, NULL) == 0);
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
}

/* One step of the lazy search. Returns 0; 1 when stopped; -1 with err. */
static int step_lazily(struct task *task, struct goal *goal, struct tccl_ledger *ledger)
{
    struct tccl_chain chain;
    double gbps, bound;
    struct tccl_route route = route_to(task, goal, 0);
    enum tccl_lazy_step step =
        tccl_lazy_step(&task->search->probe, &route, ledger, &chain, &gbps, &bound, task->err);
    if (step == TCCL_LAZY_ERROR)
        return -1;
    if (step == TCCL_LAZY_MEASURED && isfinite(bound))
        task->latest = chain; /* what is left of it is tried first: the more complete chain */
    if (step == TCCL_LAZY_BUDGET || report(task))
        return 1;
    if (step == TCCL_LAZY_GAVE_UP) {
        task->patient = false;
        return 0;
    }
    goal->result->bound = fmax(fmin(goal->result->bound, bound), goal->result->gbps);
    if (step == TCCL_LAZY_BEST || step == TCCL_LAZY_CHAIN)
        keep(goal, &chain, gbps);
    if (step == TCCL_LAZY_NONE)
        goal->result->bound = goal->result->gbps;
    return 0;
}

/* One chain tried with all its measurements, within what the lazy search has saved against the
 * plain one. Returns as step_lazily. */
static int step_boldly(struct task *task, struct goal *goal, long saved)
{
    struct tccl_probe *probe = &task->search->probe;
    long limit = task->patient ? probe->asked + saved : 0;
    probe->limit = limit;
    enum improvement outcome = try_some(task, goal, ask(task, goal, goal->result->gbps));
    probe->limit = 0;
    if (outcome == FAILED)
        return -1;
    return outcome == STOPPED && (limit == 0 || probe->asked < limit);
}

/* The best ring: boldly where the plain search would have measured as much, else lazily. */
static int search_ring(struct task *task, struct goal *goal, struct tccl_ledger *ledger)
{
    long before = task->search->probe.asked;
    while (!goal->done && goal->result->bound > with_gap(task, goal->result->gbps)) {
        long saved =
            tccl_ledger_plain(ledger, goal->result->bound) - (task->search->probe.asked - before);
        if (saved < -PATIENCE)
            task->patient = false;
        bool bold = !task->patient || saved >= BOLD;
        int status = bold ? step_boldly(task, goal, saved) : step_lazily(task, goal, ledger);
        if (status != 0)
            return status;
    }
    return 0;
}

int tccl_search_ring(struct tccl_search *search, uint32_t gpus,
                     const struct tccl_search_options *options, struct tccl_result *result,
                     struct tccl_error *err)
{
    struct task task;
    struct goal goal = {.result = result};
    struct tccl_result own;
    *result = (struct tccl_result){.bound = INFINITY};
    if (__builtin_popcount(gpus) < 2) {
        result->bound = 0;
        return 0;
    }
    struct tccl_ledger *ledger = tccl_ledger_new();
    if (!ledger)
        return tccl_fail(err, "no memory for the search");
    set_up(&task, search, options, gpus, err);
    task.closed = true;
    task.patient = true;
    task.goals = &goal;
    task.n_goals = 1;
    int status = search_ring(&task, &goal, ledger);
    tccl_ledger_free(ledger);
    if (status < 0 || measure_default(search, gpus, true, &own, err) < 0)
        return -1;
    if (may_serve(&task, &own))
        keep(&goal, &own.chain, own.gbps);
    return status;
}

static bool same_port(struct tccl_port a, struct tccl_port b)
{
    return a.nic == b.nic && a.via.kind == b.via.kind && a.via.index == b.via.index;
}

static struct goal *list_goals(const struct task *task, struct tccl_table *table, int *count)
{
    struct goal *goals = calloc((size_t)table->n_ports * table->n_ports + 1, sizeof(*goals));
    bool several = __builtin_popcount(task->gpus) > 1;
    *count = 0;
    for (int i = 0; goals && i < table->n_ports * table->n_ports; i++) {
        struct tccl_port entry = table->ports[i / table->n_ports];
        struct tccl_port exit = table->ports[i % table->n_ports];
        table->pairs[i] = (struct tccl_result){.bound = INFINITY};
        if (several && entry.via.kind == TCCL_GPU && exit.via.kind == TCCL_GPU &&
            entry.via.index == exit.via.index) {
            table->pairs[i].bound = 0; /* a GPU cannot be both ends */
            continue;
        }
        goals[(*count)++] = (struct goal){.entry = entry, .exit = exit, .result = &table->pairs[i]};
    }
    return goals;
}

/* NCCL's own choice is the first chain of its pair of ports. */
static void keep_default(struct task *task, const struct tccl_table *table)
{
    const struct tccl_chain *chain = &table->default_chain.chain;
    for (int i = 0; i < task->n_goals && may_serve(task, &table->default_chain); i++)
        if (same_port(task->goals[i].entry, chain->entry) &&
            same_port(task->goals[i].exit, chain->exit))
            keep(&task->goals[i], chain, table->default_chain.gbps);
}

static int search_pairs(struct task *task, struct tccl_table *table)
{
    int status = measure_default(task->search, task->gpus, false, &table->default_chain, task->err);
    if (status != 0)
        return status;
    keep_default(task, table);
    return run(task);
}

int tccl_search_table(struct tccl_search *search, struct tccl_table *table,
                      const struct tccl_search_options *options, struct tccl_error *err)
{
    struct task task;
    long before = search->probe.measured;
    struct tccl_search_options rest = *options;
    int status = tccl_search_ring(search, table->gpus, options, &table->ring, err);
    if (status < 0)
        return -1;
    if (measure_default(search, table->gpus, true, &table->default_ring, err) < 0)
        return -1;
    if (options->budget > 0) {
        rest.budget = options->budget - (search->probe.measured - before);
        rest.budget = rest.budget > 0 ? rest.budget : 1;
    }
    set_up(&task, search, &rest, table->gpus, err);
    cleanup_free struct goal *goals = list_goals(&task, table, &task.n_goals);
    if (!goals)
        return tccl_fail(err, "no memory for %d port pairs", table->n_ports * table->n_ports);
    task.goals = goals;
    int pairs = search_pairs(&task, table);
    table->noise = options->noise;
    table->measured += search->probe.measured - before;
    return pairs < 0 ? -1 : pairs | status;
}
