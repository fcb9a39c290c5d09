/* New records are sent out of memory, with those that come while an earlier batch is under way: no
 * disk is waited for while the other node takes them. What it does not take, and what comes while
 * it doesn't, goes into the outbox, which is emptied in batches as well: the oldest records are
 * read, sent in one message, and removed once they were taken. Sending a record twice changes
 * nothing. Few records wait a moment for others. */

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "client/message.h"
#include "records/outbox.h"
#include "records/records.h"
#include "tccld/journal/disk-task.h"
#include "tccld/net/link.h"

enum {
    BATCH = 256,              /* records of a batch, */
    BATCH_BYTES = 512 * 1024, /* as text; one record alone may be longer */
    TRIED = 16,               /* records of one, while nobody has taken the last */
    PACE_MS = 200,            /* between two batches, */
    ENOUGH = 64,              /* unless as many records wait */
    FRESH = 1000,             /* records that may wait in memory, */
    FRESH_BYTES = 4 << 20
};

struct delivery {
    struct journal *journal;
    json_t *records;
    json_t *ids; /* of the outbox (records/outbox.h); NULL: they are in memory alone */
    struct link *ask;
};

/* It has come to an end: well, or it is tried again later. */
static void end_round(struct journal *journal, bool well)
{
    journal->delivering = false;
    if (well) {
        journal->retry_ms = 0;
        delivery_look(journal);
    } else {
        journal_retry_later(journal);
    }
}

/* Those that were refused for good, [[id or record, why, record], …], are lost. */
static void lose_refused(struct journal *journal, const json_t *refused, int pending)
{
    const char *home = journal_home(journal);
    char why[256];
    size_t i;
    json_t *each;
    json_array_foreach(refused, i, each)
    {
        snprintf(why, sizeof(why), "%s refuses it: %s", home ? home : "the store",
                 json_string_value(json_array_get(each, 1)));
        journal_lose(journal, json_array_get(each, 2), 1, pending, why);
    }
}

static void log_error(const struct disk_task *task)
{
    if (task->err.text[0])
        log_limited(&task->journal->trouble, "%s", task->err.text);
}

/* In the disk's thread: those that were refused (record) are kept aside, all that was settled
 * (answer: ids) is removed. */
static void run_remove(struct disk_task *task)
{
    struct tccl_outbox *outbox = task->journal->outbox;
    task->result = outbox ? tccl_outbox_remove(outbox, task->answer, task->record, &task->err)
                          : tccl_fail(&task->err, "no outbox: %s", task->journal->why.text);
    opening_look_at_outbox(task);
}

/* Lost once: what could not be removed is delivered, and refused, again. */
static void then_removed(struct disk_task *task)
{
    if (task->result == 0 && json_array_size(task->answer) > 0)
        lose_refused(task->journal, task->record, 0);
    opening_after_outbox(task);
    log_error(task);
    end_round(task->journal, task->result == 0);
}

/* It has been answered: nothing of it is sent again. */
static void settle(const struct delivery *delivery, const json_t *answer, const char *all)
{
    struct journal *journal = delivery->journal;
    /* Those that were refused for good. refused: [{"record", "text"}, …]; all: the whole batch was,
     * for this reason; NULL: it was not. */
    const json_t *refused = json_object_get(answer, "refused");
    json_t *lost = json_array();
    size_t most = all ? json_array_size(delivery->records) : json_array_size(refused);
    for (size_t i = 0; i < most; i++) {
        const json_t *each = json_array_get(refused, i), *index = json_object_get(each, "record");
        const char *text = all ? all : json_string_value(json_object_get(each, "text"));
        size_t at = all ? i : (size_t)json_integer_value(index);
        json_t *record = json_array_get(delivery->records, at),
               *id = json_array_get(json_array_get(delivery->ids, at), 0);
        if (record && (all || json_is_integer(index)))
            json_array_append_new(lost, json_pack("[O, s, O]", id ? id : record,
                                                  text ? text : "no reason given", record));
    }
    struct disk_task task = {.journal = journal,
                             .run = run_remove,
                             .then = then_removed,
                             .record = lost,
                             .answer = delivery->ids ? json_incref(delivery->ids) : json_array()};
    int safe = (int)json_array_size(delivery->records) - (int)json_array_size(lost);
    journal->away = false;
    if (!delivery->ids) {
        journal_expect(journal, -safe);
        lose_refused(journal, lost, 1);
    }
    if (!delivery->ids && json_array_size(lost) == 0) {
        json_decref(task.record);
        json_decref(task.answer);
        end_round(journal, true);
    } else if (disk_task_submit(task) != 0) {
        end_round(journal, false);
    }
}

