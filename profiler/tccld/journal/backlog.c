/* Records that could not be delivered, or stored, wait in the spool. They leave it in rounds: some
 * are read and sent, or stored here, and when all of those are settled the next ones. A round ends
 * when the spool is empty or one can't be delivered; the next one begins after a pause. */
#include "tccld/journal/backlog.h"

#include <string.h>

#include "base/cleanup.h"
#include "tccld/journal/delivery.h"
#include "tccld/journal/local-store.h"
#include "tccld/journal/opening.h"

enum { ROUND = 32 }; /* records of the spool that are under way at a time */
/* Of a round's part: there is more, all of it has been read, the store here fails. */
enum { MORE = 0, END = 1, STORE_FAILS = 3 };

void backlog_run(struct disk_task *task)
{
    struct tccl_spool *spool = task->journal->spool;
    task->kept = spool ? tccl_spool_put(spool, task->record, &task->spool_err)
                       : tccl_fail(&task->spool_err, "no spool: %s", task->journal->why.text);
}

void backlog_then(struct disk_task *task)
{
    struct journal *journal = task->journal;
    if (task->kept != 0) {
        journal_keep_in_memory(journal, task->record, task->spool_err.text);
        return;
    }
    journal_pend(journal, -1);
    journal->has_backlog = true;
    journal_retry_later(journal);
}

void backlog_put(struct journal *journal, json_t *record)
{
    struct disk_task task = {.journal = journal,
                             .run = backlog_run,
                             .then = backlog_then,
                             .record = json_incref(record)};
    if (disk_task_submit(task) != 0)
        journal_keep_in_memory(journal, record, "the disk does not keep up");
}

static void run_forget(struct disk_task *task)
{
    tccl_spool_forget(task->journal->spool, task->record, &task->err);
}

static void run_reject(struct disk_task *task)
{
    tccl_spool_reject(task->journal->spool, task->name, task->reason, &task->err);
}

void backlog_settle(struct journal *journal, json_t *record, const char *name, const char *refused)
{
    struct disk_task task = {.journal = journal,
                             .run = refused ? run_reject : run_forget,
                             .then = disk_task_log_error,
                             .record = json_incref(record)};
    strcpy(task.name, name);
    if (refused) {
        char why[256];
        const char *home = journal_home(journal);
        snprintf(why, sizeof(why), "%s refuses it: %s", home ? home : "the store", refused);
        journal_lose(journal, record, !name[0], why);
        snprintf(task.reason, sizeof(task.reason), "%s", refused);
    }
    if (name[0] || (journal->has_backlog && !refused))
        disk_task_submit(task);
    else
        json_decref(task.record);
}

/* Puts what the spool holds next into the store here. */
static int store_spooled(struct disk_task *task, const json_t *record)
{
    struct journal *journal = task->journal;
    int stored = local_store_put(task, record);
    if (stored == 0)
        tccl_spool_remove(journal->spool, task->name, NULL);
    else if (stored > 0)
        tccl_spool_reject(journal->spool, task->name, task->err.text, NULL);
    task->n_lost += stored > 0;
    return stored < 0 ? -1 : 0;
}

/* answer: what is to be sent, where the store is elsewhere; n_lost: what has been put aside. */
static void run_next(struct disk_task *task)
{
    struct journal *journal = task->journal;
    bool here = !task->uid;
    task->answer = json_array();
    if (!journal->spool)
        task->result = END;
    int unread = 0;
    for (int i = 0; i < ROUND && task->result == MORE; i++) {
        cleanup_json json_t *record = NULL;
        int read = tccl_spool_next(journal->spool, task->name, &record, &task->err);
        unread += read < 0;
        task->n_lost += read == TCCL_SPOOL_PUT_ASIDE;
        if (read == TCCL_SPOOL_END)
            task->result = END;
        else if (read == 0 && !here)
            json_array_append_new(task->answer, json_pack("[sO]", task->name, record));
        else if (read == 0 && store_spooled(task, record) != 0)
            task->result = STORE_FAILS;
    }
    if (unread == ROUND)
        task->result = END; /* of this round: the folder can't be read now */
    if (task->result == STORE_FAILS && journal->store)
        opening_lost(journal, &task->err);
    task->count = journal->spool ? tccl_spool_count(journal->spool) : 0;
}

/* All of a batch have been settled: the next one, if that makes sense. */
static void end_batch(struct journal *journal)
{
    if (journal->round_deliveries > 0)
        return;
    if (!journal->round_failed) {
        backlog_next(journal);
        return;
    }
    journal->round = false;
    journal_retry_later(journal);
}

void backlog_delivered(struct journal *journal, bool settled)
{
    journal->round_deliveries--;
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
        if (to && delivery_send(journal, json_array_get(pair, 1), to, name) == 0)
            journal->round_deliveries++;
        else
            journal->round_failed = true;
    }
}

static void then_next(struct disk_task *task)
{
    struct journal *journal = task->journal;
    disk_task_log_error(task);
    local_store_log_dates(task);
    for (int i = 0; i < task->n_lost; i++)
        journal_lose(journal, NULL, 0, task->err.text);
    if (task->result == STORE_FAILS)
        opening_again(journal);
    if (journal->closing) {
        journal->round = false;
    } else if (json_array_size(task->answer) > 0) {
        send_batch(journal, task->answer);
        end_batch(journal);
    } else if (task->result == MORE) {
        backlog_next(journal);
    } else {
        journal->round = false;
        journal->has_backlog = task->result != END || task->count > 0;
        if (journal->has_backlog)
            journal_retry_later(journal);
        else
            journal->retry_ms = 0;
    }
}

void backlog_next(struct journal *journal)
{
    struct disk_task task = {.journal = journal, .run = run_next, .then = then_next};
    task.uid = journal_home(journal) != NULL; /* for the event loop to send */
    journal->round = true;
    if (!journal->closing && disk_task_submit(task) == 0)
        return;
    journal->round = false;
    journal_retry_later(journal);
}
