/* LOST: what this node's ledger says is told to the node that keeps the records, which adds up what
 * its nodes say: so that whoever looks at records there sees how many are missing. Each node speaks
 * for itself alone, and can only be believed to have lost more. The number is told as a whole, not
 * what was added to it, until it was heard: saying it twice changes nothing. */

#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "client/message.h"
#include "records/records.h"
#include "tccld/journal/disk-task.h"
#include "tccld/net/link.h"

enum {
    SOON_MS = 1000,  /* others may be lost with it */
    AGAIN_MS = 2000, /* where it was not heard: at first; twice as long each time, */
    AGAIN_MOST_MS = 60000,
};
_Static_assert((int)LOSSES_LEDGER == (int)TCCL_LOST_LEDGER, "a ledger's number");

static void look_after(struct journal *journal, int64_t ms)
{
    if (!journal->closing && journal->losses.count > journal->told &&
        !evtimer_pending(journal->tell, NULL))
        daemon_set(journal->tell, ms);
}

void telling_look(struct journal *journal)
{
    look_after(journal, SOON_MS);
}

static void look_later(struct journal *journal)
{
    int64_t ms = journal->tell_ms ? 2 * journal->tell_ms : AGAIN_MS;
    journal->tell_ms = ms < AGAIN_MOST_MS ? ms : AGAIN_MOST_MS;
    look_after(journal, journal->tell_ms);
}

void telling_again(struct journal *journal)
{
    telling_cancel(journal);
    journal->told = 0;
    telling_look(journal);
}

void telling_cancel(struct journal *journal)
{
    if (journal->telling)
        link_cancel(tccl_steal(journal->telling));
}

/* What came of it; said: the count that was told. */
static void end_telling(struct journal *journal, bool heard, json_int_t said, const char *why)
{
    if (!heard) {
        log_limited(&journal->trouble, "%lld lost records are not counted by %s yet: %s",
                    (long long)said, journal_home(journal) ? journal_home(journal) : "the store",
                    why);
        look_later(journal);
        return;
    }
    if (said > journal->told)
        journal->told = said;
    journal->tell_ms = 0;
    look_after(journal, SOON_MS);
}

/* In the disk's thread: what a node says, of a message LOST. */
static void run_put(struct disk_task *task)
{
    struct tccl_records *store = task->journal->store;
    const json_t *said = task->record;
    const char *ledger = json_string_value(json_object_get(said, "ledger"));
    struct tccl_lost lost = {.records = json_integer_value(json_object_get(said, "records")),
                             .first = json_integer_value(json_object_get(said, "first")),
                             .last = json_integer_value(json_object_get(said, "last"))};
    task->result = opening_check(task->journal, &task->err);
    if (task->result == 0)
        task->result = tccl_records_put_lost(
            store, json_string_value(json_object_get(said, "node")), ledger ? ledger : "", &lost,
            believed_now(&task->believed, tccl_now_ms()), &task->err);
}

static void then_told(struct disk_task *task)
{
    end_telling(task->journal, task->result == 0,
                json_integer_value(json_object_get(task->record, "records")), task->err.text);
}

static void then_heard(struct disk_task *task)
{
    if (task->result == 0)
        connection_answer_ok(task->connection);
    else
        journal_refuse(task->connection, task->err.text, task->result > 0);
    connection_drop(task->connection);
}

/* The answer of another node. */
static void on_heard(void *context, json_t *answer, const struct tccl_error *err)
{
    struct journal *journal = context;
    const char *text = answer ? json_string_value(json_object_get(answer, "text")) : err->text;
    bool heard = answer && strcmp(tccl_message_type(answer), "ok") == 0;
    journal->telling = NULL;
    end_telling(journal, heard, journal->said, text ? text : "no reason given");
}

void telling_on_time(evutil_socket_t fd UNUSED, short what UNUSED, void *argument)
{
    struct journal *journal = argument;
    const struct losses *losses = &journal->losses;
    const char *home = journal_home(journal);
    if (journal->telling)
        return;
    cleanup_json json_t *message = tccl_message_new("lost");
    cleanup_json json_t *rest =
        json_pack("{s:s, s:s, s:I, s:I, s:I}", "node", journal->daemon->conf->node, "ledger",
                  losses->ledger, "records", (json_int_t)losses->count, "first",
                  (json_int_t)losses->first, "last", (json_int_t)losses->last);
    json_object_update(message, rest);
    journal->said = losses->count;
    if (home)
        journal->telling = link_ask(journal->daemon, home, message, tccl_now_ms() + JOURNAL_SEND_MS,
                                    on_heard, journal);
    int failed = home ? !journal->telling
                      : disk_task_submit((struct disk_task){.journal = journal,
                                                            .run = run_put,
                                                            .then = then_told,
                                                            .record = json_incref(message)});
    if (failed)
        look_later(journal);
}

/* Over TCP the node is the one that the credential's envelope names, whatever else is said. */
void journal_hear_lost(struct daemon *daemon, struct connection *connection, json_t *message)
{
    struct disk_task task = {.journal = daemon->journal, .run = run_put, .then = then_heard};
    task.record = json_deep_copy(message);
    json_object_set_new(task.record, "node", json_string(connection_node(connection)));
    task.connection = connection_hold(connection);
    if (disk_task_submit(task) == 0)
        return;
    journal_refuse(connection, "the disk does not keep up", false);
    connection_drop(connection);
}
