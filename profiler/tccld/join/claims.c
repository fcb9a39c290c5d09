/* claims.c: what a step's environment says of its job is its user's to write, on each node another
 * text. Nodes whose policy depends on it send it up, and the root compares it with what slurmctld
 * says. So one node of a step asks, and only where something depends on it. */
#include "tccld/join/step.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "client/message.h"
#include "tccld/jobs/jobs.h"

static int add(struct step *step, const char *claims, struct tccl_error *err)
{
    if (!step->claims && !(step->claims = strdup(claims)))
        return tccl_fail_as(err, TCCL_REASON_OVERLOAD, "out of memory");
    if (strcmp(step->claims, claims) == 0)
        return 0;
    return tccl_fail_as(err, TCCL_REASON_POLICY,
                        "the step's environment names another partition, account or QOS than on "
                        "other nodes");
}

int claims_take(struct step *step, struct tccl_error *err)
{
    char claims[JOB_CLAIMS + 1];
    if (step->join->by_claims) {
        job_claims(step->join, claims);
        if (add(step, claims, err) != 0)
            return -1;
    }
    return claims_check(step, err) < 0 ? -1 : 0;
}

int claims_hear(struct step *step, const json_t *merge, struct tccl_error *err)
{
    const char *claims;
    if (tccl_get_optional_text(merge, "claims", JOB_CLAIMS, &claims, err) != 0)
        return tccl_fail_in(err, "MERGE");
    return claims ? add(step, claims, err) : 0;
}

int claims_put(const struct step *step, json_t *merge)
{
    return step->claims ? tccl_put_text(merge, "claims", step->claims, JOB_CLAIMS) : 0;
}

static void on_answer(void *context, const struct tccl_step *facts)
{
    struct step *step = context;
    (void)facts; /* step_advance looks them up */
    step->question = NULL;
    if (step_is_open(step))
        step_advance(step);
}

/* Once slurmctld has been asked. */
static int refuse(const struct step *step, const struct tccl_step *facts, struct tccl_error *err)
{
    if (!facts || facts->uid != step->join->uid)
        return tccl_fail_as(err, TCCL_REASON_NO_ANSWER,
                            "a policy depends on the job's partition, account or QOS, and "
                            "slurmctld does not say them");
    if (job_facts_check(facts, step->join, err) != 0)
        return tccl_fail_because(err, TCCL_REASON_POLICY);
    return tccl_fail_as(err, TCCL_REASON_POLICY,
                        "the environment of one node names another partition, account or QOS "
                        "than the job has");
}

int claims_check(struct step *step, struct tccl_error *err)
{
    struct daemon *daemon = step->steps->daemon;
    if (step->node != 0 || !step->claims || !daemon->conf->squeue[0])
        return 0;
    if (step->question)
        return 1;
    const struct tccl_step *facts = jobs_known(daemon->jobs, step->key.job, JOBS_FRESH_MS);
    char text[JOB_CLAIMS + 1];
    if (facts)
        job_claims(facts, text);
    if (facts && facts->uid == step->join->uid && strcmp(text, step->claims) == 0)
        return 0;
    if (!step->asked)
        step->question = jobs_ask(daemon->jobs, step->key.job, on_answer, step);
    step->asked = true;
    return step->question ? 1 : refuse(step, facts, err);
}

bool claims_are_awaited(const struct step *step, struct tccl_error *err)
{
    if (!step->question)
        return false;
    tccl_fail_as(err, TCCL_REASON_NO_ANSWER,
                 "a policy depends on the job's partition, account or QOS, and slurmctld has not "
                 "said them within %lld ms",
                 (long long)((tccl_now_us() - step->opened_us) / 1000));
    return true;
}

void claims_clear(struct step *step)
{
    if (step->question)
        jobs_forget(step->question);
    step->question = NULL;
    free(step->claims);
    step->claims = NULL;
}
