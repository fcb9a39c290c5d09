/* acct-ring-groups.h: the ring, or rings, of a record for drawing: nodes with equal chains once,
 * repetitions grouped. */
#ifndef TCCL_ACCT_RING_GROUPS_H
#define TCCL_ACCT_RING_GROUPS_H

#include <stdbool.h>

#include "base/error.h"
#include "chain/chain-text.h"

/* Consecutive nodes with the same chains. */
struct acct_run {
    int set; /* index */
    int first, count;
};

/* Runs that repeat: runs first to first + n_runs - 1, consecutively that many times. */
struct acct_group {
    int first, n_runs, times;
};

struct acct_ring {
    struct tccl_named_rings *sets; /* distinct ones, in order of appearance; of one ring: chains */
    struct acct_run *runs;
    struct acct_group *groups; /* all runs, in order */
    char **names;              /* of the nodes */
    int n_rings;               /* in each set: that run at once */
    int n_sets, n_runs, n_groups, n_nodes, n_gpus;
    bool cut; /* truncated: this is only the beginning of the ring */
};

/* Reads the text (chain-text.h). A ring without node names belongs to the node called alone. All
 * nodes must have as many chains. Returns 0, or -1 with err. acct_ring_clear frees, also after a
 * failure. */
int acct_ring_read(const char *text, const char *alone, struct acct_ring *ring,
                   struct tccl_error *err);
void acct_ring_clear(struct acct_ring *ring);

/* The names of the nodes at place (0 to n_runs - 1) of a group, in Slurm's bracket form. *count:
 * how many. Allocated; NULL if out of memory. */
char *acct_group_names(const struct acct_ring *ring, const struct acct_group *group, int place,
                       int *count);

#endif
