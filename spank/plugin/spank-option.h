/* spank-option.h: --tccl, in every context. */
#ifndef TCCL_SPANK_OPTION_H
#define TCCL_SPANK_OPTION_H

#include <slurm/spank.h>

/* Call in slurm_spank_init. Returns the result of spank_option_register. */
int option_register(spank_t spank);

/* The mode that --tccl gave (enum tccl_mode), or POLICY_NOT_GIVEN. An option of sbatch or salloc
 * applies to the steps of the job, unless a step has its own. */
int option_mode(void);

/* TCCL= of srun, sbatch and salloc, for steps whose environment is not theirs (--export). */
#define TCCL_FORWARDED "SLURM_TCCL_MODE"

#endif
