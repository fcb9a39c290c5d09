/* leave.h: the end of a step on this node, and of its plan file. */
#ifndef TCCL_LEAVE_H
#define TCCL_LEAVE_H

#include "tccld/join/step-internal.h"

/* The step has ended on this node. */
void step_end_here(struct steps *steps, const struct tccl_step_key *key);
/* The same where nobody has said so: what was built may have been said to no one, and stays
 * unknown. */
void step_gone_here(struct steps *steps, const struct tccl_step_key *key);

#endif
