/* Each record is one question to the other node. What it has not taken when its time is over is
 * kept here: the other may have it all the same, and takes a record twice without harm. */
#include "tccld/journal/delivery.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "client/message.h"
#include "tccld/journal/backlog.h"
#include "tccld/net/link.h"

struct delivery {
    LIST_ENTRY(delivery) link;
    struct journal *journal;
    json_t *record;
    struct link *ask;
    char name[TCCL_SPOOL_NAME]; /* its file in the spool; "" if it has none */
};

static void end_delivery(struct delivery *delivery)
{
    LIST_REMOVE(delivery, link);
    delivery->journal->n_deliveries--;
    json_decref(delivery->record);
    free(delivery);
}

static void on_delivered(void *context, json_t *answer, const struct tccl_error *err)
{
    struct delivery *delivery = context;
    struct journal *journal = delivery->journal;
    bool from_spool = delivery->name[0] != '\0';
    bool taken = answer && strcmp(tccl_message_type(answer), "ok") == 0;
    bool refused = answer && json_is_true(json_object_get(answer, "refused"));
    const char *text = answer ? json_string_value(json_object_get(answer, "text")) : err->text;
    const char *why = text ? text : "no reason given";
    char step[TCCL_KEY_TEXT];
    journal_step_text(delivery->record, step);
    if (taken || refused) {
        journal->retry_ms = 0;
        if (!from_spool && taken)
            journal_pend(journal, -1);
        backlog_settle(journal, delivery->record, delivery->name, taken ? NULL : why);
    } else {
        log_limited(&journal->trouble, "step %s: its record waits in the spool: %s", step, why);
        if (!from_spool)
            backlog_put(journal, delivery->record);
    }
    end_delivery(delivery);
    if (from_spool) {
        backlog_delivered(journal, taken || refused);
    } else if (taken && journal->has_backlog && !journal->round) {
        backlog_next(journal); /* it can be reached again */
    }
}

int delivery_send(struct journal *journal, json_t *record, const char *to, const char *name)
{
    struct delivery *delivery = calloc(1, sizeof(*delivery));
    cleanup_json json_t *message = tccl_message_new("record");
    if (!delivery || json_object_set(message, "record", record) != 0) {
        free(delivery);
        return -1;
    }
    delivery->journal = journal;
    snprintf(delivery->name, sizeof(delivery->name), "%s", name);
    delivery->ask = link_ask(journal->daemon, to, message, tccl_now_ms() + JOURNAL_SEND_MS,
                             on_delivered, delivery);
    if (!delivery->ask) {
        free(delivery);
        return -1;
    }
    delivery->record = json_incref(record);
    LIST_INSERT_HEAD(&journal->deliveries, delivery, link);
    journal->n_deliveries++;
    return 0;
}

void delivery_cancel_all(struct journal *journal)
{
    struct delivery *delivery;
    while ((delivery = LIST_FIRST(&journal->deliveries)) != NULL) {
        link_cancel(delivery->ask);
        if (!delivery->name[0])
            backlog_put(journal, delivery->record);
        end_delivery(delivery);
    }
}
