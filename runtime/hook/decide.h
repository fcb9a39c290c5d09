/* decide.h: what all ranks of a communicator on this node are to be given. */
#ifndef SHIM_DECIDE_H
#define SHIM_DECIDE_H

#include "base/resolve.h"
#include "plan/registry.h"

/* What the asking rank knows of its communicator. */
struct shim_comm {
    uint64_t key; /* in the registry */
    int ranks;    /* -1: unknown (a split of a parent over several nodes) */
    int color;    /* of a split */
    int expected; /* local members that must have joined; -1: unknown, to be proven otherwise */
    struct shim_entry *roll;     /* of a split: all local ranks of the parent; else NULL */
    int roll_locals, roll_ranks; /* how many the parent has on this node, and in all */
    struct shim_nccl nccl;
};

/* Is the set of members complete and consistent, which chain,
 * which files? Fills answer, and apart with the graph file where not all nodes build several rings.
 * Returns 0, or -1 with why. members: those of this communicator. */
int shim_work_out(const struct shim_plan *plan, const struct shim_registry *registry,
                  const struct shim_comm *comm, const struct shim_member *members, int n,
                  struct shim_answer *answer, struct shim_text *apart, struct shim_why *why);

#endif
