/* budget.h: memory and time that graph files may take on this node. */
#ifndef SHIM_BUDGET_H
#define SHIM_BUDGET_H

#include "plan/registry.h"

/* Do the limits of the processes leave room for a graph file? Ranks of one process may read theirs
 * at the same time. Returns 0, or -1 with why. */
int shim_budget_limits(const struct shim_member *members, int n, struct shim_why *why);

/* Takes memory for the n ranks of a communicator, and a place among the costly files of their
 * processes. Returns 0, or -1 with why: nothing is taken. */
int shim_budget_take(const struct shim_plan *plan, struct shim_registry *registry,
                     const struct shim_answer *answer, uint32_t version, int n,
                     struct shim_why *why);

/* Of a communicator that is left alone after all. */
void shim_budget_give_back(const struct shim_plan *plan, struct shim_registry *registry,
                           const struct shim_answer *answer, uint32_t version, int n);

#endif
