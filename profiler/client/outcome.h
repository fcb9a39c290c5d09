/* outcome.h: what comes of a step, as its root finds it, and the message PLAN that carries it down
 * the tree of tccld and to the plugin. Format: profiler/client/README.md. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include <jansson.h>

#include "base/error.h"
#include "base/state.h"
#include "client/conf.h"
#include "client/hostlist.h"
#include "client/key.h"

enum {
    TCCL_OUTCOME_REASON = 511,
    TCCL_OUTCOME_SOURCE = 31,
    TCCL_OUTCOME_BESIDE = 4095,
    TCCL_OUTCOME_BASELINE = 4095, /* its rings */
    TCCL_OUTCOME_BASIS = 15,
    TCCL_OUTCOME_FEWER = 255,
    TCCL_OUTCOME_DEGRADED = 255,
    TCCL_OUTCOME_CLASS = 63,
    TCCL_OUTCOME_RING = 65535
};

/* By which of its NICs each of the rings that run at once enters a node and leaves it; -1: rings of
 * a single node. */
enum { TCCL_NODE_NICS = 16, TCCL_NODE_RINGS = 8 };
struct tccl_node_nics {
    int8_t entry[TCCL_NODE_RINGS], exit[TCCL_NODE_RINGS];
};

/* What NCCL does on its own, by generations of its versions, ascending. */
enum { TCCL_OUTCOME_BASELINES = 16 };
struct tccl_outcome_baseline {
    int first;   /* the generation's first version, as ncclGetVersion counts */
    double gbps; /* 0: not known */
    bool better; /* the ring is not worth it with that NCCL */
};

struct tccl_outcome {
    enum tccl_state state;
    bool recorded; /* somebody above keeps the record */
    bool required; /* failed: a node requires a ring, and node 0 ends the step */
    bool groups;   /* no ring for all of its GPUs, but its groups may ask for chains */
    bool measure;  /* no ring, for any of its communicators either: nodes have plans by which what
                    * NCCL's own choice achieves is measured */
    bool partial;  /* a ring for the others, but this node could not take it */
    char reason[TCCL_OUTCOME_REASON + 1];    /* why not planned; "" when planned, but that NCCL
                                                 is foreseen to leave the ring alone */
    enum tccl_reason cause;                  /* its class; set both with tccl_outcome_say */
    char reason_node[TCCL_HOST_NAME + 1];    /* the node on which it is so; "": on none, or all */
    char source[TCCL_OUTCOME_SOURCE + 1];    /* of the bandwidths: model, host, cuda or mixed */
    char node_class[TCCL_OUTCOME_CLASS + 1]; /* for the record: machine and GPU set of its nodes */
    char policy[TCCL_POLICY_NAME + 1]; /* node 0's rule: its Environment counts for all nodes */
    double gbps, baseline_gbps, bound_gbps; /* GB/s; 0: not known; baseline: of the newest NCCL */
    double alone_gbps;  /* of the ring, or of NCCL's own where there is none, when nobody else runs;
                           0: as gbps */
    int64_t neighbours; /* steps that run beside this one, on all of its nodes */
    char neighbours_by[TCCL_OUTCOME_BASIS +
                       1]; /* by what gbps is known beside them: "model",
                              "measured", "foretold", "bounds" (at least); "": alone */
    double placed_gbps;    /* of the best GPUs of this machine, as many as the step has on its one
                            * node, alone, GB/s; 0: not known */
    char *beside;          /* those on all nodes (beside-text.h), for the record; NULL: none */
    char *baseline_rings;  /* the chains of the baseline on the first node (chain-text.h, a ring
                            * set), for the record; NULL: not known */
    struct tccl_outcome_baseline baselines[TCCL_OUTCOME_BASELINES];
    int n_baselines;
    int64_t gpus;  /* of the step on all nodes; 0: not known */
    bool moved;    /* of some nodes the GPUs were not measured, but others that are alike */
    bool agreed;   /* all nodes build it, or none: NICs of its rings, or of NCCL's own, are on
                    * several fabrics, and might not meet */
    int64_t rings; /* that run at once, each with an equal part of the data; 0: none */
    char fewer_rings[TCCL_OUTCOME_FEWER + 1]; /* for the record: why not as many as some nodes have
                                                 by themselves; "" */
    char degraded[TCCL_OUTCOME_DEGRADED + 1]; /* the first node that lacks something of what was
                                                 measured there, and what; "": none does */
    int64_t subject; /* at the root: a hash of what is promised to which GPUs, as alone; 0: there is
                      * no ring that is worth it */
    double promised; /* of that ring, GB/s */
    int64_t solve_us; /* the wait until the answer at the root, microseconds: from the first JOIN,
                       * or from when node 0 began to wait for a tccld that hung */
    int64_t start;    /* of the step at the root, unix time; 0: not known */
    char *path; /* to the plugin: the node's plan file; NULL: none. Without a ring: for groups */
    char *ring; /* its text; NULL: none, or too long. To the plugin: up to 4 KiB; else this
                 * node's chain and "…" */
    int first;  /* the node of choices[0] */
    int n_choices;
    struct tccl_node_nics *choices;
};
void tccl_outcome_clear(struct tccl_outcome *outcome);
/* Is what it has beside the others, GB/s, less than a quarter of an equal part of what it has
 * alone, and not by bounds? Then the copies of the steps do more than share what is slow. The text
 * says so: "copies of … " it. */
bool tccl_outcome_collapses(const struct tccl_outcome *outcome, double gbps);
#define TCCL_OUTCOME_COLLAPSE                                                                      \
    "slow each other down by more than sharing: ask for other GPUs (tccl-path place --busy)"
/* Sets the reason, a text and its class, of no node; a text without one is TCCL_REASON_OTHER. */
__attribute__((format(printf, 3, 4))) void
tccl_outcome_say(struct tccl_outcome *outcome, enum tccl_reason cause, const char *fmt, ...);
/* The state that the plugin, the record and the numbers since tccld's start have: failed, too,
 * where there is a ring, and plans, but NCCL is foreseen to leave it alone. */
enum tccl_state tccl_outcome_told(const struct tccl_outcome *outcome);

/* PLAN with the choices of the nodes [first, end), none if these are equal: a new reference, NULL
 * if out of memory. */
json_t *tccl_plan_to_json(const struct tccl_outcome *outcome, const struct tccl_step_key *key,
                          int first, int end);
/* Reads it, for the same range. key: whose plan it must be, or NULL. Returns 0, or -1 with err. The
 * caller clears the outcome. */
int tccl_plan_from_json(const json_t *json, const struct tccl_step_key *key, int first, int end,
                        struct tccl_outcome *outcome, struct tccl_error *err);
