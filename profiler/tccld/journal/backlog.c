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
    losses_pend(&journal->losses, -1);
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
        char step[TCCL_KEY_TEXT];
        journal_step_text(record, step);
        const char *home = journal_home(journal);
        log_limited(&journal->refused, "step %s: %s refuses its record: %s", step,
                    home ? home : "the store", refused);
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
    return stored < 0 ? -1 : 0;
}

/* Sets result to that of tccl_spool_next, or 2 when the store is here and fails; answer: what is to
 * be sent, if it is elsewhere. */
static void run_next(struct disk_task *task)
{
    struct journal *journal = task->journal;
    bool here = !task->uid;
    task->answer = json_array();
    if (!journal->spool)
        task->result = 1;
    for (int i = 0; i < ROUND && task->result == 0; i++) {
        cleanup_json json_t *record = NULL;
        task->result = tccl_spool_next(journal->spool, task->name, &record, &task->err);
        if (task->result != 0)
            break;
        if (!here)
            json_array_append_new(task->answer, json_pack("[sO]", task->name, record));
        else if (store_spooled(task, record) != 0)
            task->result = 2;
        if (task->result == 2 && journal->store)
            opening_lost(journal, &task->err);
    }
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
    if (task->result == 2)
        opening_again(journal);
    if (journal->closing) {
        journal->round = false;
    } else if (json_array_size(task->answer) > 0) {
        send_batch(journal, task->answer);
        end_batch(journal);
    } else if (task->result <= 0) {
        backlog_next(journal);
    } else {
        journal->round = false;
        journal->has_backlog = task->result != 1 || task->count > 0;
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
