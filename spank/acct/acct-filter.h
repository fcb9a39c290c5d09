/* acct-filter.h: what tcclacct's options ask for, as a filter for records (records.h). */
#pragma once

#include <jansson.h>

#include "base/error.h"

/* Adds what an option asks for, by the option's long name: jobs (12,13.0,14+1.batch,15_2,
 * 16_[1-3,7].0), user or uid (names or uids), nodelist (n[1-4],login), nnodes (MIN[-MAX]), state
 * and reason (words, any case, abbreviated), partition, accounts, qos, name (any names). Returns 0,
 * or -1 with err naming the entry. */
int acct_filter(json_t *filter, const char *option, const char *text, struct tccl_error *err);

/* The name of one of Slurm's special steps (batch, extern, interactive), or NULL. */
const char *acct_step_name(json_int_t step);
