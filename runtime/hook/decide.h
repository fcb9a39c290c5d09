/* decide.h: what all ranks of a communicator on this node are to be given: decide.c, which has one
 * of them settled for all (shim-settle.c) within what the node has left (budget.c). */
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

/* Is the set of members complete and consistent, which chain, which files? Fills answer, and apart
 * with the graph file where not all nodes build several rings. Returns 0, or -1 with why. members:
 * those of this communicator. */
int shim_decide(const struct shim_plan *plan, const struct shim_registry *registry,
                const struct shim_comm *comm, const struct shim_member *members, int n,
                struct shim_answer *answer, struct shim_text *apart, struct tccl_error *why);

/* Decides for the entry, if nobody has; waits for who does. Returns SHIM_USE (the answer is in the
 * entry) or SHIM_ASIDE; why it is ASIDE is logged once. */
enum shim_decision shim_settle(const struct shim_plan *plan, struct shim_registry *registry,
                               struct shim_entry *entry, const struct shim_comm *comm);
/* Makes the entry ASIDE, which is logged once; too late if it is SHIM_USE. Returns what stands. */
enum shim_decision shim_settle_aside(struct shim_entry *entry, const struct shim_comm *comm,
                                     const struct tccl_error *why);

/* Do the limits of the processes leave room for a graph file, for which NCCL takes memory for a
 * moment? Ranks of one process may read theirs at the same time. Returns 0, or -1 with why. */
int shim_budget_limits(const struct shim_member *members, int n, struct tccl_error *why);
/* Takes answer->memory for each of the n ranks of a communicator, also beside others that are about
 * to read their file and have not touched it yet (shim_registry_release gives it back); and room
 * for buffers that are files in /dev/shm. Returns 0, or -1 with why: it is left alone. */
int shim_budget_take(struct shim_registry *registry, struct shim_entry *entry,
                     const struct shim_answer *answer, const struct shim_member *members, int n,
                     struct tccl_error *why);

#endif
