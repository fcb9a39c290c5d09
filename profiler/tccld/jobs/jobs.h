/* jobs.h: asks slurmctld about jobs, by squeue: off the event loop, one question at a time, one
 * for all who ask about a job at the same moment, each within a time. */
#pragma once

#include "tccld/jobs/job-facts.h"
#include "tccld/main/daemon.h"

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
