/* Store and outbox are opened here. A disk that is broken, full, read-only or somebody else's takes
 * no rings away: tccld serves them without a store, records wait in the outbox, or in memory where
 * there is none, and it is tried again. Two tccld never share a StateDir: whoever holds the lock in
 * it. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fileio.h"
#include "records/outbox.h"
#include "records/records.h"
#include "tccld/journal/disk-task.h"
#include "tccld/main/metrics.h"

static int take_lock(struct journal *journal, struct tccl_error *err)
{
    char path[PATH_MAX + 16];
    if (journal->lock >= 0)
        return 0;
    snprintf(path, sizeof(path), "%s/tccld.lock", journal->folder);
    cleanup_close int fd = tccl_open_own(path, O_RDWR | O_CREAT, 0600, err);
    if (fd < 0)
        return -1;
    if (flock(fd, LOCK_EX | LOCK_NB) != 0)
        return tccl_fail(err, "%s: %s", path,
                         errno == EWOULDBLOCK ? "another tccld uses this StateDir: give each node "
                                                "its own, with %n in the path"
                                              : strerror(errno));
    journal->lock = fd;
    fd = -1;
    return 0;
}

/* Returns 0, or -1 with the task's error; its believed is set where the store was opened. */
static int open_store(struct disk_task *task)
{
    struct journal *journal = task->journal;
    struct tccl_records *store;
    int64_t last, newest;
    if (tccl_records_open(journal->path, &journal->closing, &store, &task->err) != 0)
        return -1;
    if (tccl_records_time(store, &last, &newest, &task->err) != 0) {
        tccl_records_close(store);
        return -1;
    }
    believed_begin(&task->believed, last, newest, time(NULL), tccl_now_ms());
    journal->store = store;
    return 0;
}

/* The outbox first: it takes records where the store can't. */
static void run_open(struct disk_task *task)
{
    struct journal *journal = task->journal;
    bool had_store = journal->store;
    char outbox[PATH_MAX + 16];
    snprintf(outbox, sizeof(outbox), "%s/outbox.db", journal->folder);
    bool own = tccl_make_folder(journal->folder, 0755, &task->err) == 0 &&
               tccl_folder_check_own(journal->folder, 0, &task->err) == 0;
    atomic_store(&journal->own, own);
    task->result = own && take_lock(journal, &task->err) == 0 ? 0 : -1;
    task->box_failed =
        task->result == 0 && !journal->outbox &&
        tccl_outbox_open(outbox, &journal->outbox, &task->n_boxed, &task->box_err) != 0;
    if (task->result == 0 && !journal->store)
        task->result = open_store(task);
    task->given_up = !had_store && journal->store; /* believed is new */
    if (task->result != 0)
        journal->why = task->err;
    else if (task->box_failed)
        journal->why = task->box_err;
    opening_look_at_outbox(task);
}

void opening_look_at_outbox(struct disk_task *task)
{
    struct journal *journal = task->journal;
    if (journal->outbox && tccl_outbox_broken(journal->outbox)) {
        bool damaged = tccl_outbox_damaged(journal->outbox);
        task->n_boxed += tccl_outbox_close(tccl_steal(journal->outbox));
        tccl_fail(&task->box_err, "%s/outbox.db: %s", journal->folder,
                  damaged ? "is damaged" : "can't be used as it was opened");
        task->box_failed = true;
        journal->why = task->box_err;
    }
    task->waiting = journal->outbox ? tccl_outbox_count(journal->outbox) : 0;
}

static void try_later(struct journal *journal)
{
    int64_t ms = journal->opening_ms ? 2 * journal->opening_ms : OPENING_RETRY_MS;
    journal->opening_ms = ms < OPENING_RETRY_MOST_MS ? ms : OPENING_RETRY_MOST_MS;
    if (!journal->closing)
        daemon_set(journal->opening, journal->opening_ms);
}

void opening_after_outbox(struct disk_task *task)
{
    struct journal *journal = task->journal;
    journal->waiting = task->waiting;
    if (task->n_boxed > 0) {
        log_line("%s; it is moved to outbox.db.bad, what can be read of it is kept",
                 task->box_err.text);
        journal_lose(journal, NULL, task->n_boxed, 0, task->box_err.text);
    } else if (*task->box_err.text) {
        log_limited(&journal->trouble, "%s", task->box_err.text);
    }
    if (task->box_failed && !evtimer_pending(journal->opening, NULL))
        try_later(journal);
}

static void then_open(struct disk_task *task)
{
    struct journal *journal = task->journal;
    metrics_works(journal->daemon->metrics, METRICS_STORE, task->result == 0);
    journal->closed = task->err;
    if (task->given_up) {
        journal->believed = task->believed;
        atomic_fetch_add(&journal->opened, 1);
    }
    if (task->result != 0) {
        if (!journal->opening_ms && !journal->closing)
            log_line("no store of records: %s: rings are served without, records wait%s, and it is "
                     "tried again, at most every %d s",
                     task->err.text, journal->outbox ? " in the outbox" : " in memory",
                     OPENING_RETRY_MOST_MS / 1000);
        try_later(journal);
    } else if (task->box_failed) {
        log_limited(&journal->trouble, "no outbox of records: %s: records wait in memory",
                    task->box_err.text);
    } else if (journal->opening_ms) {
        log_line("the store of records is open: %s", journal->path);
        journal->opening_ms = 0;
    }
    opening_after_outbox(task);
    if (task->result == 0)
        delivery_look(journal);
    else if (journal->waiting > 0)
        journal_retry_later(journal);
}

void opening_on_time(evutil_socket_t fd UNUSED, short what UNUSED, void *journal)
{
    struct disk_task task = {.journal = journal, .run = run_open, .then = then_open};
    if (disk_task_submit(task) != 0)
        try_later(journal);
}

void opening_begin(struct journal *journal)
{
    believed_begin(&journal->believed, 0, 0, time(NULL), tccl_now_ms());
    tccl_fail(&journal->why, "%s: the disk has not answered yet", journal->folder);
    opening_on_time(-1, 0, journal);
    if (threads_wait(journal->disk, OPENING_FIRST_MS) != 0)
        log_line("no store of records yet: %s: the disk has not answered within %d ms: rings are "
                 "served without, records wait in memory",
                 journal->folder, OPENING_FIRST_MS);
}

void opening_lost(struct journal *journal, const struct tccl_error *why)
{
    tccl_records_close(journal->store);
    journal->store = NULL;
    journal->why = *why;
}

void opening_again(struct journal *journal, const struct tccl_error *why)
{
    if (!*journal->closed.text)
        journal->closed = *why;
    metrics_works(journal->daemon->metrics, METRICS_STORE, false);
    if (!evtimer_pending(journal->opening, NULL))
        try_later(journal);
}

int opening_check(const struct journal *journal, struct tccl_error *err)
{
    return journal->store ? 0 : tccl_fail(err, "no store: %s", journal->why.text);
}
