/* spank-parts.h: the plugin in its contexts, and --tccl in each. */
#pragma once

#include <slurm/spank.h>

#include "base/error.h"

/* ---- spank-option: --tccl, in every context. */

/* Call in slurm_spank_init. Returns the result of spank_option_register. */
int option_register(spank_t spank);

/* The mode that --tccl gave (enum tccl_mode), or POLICY_NOT_GIVEN. An option of sbatch or salloc
 * applies to the steps of the job, unless a step has its own. */
int option_mode(void);

/* TCCL= of srun, sbatch and salloc, for steps whose environment is not theirs (--export); one of
 * sbatch and salloc also if it is no mode, which they have said then. */
#define TCCL_FORWARDED "SLURM_TCCL_MODE"

/* The mode (enum tccl_mode) of TCCL= (own), or, where that is none, of the one handed on; or
 * POLICY_NOT_GIVEN. Either may be NULL. err: why own is ignored, where nobody has said so yet. */
int option_environment(const char *own, const char *handed, struct tccl_error *err);

/* ---- spank-local: the plugin in srun, sbatch and salloc. */

/* Hands TCCL= on to the steps, unless --tccl overrides it. sbatch and salloc say that one which is
 * no mode is ignored; of srun's the step does. Returns 0. */
int local_init_post_opt(void);

/* In srun, which has an allocation now and launches the step: notes which step it is, where a ring
 * is required. Returns 0. */
int local_user_init(spank_t spank);

/* In srun, which ends: of a step that requires a ring, says so if no node's plugin has looked at it
 * (Slurm drops --tccl in silence where there is none). argc, argv: the plugin's
 * arguments. Takes 3 s at most. Returns 0. */
int local_exit(int argc, char **argv);

/* ---- spank-remote: the plugin in slurmstepd, one process per step and node. All functions return
 * 0: whatever fails, the step starts. Only remote_task_init ends a step that requires a ring and
 * has none. */

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
