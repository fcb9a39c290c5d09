/* trial.h: which jobs run with NCCL's own choice in place of the rings that they would get, so that
 * it is known what rings bring (Trial= in tccl.conf). */
#ifndef TCCL_TRIAL_H
#define TCCL_TRIAL_H

#include <stdbool.h>

#include "client/key.h"

enum { TRIAL_WHOLE = 100000 };

/* Is this job one of so many of TRIAL_WHOLE? By a hash of what the draw is for, the cluster and the
 * job's number (of a heterogeneous job the leader's): alike for all steps of a job, requeued or
 * not, on all nodes, whatever node decides; and known to whoever knows the number, who may as well
 * ask for a ring. */
bool trial_draws(const struct tccl_step_key *key, const char *what, int share);

#endif
