/* jobs.h: asks slurmctld about jobs, by squeue: off the event loop, one question at a time, one
 * for all who ask about a job at the same moment, each within a time. */
#pragma once

#include <jansson.h>

#include "base/error.h"
#include "client/key.h"
#include "client/step-fields.h"
#include "tccld/main/daemon.h"

/* job-facts.c: what slurmctld says of a job, which the job's user can't write, unlike the
 * environment of its steps: a struct tccl_step with the job, its user, array, heterogeneous job,
 * partition, account and QOS, and nothing else. */

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

enum {
    JOBS_ASK_MS = 5000,    /* for an answer */
    JOBS_FRESH_MS = 10000, /* an answer is not asked for again so long */
    JOBS_PAUSE_MS = 5000,  /* after an answer that did not come in time, nobody is asked so long */
    JOBS_MOST = 512,       /* jobs that are known */
    JOBS_WAITING = 2048,   /* who waits for answers */
};

struct jobs;
struct job_question;

/* facts: NULL: slurmctld has not said. They are valid during the call. */
typedef void job_answer(void *context, const struct tccl_step *facts);

/* NULL with err. */
struct jobs *jobs_new(struct daemon *daemon, struct tccl_error *err);
/* Whoever still waits is answered first: not known. NULL is fine. */
void jobs_free(struct jobs *jobs);

/* What slurmctld has said of a job within the last age_ms (0: ever, as far as it is kept). NULL:
 * nothing. */
const struct tccl_step *jobs_known(const struct jobs *jobs, uint32_t job, int64_t age_ms);

/* Has slurmctld asked, if it may be (Squeue=), and answer called from the event loop, once. NULL:
 * it is not asked. */
struct job_question *jobs_ask(struct jobs *jobs, uint32_t job, job_answer *answer, void *context);
/* The answer is no longer wanted. */
void jobs_forget(struct job_question *question);

/* record-claims.c: records of steps, on their way to the journal, get what slurmctld says of their
 * job in place of what their environment claims. */

/* Keeps the record (taken over) of a step of that user once slurmctld has said whose it is: its
 * partition, account, QOS, array and heterogeneous job. Where it doesn't say so in time, the record
 * lists in "claimed" what nobody has checked. It is asked only for records of node 0 (first). */
void record_put_checked(struct daemon *daemon, json_t *record, const struct tccl_step_key *key,
                        uid_t uid, bool first);
/* Keeps a confirmation (taken over), under the same key as its record. */
void confirmation_put_checked(struct daemon *daemon, json_t *confirmation,
                              const struct tccl_step_key *key);
