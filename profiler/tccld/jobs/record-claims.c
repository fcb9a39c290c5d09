/* record-claims.c: a record waits for slurmctld's answer in memory, a few milliseconds as a rule
 * and JOBS_ASK_MS at most; the ledger counts it as under way meanwhile. */
#include "tccld/jobs/jobs.h"

#include <stdlib.h>

#include "tccld/journal/journal.h"

struct held {
    struct daemon *daemon;
    uint32_t job;
    uid_t uid;
    json_t *record;
};

static void keep(struct daemon *daemon, json_t *record, uint32_t job, uid_t uid,
                 const struct tccl_step *facts)
{
    bool own = facts && facts->uid == uid;
    if ((own ? job_facts_put(facts, record) : job_claims_mark(record)) != 0)
        log_line("job %u: out of memory: a record is not checked", job);
    journal_put(daemon->journal, record);
}

static void on_answer(void *context, const struct tccl_step *facts)
{
    struct held *held = context;
    keep(held->daemon, held->record, held->job, held->uid, facts);
    journal_expect(held->daemon->journal, -1);
    free(held);
}

void record_put_checked(struct daemon *daemon, json_t *record, const struct tccl_step_key *key,
                        uid_t uid, bool first)
{
    const struct tccl_step *facts = jobs_known(daemon->jobs, key->job, JOBS_FRESH_MS);
    struct held *held = facts || !first ? NULL : malloc(sizeof(*held));
    if (held) {
        *held = (struct held){daemon, key->job, uid, record};
        if (jobs_ask(daemon->jobs, key->job, on_answer, held)) {
            journal_expect(daemon->journal, 1);
            return;
        }
        free(held);
    }
    keep(daemon, record, key->job, uid, facts);
}

void confirmation_put_checked(struct daemon *daemon, json_t *confirmation,
                              const struct tccl_step_key *key)
{
    const struct tccl_step *facts = jobs_known(daemon->jobs, key->job, 0);
    if (facts && job_facts_put_key(facts, confirmation) != 0)
        log_line("job %u: out of memory: what was built may not be on its record", key->job);
    journal_put(daemon->journal, confirmation);
}
