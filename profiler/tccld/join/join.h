/* join.h: a node takes part in a step, with its JOIN. */
#ifndef TCCL_TCCLD_JOIN_H
#define TCCL_TCCLD_JOIN_H

#include "tccld/join/step-internal.h"

/* Looks for the node class of this node's GPUs for the join of an open step, or closes the step. */
void join_take(struct step *step);
/* The first JOIN of this node, which is taken over. */
void step_take_part(struct step *step, struct tccl_step *message);

/* A look at slurmd's list of GPUs has ended: steps that wait for it go on. */
void join_heard(struct daemon *daemon, unsigned look);

#endif
