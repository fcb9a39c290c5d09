/* join.h: a node takes part in a step, with its JOIN. */
#ifndef TCCL_TCCLD_JOIN_H
#define TCCL_TCCLD_JOIN_H

#include "tccld/join/step-internal.h"

/* Finds the node class of this node's GPUs for the join of an open step, or closes the step. */
void join_take(struct step *step);

#endif
