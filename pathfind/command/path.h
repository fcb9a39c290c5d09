/* path.h: what the commands of tccl-path share. */
#pragma once

#include <limits.h>

#include "machine/model.h"
#include "machine/sides.h"
#include "profile/cache.h"
#include "ring/decision.h"
#include "ring/node-class.h"
#include "search/limit.h"
#include "search/search.h"
#include "search/setmap.h"

/* ---- path-source: a source of bandwidths: a machine model, or a profile directory. */

struct source {
    char *path;
    struct tccl_profile *profile; /* NULL: a model alone */
    char name[TCCL_NAME];         /* "model", "host", "cuda" */
    struct tccl_machine machine;
    const struct tccl_model *model; /* NULL: only what was measured is known */
    struct tccl_model *own_model;   /* without a profile */
    struct tccl_symmetry *symmetry; /* NULL without a model */
    struct tccl_search *search;
    struct tccl_setmap sets; /* measured, or asked of the model */
    bool knows;              /* sets.jsonl was passed to the search */
};

/* Is the path what the option says: a folder for --profile, none for --model? Returns 0 (also if
 * there is no such file), or -1 with err. */
int source_check(const char *path, bool profile, struct tccl_error *err);

/* The profile folder of this machine, of those in the usual place: by machine.json, which
 * tccl-profile init has written. What tccl.conf says of other places is not known here. Returns 0
 * with path, or -1 with err. */
int source_of_machine(char path[static PATH_MAX], struct tccl_error *err);

/* Opens a model file, or a profile folder. Returns NULL with err. */
struct source *source_open(const char *path, struct tccl_error *err);
void source_free(struct source *source); /* NULL is fine */

/* Passes the measurements of the profile to the search, once. Must be called before the search is
 * used; separate from source_open, because chain tables answer most questions and sets.jsonl may be
 * long. Returns 0, or -1 with err. */
int source_know(struct source *source, struct tccl_error *err);

/* Bandwidth of a set, GB/s: as measured, or from the model. Returns 0, or -1 with err that names
 * the source. */
int source_measure(struct source *source, const struct tccl_set *set, double *gbps,
                   struct tccl_error *err);

/* The chain table of a GPU set, if the source is a profile that has one, or one of GPUs that are
 * alike, which is moved. Returns 0 with *table
 * (NULL: none there; else the caller's), or -1 with err: it is there, but damaged. */
int source_table(const struct source *source, uint32_t gpus, struct tccl_table **table,
                 struct tccl_error *err);

/* What was measured together in a profile, without marks: *together is the source's; NULL: nothing
 * was. Returns 0, or -1 with err. */
int source_together(const struct source *source, const struct tccl_together **together,
                    struct tccl_error *err);

/* ---- path-nodes: the command line, and the nodes given on it, in order. */

/* The command line. Texts are borrowed from it. */
enum { MAX_NODE_OPTIONS = 4096 };

struct options {
    const char *model, *profile; /* NULL if not given */
    const char *nodes[MAX_NODE_OPTIONS];
    int n_nodes;
    const char *gpus, *ring, *load, *output, *busy;
    bool json, any;
    double gap, noise; /* -1 if not given */
    int budget, pairs; /* -1 if not given */
    int rings;         /* -1 if not given; 0: auto */
};

enum { MAX_COUNT = 4096, MAX_NODES = 65536 };

/* Nodes with the same source and GPU set share one. */
struct node_class {
    struct source *source;
    uint32_t gpus;
    struct tccl_table *table;      /* all unknown until it is solved */
    struct tccl_node_class *class; /* of that table */
    bool as_job;                   /* with those of its sets only that a job would get */
    bool solved;
};

/* Consecutive nodes of one option. */
struct group {
    struct source *source;
    uint32_t gpus;
    bool gpus_given; /* on the command line; else all the machine has */
    int count;
};

struct nodes {
    struct source **sources;
    int n_sources;
    struct node_class **classes;
    int n_classes;
    struct group *groups;
    int n_groups;
    int total;
    bool given; /* a ring, or a number of rings, is given: all sets that there are count */
};

/* Opens what --model, --profile and --node name, in order. Returns 0, or -1 with err; nodes_clear
 * frees in both cases. */
