/* deadline.h: the times of a step; there are no others. T is its timeout, from the first message
 * about it; A is AliveTimeout=, T if that is less (profiler/tccld/join/README.md):
 *
 *   1/4 s, at most A / 4   nodes from which nothing has come are asked whether they are alive
 *                          (probe.c)
 *   A                      who has not answered that is dead: no ring. Who is busy has 4 A
 *   T - 1 s                who is alive and has not come is given up; 1/8 s earlier for each level
 *   T - 1/4 s              a PLAN that has not come from the parent is given up (report.c)
 *   after closing          the step is forgotten
 */
#ifndef TCCL_DEADLINE_H
#define TCCL_DEADLINE_H

#include "tccld/join/step-internal.h"

/* A new step has a timer, which isn't set. Returns 0, or -1 without memory. */
int deadline_init(struct step *step);
/* Somebody waits from now on for wait_ms. */
void deadline_expect(struct step *step, int64_t wait_ms);
/* Others are awaited from now on, and it is known who. */
void deadline_await(struct step *step);
/* Sets the timer to what its phase says. */
void deadline_arm(struct step *step);
/* The step has been closed: when it is forgotten. */
void deadline_keep(struct step *step);

/* When this node has to have reported (tccl_now_ms). */
int64_t deadline_report(const struct step *step);
/* When the PLAN of the parent is of no use any more. */
int64_t deadline_plan(const struct step *step);
/* How long a node that is asked now whether it is alive has to answer, ms; may be negative. */
int64_t deadline_patience(const struct step *step);

#endif
