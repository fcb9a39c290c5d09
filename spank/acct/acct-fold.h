/* acct-fold.h: one record for each job in place of its steps' (-X). */
#ifndef TCCL_ACCT_FOLD_H
#define TCCL_ACCT_FOLD_H

#include <stdbool.h>

#include <jansson.h>

/* Does a tell more than b of the job that both are steps of? A step with a ring does, then one that
 * fell back, then one that there was nothing to do for, then one that was off; of the same, the one
 * on more nodes; then the later one. */
bool acct_fold_prefers(const json_t *a, const json_t *b);

/* The records of steps folded: for each job (component of a heterogeneous job; however often it was
 * requeued), in the order of its first step, the record of the step that tells most, without
 * "step", and with "steps": how many there were. A new reference; NULL without memory. */
json_t *acct_fold(const json_t *records);

#endif
