/* acct-fold.h: one record for each job in place of its steps' (-X). */
#ifndef TCCL_ACCT_FOLD_H
#define TCCL_ACCT_FOLD_H

#include <stdbool.h>

#include <jansson.h>

/* Should step a stand for the job rather than step b? Order: applied, fallback, nothing-to-do, off;
 * then the step on more nodes; then the later one. */
bool acct_fold_prefers(const json_t *a, const json_t *b);

/* Folds step records into one record per job (or component of a heterogeneous job; requeues
 * included), in the order of first steps. Each is the record of the job's preferred step, without
 * "step" and with "steps", the number of steps. A new reference; NULL if out of memory. */
json_t *acct_fold(const json_t *records);

#endif
