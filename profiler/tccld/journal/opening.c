/* Store and spool are opened here. A disk that is broken, full, read-only or somebody else's takes
 * no rings away: tccld serves them without a store, records wait in the spool, or in memory where
 * there is none, and it is tried again. Two tccld never share a StateDir: whoever holds the lock in
 * it. */
#include "tccld/journal/opening.h"

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
#include "records/records.h"
#include "tccld/journal/backlog.h"
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
    if (tccl_records_open(journal->path, &store, &task->err) != 0)
        return -1;
    if (tccl_records_time(store, &last, &newest, &task->err) != 0) {
        tccl_records_close(store);
        return -1;
    }
    believed_begin(&task->believed, last, newest, time(NULL), tccl_now_ms());
    journal->store = store;
    return 0;
}

static int open_spool(struct disk_task *task)
{
    char path[PATH_MAX + 16], bad[PATH_MAX + 16];
    snprintf(path, sizeof(path), "%s/spool", task->journal->folder);
    snprintf(bad, sizeof(bad), "%s/spool/bad", task->journal->folder);
    if (tccl_make_folder(bad, 0700, &task->err) != 0 ||
        tccl_folder_check_own(bad, 0, &task->err) != 0)
        return -1;
    return tccl_spool_open(path, &task->journal->spool, &task->err);
}

/* The spool first: it takes records where the store can't. count: what it holds. */
static void run_open(struct disk_task *task)
{
    struct journal *journal = task->journal;
    bool had_store = journal->store;
    bool own = tccl_make_folder(journal->folder, 0755, &task->err) == 0 &&
               tccl_folder_check_own(journal->folder, 0, &task->err) == 0;
    atomic_store(&journal->own, own);
    task->result = !own || take_lock(journal, &task->err) != 0 ||
                           (!journal->spool && open_spool(task) != 0) ||
                           (!journal->store && open_store(task) != 0)
                       ? -1
                       : 0;
    task->given_up = !had_store && journal->store; /* believed is new */
    task->count = journal->spool ? tccl_spool_count(journal->spool) : 0;
    if (task->result != 0)
        journal->why = task->err;
}

static void try_later(struct journal *journal)
{
    int64_t ms = journal->opening_ms ? 2 * journal->opening_ms : OPENING_RETRY_MS;
    journal->opening_ms = ms < OPENING_RETRY_MOST_MS ? ms : OPENING_RETRY_MOST_MS;
    struct timeval wait = daemon_in(journal->opening_ms);
    if (!journal->closing)
        evtimer_add(journal->opening, &wait);
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
        if (!journal->opening_ms)
            log_line("no store of records: %s: rings are served without, records wait%s, and it is "
                     "tried again, at most every %d s",
                     task->err.text, journal->spool ? " in the spool" : " in memory",
                     OPENING_RETRY_MOST_MS / 1000);
        try_later(journal);
    } else if (journal->opening_ms) {
        log_line("the store of records is open: %s", journal->path);
        journal->opening_ms = 0;
    }
    if (task->count > 0 && !journal->round) {
        journal->has_backlog = true;
        if (task->result == 0)
            backlog_next(journal);
        else
            journal_retry_later(journal);
    }
}

void opening_on_time(evutil_socket_t fd, short what, void *journal)
{
    struct disk_task task = {.journal = journal, .run = run_open, .then = then_open};
    (void)fd;
    (void)what;
    if (disk_task_submit(task) != 0)
        try_later(journal);
}

void opening_begin(struct journal *journal)
{
    believed_begin(&journal->believed, 0, 0, time(NULL), tccl_now_ms());
    tccl_fail(&journal->why, "%s: the disk has not answered yet", journal->folder);
    opening_on_time(-1, 0, journal);
    if (pool_wait(journal->disk, OPENING_FIRST_MS) != 0)
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
    if (evtimer_pending(journal->opening, NULL))
        return;
    try_later(journal);
}

int opening_check(const struct journal *journal, struct tccl_error *err)
{
    return journal->store ? 0 : tccl_fail(err, "no store: %s", journal->why.text);
}
