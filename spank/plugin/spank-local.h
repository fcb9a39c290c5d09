/* spank-local.h: the plugin in srun, sbatch and salloc. */
#ifndef TCCL_SPANK_LOCAL_H
#define TCCL_SPANK_LOCAL_H

#include <slurm/spank.h>

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

#endif
