/* job-facts.h: what slurmctld says of a job, which the job's user can't write, unlike the
 * environment of its steps: a struct tccl_step with the job, its user, array, heterogeneous job,
 * partition, account and QOS, and nothing else. */
#pragma once

#include <jansson.h>

#include "base/error.h"
#include "client/step-fields.h"

/* The -o of squeue whose output job_facts_read reads: the account, which users may be free to
 * choose, comes last. */
#define JOB_FACTS_FORMAT "%A|%U|%i|%P|%q|%a"

/* Finds the job in what squeue printed: of an array or a heterogeneous job there are several. A
 * line that is there twice, with different contents, is not believed. Returns 0, or -1 with err. */
int job_facts_read(const char *output, uint32_t job, struct tccl_step *facts,
                   struct tccl_error *err);

/* Partition, account and QOS of a step or of facts as one text, to be compared with that of other
 * nodes: with lines between them. */
enum { JOB_CLAIMS = 3 * TCCL_STEP_TEXT + 2 };
void job_claims(const struct tccl_step *step, char text[static JOB_CLAIMS + 1]);

/* Does the step claim a partition, account or QOS that is not its job's? Returns 0, or -1 with err:
 * which. */
int job_facts_check(const struct tccl_step *facts, const struct tccl_step *step,
                    struct tccl_error *err);

/* Gives a record the facts: also which array or heterogeneous job it is of. Returns 0, or -1: out
 * of memory. */
int job_facts_put(const struct tccl_step *facts, json_t *record);
/* The same of what a record and its confirmation have in common. */
int job_facts_put_key(const struct tccl_step *facts, json_t *record);
/* Lists in a record's "claimed" which of its members nobody has checked. Returns 0, or -1. */
int job_claims_mark(json_t *record);
