#include "tccld/journal/journal-store.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "client/message.h"
#include "records/records.h"
#include "tccld/journal/journal-spool.h"

enum { BATCH = 64 }; /* records that are stored together */

int store_put(struct chore *chore, const json_t *record)
{
    const json_t *start = json_object_get(record, "start");
    if (json_is_integer(start) && json_integer_value(start) < chore->since) {
        chore->n_late++;
        return 0;
    }
    return tccl_records_put(chore->journal->store, record, &chore->err);
}

void store_log_late(struct chore *chore)
{
    if (chore->n_late)
        log_limited(&chore->journal->late,
                    "dropped %d record%s: older than KeepRecords=%dd when it was delivered",
                    chore->n_late, chore->n_late > 1 ? "s" : "",
                    chore->journal->daemon->conf->keep_days);
}

static void then_store(struct chore *chore)
{
    store_log_late(chore);
    if (chore->result > 0)
        log_limited(&chore->journal->refused, "a record is not stored: %s", chore->err.text);
    if (chore->result < 0) {
        log_limited(&chore->journal->trouble, "a record waits in the spool: %s", chore->err.text);
        spooled_then(chore);
    }
}

/* All of a batch, with one wait for the disk. */
static void run_batch(struct chore *chore)
{
    struct tccl_records *store = chore->journal->store;
    struct chore *each;
    struct tccl_error err = {0};
    int failed = tccl_records_begin(store, &err);
    TAILQ_FOREACH(each, &chore->batch, link)
    each->result = failed ? -1 : store_put(each, each->record);
    failed = failed || tccl_records_commit(store, &err) != 0;
    TAILQ_FOREACH(each, &chore->batch, link)
    {
        if (failed && each->result <= 0) {
            each->result = -1;
            if (!each->err.text[0])
                each->err = err;
        }
        if (each->result < 0 && !each->connection)
            spooled_run(each);
    }
}

static void store_next(struct journal *journal);

static void then_batch(struct chore *chore)
{
    struct chore *each;
    chore->journal->storing = false;
    while ((each = TAILQ_FIRST(&chore->batch)) != NULL) {
        TAILQ_REMOVE(&chore->batch, each, link);
        chore_done(each);
    }
    store_next(chore->journal);
}

/* Moves what waits into a batch, if none is under way. */
static void store_next(struct journal *journal)
{
    struct chore *chore, *each;
    if (journal->storing || TAILQ_EMPTY(&journal->inbox) || !(chore = calloc(1, sizeof(*chore))))
        return;
    *chore = (struct chore){.journal = journal, .run = run_batch, .then = then_batch};
    TAILQ_INIT(&chore->batch);
    for (int i = 0; i < BATCH && (each = TAILQ_FIRST(&journal->inbox)) != NULL; i++) {
        TAILQ_REMOVE(&journal->inbox, each, link);
        TAILQ_INSERT_TAIL(&chore->batch, each, link);
        journal->n_inbox--;
    }
    journal->storing = true;
    if (pool_submit(journal->disk, chore_run, chore_done, chore) == 0)
        return;
    journal->storing = false;
    TAILQ_FOREACH(each, &chore->batch, link)
    {
        each->result = each->kept = -1;
        tccl_fail(&each->err, "the disk does not keep up");
        each->spool_err = each->err;
    }
    then_batch(chore);
    free(chore);
}

/* Takes the references of first over, also when it fails. Returns 0 or -1. */
static int store_submit(struct chore first)
{
    struct journal *journal = first.journal;
    struct chore *chore = journal->n_inbox < POOL_QUEUE ? malloc(sizeof(*chore)) : NULL;
    if (!chore) {
        json_decref(first.record);
        return -1;
    }
    *chore = first;
    chore->since = journal_oldest(journal);
    TAILQ_INSERT_TAIL(&journal->inbox, chore, link);
    journal->n_inbox++;
    store_next(journal);
    return 0;
}

void store_add(struct journal *journal, json_t *record)
{
    struct chore chore = {.journal = journal, .then = then_store, .record = json_incref(record)};
    if (store_submit(chore) != 0)
        journal_keep_in_memory(journal, record, "the disk does not keep up");
}

static void then_receive(struct chore *chore)
{
    cleanup_json json_t *message = chore->result == 0
                                       ? tccl_message_new("ok")
                                       : chore_error_message(chore->err.text, chore->result > 0);
    store_log_late(chore);
    if (chore->result != 0)
        log_limited(&chore->journal->refused, "a record from %s is not stored: %s",
                    connection_node(chore->connection), chore->err.text);
    connection_answer(chore->connection, message);
    connection_drop(chore->connection);
}

void journal_receive(struct daemon *daemon, struct connection *connection, json_t *message)
{
    struct chore chore = {.journal = daemon->journal,
                          .then = then_receive,
                          .record = json_incref(json_object_get(message, "record")),
                          .connection = connection_hold(connection)};
    if (store_submit(chore) == 0)
        return;
    cleanup_json json_t *busy = chore_error_message("the disk does not keep up", false);
    connection_answer(connection, busy);
    connection_drop(connection);
}

void store_empty_inbox(struct journal *journal)
{
    struct chore *each;
    while ((each = TAILQ_FIRST(&journal->inbox)) != NULL) {
        TAILQ_REMOVE(&journal->inbox, each, link);
        if (each->connection)
            connection_drop(each->connection);
        else
            json_array_append(journal->memory, each->record);
        json_decref(each->record);
        free(each);
    }
}
