/* running.h: what runs on this node's GPUs: all steps, those without a ring of ours included. New
 * steps get their rings beside them. */
#ifndef TCCL_RUNNING_H
#define TCCL_RUNNING_H

#include "client/outcome.h"
#include "client/step-fields.h"
#include "ring/groups.h"
#include "tccld/join/node-profile.h"
#include "tccld/net/connection.h"

enum {
    RUNNING_MOST = 256, /* steps; beyond, the oldest ones are forgotten, */
    RUNNING_JOB = 32    /* of one job: its own oldest one */
};

struct running;

/* Also knows what the tccld before this one has written down in RunDir. NULL without memory. */
struct running *running_new(struct daemon *daemon);
void running_free(struct running *running); /* NULL is fine */

/* A step has begun here. Until more is known it counts with NCCL's own rings over its GPUs. */
void running_begin(struct running *running, const struct tccl_step *join,
                   const struct connection *connection);
/* It has the chain, or ring, that its outcome says. */
void running_ring(struct running *running, const struct tccl_outcome *outcome,
                  const struct tccl_step *join, const struct tccl_node_class *class);
/* What its NCCL, of that version (0: not known), has built: so many of its rings, the first ones
 * (0: NCCL's own in their place; TCCL_CHAIN_RINGS: all that it was given). */
void running_built(struct running *running, const struct tccl_step_key *key, int rings, int nccl);
void running_end(struct running *running, const struct tccl_step_key *key);
/* Forgets those whose slurmstepd is gone: no LEAVE comes. At most ten times a second. */
void running_sweep(struct running *running);

/* The class of this node for a step, seen beside the others that run here; the same class where
 * nobody does. Takes the class over; the caller drops what it gets.
 * closed: the step has this node alone. */
struct shared_class *running_see(struct running *running, const struct tccl_step_key *key,
                                 struct shared_class *class, bool closed, bool hidden);

/* The chains of n groups of a step, chosen jointly beside the other steps that run here
 * (tccl_groups_choose). Returns 0, or -1: there is no table of one of them, and nothing was chosen.
 */
int running_choose(struct running *running, const struct tccl_step_key *key, const uint32_t *groups,
                   int n, bool closed, bool hidden, struct tccl_group_choice *choices);

/* For the record of a step with a ring: what NCCL builds here by itself, who runs beside it here,
 * with what each takes, before those of other nodes that the outcome names, and what other GPUs
 * would have given. Of a step on one node that is left to NCCL ("nothing-to-do"): what that has
 * here alone, and what other GPUs would have given. class: as running_see gave it. */
void running_describe(struct running *running, const struct tccl_step *join,
                      const struct tccl_node_class *class, struct tccl_outcome *outcome);

#endif
