/* serve-running.c: which steps run now. */
#include "acct/serve-running.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"

extern char **environ;

enum { OUTPUT_MOST = 8 << 20, NAME = 64 };

/* The members are names as squeue shows them ("12_3", "14+1"), the values job ids. */
static json_t *read_jobs(const char *text)
{
    json_t *jobs = json_object();
    while (jobs && *text) {
        char *name, shown[NAME];
        long id = strtol(text, &name, 10); /* sscanf would go through all of the text each time */
        size_t length = *name == ' ' ? strcspn(++name, " \n") : 0;
        if (id > 0 && length > 0 && length < sizeof(shown)) {
            snprintf(shown, sizeof(shown), "%.*s", (int)length, name);
            json_object_set_new(jobs, shown, json_integer(id));
        }
        text += strcspn(text, "\n");
        text += *text == '\n';
    }
    return jobs;
}

/* "12_3.batch" -> "15.batch", where 12_3 is job 15. */
static void add_step(json_t *running, const json_t *jobs, const char *line, size_t length)
{
    char shown[NAME], step[2 * NAME];
    if (length >= sizeof(shown))
        return;
    memcpy(shown, line, length);
    shown[length] = '\0';
    char *dot = strrchr(shown, '.');
    if (!dot || dot == shown)
        return;
    *dot = '\0';
    const json_t *id = json_object_get(jobs, shown);
    if (id)
        snprintf(step, sizeof(step), "%" JSON_INTEGER_FORMAT ".%s", json_integer_value(id),
                 dot + 1);
    else
        snprintf(step, sizeof(step), "%s.%s", shown, dot + 1);
    json_object_set_new(running, step, json_true());
}

json_t *serve_running_parse(const char *jobs, const char *steps)
{
    cleanup_json json_t *known = read_jobs(jobs);
    json_t *running = json_object();
    while (known && running && *steps) {
        size_t length = strcspn(steps, "\n");
        add_step(running, known, steps, length);
        steps += length + (steps[length] == '\n');
    }
    return running;
}

/* What could make squeue show less, or otherwise, than it is asked for. */
static void forget_settings(void)
{
    static const char *const names[] = {"SQUEUE_ACCOUNT", "SQUEUE_ALL",       "SQUEUE_ARRAY",
                                        "SQUEUE_FORMAT",  "SQUEUE_FORMAT2",   "SQUEUE_LICENSES",
                                        "SQUEUE_NAMES",   "SQUEUE_PARTITION", "SQUEUE_QOS",
                                        "SQUEUE_STATES",  "SQUEUE_USERS",     "SLURM_CLUSTERS"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        unsetenv(names[i]);
}

/* Starts the program with its output in a pipe. Returns the end to read from, or -1 with err. */
static int start(const char *const *arguments, pid_t *pid, struct tccl_error *err)
{
    int ends[2];
    posix_spawn_file_actions_t actions;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return tccl_fail(err, "no pipe: %s", strerror(errno));
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    int code = posix_spawnp(pid, arguments[0], &actions, NULL, (char *const *)arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    if (code == 0)
        return ends[0];
    close(ends[0]);
    return code == ENOENT ? tccl_fail(err, "there is no %s here", arguments[0])
                          : tccl_fail(err, "%s: %s", arguments[0], strerror(code));
}

/* Reads to the end. Returns 0, or -1 with err. */
static int read_all(int fd, FILE *out, int64_t deadline, struct tccl_error *err)
{
    char data[4096];
    size_t total = 0;
    for (;;) {
        int64_t left = deadline - tccl_now_ms();
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        if (left <= 0 || poll(&ready, 1, (int)left) == 0)
            return tccl_fail(err, "squeue: no answer in time");
        ssize_t got = read(fd, data, sizeof(data));
        if (got <= 0)
            return got == 0 ? 0 : tccl_fail(err, "squeue: %s", strerror(errno));
        total += (size_t)got;
        if (total > OUTPUT_MOST)
            return tccl_fail(err, "squeue: too long an answer");
        fwrite(data, 1, (size_t)got, out);
    }
}

/* What the program prints, allocated; NULL with err. */
static char *output_of(const char *const *arguments, int64_t deadline, struct tccl_error *err)
{
    char *text = NULL;
    size_t size = 0;
    pid_t pid;
    int status = 0;
    cleanup_close int fd = start(arguments, &pid, err);
    if (fd < 0)
        return NULL;
    FILE *out = open_memstream(&text, &size);
    int failed = out ? read_all(fd, out, deadline, err) : tccl_fail(err, "out of memory");
    if (out && fclose(out) != 0)
        failed = tccl_fail(err, "out of memory");
    if (failed)
        kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    if (!failed && (!WIFEXITED(status) || WEXITSTATUS(status) != 0))
        failed = tccl_fail(err, "squeue has failed: does slurmctld run?");
    if (!failed)
        return text;
    free(text);
    return NULL;
}

json_t *serve_running(int timeout_ms, struct tccl_error *err)
{
    static const char *const jobs[] = {"squeue", "-h", "-a", "-r", "-o", "%A %i", NULL};
    static const char *const steps[] = {"squeue", "-h", "-a", "-s", "-o", "%i", NULL};
    int64_t deadline = tccl_now_ms() + timeout_ms;
    forget_settings();
    cleanup_free char *all_steps = output_of(steps, deadline, err);
    cleanup_free char *all_jobs = all_steps ? output_of(jobs, deadline, err) : NULL;
    if (!all_jobs)
        return NULL;
    json_t *running = serve_running_parse(all_jobs, all_steps);
    if (!running)
        tccl_fail(err, "out of memory");
    return running;
}
