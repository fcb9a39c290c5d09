/* spank-remote.h: the plugin in slurmstepd, one process per step and node. All return 0: whatever
 * goes wrong, the step starts; only task_init ends a step that requires a ring and has none. */
#ifndef TCCL_SPANK_REMOTE_H
#define TCCL_SPANK_REMOTE_H

#include <slurm/spank.h>

/* Before options are looked at: takes note of those of other plugins that matter. */
void remote_init(spank_t spank);

/* Effective uid 0, stdio not connected: forgets inherited state and sends the JOIN. */
int remote_init_post_opt(spank_t spank, int argc, char **argv);

/* Effective uid is the user's, stdio connected: waits for the plan, tells the job and the user. */
int remote_user_init(spank_t spank);

/* In the forked task, before exec: takes the shim back where the task does not see it. Doesn't
 * return where mode is require and there is no ring. */
int remote_task_init(spank_t spank);

/* The step's end on this node. */
int remote_exit(void);

#endif
