/* Records that could not be delivered, or stored, wait in the spool, in batches of those that came
 * while the disk was busy: a file and one wait for the disk each. They leave it in rounds: some
 * files are read and sent in one message, or stored here, and when that is settled the next ones. A
 * round ends when the spool is empty or a batch can't be delivered; the next one begins after a
 * pause. */
#include "tccld/journal/backlog.h"

#include <string.h>

#include "base/cleanup.h"
#include "records/records.h"
#include "tccld/journal/batch.h"
#include "tccld/journal/delivery.h"
#include "tccld/journal/local-store.h"
#include "tccld/journal/opening.h"

enum {
    ROUND = 32,               /* files that are read at a time, */
    ENOUGH = 128,             /* but no more once there are as many records, */
    ENOUGH_BYTES = 128 << 10, /* or so much text, */
    MOST_BYTES = 640 << 10,   /* and none that makes it longer than this */
    WAITING = 4096,           /* records that may wait for the disk, */
    WAITING_BYTES = 32 << 20,
};
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
    size_t i;
    json_t *record;
    if (task->kept != 0) {
        json_array_foreach(task->record, i, record)
            journal_keep_in_memory(journal, record, task->spool_err.text);
        return;
    }
    journal_pend(journal, -(int)json_array_size(task->record));
    journal->has_backlog = true;
    journal_retry_later(journal);
}

static void put_next(struct journal *journal);

static void then_put(struct disk_task *task)
{
    struct journal *journal = task->journal;
    journal->spooling = false;
    backlog_then(task);
    put_next(journal);
}

/* What waits goes to the disk together, if it isn't busy with an earlier batch. */
static void put_next(struct journal *journal)
{
    struct disk_task task = {.journal = journal, .run = backlog_run, .then = then_put};
    size_t bytes, i;
    json_t *record;
    if (journal->spooling || json_array_size(journal->to_spool) == 0)
        return;
    cleanup_json json_t *batch = batch_take(journal->to_spool, &bytes);
    if (!batch)
        return; /* with the next record */
    journal->to_spool_bytes -= bytes;
    task.record = json_incref(batch);
    journal->spooling = disk_task_submit(task) == 0;
    if (!journal->spooling)
        json_array_foreach(batch, i, record)
            journal_keep_in_memory(journal, record, "the disk does not keep up");
}

void backlog_put(struct journal *journal, json_t *record)
{
    size_t bytes = batch_bytes(record) + 1;
    if (json_array_size(journal->to_spool) >= WAITING ||
        journal->to_spool_bytes + bytes > WAITING_BYTES ||
        json_array_append(journal->to_spool, record) != 0) {
        journal_keep_in_memory(journal, record, "the disk does not keep up");
        return;
    }
    journal->to_spool_bytes += bytes;
    put_next(journal);
}

static void run_remove(struct disk_task *task)
{
    size_t i;
    json_t *name;
    json_array_foreach(task->record, i, name)
        tccl_spool_remove(task->journal->spool, json_string_value(name), &task->err);
}

void backlog_remove(struct journal *journal, json_t *files)
{
    struct disk_task task = {.journal = journal,
                             .run = run_remove,
                             .then = disk_task_log_error,
                             .record = json_incref(files)};
    disk_task_submit(task);
}

static void run_put_aside(struct disk_task *task)
{
    tccl_spool_put_aside(task->journal->spool, task->record, task->reason, &task->err);
}

void backlog_put_aside(struct journal *journal, json_t *record, const char *reason)
{
    struct disk_task task = {.journal = journal,
                             .run = run_put_aside,
                             .then = disk_task_log_error,
                             .record = json_incref(record)};
    snprintf(task.reason, sizeof(task.reason), "%s", reason);
    disk_task_submit(task);
}

/* Puts the records of a file into the store here, and removes it. */
static int store_file(struct disk_task *task, const char *name, const json_t *records)
{
    struct journal *journal = task->journal;
    size_t i;
    json_t *record;
    int stored = 0;
    if (opening_check(journal, &task->err) != 0 ||
        tccl_records_begin(journal->store, &task->err) != 0)
        return -1;
    json_array_foreach(records, i, record)
    {
        stored = local_store_put(task, record);
        if (stored < 0)
            break;
        if (stored > 0)
            tccl_spool_put_aside(journal->spool, record, task->err.text, NULL);
        task->n_lost += stored > 0;
    }
    if (tccl_records_commit(journal->store, stored < 0 ? NULL : &task->err) != 0 || stored < 0)
        return -1;
    tccl_spool_remove(journal->spool, name, NULL);
    return 0;
}

/* Adds the records of a file to what is sent. One for which there is no room is left to the next
 * round. */
static void add_file(const struct disk_task *task, const char *name, json_t *records, size_t *bytes)
{
    json_t *all = json_object_get(task->answer, "records");
    size_t size = batch_bytes(records);
    if (*bytes > 0 && *bytes + size > MOST_BYTES)
        return;
    *bytes += size;
    json_array_extend(all, records);
    json_array_append_new(json_object_get(task->answer, "files"), json_string(name));
}

/* answer: what is to be sent, where the store is elsewhere; n_lost: what has been put aside. */
static void run_next(struct disk_task *task)
{
    struct journal *journal = task->journal;
    bool here = !task->uid;
    char name[TCCL_SPOOL_NAME];
    size_t bytes = 0;
    task->answer = json_pack("{s:[], s:[]}", "records", "files");
    const json_t *all = json_object_get(task->answer, "records");
    if (!journal->spool)
        task->result = END;
    int unread = 0;
    for (int i = 0;
         i < ROUND && task->result == MORE && json_array_size(all) < ENOUGH && bytes < ENOUGH_BYTES;
         i++) {
        cleanup_json json_t *records = NULL;
        int read = tccl_spool_next(journal->spool, name, &records, &task->err);
        unread += read < 0;
        task->n_lost += read == TCCL_SPOOL_PUT_ASIDE;
        if (read == TCCL_SPOOL_END)
            task->result = END;
        else if (read == 0 && !here)
            add_file(task, name, records, &bytes);
        else if (read == 0 && store_file(task, name, records) != 0)
            task->result = STORE_FAILS;
    }
    if (unread == ROUND)
        task->result = END; /* of this round: the folder can't be read now */
    if (task->result == STORE_FAILS && journal->store)
        opening_lost(journal, &task->err);
    task->count = journal->spool ? tccl_spool_count(journal->spool) : 0;
}

/* A batch has been settled: the next one, if that makes sense. */
void backlog_delivered(struct journal *journal, bool settled)
{
    if (settled) {
        backlog_next(journal);
        return;
    }
    journal->round = false;
    journal_retry_later(journal);
}

/* What can't be sent is left where it is. */
static void send_files(struct journal *journal, const json_t *answer)
{
    const char *to = journal_home(journal);
    if (!to || delivery_send(journal, json_object_get(answer, "records"),
                             json_object_get(answer, "files"), to) != 0)
        backlog_delivered(journal, false);
}

static void then_next(struct disk_task *task)
{
    struct journal *journal = task->journal;
    disk_task_log_error(task);
    local_store_log_dates(task);
    for (int i = 0; i < task->n_lost; i++)
        journal_lose(journal, NULL, 0, task->err.text);
    if (task->result == STORE_FAILS)
        opening_again(journal, &task->err);
    if (journal->closing) {
        journal->round = false;
    } else if (json_array_size(json_object_get(task->answer, "files")) > 0) {
        send_files(journal, task->answer);
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
