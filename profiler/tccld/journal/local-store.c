/* The store of this node. Records that come while the disk is busy are stored together, with one
 * wait for the disk. */
#include "tccld/journal/local-store.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "client/message.h"
#include "records/records.h"
#include "tccld/journal/backlog.h"
#include "tccld/journal/batch.h"
#include "tccld/journal/opening.h"

enum {
    TOGETHER = 512, /* records that are stored together; the last ones may be more, */
    WAITING = 8192, /* that may wait, */
    RECEIVED = 1024 /* and that a message brings */
};
enum { NOT_YET = 1 /* kept: the spool has not been asked */ };

int local_store_put(struct disk_task *task, const json_t *record)
{
    const json_t *json = json_object_get(record, "start");
    struct tccl_records *store = task->journal->store;
    if (opening_check(task->journal, &task->err) != 0)
        return -1;
    int64_t now_ms = tccl_now_ms(), start = json_integer_value(json);
    if (json_is_integer(json) &&
        believed_misdated(&task->believed, start, task->keep_days, now_ms)) {
        task->n_misdated++;
        return tccl_records_put_misdated(store, record, believed_now(&task->believed, now_ms),
                                         &task->err);
    }
    if (json_is_integer(json) && start < task->since) {
        task->n_expired++;
        return 0;
    }
    return tccl_records_put(store, record, &task->err);
}

void local_store_log_dates(struct disk_task *task)
{
    struct journal *journal = task->journal;
    if (task->n_expired)
        log_limited(&journal->expired,
                    "dropped %d record%s: older than KeepRecords=%dd when it was delivered",
                    task->n_expired, task->n_expired > 1 ? "s" : "",
                    journal->daemon->conf->keep_days);
    if (task->n_misdated)
        log_limited(&journal->misdated,
                    "%d record%s came with a start that can't be right; KeepRecords= counts from "
                    "the arrival: check the clocks of the nodes (tcclacct -o JobID,Start,Arrived)",
                    task->n_misdated, task->n_misdated > 1 ? "s" : "");
}

static void then_store(struct disk_task *task)
{
    char step[TCCL_KEY_TEXT];
    const json_t *record = json_array_get(task->record, 0);
    journal_step_text(record, step);
    local_store_log_dates(task);
    if (task->result > 0)
        journal_lose(task->journal, record, 1, task->err.text);
    if (task->result == 0)
        journal_pend(task->journal, -1);
    if (task->result < 0) {
        log_limited(&task->journal->trouble, "step %s: its record waits in the spool: %s", step,
                    task->err.text);
        backlog_then(task);
    }
}

/* Puts all that a task brings. Those of another node that are refused are listed in its answer. */
static void put_all(struct disk_task *task)
{
    size_t i;
    json_t *record;
    json_array_foreach(task->record, i, record)
    {
        task->result = local_store_put(task, record);
        if (task->result < 0)
            return;
        if (task->result > 0 && task->connection)
            json_array_append_new(task->answer, json_pack("{s:I, s:s}", "record", (json_int_t)i,
                                                          "text", task->err.text));
    }
    if (task->connection)
        task->result = 0;
}

/* Records of this node that the store did not take go into one file of the spool. */
static void spool_failed(struct disk_task *task)
{
    struct disk_task *each, all = {.journal = task->journal, .kept = -1, .record = json_array()};
    TAILQ_FOREACH(each, &task->batch, link)
    if (each->result < 0 && !each->connection)
        json_array_extend(all.record, each->record);
    while (json_array_size(all.record) > 0) {
        struct disk_task part = {.journal = task->journal};
        cleanup_json json_t *some = batch_take(all.record, NULL);
        if (!some)
            break;
        part.record = some;
        backlog_run(&part);
        size_t left = json_array_size(some);
        TAILQ_FOREACH(each, &task->batch, link)
        if (left > 0 && each->result < 0 && !each->connection && each->kept == NOT_YET) {
            each->kept = part.kept;
            each->spool_err = part.spool_err;
            left--;
        }
    }
    json_decref(all.record);
}

/* All of a batch, with one wait for the disk. */
static void run_batch(struct disk_task *task)
{
    struct tccl_records *store = task->journal->store;
    struct disk_task *each;
    struct tccl_error err = {0};
    int failed = opening_check(task->journal, &err) || tccl_records_begin(store, &err);
    TAILQ_FOREACH(each, &task->batch, link)
    if (failed)
        each->result = -1;
    else
        put_all(each);
    failed = failed || tccl_records_commit(store, &err) != 0;
    TAILQ_FOREACH(each, &task->batch, link)
    {
        if (failed && each->result <= 0) {
            each->result = -1;
            if (!each->err.text[0])
                each->err = err;
        }
        if (each->result < 0) {
            failed = 1;
            err = each->err;
        }
    }
    spool_failed(task);
    if (failed && store)
        opening_lost(task->journal, &err);
    task->result = failed;
    task->err = err;
}