static void keep(const struct delivery *delivery, const char *why)
{
    struct journal *journal = delivery->journal;
    size_t i, count = json_array_size(delivery->records);
    json_t *record;
    char step[TCCL_KEY_TEXT], more[48] = "";
    journal_step_text(json_array_get(delivery->records, 0), step);
    if (count > 1)
        snprintf(more, sizeof(more), " (and %zu more)", count - 1);
    log_limited(&journal->trouble, "step %s%s: its record waits in the outbox: %s", step, more,
                why);
    journal->away = true;
    end_round(journal, false);
    if (!delivery->ids)
        json_array_foreach(delivery->records, i, record) inbox_add(journal, record);
    journal_save_memory(journal);
}

static void drop(struct delivery *delivery)
{
    json_decref(delivery->records);
    json_decref(delivery->ids);
    free(delivery);
}

static void on_delivered(void *context, json_t *answer, const struct tccl_error *err)
{
    struct delivery *delivery = context;
    struct journal *journal = delivery->journal;
    bool taken = answer && strcmp(tccl_message_type(answer), "ok") == 0;
    bool refused = answer && !taken && json_is_true(json_object_get(answer, "refused"));
    const char *text = answer ? json_string_value(json_object_get(answer, "text")) : err->text;
    const char *why = text ? text : "no reason given";
    bool here = !answer && (!delivery->ask || !link_connected(delivery->ask));
    const json_t *last = json_array_get(delivery->ids, json_array_size(delivery->ids) - 1);
    journal->delivery = NULL;
    /* Where it was not the connection, the others need not wait for these. */
    if (!taken && !refused)
        journal->behind = here ? 0 : json_integer_value(json_array_get(last, 0));
    if (taken || refused)
        settle(delivery, answer, taken ? NULL : why);
    else
        keep(delivery, why);
    drop(delivery);
}

/* Sends records (borrowed); ids: theirs in the outbox, or NULL. */
static void send_records(struct journal *journal, json_t *records, json_t *ids)
{
    const char *to = journal_home(journal);
    struct delivery *delivery = calloc(1, sizeof(*delivery));
    struct delivery none = {.journal = journal, .records = records, .ids = ids};
    cleanup_json json_t *message = tccl_message_new("record");
    if (delivery && to && json_object_set(message, "records", records) == 0)
        delivery->ask = link_ask(journal->daemon, to, message, tccl_now_ms() + JOURNAL_SEND_MS,
                                 on_delivered, delivery);
    if (!delivery || !delivery->ask) {
        free(delivery);
        keep(&none, to ? "out of memory" : "AccountingHost= has changed");
        return;
    }
    delivery->journal = journal;
    delivery->records = json_incref(records);
    delivery->ids = json_incref(ids);
    journal->delivery = delivery;
}

/* Puts what was taken out of the outbox into the store here. Returns 0, or -1: nothing was. */
static int store_taken(struct disk_task *task, const json_t *records, const json_t *ids)
{
    struct journal *journal = task->journal;
    size_t i;
    json_t *record;
    int stored = 0;
    task->record = json_array(); /* those that are refused */
    task->store_failed = true;
    if (opening_check(journal, &task->err) != 0 ||
        tccl_records_begin(journal->store, &task->err) != 0)
        return -1;
    json_array_foreach(records, i, record)
    {
        stored = inbox_store(task, record);
        if (stored < 0)
            break;
        if (stored > 0)
            json_array_append_new(task->record,
                                  json_pack("[O, s, O]", json_array_get(json_array_get(ids, i), 0),
                                            task->err.text, record));
        if (stored > 0)
            task->err = (struct tccl_error){0};
    }
    if (tccl_records_commit(journal->store, stored < 0 ? NULL : &task->err) != 0 || stored < 0)
        return -1;
    task->store_failed = false;
    return tccl_outbox_remove(journal->outbox, ids, task->record, &task->err);
}

