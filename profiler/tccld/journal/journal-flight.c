#include "tccld/journal/journal-flight.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "client/message.h"
#include "tccld/journal/journal-spool.h"
#include "tccld/net/link.h"

struct flight {
    LIST_ENTRY(flight) link;
    struct journal *journal;
    json_t *record;
    struct link *ask;
    char name[TCCL_SPOOL_NAME]; /* its file in the spool; "" if it has none */
    bool once;                  /* never into the spool */
};

static void end_flight(struct flight *flight)
{
    LIST_REMOVE(flight, link);
    flight->journal->n_flights--;
    json_decref(flight->record);
    free(flight);
}

static void on_landed(void *context, json_t *answer, const struct tccl_error *err)
{
    struct flight *flight = context;
    struct journal *journal = flight->journal;
    bool from_spool = flight->name[0] != '\0';
    bool taken = answer && strcmp(tccl_message_type(answer), "ok") == 0;
    bool refused = answer && json_is_true(json_object_get(answer, "refused"));
    const char *text = answer ? json_string_value(json_object_get(answer, "text")) : err->text;
    if (flight->once) {
        if (!taken)
            log_limited(&journal->trouble, "what was built of a ring is not on record: %s",
                        text ? text : "?");
    } else if (taken || refused) {
        journal->retry_ms = 0;
        const char *why = text ? text : "no reason given";
        spooled_settle(journal, flight->record, flight->name, taken ? NULL : why);
    } else {
        log_limited(&journal->trouble, "a record waits in the spool: %s", text ? text : "?");
        if (!from_spool)
            spooled_put(journal, flight->record);
    }
    end_flight(flight);
    if (from_spool) {
        spooled_landed(journal, taken || refused);
    } else if (taken && journal->spooled && !journal->round) {
        spooled_next(journal); /* it can be reached again */
    }
}

int flight_send(struct journal *journal, json_t *record, const char *to, const char *name,
                bool once)
{
    struct flight *flight = calloc(1, sizeof(*flight));
    cleanup_json json_t *message = tccl_message_new("record");
    if (!flight || json_object_set(message, "record", record) != 0) {
        free(flight);
        return -1;
    }
    flight->journal = journal;
    flight->once = once;
    snprintf(flight->name, sizeof(flight->name), "%s", name);
    flight->ask =
        link_ask(journal->daemon, to, message, tccl_now_ms() + JOURNAL_SEND_MS, on_landed, flight);
    if (!flight->ask) {
        free(flight);
        return -1;
    }
    flight->record = json_incref(record);
    LIST_INSERT_HEAD(&journal->flights, flight, link);
    journal->n_flights++;
    return 0;
}

void flight_cancel_all(struct journal *journal)
{
    struct flight *flight;
    while ((flight = LIST_FIRST(&journal->flights)) != NULL) {
        link_cancel(flight->ask);
        if (!flight->name[0] && !flight->once)
            spooled_put(journal, flight->record);
        end_flight(flight);
    }
}
