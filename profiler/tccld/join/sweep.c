/* sweep.c: RunDir's only sweeper. The slurmstepd of a step can be killed: then no LEAVE comes, and
 * its record, its plan, and its processes' file in /dev/shm stay. They go once that slurmstepd is
 * seen to be gone. Where it can't be seen, only age tells, since a plan that is removed too early
 * costs a step its ring. A folder without a record and a plan is nobody's: the tccld that made it
 * was killed. */
#include "tccld/join/running.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/cleanup.h"
#include "client/key.h"
#include "gres/gres.h"
#include "tccld/join/planfile.h"
#include "tccld/join/step.h"
#include "tccld/main/run-dir.h"

struct sweep {
    struct daemon *daemon;
    struct event *timer;
    int period_ms;
};

/* Returns whether it has gone. */
static bool sweep_folder(struct daemon *daemon, const char *name, bool old)
{
    const char *run_dir = daemon->conf->run_dir;
    struct running *running = daemon->running;
    bool past;
    struct running_step *step = running_folder(running, name, &past);
    if (!step && !past)
        step = running_load(running, name);
    if (!step)
        return (past || old || planfile_lacks_plan(run_dir, name)) &&
               planfile_remove_folder(run_dir, name, daemon->monitor) == 0;
    if (!old || step->joined_ms || stepd_look(step->stepd) != STEPD_UNKNOWN)
        return false;
    leave_end(daemon->steps, &step->key, true);
    return true;
}

/* Returns how many have gone. */
static int sweep_steps(struct daemon *daemon)
{
    struct running_step *step, *next;
    int gone = 0;
    for (step = TAILQ_FIRST(&daemon->running->live); step; step = next) {
        next = TAILQ_NEXT(step, link);
        const struct step *anew = steps_find(daemon->steps, &step->key);
        if (stepd_look(step->stepd) != STEPD_GONE || (anew && step_is_open(anew)))
            continue; /* its plan will take this one's place */
        leave_end(daemon->steps, &step->key, true);
        next = TAILQ_FIRST(&daemon->running->live); /* others may have gone with it */
        gone++;
    }
    return gone;
}

static bool is_named(const char *name, const char *ending, uint32_t *job)
{
    int end = -1;
    return sscanf(name, "%10u%n", job, &end) == 1 && end > 0 && strcmp(name + end, ending) == 0;
}

/* tccl_write_file's, in place of a file of ours; or planfile_link's. */
static bool is_unfinished(const char *name)
{
    enum { RANDOM = 6 };
    char file[NAME_MAX + 1];
    uint32_t job;
    size_t length = strlen(name);
    if (is_named(name, PLANFILE_LAUNCHER ".new", &job))
        return true;
    if (length <= RANDOM || name[length - RANDOM - 1] != '.' ||
        strspn(name + length - RANDOM, "abcdefghijklmnopqrstuvwxyz012345") != RANDOM)
        return false;
    snprintf(file, sizeof(file), "%.*s", (int)(length - RANDOM - 1), name);
    return strcmp(file, TCCL_GRES_NAME) == 0;
}

void sweep_unfinished(const char *run_dir)
{
    cleanup_dir DIR *folder = opendir(run_dir);
    const struct dirent *entry;
    while (folder && (entry = readdir(folder)) != NULL)
        if (is_unfinished(entry->d_name))
            unlinkat(dirfd(folder), entry->d_name, 0);
}

int sweep_run_dir(struct daemon *daemon, time_t now)
{
    cleanup_dir DIR *folder = opendir(daemon->conf->run_dir);
    const struct dirent *entry;
    struct stat stat;
    uint32_t job;
    int removed = 0, kept = 0;
    while (folder && (entry = readdir(folder)) != NULL) {
        const char *name = entry->d_name;
        time_t keep = kept >= SWEEP_MANY ? SWEEP_MANY_KEEP_S : SWEEP_KEEP_S;
        if (fstatat(dirfd(folder), name, &stat, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        if (is_named(name, PLANFILE_LAUNCHER, &job) && faccessat(dirfd(folder), name, F_OK, 0) != 0)
            unlinkat(dirfd(folder), name, 0); /* it leads nowhere */
        if (!planfile_is_folder(name))
            continue;
        if (sweep_folder(daemon, name, now - stat.st_mtime > keep))
            removed++;
        else
            kept++;
    }
    return removed + sweep_steps(daemon);
}

static void on_time(evutil_socket_t fd UNUSED, short what UNUSED, void *argument)
{
    struct sweep *sweep = argument;
    struct daemon *daemon = sweep->daemon;
    char path[PATH_MAX];
    strcpy(path, daemon->conf->run_dir);
    bool answers = run_dir_do(daemon->run_dir, run_dir_try, NULL, path, sizeof(path), NULL) == 0;
    int removed = answers ? sweep_run_dir(daemon, time(NULL)) : 0;
    if (removed)
        log_line("%s: removed what was left of %d steps that ended without a LEAVE",
                 daemon->conf->run_dir, removed);
    daemon_set(sweep->timer, sweep->period_ms);
}

struct sweep *sweep_new(struct daemon *daemon, int period_ms)
{
    struct sweep *sweep = calloc(1, sizeof(*sweep));
    if (!sweep)
        return NULL;
    *sweep = (struct sweep){.daemon = daemon, .period_ms = period_ms};
    sweep->timer = event_new(daemon->base, -1, 0, on_time, sweep);
    if (!sweep->timer) {
        free(sweep);
        return NULL;
    }
    sweep_hurry(sweep);
    return sweep;
}

void sweep_hurry(struct sweep *sweep)
{
    daemon_set(sweep->timer, 0);
}

void sweep_free(struct sweep *sweep)
{
    if (!sweep)
        return;
    event_free(sweep->timer);
    free(sweep);
}
