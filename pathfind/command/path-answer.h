/* path-answer.h: the commands of tccl-path, and the output of solve, eval and explain, as JSON and
 * as text. */
#pragma once

#include "command/path-route.h"
#include "ring/decision.h"

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
