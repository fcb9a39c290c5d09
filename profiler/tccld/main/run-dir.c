/* run-dir.c: a pool of one thread, and who waits for it. */
#include "tccld/main/run-dir.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tccld/main/daemon.h"
#include "tccld/main/threads.h"

enum { QUEUE = 16 };

struct run_dir {
    struct threads *pool;
    pthread_mutex_t lock;
    pthread_cond_t end; /* of an item; for who waits */
    bool busy, hangs;   /* hangs: what runs was given up, or what waited behind it */
};

/* The pool's, which frees it on the event loop. */
struct item {
    struct run_dir *run_dir;
    void (*act)(void *task);
    void (*late)(void *task, int ran);
    bool begun, ended, given_up;
    max_align_t task[];
};

/* In the thread. The lock is not held while it works. */
static void run_item(void *argument)
{
    struct item *item = argument;
    struct run_dir *run_dir = item->run_dir;
    pthread_mutex_lock(&run_dir->lock);
    bool runs = item->begun = !item->given_up;
    run_dir->busy = runs;
    pthread_mutex_unlock(&run_dir->lock);
    if (!runs)
        return;
    item->act(item->task);
    pthread_mutex_lock(&run_dir->lock);
    item->ended = true;
    pthread_cond_signal(&run_dir->end);
    bool late = item->given_up && item->late;
    pthread_mutex_unlock(&run_dir->lock);
    if (late) /* taking it back is work on the disk, too */
        item->late(item->task, 1);
    pthread_mutex_lock(&run_dir->lock);
    run_dir->busy = run_dir->hangs = false;
    pthread_mutex_unlock(&run_dir->lock);
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

bool run_dir_in_memory(const char *path)
{
    struct statfs system;
    return statfs(path, &system) == 0 &&
           (system.f_type == TMPFS_MAGIC || system.f_type == RAMFS_MAGIC);
}

struct run_dir *run_dir_new(struct event_base *base, struct tccl_error *err)
{
    struct run_dir *run_dir = calloc(1, sizeof(*run_dir));
    pthread_condattr_t monotonic;
    if (!run_dir)
        return tccl_fail_null(err, "out of memory");
    pthread_mutex_init(&run_dir->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&run_dir->end, &monotonic);
    pthread_condattr_destroy(&monotonic);
    run_dir->pool = threads_new(base, 1, QUEUE, err);
    if (run_dir->pool)
        return run_dir;
    free(run_dir);
    return NULL;
}

int run_dir_do(struct run_dir *run_dir, void (*act)(void *task), void (*late)(void *task, int ran),
               void *task, size_t size, struct tccl_error *err)
{
    struct timespec until;
    bool ended = false, begun = false;
    if (!run_dir) {
        act(task);
        return 0;
    }
    struct item *item = calloc(1, sizeof(*item) + size);
    if (item) {
        *item = (struct item){.run_dir = run_dir, .act = act, .late = late};
        memcpy(item->task, task, size);
    }
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += RUN_DIR_MS / 1000;
    pthread_mutex_lock(&run_dir->lock);
    if (item && !run_dir->hangs && threads_submit(run_dir->pool, run_item, free, item) == 0) {
        while (!item->ended && pthread_cond_timedwait(&run_dir->end, &run_dir->lock, &until) == 0)
            ;
        ended = item->ended;
        begun = item->begun;
        item->given_up = !ended;
        run_dir->hangs = !ended && run_dir->busy; /* else the thread only had no time to begin */
        if (ended)
            memcpy(task, item->task, size);
        item = NULL;
    }
    pthread_mutex_unlock(&run_dir->lock);
    free(item);
    if (!begun && late)
        late(task, 0);
    return ended ? 0 : tccl_fail(err, "RunDir does not answer: does its disk hang?");
}

int run_dir_free(struct run_dir *run_dir)
{
    if (!run_dir)
        return 0;
    if (threads_wait(run_dir->pool, RUN_DIR_MS) != 0)
        return 1;
    threads_free(run_dir->pool, 0);
    pthread_mutex_destroy(&run_dir->lock);
    pthread_cond_destroy(&run_dir->end);
    free(run_dir);
    return 0;
}
