/* budget.h: memory that NCCL takes for a moment to read graph files on this node, and room for its
 * buffers in /dev/shm. */
#ifndef SHIM_BUDGET_H
#define SHIM_BUDGET_H

#include "plan/registry.h"

/* Do the limits of the processes leave room for a graph file? Ranks of one process may read theirs
 * at the same time. Returns 0, or -1 with why. */
int shim_budget_limits(const struct shim_member *members, int n, struct shim_why *why);

/* Takes answer->memory for each of the n ranks of a communicator, also beside others that are about
 * to read their file and have not touched it yet; and room for buffers that are files. Returns 0,
 * or -1 with why: it is left alone. */
int shim_budget_take(struct shim_registry *registry, struct shim_entry *entry,
                     const struct shim_answer *answer, const struct shim_member *members, int n,
                     struct shim_why *why);

/* Of a communicator that is left alone after all. */
void shim_budget_give_back(struct shim_registry *registry, const struct shim_answer *answer, int n);

#endif
