/* task-gpus.h: do the tasks of a step see all of its GPUs on the node, or only their own? */
#ifndef TCCL_TASK_GPUS_H
#define TCCL_TASK_GPUS_H

#include <stdbool.h>

#include "base/error.h"

/* What srun hands on to slurmstepd, as it was typed. Slurm keeps SLURM_* for --export=NONE. */
#define TASK_GPUS_OPTION "SLURM_TCCL_GPU_OPTION"

/* In srun: remembers in the environment which option gives tasks GPUs of their own. words: the
 * command line up to the program. */
void task_gpus_note(char *const *words, int count);

/* In slurmstepd: has the step parts of GPUs, by its environment? Others compute on the rest of
 * them. Returns 0: no; -1 with err, which says so. */
int task_gpus_check(char *const *env, struct tccl_error *err);

/* In slurmstepd: do tasks see only some of the step's n_gpus here, by its environment and
 * slurm_conf (its path; NULL: not known)? Then option is which option makes it so. */
enum { TASK_GPUS_TEXT = 200 };
bool task_gpus_hidden(char *const *env, int n_gpus, const char *slurm_conf,
                      char option[static TASK_GPUS_TEXT]);

/* How many GPUs each task sees with this option, as it was typed; n_gpus: all of them. */
int task_gpus_seen(const char *option, int n_gpus);

#endif
