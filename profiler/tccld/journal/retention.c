/* KeepRecords=, and PURGE: records are removed a few at a time, with pauses, so that new ones and
 * questions never wait long for the disk. */
#include "tccld/journal/retention.h"

#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "client/message.h"
#include "records/records.h"
#include "tccld/journal/disk-task.h"
#include "tccld/journal/opening.h"

enum {
    ROWS = 500,    /* removed at a time, so that nobody waits long for the disk, */
    PAUSE_MS = 50, /* and between two times */
    EACH_MS = 3600 * 1000,
};

void retention_look(struct journal *journal, int64_t ms)
{
    struct timeval wait = daemon_in(ms);
    if (!journal->closing)
        evtimer_add(journal->retention, &wait);
}

static void run_removal(struct disk_task *task)
{
    struct tccl_records *store = task->journal->store;
    struct believed *believed = &task->believed;
    int64_t last, now_ms = tccl_now_ms();
    if (!store)
        return;
    if (tccl_records_set_time(store, believed_now(believed, now_ms), &task->err) != 0 ||
        tccl_records_time(store, &last, &believed->newest, &task->err) != 0) {
        task->result = -1;
        return;
    }
    int64_t before = believed_oldest(believed, task->keep_days, time(NULL), now_ms);
    if (before > 0)
        task->result = tccl_records_purge(store, before, ROWS, &task->err);
}

/* Once an hour, while it is so. */
static void say_jump(const struct journal *journal)
{
    const struct believed *believed = &journal->believed;
    int64_t clock = time(NULL), off = clock - believed->now;
    if (off > BELIEVED_DAY || off < -BELIEVED_DAY)
        log_line(
            "the clock is %.0f days %s what it should be by the records and the time since: "
            "records are removed by that, which comes up with the clock %d days a day; set the "
            "clock if it is wrong",
            (double)(off > 0 ? off : -off) / BELIEVED_DAY, off > 0 ? "ahead of" : "behind",
            BELIEVED_RATE);
}

static void then_removal(struct disk_task *task)
{
    struct journal *journal = task->journal;
    if (task->result >= 0)
        believed_look(&journal->believed, task->believed.newest, time(NULL), tccl_now_ms());
    if (task->result > 0) {
        journal->n_removed += task->result;
        retention_look(journal, PAUSE_MS);
        return;
    }
    if (task->result < 0)
        log_limited(
            &journal->trouble,
            "records older than KeepRecords=%dd can't be removed, tried again in an hour: %s",
            journal->daemon->conf->keep_days, task->err.text);
    if (journal->n_removed)
        log_line("removed %lld record%s older than KeepRecords=%dd", (long long)journal->n_removed,
                 journal->n_removed > 1 ? "s" : "", journal->daemon->conf->keep_days);
    journal->n_removed = 0;
    say_jump(journal);
    retention_look(journal, EACH_MS);
}

void retention_on_time(evutil_socket_t fd, short what, void *argument)
{
    struct disk_task task = {.journal = argument, .run = run_removal, .then = then_removal};
    (void)fd;
    (void)what;
    if (disk_task_submit(task) != 0)
        retention_look(argument, RETENTION_FIRST_MS);
}

/* PURGE: misdated records, some of those that are named; who asks asks again for the rest. */
static void run_purge(struct disk_task *task)
{
    struct journal *journal = task->journal;
    task->result = opening_check(journal, &task->err);
    if (task->result == 0)
        task->result = tccl_records_purge_misdated(journal->store, task->record, ROWS, &task->err);
}

static void then_purge(struct disk_task *task)
{
    cleanup_json json_t *answer =
        task->result < 0 ? journal_error_message(task->err.text, true) : tccl_message_new("purged");
    if (task->result >= 0)
        json_object_set_new(answer, "removed", json_integer(task->result));
    if (task->result > 0)
        log_line("removed %d misdated record%s for uid %u (tcclacct purge)", task->result,
                 task->result > 1 ? "s" : "", connection_uid(task->connection));
    connection_answer(task->connection, answer);
    connection_drop(task->connection);
}

void journal_purge(struct daemon *daemon, struct connection *connection, json_t *message)
{
    struct disk_task task = {.journal = daemon->journal, .run = run_purge, .then = then_purge};
    task.record = json_deep_copy(json_object_get(message, "filter"));
    task.connection = connection_hold(connection);
    if (disk_task_submit(task) == 0)
        return;
    connection_refuse(connection, "the disk does not keep up");
    connection_drop(connection);
}
