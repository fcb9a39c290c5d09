/* Records that come while the disk is busy are written together, with one wait for it. A record for
 * another node, and one that the store here does not take, goes into the outbox, from which it is
 * delivered (delivery.c). */
#include "tccld/journal/disk-task.h"

#include <stdlib.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "client/message.h"
#include "records/outbox.h"
#include "records/records.h"

enum {
    TOGETHER = 512, /* records that are written together; the last ones may be more, */
    WAITING = 8192, /* that may wait, */
    WAITING_BYTES = 32 << 20,
    RECEIVED = 1024 /* and that a message brings */
};

int inbox_store(struct disk_task *task, const json_t *record)
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
    if (json_is_integer(json) &&
        start < believed_oldest(&task->believed, task->keep_days, time(NULL), now_ms)) {
        task->n_expired++;
        return 0;
    }
    return tccl_records_put(store, record, &task->err);
}

void inbox_log_dates(struct disk_task *task)
{
    struct journal *journal = task->journal;
    if (task->n_expired)
        log_limited(&journal->expired,
                    "dropped %d record%s: older than KeepRecords=%dd when it was delivered",
                    task->n_expired, task->n_expired > 1 ? "s" : "",
                    journal->daemon->conf->keep_days[0]);
    if (task->n_misdated)
        log_limited(&journal->misdated,
                    "%d record%s came with a start that can't be right; KeepRecords= counts from "
                    "the arrival: check the clocks of the nodes (tcclacct -o JobID,Start,Arrived)",
                    task->n_misdated, task->n_misdated > 1 ? "s" : "");
}

/* Puts all that a task brings. Those of another node that are refused are listed in its answer. */
static void store_task(struct disk_task *task)
{
    size_t i;
    json_t *record;
    json_array_foreach(task->record, i, record)
    {
        task->result = inbox_store(task, record);
        if (task->result < 0)
            return;
        if (task->result > 0 && task->connection)
            json_array_append_new(task->answer, json_pack("{s:I, s:s}", "record", (json_int_t)i,
                                                          "text", task->err.text));
    }
    if (task->connection)
        task->result = 0;
}

/* What is for the store, all or nothing but what the store refuses. Returns 0, or -1 with err. */
static int store_batch(struct disk_task *batch, struct tccl_error *err)
{
    struct disk_task *each;
    int n = 0;
    TAILQ_FOREACH(each, &batch->batch, link)
    n += !each->elsewhere;
    if (n == 0)
        return 0;
    int failed = opening_check(batch->journal, err) != 0 ||
                 tccl_records_begin(batch->journal->store, err) != 0;
    TAILQ_FOREACH(each, &batch->batch, link)
    if (!failed && !each->elsewhere)
        store_task(each);
    failed = failed || tccl_records_commit(batch->journal->store, err) != 0;
    TAILQ_FOREACH(each, &batch->batch, link)
    {
        if (failed && !each->elsewhere && each->result <= 0) {
            each->result = -1;
            if (!each->err.text[0])
                each->err = *err;
        }
        if (each->result < 0 && !each->elsewhere)
            *err = each->err;
    }
    return failed || err->text[0] ? -1 : 0;
}

static bool is_for_outbox(const struct disk_task *task)
{
    return !task->connection && (task->elsewhere || task->result < 0);
}

/* Records of this node that go elsewhere, and those that the store did not take. */
static void box_batch(struct disk_task *batch)
{
    struct journal *journal = batch->journal;
    struct disk_task *each;
    struct tccl_error err = {0};
    cleanup_json json_t *records = json_array();
    TAILQ_FOREACH(each, &batch->batch, link)
    if (is_for_outbox(each))
        json_array_extend(records, each->record);
    if (json_array_size(records) == 0)
        return;
    int kept = journal->outbox ? tccl_outbox_put(journal->outbox, records, &batch->n_lost, &err)
                               : tccl_fail(&err, "no outbox: %s", journal->why.text);
    TAILQ_FOREACH(each, &batch->batch, link)
    if (is_for_outbox(each)) {
        each->kept = kept == 0;
        each->box_err = err;
    }
}

/* All of a batch, with one wait for each file. */
static void run_batch(struct disk_task *batch)
{
    batch->result = store_batch(batch, &batch->err);
    box_batch(batch);
    opening_look_at_outbox(batch);
    if (batch->result != 0 && batch->journal->store)
        opening_lost(batch->journal, &batch->err);
}

static void then_own(struct disk_task *task)
{
    char step[TCCL_KEY_TEXT];
    json_t *record = json_array_get(task->record, 0);
    journal_step_text(record, step);
    inbox_log_dates(task);
    if (is_for_outbox(task)) {
        if (!task->elsewhere)
            log_limited(&task->journal->trouble, "step %s: its record waits in the outbox: %s",
                        step, task->err.text);
        if (task->kept)
            journal_expect(task->journal, -1);
        else
            journal_keep_in_memory(task->journal, record, task->box_err.text);
    } else if (task->result > 0) {
        journal_lose(task->journal, record, 1, 1, task->err.text);
    } else {
        journal_expect(task->journal, -1);
    }
}

static int count(const struct disk_task *task)
{
    return (int)json_array_size(task->record);
}

