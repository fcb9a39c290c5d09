/* report.h: what a node tells its parent: MERGE, with what is known of its range, or with a reason
 * why there is no ring, or why one that was given out is not on all nodes. */
#ifndef TCCL_REPORT_H
#define TCCL_REPORT_H

#include "tccld/join/step-internal.h"

/* Reports the range, and waits for the PLAN. Without memory the step fails. */
void report_range(struct step *step, const struct merge *merge);

/* The parent is dead: no PLAN will come from it. */
void report_lost(struct step *step, const struct tccl_error *err);

/* Of a step that has failed here: its parent answers who keeps the record. */
void report_failure(struct step *step, enum tccl_reason cause, const char *reason);

/* A ring was given out, but a node of this range could not take it: handed up to the root, which
 * puts it on record. */
void report_partial(struct step *step, enum tccl_reason cause, const char *reason);

#endif
