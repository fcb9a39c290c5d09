/* script.h: job scripts that may start an MPI launcher, and the steps that they take part in. */
#ifndef TCCL_SCRIPT_H
#define TCCL_SCRIPT_H

#include "tccld/join/running.h"

/* Is it the step of a job script, or of an interactive shell (salloc)? */
bool script_is(const struct tccl_step_key *key);
/* A step that runs by the part that the script's node takes in it; NULL: there is none. */
struct running_step *script_next_below(const struct running *running,
                                       const struct running_step *script);

/* This node's JOIN in a step of a launcher that has no daemon here: like that of a node below,
 * which came with its MERGE, but with the GPUs of the job script. With the reason in it if there is
 * none. NULL with err: the node below is not to be believed. Caller frees. */
struct tccl_step *script_join(struct daemon *daemon, const struct tccl_step_key *key,
                              const json_t *below, struct tccl_error *err);

#endif
