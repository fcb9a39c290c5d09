/* spank-local.h: the plugin in srun, sbatch and salloc. */
#ifndef TCCL_SPANK_LOCAL_H
#define TCCL_SPANK_LOCAL_H

/* Checks TCCL=, unless --tccl overrides it. Calls exit(1) on an invalid mode, before submission:
 * Slurm ignores the return code of an optional plugin. Returns 0. */
int local_init_post_opt(void);

#endif
