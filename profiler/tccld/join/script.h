/* script.h: job scripts that may start an MPI launcher, and the steps that they take part in. */
#ifndef TCCL_SCRIPT_H
#define TCCL_SCRIPT_H

#include "tccld/join/step-internal.h"
#include "tccld/join/stepd.h"

/* A job script of a job of several nodes has begun here: what its JOIN says is kept in RunDir until
 * its LEAVE, also by a tccld that is started again meanwhile. */
#define SCRIPT_ENDING ".script"
void script_keep(struct daemon *daemon, const struct connection *connection,
                 const struct tccl_step *join);
/* The script's own JOIN is all that is wanted: answers it. */
void script_answer(struct connection *connection);
/* It has ended; and with it, on this node, the steps that it has taken part in. */
void script_end(struct steps *steps, const struct tccl_step_key *key);
/* The same where nobody has said so, as step_gone_here. */
void script_gone(struct steps *steps, const struct tccl_step_key *key);
bool script_is(const struct tccl_step_key *key);
/* The slurmstepd of the script of a step's job; "": not known. */
void script_stepd(struct daemon *daemon, const struct tccl_step_key *key,
                  char text[static STEPD_TEXT]);
/* Does that of this job's script live? key gets the script's, unless it is unknown. */
enum stepd_state script_look(struct daemon *daemon, uint32_t job, struct tccl_step_key *key);

/* This node's JOIN in a step of a launcher that has no daemon here: like that of a node below,
 * which came with its MERGE, but with the GPUs of the job script. With the reason in it if there is
 * none. NULL with err: the node below is not to be believed. Caller frees. */
struct tccl_step *script_join(struct daemon *daemon, const struct tccl_step_key *key,
                              const json_t *below, struct tccl_error *err);

#endif
