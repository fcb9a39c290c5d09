/* Writes MetricsFile= every few seconds. Numbers are copied on the event loop; the text is made and
 * written in a thread, as a slow disk must not hold up steps. */
#include "tccld/main/metrics.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fileio.h"

enum { STOP_MS = 5000 };

struct metrics_file {
    struct daemon *daemon;
    struct threads *pool; /* of one thread, which alone uses count */
    struct event *timer;
    struct metrics_count count;
    char written[PATH_MAX]; /* what is there now; "": nothing */
    time_t started;
    bool failing; /* and the log says so */
    /* A round: made on the event loop, done in the thread. */
    struct metrics *metrics; /* NULL: none is under way */
    char path[PATH_MAX], machine[PATH_MAX], cache_dir[PATH_MAX];
    int failed;
    struct tccl_error err;
};

static void run_writing(void *task)
{
    struct metrics_file *file = task;
    metrics_count_profile(&file->count, file->machine, file->cache_dir);
    metrics_look_at_machine(&file->count, time(NULL));
    cleanup_free char *text = metrics_text(file->metrics, &file->count.profile,
                                           &file->count.machine_found, file->started, time(NULL));
    file->err = (struct tccl_error){""};
    file->failed = text ? tccl_write_file(file->path, 0644, text, strlen(text), &file->err)
                        : tccl_fail(&file->err, "%s: out of memory", file->path);
}

void metrics_file_hurry(struct metrics_file *file)
{
    daemon_set(file->timer, 0);
}

static void done_writing(void *task)
{
    struct metrics_file *file = task;
    metrics_free(tccl_steal(file->metrics));
    if (file->failed && !file->failing)
        log_line("MetricsFile: %s: tried again every %d s, without another line", file->err.text,
                 METRICS_SECONDS);
    if (!file->failed) {
        if (file->failing)
            log_line("MetricsFile: %s is written again", file->path);
        strcpy(file->written, file->path);
    }
    file->failing = file->failed;
    if (file->timer && strcmp(file->path, file->daemon->conf->metrics_file) != 0)
        metrics_file_hurry(file);
}

/* A file of a tccld that has ended, or under an old name, would show numbers that stand still. */
static void remove_written(struct metrics_file *file)
{
    struct tccl_error err = {0};
    if (*file->written && tccl_remove_file(file->written, &err) != 0 && errno != ENOENT)
        log_line("MetricsFile: %s", err.text);
    *file->written = '\0';
}

static void on_timer(evutil_socket_t fd UNUSED, short what UNUSED, void *argument)
{
    struct metrics_file *file = argument;
    const struct tccl_conf *conf = file->daemon->conf;
    if (*conf->metrics_file)
        daemon_set(file->timer, METRICS_SECONDS * 1000);
    if (file->metrics)
        return;
    if (strcmp(file->written, conf->metrics_file) != 0)
        remove_written(file);
    if (!*conf->metrics_file) {
        file->failing = false;
        return;
    }
    file->metrics = metrics_copy(file->daemon->metrics);
    strcpy(file->path, conf->metrics_file);
    strcpy(file->machine, conf->machine);
    strcpy(file->cache_dir, conf->cache_dir);
    if (file->metrics && threads_submit(file->pool, run_writing, done_writing, file) != 0)
        metrics_free(tccl_steal(file->metrics));
}

struct metrics_file *metrics_file_new(struct daemon *daemon, struct tccl_error *err)
{
    struct metrics_file *file = calloc(1, sizeof(*file));
    if (file) {
        file->daemon = daemon;
        file->started = time(NULL);
        file->pool = threads_new(daemon->base, 1, 1, err);
        file->timer = evtimer_new(daemon->base, on_timer, file);
    }
    if (file && file->pool && file->timer && daemon_set(file->timer, 0) == 0)
        return file;
    tccl_fail(err, "out of memory");
    metrics_file_free(file);
    return NULL;
}

void metrics_file_free(struct metrics_file *file)
{
    if (!file)
        return;
    daemon_drop(tccl_steal(file->timer));
    if (threads_free(file->pool, STOP_MS) != 0)
        return; /* its thread is stuck on the disk, and goes with the process */
    remove_written(file);
    free(file);
}
