/* late.h: steps that have begun on some of their nodes and not on others: is anybody there, and
 * what did the job's prolog announce? */
#ifndef TCCL_LATE_H
#define TCCL_LATE_H

#include "tccld/join/step-internal.h"

/* This node has joined: with what its job has announced? */
void late_compare(struct step *step, const struct tccl_join_message *message);
/* Has all that has come of the step so far? Then its terms are those of all nodes. */
bool late_as_announced(const struct step *step);

/* Some nodes of this range are late: their tccld are tried, and asked to take part with what was
 * announced; so does this node itself, if it is the late one. */
void late_hurry(struct step *step);
/* They have not come in time: no ring. */
void late_fail(struct step *step);

/* The JOIN has come after all, where an announcement stood in for it. */
void late_take_over(struct step *step, struct tccl_join_message *message);

/* The job has ended on this node. key: of any step of it. */
void late_end_job(struct steps *steps, const struct tccl_step_key *key);

#endif
