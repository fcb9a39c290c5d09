/* acct-ring-groups.h: the ring of a record, for drawing: equal chains once, what repeats together.
 */
#ifndef TCCL_ACCT_RING_GROUPS_H
#define TCCL_ACCT_RING_GROUPS_H

#include <stdbool.h>

#include "base/error.h"
#include "chain/chain-text.h"

/* Consecutive nodes with the same chain. */
struct acct_run {
    int chain; /* index */
    int first, count;
};

/* Runs that repeat: runs first to first + n_runs - 1, so often one after the other. */
struct acct_group {
    int first, n_runs, times;
};

struct acct_ring {
    struct tccl_named_chain *chains; /* the different ones, as they come */
    struct acct_run *runs;
    struct acct_group *groups; /* all runs, in order */
    char **names;              /* of the nodes */
    int n_chains, n_runs, n_groups, n_nodes, n_gpus;
    bool cut; /* the text ended before the ring did: what is here is its beginning */
};

/* Reads the text (chain-text.h). A ring without node names is that of the node called alone.
 * Returns 0, or -1 with err. acct_ring_clear frees, also after a failure. */
int acct_ring_read(const char *text, const char *alone, struct acct_ring *ring,
                   struct tccl_error *err);
void acct_ring_clear(struct acct_ring *ring);

/* The names of the nodes that stand at place (0 to n_runs - 1) of a group, in Slurm's bracket form.
 * *count: how many they are. Allocated; NULL without memory. */
char *acct_group_names(const struct acct_ring *ring, const struct acct_group *group, int place,
                       int *count);

#endif