static int count(const struct disk_task *task)
{
    return (int)json_array_size(task->record);
}

static void store_next(struct journal *journal);

static void then_batch(struct disk_task *task)
{
    struct disk_task *each;
    task->journal->storing = false;
    if (task->result != 0)
        opening_again(task->journal, &task->err);
    while ((each = TAILQ_FIRST(&task->batch)) != NULL) {
        TAILQ_REMOVE(&task->batch, each, link);
        disk_task_done(each);
    }
    store_next(task->journal);
}

/* Moves what waits into a batch, if none is under way. */
static void store_next(struct journal *journal)
{
    struct disk_task *task, *each;
    if (journal->storing || TAILQ_EMPTY(&journal->inbox) || !(task = calloc(1, sizeof(*task))))
        return;
    *task = (struct disk_task){.journal = journal, .run = run_batch, .then = then_batch};
    TAILQ_INIT(&task->batch);
    for (int i = 0; i < TOGETHER && (each = TAILQ_FIRST(&journal->inbox)) != NULL;) {
        TAILQ_REMOVE(&journal->inbox, each, link);
        TAILQ_INSERT_TAIL(&task->batch, each, link);
        i += count(each);
        journal->n_inbox -= count(each);
    }
    journal->storing = true;
    if (pool_submit(journal->disk, disk_task_run, disk_task_done, task) == 0)
        return;
    journal->storing = false;
    TAILQ_FOREACH(each, &task->batch, link)
    {
        each->result = each->kept = -1;
        tccl_fail(&each->err, "the disk does not keep up");
        each->spool_err = each->err;
    }
    then_batch(task);
    free(task);
}

/* Takes the references of first over, also when it fails. Returns 0 or -1. */
static int store_submit(struct disk_task first)
{
    struct journal *journal = first.journal;
    struct disk_task *task = journal->n_inbox < WAITING ? malloc(sizeof(*task)) : NULL;
    if (!task || !first.record) {
        free(task);
        json_decref(first.record);
        json_decref(first.answer);
        return -1;
    }
    *task = first;
    disk_task_set_time(task);
    TAILQ_INSERT_TAIL(&journal->inbox, task, link);
    journal->n_inbox += count(task);
    store_next(journal);
    return 0;
}

void local_store_add(struct journal *journal, json_t *record)
{
    struct disk_task task = {.journal = journal,
                             .then = then_store,
                             .kept = NOT_YET,
                             .record = json_pack("[O]", record)};
    if (store_submit(task) != 0)
        journal_keep_in_memory(journal, record, "the disk does not keep up");
}

static void then_receive(struct disk_task *task)
{
    char step[TCCL_KEY_TEXT];
    size_t refused = json_array_size(task->answer);
    const json_t *first = json_array_get(task->answer, 0);
    cleanup_json json_t *message =
        task->result == 0 ? tccl_message_new("ok") : journal_error_message(task->err.text, false);
    local_store_log_dates(task);
    if (task->result == 0 && refused > 0)
        json_object_set(message, "refused", task->answer);
    if (refused > 0) {
        journal_step_text(json_array_get(task->record, (size_t)json_integer_value(
                                                           json_object_get(first, "record"))),
                          step);
        log_limited(&task->journal->refused,
                    "step %s: its record, from %s, is refused: %s (of %d records %zu are)", step,
                    connection_node(task->connection),
                    json_string_value(json_object_get(first, "text")), count(task), refused);
    }
    if (task->result != 0)
        log_limited(&task->journal->refused, "%d records of %s are not stored: %s", count(task),
                    connection_node(task->connection), task->err.text);
    connection_answer(task->connection, message);
    connection_drop(task->connection);
}

void journal_receive(struct daemon *daemon, struct connection *connection, json_t *message)
{
    json_t *records = json_object_get(message, "records");
    struct disk_task task = {.journal = daemon->journal, .then = then_receive};
    size_t most = json_array_size(records);
    if (most == 0 || most > RECEIVED) {
        cleanup_json json_t *wrong =
            journal_error_message("records: a list of 1 to 1024 is expected", true);
        connection_answer(connection, wrong);
        return;
    }
    task.record = json_incref(records);
    task.answer = json_array();
    task.connection = connection_hold(connection);
    if (store_submit(task) == 0)
        return;
    cleanup_json json_t *busy = journal_error_message("the disk does not keep up", false);
    connection_answer(connection, busy);
    connection_drop(connection);
}

void local_store_empty_inbox(struct journal *journal)
{
    struct disk_task *each;
    while ((each = TAILQ_FIRST(&journal->inbox)) != NULL) {
        TAILQ_REMOVE(&journal->inbox, each, link);
        if (each->connection)
            connection_drop(each->connection);
        else
            json_array_extend(journal->memory, each->record);
        json_decref(each->record);
        json_decref(each->answer);
        free(each);
    }
}
