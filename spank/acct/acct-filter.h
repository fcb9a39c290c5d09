/* acct-filter.h: what tcclacct's options ask for, as a filter for records (records.h). */
#ifndef TCCL_ACCT_FILTER_H
#define TCCL_ACCT_FILTER_H

#include <jansson.h>

#include "base/error.h"

/* Each adds a comma-separated list to the filter. Returns 0, or -1 with err naming the entry. */
int acct_filter_jobs(json_t *filter, const char *text,
                     struct tccl_error *err); /* 12,13.0,14+1.batch,15_2,16_[1-3,7].0 */
int acct_filter_users(json_t *filter, const char *text, struct tccl_error *err); /* names or uids */
int acct_filter_nodes(json_t *filter, const char *text, struct tccl_error *err); /* n[1-4],login */
int acct_filter_states(json_t *filter, const char *text, struct tccl_error *err); /* any case,
                                                                                     abbreviated */
int acct_filter_names(json_t *filter, const char *name, const char *text,
                      struct tccl_error *err); /* any names, into the filter's list called name */
int acct_filter_classes(json_t *filter, const char *text,
                        struct tccl_error *err); /* words of base/reason.h, any case, abbreviated */

int acct_filter_range(json_t *filter, const char *text, struct tccl_error *err); /* MIN[-MAX]
                                                                                   nodes */

/* The name of one of Slurm's special steps (batch, extern, interactive), or NULL. */
const char *acct_step_name(json_int_t step);

#endif
