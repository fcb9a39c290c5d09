/* KeepRecords=: records are removed a few at a time, with pauses, so that new ones and
 * questions never wait long for the disk. */

#include <time.h>

#include "base/clock.h"
#include "records/records.h"
#include "tccld/journal/disk-task.h"

enum {
    ROWS = 500,    /* removed at a time, so that nobody waits long for the disk, */
    PAUSE_MS = 50, /* and between two times */
    EACH_MS = 3600 * 1000,
};

void retention_look(struct journal *journal, int64_t ms)
{
    if (!journal->closing)
        daemon_set(journal->retention, ms);
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
    int64_t arrived = believed_oldest(believed, task->keep_misdated, time(NULL), now_ms);
    if (before > 0 || arrived > 0)
        task->result = tccl_records_purge(store, before, arrived, ROWS, &task->err);
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
            "records older than KeepRecords= says can't be removed, tried again in an hour: %s",
            task->err.text);
    const struct tccl_conf *conf = journal->daemon->conf;
    if (journal->n_removed)
        log_line("removed %lld record%s older than KeepRecords=%dd", (long long)journal->n_removed,
                 journal->n_removed > 1 ? "s" : "",
                 conf->keep_days[0] ? conf->keep_days[0] : conf->keep_days[1]);
    journal->n_removed = 0;
    /* Once an hour, while it is so. */
    const struct believed *believed = &journal->believed;
    int64_t clock = time(NULL), off = clock - believed->now;
    if (off > BELIEVED_DAY || off < -BELIEVED_DAY)
        log_line(
            "the clock is %.0f days %s the newest record and the time since: KeepRecords= counts "
            "from there, which nears the clock by %d days a day; set the clock if it is wrong",
            (double)(off > 0 ? off : -off) / BELIEVED_DAY, off > 0 ? "ahead of" : "behind",
            BELIEVED_RATE);
    retention_look(journal, EACH_MS);
}

void retention_on_time(evutil_socket_t fd UNUSED, short what UNUSED, void *argument)
{
    struct disk_task task = {.journal = argument, .run = run_removal, .then = then_removal};
    if (disk_task_submit(task) != 0)
        retention_look(argument, RETENTION_FIRST_MS);
}
