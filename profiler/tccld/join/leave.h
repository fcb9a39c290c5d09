/* leave.h: the end of a step on this node, and of its plan file. */
#ifndef TCCL_LEAVE_H
#define TCCL_LEAVE_H

#include "tccld/join/running.h"
#include "tccld/join/step-internal.h"

/* The step has ended on this node; of a job script, the steps that it has taken part in end as
 * well. silent: nobody has said so; what was built may have been said to no one, and stays unknown.
 */
void leave_end(struct steps *steps, const struct tccl_step_key *key, bool silent);
/* The same of an earlier run of a step that begins anew under the same key: that goes on. */
void leave_before(struct daemon *daemon, const struct tccl_step_key *key);
/* Nothing that knows of a step is to look at its record any more. */
void leave_forget(struct running *running, struct running_step *step);

#endif
