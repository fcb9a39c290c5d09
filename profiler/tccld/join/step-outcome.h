/* step-outcome.h: how the outcome of a step (client/outcome.h) comes about at its root, and what it
 * is at each node. */
#pragma once

#include "base/lines.h"
#include "client/client.h"
#include "tccld/join/merge.h"

enum { OUTCOME_RING = 4096 /* longest ring that is sent down, bytes */ };

/* Solves the ring over all nodes of a step. Always gives an outcome. most_rings: at once. join: of
 * node 0; its nodes, and its policy: name, minimums, gain. */
void outcome_solve(struct tccl_outcome *outcome, const struct merge *merge,
                   const struct tccl_step *join, int most_rings);

/* NCCL's own choice in place of the ring, for the step's groups, too; and measured. The caller says
 * why. */
void outcome_measure_own(struct tccl_outcome *outcome);

/* The PLAN for the nodes [first, end) below: without a ring text that is too long. A new reference,
 * NULL without memory. */
json_t *outcome_to_json(const struct tccl_outcome *outcome, const struct tccl_step_key *key,
                        int first, int end);

/* This node's plan, added to the lines of a plan file, and the ring's text for the job, which is
 * allocated. class and machine are this node's; socket: tccld's. Returns 0, or -1 with err. */
int outcome_plan(const struct tccl_outcome *outcome, const struct tccl_step *join,
                 const struct tccl_node_class *class, const struct tccl_machine *machine,
                 const char *socket, struct tccl_line_writer *plan, char **ring,
                 struct tccl_error *err);

/* This node's part of the ring, or of all rings that run at once. */
struct outcome_part {
    struct tccl_ring_set set;
    struct tccl_tree tree; /* beside a single chain */
    double alone;          /* of the whole part when nobody else runs, GB/s */
    double share;          /* what it leaves to each that runs beside it, at least; 1: all */
};
/* What the class has for this node's place in the ring. Returns 0, or -1: it does not fit. */
int outcome_part(const struct tccl_outcome *outcome, const struct tccl_step *join,
                 const struct tccl_node_class *class, struct outcome_part *part);
