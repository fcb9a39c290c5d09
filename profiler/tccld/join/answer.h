/* answer.h: the outcome of a step on its way out: to the tasks of this node, as a plan file and the
 * answer of their JOINs, and to the children. */
#ifndef TCCL_ANSWER_H
#define TCCL_ANSWER_H

#include "tccld/join/step-internal.h"

/* A ring has been given out: writes this node's plan, or leaves this node without. */
void answer_apply(struct step *step);
/* A ring has been given out, and this node alone is without, for that reason. */
__attribute__((format(printf, 3, 4))) void answer_without(struct step *step, enum tccl_reason cause,
                                                          const char *fmt, ...);

/* Answers the first JOIN, and counts that; answers others that wait. */
void answer_join(struct step *step);
void answer_waiters(struct step *step);

/* Sends each child the PLAN for its range. */
void answer_children(struct step *step);
/* A child that asks (again) after the step has closed: there is no ring for it any more. */
void answer_late(struct step *step, struct connection *connection);
/* A MERGE that can't be believed. */
void answer_refused(struct connection *connection, const struct tccl_step_key *key,
                    const struct tccl_error *err);

#endif
