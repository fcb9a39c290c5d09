/* Records go to the other node in batches, each one question: one of new records at a time, and one
 * from the spool. A record that comes alone is sent at once; those that come soon after it are the
 * next batch. What the other has not taken when its time is over is kept here: it may have it all
 * the same, and takes a record twice without harm. */
#include "tccld/journal/delivery.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "client/message.h"
#include "tccld/journal/backlog.h"
#include "tccld/journal/batch.h"
#include "tccld/net/link.h"

enum {
    OUTBOX = 1024, /* new records that wait; more go to the spool */
    OUTBOX_BYTES = 16 << 20,
    PACE_MS = 200, /* between two batches, */
    ENOUGH = 64    /* unless as many records wait */
};

struct delivery {
    LIST_ENTRY(delivery) link;
    struct journal *journal;
    json_t *records;
    json_t *files; /* of the spool, where they are; NULL: new ones */
    struct link *ask;
};

static void end_delivery(struct delivery *delivery)
{
    LIST_REMOVE(delivery, link);
    json_decref(delivery->records);
    json_decref(delivery->files);
    free(delivery);
}

/* New records may not be sent any more: all that wait are spooled. */
static void spool_outbox(struct journal *journal)
{
    size_t i;
    json_t *record;
    cleanup_json json_t *waiting = tccl_steal(journal->outbox);
    journal->outbox = json_array();
    journal->outbox_bytes = 0;
    json_array_foreach(waiting, i, record) backlog_put(journal, record);
}

/* Returns how many were refused for good, which are lost. refused: [{"record", "text"}, …]; all:
 * the whole batch was, for this reason; NULL: it was not. */
static int lose_refused(const struct delivery *delivery, const json_t *refused, const char *all)
{
    struct journal *journal = delivery->journal;
    const char *home = journal_home(journal);
    size_t i, most = all ? json_array_size(delivery->records) : json_array_size(refused);
    int lost = 0;
    for (i = 0; i < most; i++) {
        const json_t *each = json_array_get(refused, i);
        const json_t *index = json_object_get(each, "record");
        const char *text = all ? all : json_string_value(json_object_get(each, "text"));
        json_t *record =
            json_array_get(delivery->records, all ? i : (size_t)json_integer_value(index));
        char why[256];
        if (!record || (!all && !json_is_integer(index)))
            continue;
        snprintf(why, sizeof(why), "%s refuses it: %s", home ? home : "the store",
                 text ? text : "no reason given");
        journal_lose(journal, record, !delivery->files, why);
        if (delivery->files)
            backlog_put_aside(journal, record, text ? text : "refused");
        lost++;
    }
    return lost;
}

/* It has been answered: nothing of it is sent again. */
static void settle(const struct delivery *delivery, const json_t *answer, const char *all)
{
    struct journal *journal = delivery->journal;
    int lost = lose_refused(delivery, json_object_get(answer, "refused"), all);
    journal->retry_ms = 0;
    journal->away = false;
    if (delivery->files)
        backlog_remove(journal, delivery->files);
    else
        journal_pend(journal, lost - (int)json_array_size(delivery->records));
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
    log_limited(&journal->trouble, "step %s%s: its record waits in the spool: %s", step, more, why);
    journal->away = true;
    if (delivery->files)
        return;
    json_array_foreach(delivery->records, i, record) backlog_put(journal, record);
    spool_outbox(journal);
}

static void send_next(struct journal *journal);

static void on_delivered(void *context, json_t *answer, const struct tccl_error *err)
{
    struct delivery *delivery = context;
    struct journal *journal = delivery->journal;
    bool from_spool = delivery->files;
    bool taken = answer && strcmp(tccl_message_type(answer), "ok") == 0;
    bool refused = answer && !taken && json_is_true(json_object_get(answer, "refused"));
    const char *text = answer ? json_string_value(json_object_get(answer, "text")) : err->text;
    const char *why = text ? text : "no reason given";
    if (taken || refused)
        settle(delivery, answer, taken ? NULL : why);
    else
        keep(delivery, why);
    end_delivery(delivery);
    if (from_spool) {
        backlog_delivered(journal, taken || refused);
        return;
    }
    journal->sending = false;
    if (taken && journal->has_backlog && !journal->round)
        backlog_next(journal); /* it can be reached again */
    send_next(journal);
}

int delivery_send(struct journal *journal, json_t *records, json_t *files, const char *to)
{
    struct delivery *delivery = calloc(1, sizeof(*delivery));
    cleanup_json json_t *message = tccl_message_new("record");
    if (delivery && json_object_set(message, "records", records) == 0)
        delivery->ask = link_ask(journal->daemon, to, message, tccl_now_ms() + JOURNAL_SEND_MS,
                                 on_delivered, delivery);
    if (!delivery || !delivery->ask) {
        free(delivery);
        return -1;
    }
    delivery->journal = journal;
    delivery->records = json_incref(records);
    delivery->files = files ? json_incref(files) : NULL;
    LIST_INSERT_HEAD(&journal->deliveries, delivery, link);
    return 0;
}

/* Few records wait a moment for others. */
static bool is_too_soon(struct journal *journal)
{
    int64_t left = journal->next_ms - tccl_now_ms();
    if (left <= 0 || json_array_size(journal->outbox) >= ENOUGH || journal->closing)
        return false;
    if (!evtimer_pending(journal->pace, NULL)) {
        struct timeval wait = daemon_in(left);
        evtimer_add(journal->pace, &wait);
    }
    return true;
}

static void send_next(struct journal *journal)
{
    const char *to = journal_home(journal);
    size_t bytes = 0;
    if (journal->sending || json_array_size(journal->outbox) == 0 || is_too_soon(journal))
        return;
    journal->next_ms = tccl_now_ms() + PACE_MS;
    cleanup_json json_t *batch = to ? batch_take(journal->outbox, &bytes) : NULL;
    if (batch && delivery_send(journal, batch, NULL, to) == 0) {
        journal->outbox_bytes -= bytes;
        journal->sending = true;
        return;
    }
    if (batch)
        json_array_extend(journal->outbox, batch);
    spool_outbox(journal); /* no memory, or AccountingHost= has gone */
}

void delivery_on_time(evutil_socket_t fd, short what, void *journal)
{
    (void)fd;
    (void)what;
    send_next(journal);
}

void delivery_add(struct journal *journal, json_t *record)
{
    size_t bytes = batch_bytes(record) + 1;
    bool full =
        json_array_size(journal->outbox) >= OUTBOX || journal->outbox_bytes + bytes > OUTBOX_BYTES;
    if ((journal->sending && (journal->away || full)) ||
        json_array_append(journal->outbox, record) != 0) {
        backlog_put(journal, record);
        return;
    }
    journal->outbox_bytes += bytes;
    send_next(journal);
}

void delivery_cancel_all(struct journal *journal)
{
    struct delivery *delivery;
    while ((delivery = LIST_FIRST(&journal->deliveries)) != NULL) {
        size_t i;
        json_t *record;
        link_cancel(delivery->ask);
        if (!delivery->files)
            json_array_foreach(delivery->records, i, record) backlog_put(journal, record);
        end_delivery(delivery);
    }
    spool_outbox(journal);
}
