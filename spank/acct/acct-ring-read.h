/* acct-ring-read.h: the ring of a record, read without knowing its machines. */
#ifndef TCCL_ACCT_RING_READ_H
#define TCCL_ACCT_RING_READ_H

#include <stdbool.h>

#include "base/error.h"
#include "machine/machine.h"

/* How one device hands on to the next: w, r, g, or m with a memory (notation.h). */
struct acct_link {
    char kind;
    int memory;
};

/* Open: links[0] leads from the entry NIC to the first GPU, links[n_gpus] from the last one to the
 * exit NIC. Closed: links[i] leads from GPU i, the last one back to the first; no NICs. */
struct acct_chain {
    bool closed;
    int n_gpus;
    int gpus[TCCL_MAX_GPUS];
    struct acct_link links[TCCL_MAX_GPUS + 1];
    char entry[TCCL_NAME], exit[TCCL_NAME];
};

int acct_chain_links(const struct acct_chain *chain);

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
    struct acct_chain *chains; /* the different ones, as they come */
    struct acct_run *runs;
    struct acct_group *groups; /* all runs, in order */
    char **names;              /* of the nodes */
    int n_chains, n_runs, n_groups, n_nodes, n_gpus;
    bool cut; /* the text ended before the ring did: what is here is its beginning */
};

/* Reads the text (notation.h). A ring without node names is that of the node called alone. Returns
 * 0, or -1 with err. acct_ring_clear frees, also after a failure. */
int acct_ring_read(const char *text, const char *alone, struct acct_ring *ring,
                   struct tccl_error *err);
void acct_ring_clear(struct acct_ring *ring);

/* The names of the nodes that stand at place (0 to n_runs - 1) of a group, in Slurm's bracket form.
 * *count: how many they are. Allocated; NULL without memory. */
char *acct_group_names(const struct acct_ring *ring, const struct acct_group *group, int place,
                       int *count);

#endif
