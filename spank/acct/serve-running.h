/* serve-running.h: which steps run now, as Slurm's squeue says. Records don't know when a step
 * ends.
 */
#ifndef TCCL_SERVE_RUNNING_H
#define TCCL_SERVE_RUNNING_H

#include <jansson.h>

#include "base/error.h"

/* Runs squeue and waits for it at most that long. Returns a new reference to an object whose
 * members are the running steps, "JOB.STEP": true, JOB being the job's own id also in arrays and
 * heterogeneous jobs, STEP a number or "batch" and the like; or NULL with err (there is no squeue,
 * it failed, or took too long). */
json_t *serve_running(int timeout_ms, struct tccl_error *err);

/* The same from what squeue printed: of `squeue -h -o "%A %i"` and of `squeue -h -s -o %i`. NULL
 * without memory. Lines that can't be read are left out. */
json_t *serve_running_parse(const char *jobs, const char *steps);

#endif
