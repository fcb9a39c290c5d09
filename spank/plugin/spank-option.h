/* spank-option.h: --tccl, in every context. */
#ifndef TCCL_SPANK_OPTION_H
#define TCCL_SPANK_OPTION_H

#include <slurm/spank.h>

/* To be called in slurm_spank_init. Returns what spank_option_register returns. */
int option_register(spank_t spank);

/* The mode that --tccl gave (enum tccl_mode), or POLICY_NOT_GIVEN. An option of sbatch or salloc
 * counts for the steps inside, unless a step has its own. */
int option_mode(void);

#endif
