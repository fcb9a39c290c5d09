/* spank-local.h: the plugin in srun, sbatch and salloc. */
#ifndef TCCL_SPANK_LOCAL_H
#define TCCL_SPANK_LOCAL_H

/* Checks TCCL= where no --tccl takes its place. Ends the program with status 1 on a value that is
 * not a mode, before anything is queued: Slurm ignores what an optional plugin returns. Returns 0.
 */
int local_init_post_opt(void);

#endif
