/* record-claims.c: a record waits for slurmctld's answer in memory, a few milliseconds as a rule
 * and JOBS_ASK_MS at most; the ledger counts it as under way meanwhile. */
#include "tccld/jobs/record-claims.h"

#include <stdlib.h>

#include "base/fields.h"
#include "tccld/jobs/jobs.h"
#include "tccld/journal/journal.h"
#include "tccld/main/log.h"

struct held {
    struct daemon *daemon;
    json_t *record;
};

static void keep(struct daemon *daemon, json_t *record, const struct job_facts *facts)
{
    bool own = facts && facts->uid == (uid_t)tccl_number_of(record, "uid");
    if ((own ? job_facts_put(facts, record) : job_claims_mark(record)) != 0)
        log_line("job %" JSON_INTEGER_FORMAT ": out of memory: a record is not checked",
                 tccl_number_of(record, "job"));
    journal_put(daemon->journal, record);
}

static void on_answer(void *context, const struct job_facts *facts)
{
    struct held *held = context;
    keep(held->daemon, held->record, facts);
    journal_expect(held->daemon->journal, -1);
    free(held);
}

void record_put_checked(struct daemon *daemon, json_t *record)
{
    uint32_t job = (uint32_t)tccl_number_of(record, "job");
    const struct job_facts *facts = jobs_known(daemon->jobs, job, JOBS_FRESH_MS);
    bool first = tccl_number_of(record, "reporter") == 0;
    struct held *held = facts || !first ? NULL : malloc(sizeof(*held));
    if (held) {
        *held = (struct held){.daemon = daemon, .record = record};
        if (jobs_ask(daemon->jobs, job, on_answer, held)) {
            journal_expect(daemon->journal, 1);
            return;
        }
        free(held);
    }
    keep(daemon, record, facts);
}

void confirmation_put_checked(struct daemon *daemon, json_t *confirmation)
{
    uint32_t job = (uint32_t)tccl_number_of(confirmation, "job");
    const struct job_facts *facts = jobs_known(daemon->jobs, job, 0);
    if (facts && job_facts_put_key(facts, confirmation) != 0)
        log_line("job %u: out of memory: what was built may not be on its record", job);
    journal_put(daemon->journal, confirmation);
}