static void write_next(struct journal *journal);

static void then_batch(struct disk_task *batch)
{
    struct journal *journal = batch->journal;
    struct disk_task *each;
    journal->storing = false;
    if (batch->result != 0)
        opening_again(journal, &batch->err);
    opening_after_outbox(batch);
    for (int i = 0; i < batch->n_lost; i++)
        journal_lose(journal, NULL, 1, 0, "it is too long for a message");
    while ((each = TAILQ_FIRST(&batch->batch)) != NULL) {
        TAILQ_REMOVE(&batch->batch, each, link);
        disk_task_done(each);
    }
    if (batch->result == 0)
        delivery_look(journal);
    else
        journal_retry_later(journal);
    write_next(journal);
}

/* Moves what waits into a batch, if none is under way. */
static void write_next(struct journal *journal)
{
    struct disk_task *batch, *each;
    if (journal->storing || TAILQ_EMPTY(&journal->inbox) || !(batch = calloc(1, sizeof(*batch))))
        return;
    *batch = (struct disk_task){
        .journal = journal, .run = run_batch, .then = then_batch, .waiting = journal->waiting};
    TAILQ_INIT(&batch->batch);
    for (int i = 0; i < TOGETHER && (each = TAILQ_FIRST(&journal->inbox)) != NULL;) {
        TAILQ_REMOVE(&journal->inbox, each, link);
        TAILQ_INSERT_TAIL(&batch->batch, each, link);
        i += count(each);
        journal->n_inbox -= count(each);
        journal->inbox_bytes -= each->bytes;
    }
    journal->storing = true;
    if (threads_submit(journal->disk, disk_task_run, disk_task_done, batch) == 0)
        return;
    journal->storing = false;
    TAILQ_FOREACH(each, &batch->batch, link)
    {
        each->result = -1;
        tccl_fail(&each->err, "the disk does not keep up");
        each->box_err = each->err;
    }
    then_batch(batch);
    free(batch);
}

/* Takes the references of first over, also when it fails. Returns 0 or -1. */
static int submit(struct disk_task first)
{
    struct journal *journal = first.journal;
    if (journal->n_inbox > 0) /* where nothing waits, one finds room whatever its size */
        first.bytes = json_dumpb(first.record, NULL, 0, JSON_COMPACT);
    bool full = journal->n_inbox >= WAITING ||
                (!first.connection && journal->inbox_bytes + first.bytes > WAITING_BYTES);
    struct disk_task *task = full ? NULL : malloc(sizeof(*task));
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
    journal->inbox_bytes += task->bytes;
    write_next(journal);
    return 0;
}

void inbox_add(struct journal *journal, json_t *record)
{
    struct disk_task task = {.journal = journal,
                             .then = then_own,
                             .elsewhere = journal_home(journal) != NULL,
                             .record = json_pack("[O]", record)};
    if (submit(task) != 0)
        journal_keep_in_memory(journal, record, "the disk does not keep up");
}

static void then_received(struct disk_task *task)
{
    char step[TCCL_KEY_TEXT];
    size_t refused = json_array_size(task->answer);
    const json_t *first = json_array_get(task->answer, 0);
    inbox_log_dates(task);
    if (refused > 0) {
        journal_step_text(json_array_get(task->record, (size_t)json_integer_value(
                                                           json_object_get(first, "record"))),
                          step);
        log_limited(&task->journal->refused,
                    "step %s: its record, from %s, is refused: %s (of %d records %zu are)", step,
                    connection_node(task->connection),
                    json_string_value(json_object_get(first, "text")), count(task), refused);
    }
    if (task->result != 0) {
        log_limited(&task->journal->refused, "%d records of %s are not stored: %s", count(task),
                    connection_node(task->connection), task->err.text);
        journal_refuse(task->connection, task->err.text, false);
    } else {
        cleanup_json json_t *message = tccl_message_new("ok");
        if (refused > 0)
            json_object_set(message, "refused", task->answer);
        connection_answer(task->connection, message);
    }
    connection_drop(task->connection);
}

void journal_receive(struct daemon *daemon, struct connection *connection, json_t *message)
{
    json_t *records = json_object_get(message, "records");
    struct disk_task task = {.journal = daemon->journal, .then = then_received};
    size_t most = json_array_size(records);
    if (most == 0 || most > RECEIVED) {
        journal_refuse(connection, "records: a list of 1 to 1024 is expected", true);
        return;
    }
    task.record = json_incref(records);
    task.answer = json_array();
    task.connection = connection_hold(connection);
    if (submit(task) == 0)
        return;
    journal_refuse(connection, "the disk does not keep up", false);
    connection_drop(connection);
}

void inbox_empty(struct journal *journal)
{
    struct disk_task *each;
    while ((each = TAILQ_FIRST(&journal->inbox)) != NULL) {
        TAILQ_REMOVE(&journal->inbox, each, link);
        if (each->connection)
            connection_drop(each->connection);
        else
            journal_hold(journal, json_array_get(each->record, 0),
                         json_dumpb(each->record, NULL, 0, JSON_COMPACT));
        json_decref(each->record);
        json_decref(each->answer);
        free(each);
    }
}