/* In the disk's thread. answer: what is to be sent, where the store is elsewhere. */
static void run_take(struct disk_task *task)
{
    struct journal *journal = task->journal;
    cleanup_json json_t *ids = NULL;
    cleanup_json json_t *records =
        journal->outbox ? tccl_outbox_take(journal->outbox, task->behind, task->most, BATCH_BYTES,
                                           &ids, &task->n_lost, &task->err)
                        : NULL;
    task->result = records ? 0 : -1;
    if (records && json_array_size(records) > 0 && !task->elsewhere &&
        store_taken(task, records, ids) != 0) {
        task->result = -1;
        if (task->store_failed && journal->store)
            opening_lost(journal, &task->err);
    }
    if (records && task->elsewhere)
        task->answer = json_pack("{s:O, s:O}", "records", records, "ids", ids);
    opening_look_at_outbox(task);
}

static void then_taken(struct disk_task *task)
{
    struct journal *journal = task->journal;
    json_t *records = json_object_get(task->answer, "records");
    for (int i = 0; i < task->n_lost; i++)
        journal_lose(journal, NULL, 1, 0, "it is damaged, or too long");
    if (task->result == 0)
        lose_refused(journal, task->record, 0);
    opening_after_outbox(task);
    const json_t *ids = json_object_get(task->answer, "ids"),
                 *last = json_array_get(ids, json_array_size(ids) - 1);
    if (task->behind)
        journal->behind = json_integer_value(json_array_get(last, 0)); /* 0: from the oldest on */
    log_error(task);
    inbox_log_dates(task);
    if (task->store_failed)
        opening_again(journal, &task->err);
    if (json_array_size(records) > 0 && !journal->closing)
        send_records(journal, records, json_object_get(task->answer, "ids"));
    else
        end_round(journal, task->result == 0);
}

/* Few records wait a moment for others. */
static bool is_too_soon(struct journal *journal)
{
    int64_t left = journal->next_ms - tccl_now_ms();
    if (left <= 0 || journal->waiting + (int64_t)json_array_size(journal->memory) >= ENOUGH)
        return false;
    if (!evtimer_pending(journal->pace, NULL))
        daemon_set(journal->pace, left);
    return true;
}

void delivery_look(struct journal *journal)
{
    const char *home = journal_home(journal);
    bool paused = home && journal->away && evtimer_pending(journal->retry, NULL);
    bool memory = home && json_array_size(journal->memory) > 0;
    struct disk_task task = {.journal = journal,
                             .run = run_take,
                             .then = then_taken,
                             .most = journal->away ? TRIED : BATCH,
                             .behind = home ? journal->behind : 0,
                             .elsewhere = home != NULL};
    if (journal->delivering || journal->closing || paused || (!memory && journal->waiting <= 0) ||
        is_too_soon(journal))
        return;
    journal->next_ms = tccl_now_ms() + (home ? PACE_MS : 0);
    journal->delivering = true;
    journal->newer = false;
    journal->by_memory = memory && !(journal->by_memory && journal->waiting > 0); /* in turn */
    if (journal->by_memory) {
        cleanup_json json_t *batch = journal_take_held(journal, BATCH, BATCH_BYTES);
        send_records(journal, batch, NULL);
    } else if (disk_task_submit(task) != 0)
        end_round(journal, false);
}

int delivery_add(struct journal *journal, json_t *record)
{
    size_t bytes = journal->away ? 0 : json_dumpb(record, NULL, 0, JSON_COMPACT);
    if (journal->away)
        journal_retry_early(journal);
    if (journal->away || bytes > TCCL_OUTBOX_RECORD || json_array_size(journal->memory) >= FRESH ||
        journal->memory_bytes + bytes > FRESH_BYTES)
        return -1;
    journal_hold(journal, record, bytes);
    delivery_look(journal);
    return 0;
}

void delivery_on_time(evutil_socket_t fd UNUSED, short what UNUSED, void *journal)
{
    delivery_look(journal);
}

void delivery_cancel(struct journal *journal)
{
    struct delivery *delivery = tccl_steal(journal->delivery);
    size_t i;
    json_t *record;
    if (!delivery)
        return;
    link_cancel(delivery->ask);
    if (!delivery->ids)
        json_array_foreach(delivery->records, i, record) journal_hold(journal, record, 0);
    drop(delivery);
}
