/* run-dir.c: a thread, its queue, and who waits for it. */
#include "tccld/main/run-dir.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "tccld/main/log.h"

struct item {
    TAILQ_ENTRY(item) link;
    void (*act)(void *task);
    void (*late)(void *task, int ran);
    bool given_up, ended;
    max_align_t task[];
};

struct run_dir {
    pthread_mutex_t lock;
    pthread_cond_t wake, end; /* of the thread; of who waits */
    pthread_t thread;
    TAILQ_HEAD(, item) items; /* what runs is not among them */
    bool busy, hangs, stop;   /* hangs: what runs was given up, or what waited behind it */
};

static void *work(void *argument)
{
    struct run_dir *run_dir = argument;
    pthread_mutex_lock(&run_dir->lock);
    for (;;) {
        struct item *item = TAILQ_FIRST(&run_dir->items);
        if (!item && run_dir->stop)
            break;
        if (!item) {
            pthread_cond_wait(&run_dir->wake, &run_dir->lock);
            continue;
        }
        TAILQ_REMOVE(&run_dir->items, item, link);
        /* With the lock, which is not held while it runs. */
        run_dir->busy = true;
        pthread_mutex_unlock(&run_dir->lock);
        item->act(item->task);
        pthread_mutex_lock(&run_dir->lock);
        item->ended = true;
        if (item->given_up) { /* taking it back is work on the disk, too */
            pthread_mutex_unlock(&run_dir->lock);
            if (item->late)
                item->late(item->task, 1);
            free(item);
            pthread_mutex_lock(&run_dir->lock);
        } else {
            pthread_cond_signal(&run_dir->end); /* and who waits has it */
        }
        run_dir->busy = run_dir->hangs = false;
    }
    pthread_mutex_unlock(&run_dir->lock);
    return NULL;
}

void run_dir_try(void *path)
{
    utimensat(AT_FDCWD, path, NULL, 0);
}

void run_dir_await(const char *path)
{
    char copy[PATH_MAX];
    pid_t child = fork(), ended = 0;
    if (child == 0) {
        snprintf(copy, sizeof(copy), "%s", path);
        run_dir_try(copy);
        _exit(0);
    }
    for (int i = 0; child > 0 && ended == 0 && i < RUN_DIR_MS / 2; i++) {
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
        ended = waitpid(child, NULL, WNOHANG);
    }
    if (child < 0 || ended != 0)
        return;
    log_line("%s (RunDir) does not answer: does its disk hang? tccld begins once it does", path);
    waitpid(child, NULL, 0);
}

struct run_dir *run_dir_new(struct tccl_error *err)
{
    struct run_dir *run_dir = calloc(1, sizeof(*run_dir));
    pthread_condattr_t monotonic;
    sigset_t all, old;
    if (!run_dir)
        return tccl_fail_null(err, "out of memory");
    TAILQ_INIT(&run_dir->items);
    pthread_mutex_init(&run_dir->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&run_dir->wake, NULL);
    pthread_cond_init(&run_dir->end, &monotonic);
    pthread_condattr_destroy(&monotonic);
    sigfillset(&all); /* signals are for the event loop's thread */
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int code = pthread_create(&run_dir->thread, NULL, work, run_dir);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (code == 0)
        return run_dir;
    tccl_fail(err, "a thread for RunDir: %s", strerror(code));
    free(run_dir);
    return NULL;
}

static struct item *new_item(void (*act)(void *task), const void *task, size_t size)
{
    struct item *item = calloc(1, sizeof(*item) + size);
    if (item) {
        item->act = act;
        memcpy(item->task, task, size);
    }
    return item;
}

/* With the lock. Returns whether it has been begun. */
static bool give_up(struct run_dir *run_dir, struct item *item)
{
    const struct item *other;
    run_dir->hangs = run_dir->busy; /* else the thread only had no time to begin */
    TAILQ_FOREACH(other, &run_dir->items, link)
    if (other == item) {
        TAILQ_REMOVE(&run_dir->items, item, link);
        return false;
    }
    item->given_up = true;
    return true;
}

int run_dir_do(struct run_dir *run_dir, void (*act)(void *task), void (*late)(void *task, int ran),
               void *task, size_t size, struct tccl_error *err)
{
    bool ended = false, begun = false;
    if (!run_dir) {
        act(task);
        return 0;
    }
    struct item *item = new_item(act, task, size);
    pthread_mutex_lock(&run_dir->lock);
    if (item && !run_dir->hangs) {
        item->late = late;
        TAILQ_INSERT_TAIL(&run_dir->items, item, link);
        pthread_cond_signal(&run_dir->wake);
        /* With the lock: waits for its end, for RUN_DIR_MS. */
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += RUN_DIR_MS / 1000;
        until.tv_nsec += RUN_DIR_MS % 1000 * 1000000L;
        if (until.tv_nsec >= 1000000000L) {
            until.tv_sec++;
            until.tv_nsec -= 1000000000L;
        }
        while (!item->ended && pthread_cond_timedwait(&run_dir->end, &run_dir->lock, &until) == 0)
            ;
        ended = item->ended;
        begun = !ended && give_up(run_dir, item);
    }
    pthread_mutex_unlock(&run_dir->lock);
    if (ended)
        memcpy(task, item->task, size);
    else if (!begun && late)
        late(task, 0);
    if (!begun)
        free(item);
    return ended ? 0 : tccl_fail(err, "RunDir does not answer: does its disk hang?");
}

int run_dir_free(struct run_dir *run_dir)
{
    int64_t deadline = tccl_now_ms() + RUN_DIR_MS;
    bool busy = true;
    if (!run_dir)
        return 0;
    while (busy) {
        pthread_mutex_lock(&run_dir->lock);
        busy = run_dir->busy || !TAILQ_EMPTY(&run_dir->items);
        run_dir->stop = !busy;
        pthread_cond_signal(&run_dir->wake);
        pthread_mutex_unlock(&run_dir->lock);
        if (busy && tccl_now_ms() >= deadline)
            return 1;
        if (busy)
            nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    }
    pthread_join(run_dir->thread, NULL);
    pthread_mutex_destroy(&run_dir->lock);
    pthread_cond_destroy(&run_dir->wake);
    pthread_cond_destroy(&run_dir->end);
    free(run_dir);
    return 0;
}