int nodes_open(const struct options *options, struct nodes *nodes, struct tccl_error *err);
void nodes_clear(struct nodes *nodes);

/* The node class with this source and these GPUs, created at first use. NULL with err. */
struct node_class *nodes_class(struct nodes *nodes, struct source *source, uint32_t gpus,
                               struct tccl_error *err);

/* Updates the node class from the table. Returns 0, or -1 with err. */
int node_class_refresh(struct node_class *class, struct tccl_error *err);

/* The group of node i (from 0). */
const struct group *nodes_group(const struct nodes *nodes, int i);

/* ---- path-route: one or several rings that run at once: the ring sets of all nodes in order, with
 * the hops between them. */

/* One node of the route. */
struct stop {
    struct node_class *class;
    struct tccl_ring_set set; /* its first chain is ring 1's; closed on a single node */
    double gbps;              /* of all its chains together */
    bool baseline; /* NCCL's own chains: rings go on in the order of the NICs, not of the chains */
};

struct route {
    int n;
    struct stop *stops;
    double *hops; /* hops[i] leads from stop i to the next, all rings; NULL with one stop */
    double gbps;  /* of the slowest stop or hop: of all rings together */
    double reach; /* what an all-reduce reaches of it (ring/reach.h), GB/s */
};

/* A route of n stops without chains yet. Returns 0, or -1 with err. */
int route_init(struct route *route, int n, struct tccl_error *err);
void route_clear(struct route *route);

/* Rates the hops and the whole, when each stop has its chain and bandwidth. */
void route_rate(struct route *route);

/* Sets gbps of a stop that has its class and set: all of its chains at the same time. Returns 0, or
 * -1 with err: that is unknown. */
int stop_measure(struct stop *stop, struct tccl_error *err);

/* Does a NIC of stop i meet one of the stops before and behind it? Always with one stop. */
bool route_meets(const struct route *route, int i, int nic);

/* Measures the sets of all stops, then rates. Returns 0, or -1 with err: a set is unknown. */
int route_measure(struct route *route, struct tccl_error *err);

/* The baseline of the same nodes and GPUs. closed: a ring of a single node. Returns 0; -1
 * with err: it has none there, or it was not measured. */
int route_baseline(const struct route *like, bool closed, struct route *route,
                   struct tccl_error *err);

/* Reads the notation of a ring or a ring set: a piece for each node, named n1 to nN or not at all;
 * or one without brackets, which then is the same for each node. All have as many rings. Returns 0,
 * or -1 with err. */
int route_parse(struct nodes *nodes, const char *text, struct route *route, struct tccl_error *err);

/* The bandwidth of the slowest transfer at a stop, while all chains run. */
double stop_slowest(const struct stop *stop);
/* The chain by which closed rings and NICs are told: the first one. */
const struct tccl_chain *stop_first(const struct stop *stop);

/* The tree beside the stop's chain; NULL: none is known, as beside several rings. */
const struct tccl_tree *stop_tree(const struct stop *stop);

/* How many rings run at once: the most chains of any stop. */
int route_rings(const struct route *route);

/* The chains of a ring (from 0) on all nodes, in chains (route->n entries). At the baseline's stops
 * a ring goes on with a chain whose entry is the NIC by which it left the previous stop, if there
 * is one. */
void route_ring(const struct route *route, int ring, const struct tccl_chain **chains);

/* The text of one ring, or of all of them ("n1[chain | chain]"). Allocated; NULL if out of memory.
 */
char *route_format_ring(const struct route *route, int ring);
char *route_format(const struct route *route);

/* Can a stock NCCL be made to build it? Returns 0, or -1 with the reason in err. */
int route_expressible(const struct route *route, struct tccl_error *err);

/* The texts of all of its rings, null for one without memory; none without nodes. */
json_t *route_to_json(const struct route *route);

/* What limits its chains. Returns 0, or -1 with err. */
int stop_limit(const struct stop *stop, struct tccl_limit *limit, struct tccl_error *err);

/* ---- ring sets of node classes, by their models (path-rings.c) ---- */

/* Are sets of several rings wanted (--rings is not 1), and has the class a model to ask? */
bool rings_wanted(const struct options *options, const struct node_class *class);

