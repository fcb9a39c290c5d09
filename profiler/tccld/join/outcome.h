/* outcome.h: what came of a step, as the root finds it and PLAN messages carry it down. */
#ifndef TCCL_OUTCOME_H
#define TCCL_OUTCOME_H

#include <time.h>

#include "client/client.h"
#include "tccld/join/merge.h"

enum { OUTCOME_RING = 4096 /* longest ring that is sent down, bytes */ };

struct outcome {
    enum tccl_state state;
    bool recorded; /* somebody above keeps the record */
    bool partial;  /* a ring for the others, but this node could not take it */
    char reason[512];
    char source[TCCL_NAME];
    char policy[TCCL_POLICY_NAME + 1]; /* the root's rule: its Environment counts for all nodes */
    double gbps, baseline_gbps, bound_gbps;
    long step_gpus; /* on all nodes; 0: not known */
    time_t start;   /* of the step at the root: that of its record; 0: not known */
    char *ring;     /* NULL: none, or too long */
    int first;      /* the node of choices[0] */
    int n_choices;
    struct tccl_ring_choice *choices;
};
void outcome_clear(struct outcome *outcome);

/* Solves the ring over all nodes of a step. Always gives an outcome. join: of node 0; its nodes,
 * and its policy: name, minimums, gain. */
void outcome_solve(struct outcome *outcome, const struct merge *merge,
                   const struct tccl_step *join);

/* The PLAN for the nodes [first, end): a new reference, NULL without memory. */
json_t *outcome_to_json(const struct outcome *outcome, const struct tccl_step_key *key, int first,
                        int end);
/* Reads it, for the same range. Returns 0, or -1 with err. */
int outcome_from_json(struct outcome *outcome, const json_t *json, const struct tccl_step_key *key,
                      int first, int end, struct tccl_error *err);

/* This node's plan: chain, JSON for the plan file, ring text for the job. kind and machine are this
 * node's; socket: tccld's. Returns a new reference, or NULL with err. *ring is allocated. */
json_t *outcome_plan(const struct outcome *outcome, const struct tccl_step *join,
                     const struct tccl_kind *kind, const struct tccl_machine *machine,
                     const char *socket, char **ring, struct tccl_error *err);

#endif
