/* spank-option.h: --tccl, in every context. */
#ifndef TCCL_SPANK_OPTION_H
#define TCCL_SPANK_OPTION_H

#include <slurm/spank.h>

#include "base/error.h"

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

#endif
