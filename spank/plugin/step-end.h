/* step-end.h: a step is ended on all of its nodes. */
#ifndef TCCL_STEP_END_H
#define TCCL_STEP_END_H

#include "base/error.h"
#include "client/key.h"

enum { STEP_END_MS = 10000 };

/* Has slurmctld send the step SIGKILL, as the effective user. Returns 0, or -1 with err: it
 * refused, or did not answer within STEP_END_MS. */
int step_end(const struct tccl_step_key *key, struct tccl_error *err);

#endif
