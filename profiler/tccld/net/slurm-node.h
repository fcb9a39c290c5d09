/* slurm-node.h: a node's address as slurmctld knows it. */
#ifndef TCCL_SLURM_NODE_H
#define TCCL_SLURM_NODE_H

#include <stdbool.h>

#include "client/conf.h"

enum { SLURM_NODE_MS = 5000 /* then scontrol is killed */ };

struct slurm_node {
    char address[TCCL_CONF_NAME]; /* NodeAddr: in numbers, or a name */
    bool own; /* slurmctld knows better than DNS: a cloud or dynamic node, or NodeAddr is not its
               * name
               */
};

/* Reads what `scontrol --oneliner show node NODE` prints. Returns 0, or -1: it is not of this node,
 * or has no address. */
int slurm_node_read(const char *text, const char *node, struct slurm_node *found);

/* Asks slurmctld by scontrol, which lies beside squeue (Squeue= of tccl.conf, as it stands there).
 * Blocks: for a thread. Returns 0, or -1: no answer. */
int slurm_node_ask(const char *squeue, const char *node, struct slurm_node *found);

#endif
