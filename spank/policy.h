/* policy.h: which mode a step has: built-in < tccl.conf [policy] < TCCL= < --tccl. */
#ifndef TCCL_POLICY_H
#define TCCL_POLICY_H

#include <stdbool.h>

#include "conf.h"

enum { POLICY_NOT_GIVEN = -1 };

struct policy_choice {
    enum tccl_mode mode;
    bool asked; /* by the user (option or environment), not by the site */
};

/* option, environment: an enum tccl_mode, or POLICY_NOT_GIVEN. policy: NULL where tccl.conf can't
 * be read. partition: the job's; NULL if unknown, and then a policy for certain partitions doesn't
 * apply. */
struct policy_choice policy_choose(const struct tccl_policy *policy, int option, int environment,
                                   const char *partition);

/* Is a step of this size to have a ring? False in mode off, and in auto below MinNodes, or below
 * MinGpus where that is known without asking other nodes (n_nodes is 1). */
bool policy_wants(const struct tccl_policy *policy, enum tccl_mode mode, int n_nodes, int n_gpus);

#endif
