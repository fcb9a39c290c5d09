#include "tccld/journal/journal-spool.h"

#include <string.h>

#include "base/cleanup.h"
#include "tccld/journal/journal-flight.h"
#include "tccld/journal/journal-store.h"

enum { ROUND = 32 }; /* records of the spool that are under way at a time */

void spooled_run(struct chore *chore)
{
    chore->kept = tccl_spool_put(chore->journal->spool, chore->record, &chore->spool_err);
}

void spooled_then(struct chore *chore)
{
    struct journal *journal = chore->journal;
    if (chore->kept != 0) {
        journal_keep_in_memory(journal, chore->record, chore->spool_err.text);
        return;
    }
    journal->spooled = true;
    journal_retry_later(journal);
}

void spooled_put(struct journal *journal, json_t *record)
{
    struct chore chore = {.journal = journal,
                          .run = spooled_run,
                          .then = spooled_then,
                          .record = json_incref(record)};
    if (chore_submit(chore) != 0)
        journal_keep_in_memory(journal, record, "the disk does not keep up");
}

static void run_forget(struct chore *chore)
{
    if (chore->name[0])
        tccl_spool_remove(chore->journal->spool, chore->name, &chore->err);
    else
        tccl_spool_forget(chore->journal->spool, chore->record, &chore->err);
}

static void run_reject(struct chore *chore)
{
    tccl_spool_reject(chore->journal->spool, chore->name, chore->reason, &chore->err);
}

void spooled_settle(struct journal *journal, json_t *record, const char *name, const char *refused)
{
    struct chore chore = {.journal = journal,
                          .run = refused ? run_reject : run_forget,
                          .then = chore_log_error,
                          .record = json_incref(record)};
    strcpy(chore.name, name);
    if (refused) {
        log_limited(&journal->refused, "%s refuses a record: %s", journal_home(journal), refused);
        snprintf(chore.reason, sizeof(chore.reason), "%s", refused);
    }
    if (name[0] || (journal->spooled && !refused))
        chore_submit(chore);
    else
        json_decref(chore.record);
}

/* Puts what the spool holds next into the store here. */
static int store_spooled(struct chore *chore, const json_t *record)
{
    struct journal *journal = chore->journal;
    int stored = store_put(chore, record);
    if (stored == 0)
        tccl_spool_remove(journal->spool, chore->name, NULL);
    else if (stored > 0)
        tccl_spool_reject(journal->spool, chore->name, chore->err.text, NULL);
    return stored < 0 ? -1 : 0;
}

/* Sets result to that of tccl_spool_next, or 2 when the store is here and fails; answer: what is to
 * be sent, if it is elsewhere. */
static void run_next(struct chore *chore)
{
    struct journal *journal = chore->journal;
    bool here = !chore->uid;
    chore->answer = json_array();
    for (int i = 0; i < ROUND && chore->result == 0; i++) {
        cleanup_json json_t *record = NULL;
        chore->result = tccl_spool_next(journal->spool, chore->name, &record, &chore->err);
        if (chore->result != 0)
            break;
        if (!here)
            json_array_append_new(chore->answer, json_pack("[sO]", chore->name, record));
        else if (store_spooled(chore, record) != 0)
            chore->result = 2;
    }
    chore->count = tccl_spool_count(journal->spool);
}

/* All of a batch have been settled: the next one, if that makes sense. */
static void end_batch(struct journal *journal)
{
    if (journal->round_flights > 0)
        return;
    if (!journal->round_failed) {
        spooled_next(journal);
        return;
    }
    journal->round = false;
    journal_retry_later(journal);
}

void spooled_landed(struct journal *journal, bool settled)
{
    journal->round_flights--;
    journal->round_failed = journal->round_failed || !settled;
    end_batch(journal);
}

/* Each of these is sent; what can't be is left where it is. */
static void send_batch(struct journal *journal, const json_t *batch)
{
    size_t i;
    json_t *pair;
    journal->round_failed = false;
    json_array_foreach(batch, i, pair)
    {
        const char *name = json_string_value(json_array_get(pair, 0)), *to = journal_home(journal);
        if (to && flight_send(journal, json_array_get(pair, 1), to, name, false) == 0)
            journal->round_flights++;
        else
            journal->round_failed = true;
    }
}

static void then_next(struct chore *chore)
{
    struct journal *journal = chore->journal;
    chore_log_error(chore);
    store_log_late(chore);
    if (journal->closing) {
        journal->round = false;
    } else if (json_array_size(chore->answer) > 0) {
        send_batch(journal, chore->answer);
        end_batch(journal);
    } else if (chore->result <= 0) {
        spooled_next(journal);
    } else {
        journal->round = false;
        journal->spooled = chore->result != 1 || chore->count > 0;
        if (journal->spooled)
            journal_retry_later(journal);
        else
            journal->retry_ms = 0;
    }
}

void spooled_next(struct journal *journal)
{
    struct chore chore = {.journal = journal, .run = run_next, .then = then_next};
    chore.uid = journal_home(journal) != NULL; /* for the event loop to send */
    journal->round = true;
    if (!journal->closing && chore_submit(chore) == 0)
        return;
    journal->round = false;
    journal_retry_later(journal);
}