/* Finds the best sets of all classes of the route of which rings_wanted, and puts them into their
 * tables, where the best single rings are already. closed: of a single node. *rated grows by the
 * sets that were rated. bounds[i]: no set on the i-th class is faster (GB/s), where one was
 * searched. Returns 0, or -1 with err. */
int rings_find(const struct options *options, const struct nodes *nodes, const struct route *route,
               bool closed, double *bounds, long *rated, struct tccl_error *err);

/* ---- path-answer: the commands of tccl-path, and the output of solve, eval and explain, as JSON
 * and as text. */

struct answer {
    bool is_baseline;                  /* no ring was given: this is the baseline */
    bool nothing;                      /* one GPU in all: no ring, nothing to do */
    bool solved;                       /* bound is valid */
    struct route route, baseline;      /* n = 0: none, or unknown */
    double bound;                      /* GB/s; +inf if unknown */
    double single;                     /* of the best single ring, GB/s, if a job gets it in place
                                          of the several of route; else 0 */
    long measured;                     /* transfer sets measured, and ring sets rated */
    struct tccl_error no_baseline;     /* why the baseline is unknown */
    struct tccl_error not_expressible; /* "" if a stock NCCL can be made to build the ring */
};

/* Fills in the baseline for the nodes of the route, and whether the ring is expressible. Never
 * fails: the answer says what is unknown. */
void answer_complete(struct answer *answer);

/* What a large all-reduce reaches by the ring, over what it reaches by NCCL's own; NaN: unknown. */
double answer_ratio(const struct answer *answer);

/* Its rings against NCCL's own. */
struct tccl_decision_case answer_case(const struct answer *answer);

/* A new reference; NULL if out of memory. */
json_t *answer_to_json(const struct answer *answer);

/* A few aligned lines. */
void answer_print(const struct answer *answer, FILE *out);

/* Prints JSON as all commands do. Returns 0, or -1 with err. */
int print_json(json_t *json, struct tccl_error *err);

/* "n1", or "n1-n4" for count nodes from number first on (from 0). */
void format_nodes(int first, int count, char text[static 32]);

/* How many stops from i on have the same chains on the same node class. */
int route_alike(const struct route *route, int i);

/* Finds the answer for the given nodes; shows it. Return 0, or -1 with err. */
typedef int answer_finder(const struct options *options, struct nodes *nodes, struct answer *answer,
                          struct tccl_error *err);
typedef int answer_shower(const struct options *options, const struct answer *answer,
                          struct tccl_error *err);
/* A whole command: opens the nodes, finds the answer and shows it; answer_show: as JSON, or as a
 * few aligned lines. Returns 0, or -1 with err. */
int answer_command(answer_finder *find, answer_shower *show, const struct options *options,
                   struct tccl_error *err);
int answer_show(const struct options *options, const struct answer *answer, struct tccl_error *err);

/* What the answer's rings, and NCCL's own, have beside another job on the GPUs of --busy, with its
 * best rings, and by what that is known: {"busy", "alone_gbps", "ours", "cases": [{"rings":
 * "these" or "baseline", "gbps", "alone_gbps", "left_share", "by", "collapses"}]}. *json is a new
 * reference. Returns 0, or -1 with err. And for people. */
int answer_beside(const struct options *options, const struct answer *answer, json_t **json,
                  struct tccl_error *err);
void answer_beside_print(const json_t *json);

/* ---- commands ---- */

/* Each does its work and prints the result. Returns 0, or -1 with err. */
int command_solve(const struct options *options, struct tccl_error *err);
int command_eval(const struct options *options, struct tccl_error *err);
int command_explain(const struct options *options, struct tccl_error *err);
int command_measure(const struct options *options, struct tccl_error *err);
int command_draw(const struct options *options, struct tccl_error *err);
int command_place(const struct options *options, struct tccl_error *err);

/* Finds the best ring or set of rings for the nodes: from the profiles' tables, else by searching.
 * answer is the caller's to clear in any case. Returns 0, or -1 with err. */
int solve(const struct options *options, struct nodes *nodes, struct answer *answer,
          struct tccl_error *err);

/* Rates the ring of --ring, or without it the baseline. As above. */
int evaluate(const struct options *options, struct nodes *nodes, struct answer *answer,
             struct tccl_error *err);
