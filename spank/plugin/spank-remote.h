/* spank-remote.h: the plugin in slurmstepd, one process per step and node. All functions return 0:
 * whatever fails, the step starts. Only remote_task_init ends a step that requires a ring and has
 * none. */
#ifndef TCCL_SPANK_REMOTE_H
#define TCCL_SPANK_REMOTE_H

#include <slurm/spank.h>

/* Before options are processed: detects the options of pyxis, which are removed afterwards. */
void remote_init(spank_t spank);

/* Effective uid 0, stdio not connected: removes inherited variables and sends the JOIN. */
int remote_init_post_opt(spank_t spank, int argc, char **argv);

/* Effective uid of the user, stdio connected: waits for the plan, sets variables, prints the
 * message.
 */
int remote_user_init(spank_t spank);

/* In slurmstepd, once for each task that has been forked: closes what slurm_spank_user_init could
 * not under ContainSpank. */
int remote_task_post_fork(void);

/* In the forked task, before exec: removes the shim from LD_PRELOAD if the task cannot read it.
 * Does not return if the mode is require and there is no ring. */
int remote_task_init(spank_t spank);

/* At the end of the step on this node. */
int remote_exit(void);

#endif
