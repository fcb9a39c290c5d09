/* spank-prolog.h: the plugin beside a job's Prolog and Epilog, as root in a process of its own.
 * Both return 0, whatever goes wrong, and take a fraction of a second at most: Slurm drains a node
 * whose prolog fails, and the job waits for it. */
#ifndef TCCL_SPANK_PROLOG_H
#define TCCL_SPANK_PROLOG_H

#include <slurm/spank.h>

/* Tells this node's tccld what the job has here, for a step that begins while nodes are late.
 * Whether a step will want a ring is not known yet: neither TCCL= nor --tccl come here. */
int prolog_announce(spank_t spank, int argc, char **argv);

/* The job has ended on this node. */
int epilog_forget(spank_t spank, int argc, char **argv);

#endif
