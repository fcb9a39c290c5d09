/* leave.h: the end of a step on this node, and of its plan file. */
#ifndef TCCL_LEAVE_H
#define TCCL_LEAVE_H

#include "tccld/join/step-internal.h"

/* Removes plan files whose LEAVE never came, at most once an hour. */
void sweep_plans(struct steps *steps);

#endif
