/* deadline.h: the times of a step; there are no others. T is its timeout, from the first message
 * about it; of the node at depth k in the tree (profiler/tccld/README.md):
 *
 *   (0.24 - 0.05 k) T   who has not come is probed
 *   (0.6 - 0.05 k) T    who has not come is given up: no ring
 *   0.9 T               a PLAN that has not come from the parent is given up (report.c)
 *   after closing       the step is forgotten
 */
#ifndef TCCL_DEADLINE_H
#define TCCL_DEADLINE_H

#include "tccld/join/step-internal.h"

/* A new step has a timer, which isn't set. Returns 0, or -1 without memory. */
int deadline_init(struct step *step);
/* Somebody waits from now on for wait_ms. */
void deadline_expect(struct step *step, int64_t wait_ms);
/* Sets the timer to what its phase says. */
void deadline_arm(struct step *step);
/* The step has been closed: when it is forgotten. */
void deadline_keep(struct step *step);

/* When this node has to have reported (tccl_now_ms). */
int64_t deadline_report(const struct step *step);
/* When the PLAN of the parent is of no use any more. */
int64_t deadline_plan(const struct step *step);

#endif
