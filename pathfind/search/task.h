/* task.h: a search at work: the chains that are wanted of one GPU set (goals), and the steps that
 * prove them. Shared by search.c, goal.c and prove.c only. */
#pragma once

#include "nccl/baseline.h"
#include "search/route.h"
#include "search/search-meter.h"
#include "search/search.h"

enum {
    TCCL_MANY_CHAINS = 100000, /* so many are not counted out */
    TCCL_MAX_PASSES = 4,       /* over all goals, where what was proven turns out to be wrong */
};

/* The baselines of the last GPU set, for NCCL's search takes its time. */
struct kept_baseline {
    uint32_t gpus;
    bool every_nccl;
    struct tccl_baseline baselines[TCCL_GENERATIONS];
};

struct tccl_search {
    const struct tccl_machine *machine;
    struct tccl_search_meter meter;
    struct tccl_setmap own;       /* measured sets, where the meter doesn't remember them */
    long baselines;               /* of the measured sets, those of baselines */
    struct kept_baseline kept[2]; /* open, closed */
    long sets, sets_measured;     /* asked for ring sets, and measured */
    long pruned;
    bool assumed;   /* symmetries were, in the beginning */
    size_t doubts;  /* of the bounds, looked at */
    bool left_ring; /* stopped, but only as far as the ring goes */
};

/* One chain wanted: between two ports, or a ring. */
struct tccl_goal {
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
struct tccl_task {
    struct tccl_search *search;
    const struct tccl_search_options *options;
    struct tccl_error *err;
    uint32_t gpus;
    bool closed;
    uint32_t shun; /* memories that no bounce may use, as a mask */
    bool reads;    /* P2P edges read, else they write */
    double gap;
    struct tccl_goal *goals;
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

enum tccl_improvement {
    TCCL_GOAL_FAILED = -1,
    TCCL_GOAL_PROVEN,
    TCCL_GOAL_BETTER,
    TCCL_GOAL_STOPPED,
    TCCL_GOAL_LEARNED
};

/* ---- goal.c: one chain ---- */

/* Tells of the progress. Returns non-zero to stop. */
int tccl_task_tell(void *context);

/* Tells of the progress, unless the meter did. Returns whether to stop: told so, or this has taken
 * long enough. */
bool tccl_task_report(struct tccl_task *task);

/* The chain found is good enough for every goal up to this bandwidth. */
double tccl_task_with_gap(const struct tccl_task *task, double gbps);

void tccl_goal_finish(struct tccl_task *task, struct tccl_goal *goal);

/* Keeps the chain if it is the best yet. A bound from noisy parts gives way to what was measured.
 */
void tccl_goal_keep(struct tccl_goal *goal, const struct tccl_chain *chain, double gbps);

/* Keeps the chain if it is the best yet, and itself measured. Returns as tccl_search_meter_measure,
 * with its bandwidth. */
int tccl_goal_offer(struct tccl_task *task, struct tccl_goal *goal, const struct tccl_chain *chain,
                    double *gbps);

/* A route search for the goal. */
struct tccl_route tccl_goal_route(struct tccl_task *task, const struct tccl_goal *goal,
                                  double above);

/* A chain that may be better than above: 1; 0: there is none; -1: gave up. *status: as
 * tccl_search_meter_measure. */
int tccl_goal_find_route(struct tccl_task *task, const struct tccl_goal *goal, double above,
                         struct tccl_chain *chain, int *status);

bool tccl_task_has_failed(const struct tccl_task *task, const struct tccl_set *walk);

/* Tries one chain that may be better than above; all that are left where learning has cost more.
 * BETTER: it is. LEARNED: it is not, and what makes it slow is known now. PROVEN: there is none.
 * STOPPED: told to, or the budget is used up. FAILED: with task->err. */
enum tccl_improvement tccl_goal_try(struct tccl_task *task, struct tccl_goal *goal, double above);

/* Tries chains until one is better than above, or none is left. */
enum tccl_improvement tccl_goal_improve(struct tccl_task *task, struct tccl_goal *goal,
                                        double above);

/* What to ask of a goal whose bound is above tccl_task_with_gap(best): first nearly its bound,
 * since what stands in the way of a good chain is what is worth knowing, then just more than the
 * best. */
double tccl_goal_ask(const struct tccl_task *task, struct tccl_goal *goal, double best);

/* ---- prove.c: all of them ---- */

/* The bound, lifted by those of the raised limits from first on that concern it. */
double tccl_bound_lifted(const struct tccl_raise *raises, size_t first, size_t count, double bound);

/* Brings the bounds up to date with what was learnt of measurements that were wrong. Returns 0, or
 * -1 with err. */
int tccl_task_reconsider(struct tccl_task *task);

/* Proves the goals. Returns 0; 1 when stopped; -1 with err. */
int tccl_task_prove(struct tccl_task *task);
/* Only the best one of each pair of NICs. */
int tccl_task_prove_cells(struct tccl_task *task);
/* The best ring, the task's only goal, one chain after the other. */
int tccl_task_prove_ring(struct tccl_task *task);

/* The lowest of the limits from least on that is a proven bound, by halving their list; infinity if
 * none is. */
double tccl_goal_lowest_proven(struct tccl_task *task, const struct tccl_goal *goal, double least);

/* The search kept off sets that failed. What they reach is not known: the goals' bounds become such
 * as hold whatever that is. */
void tccl_task_bound_without_avoided(struct tccl_task *task);

/* ---- trees.c: beside the best chains ---- */

/* Fills in the trees of the best chain of every pair of NICs, the best first, until the meter has
 * been asked for TCCL_TREE_SETS sets. Only where all NICs are on one fabric: NCCL joins the trees
 * of any two nodes. Returns 0; 1 when stopped; -1 with err. */
enum { TCCL_TREE_SETS = 200 };
int tccl_task_find_trees(struct tccl_task *task, struct tccl_table *table);

/* ---- meter-sets.c: several rings at once ---- */

/* Finds ring sets by measuring and keeps them in the table, of the task's kind (reads): of the node
 * alone, and between NICs; the best number of rings, and 2 and 4. Returns 0; 1 when stopped; -1
 * with err. */
int tccl_task_find_sets(struct tccl_task *task, struct tccl_table *table);

/* ---- settle.c: measured again ---- */

/* The table's best ring, chains and ring sets, and the baselines, are measured again, so often as
 * the options say, and these values are the table's. Returns 0; 1 when stopped; -1 with err. */
int tccl_task_settle(struct tccl_task *task, struct tccl_table *table);

/* ---- others.c: of another footprint, or without P2P ---- */

/* Finds the others of the table anew. Returns 0; 1 when stopped; -1 with err. */
int tccl_task_find_others(struct tccl_task *task, struct tccl_table *table);

/* Fills in the best chains without P2P of the pairs of NICs whose best chain has some, and such a
 * ring. The task's machine is one without P2P. Returns 0; 1 when stopped; -1 with err. */
int tccl_task_find_hosts(struct tccl_task *task, struct tccl_table *table);
/* Finds the best ring and chains whose P2P edges read, and others of them without bounces, where
 * that loses nothing: kept as others, or in the place of the best ones, if they are better. Returns
 * 0; 1 when stopped; -1 with err. */
int tccl_task_find_reads(struct tccl_task *task, struct tccl_table *table);

/* ---- reads.c ---- */

/* Would anything lose that processes with these GPUs may do, if their P2P reads? table: its
 * baselines are known. Returns 0: no; 1: yes, or it can't be known, or stopped; -1 with err. */
int tccl_task_reads_lose(struct tccl_task *task, const struct tccl_table *table);
