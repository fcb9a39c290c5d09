/* members.h: the ranks of a communicator on this node, in the order of their GPUs. */
#ifndef SHIM_MEMBERS_H
#define SHIM_MEMBERS_H

#include "hook/decide.h"

/* Are these all of its ranks on this node, and alike? Returns 0, or -1 with why. */
int shim_check_members(const struct shim_plan *plan, const struct shim_registry *registry,
                       const struct shim_comm *comm, const struct shim_member *members, int n,
                       struct shim_why *why);

/* Are there GPUs of the communicator that some of its ranks don't see, as NVML hides those of other
 * tasks? They may then have equal numbers. All GPUs are of the plan. */
bool shim_members_hidden(const struct shim_plan *plan, const struct shim_member *members, int n);

bool shim_members_one_process(const struct shim_member *members, int n);

/* Does NCCL take P2P up to PXB in all processes? */
bool shim_members_pxb(const struct shim_member *members, int n);

#endif
