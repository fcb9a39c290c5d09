/* check-run.c: runs another program and keeps its output, within a bound and a time. */
#include "check/check-run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"

enum { NOT_STARTED = 127, WAIT_MS = 10, USUAL_MS = 10000 };

/* Nobody but their owner can put a program there that this user would run: not the folder that we
 * are in, whatever it is, and not one that all can write to. */
static bool is_safe(const char *folder)
{
    struct stat about;
    return *folder == '/' && stat(folder, &about) == 0 && (about.st_mode & S_IWOTH) == 0;
}

/* PATH's safe folders, and those that an ordinary user's PATH lacks. Allocated; NULL without
 * memory. */
static char *search_path(void)
{
    const char *path = getenv("PATH");
    cleanup_free char *copy = strdup(path ? path : "");
    char *rest = copy, *folder, *whole = NULL;
    size_t size;
    FILE *out = copy ? open_memstream(&whole, &size) : NULL;
    if (!out)
        return NULL;
    while ((folder = strsep(&rest, ":")))
        if (is_safe(folder))
            fprintf(out, "%s:", folder);
    fputs("/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", out);
    if (fclose(out) == 0)
        return whole;
    free(whole);
    return NULL;
}

int64_t check_run_until(int64_t deadline, int ms)
{
    int64_t now = tccl_now_ms(), left = deadline - now, share = left * ms / USUAL_MS;
    if (share < ms)
        share = ms;
    return share < left ? now + share : deadline;
}

bool check_program(const char *name)
{
    cleanup_free char *path = search_path();
    char *rest = path, *folder;
    if (strchr(name, '/'))
        return access(name, X_OK) == 0;
    while ((folder = strsep(&rest, ":"))) {
        cleanup_free char *file = NULL;
        if (asprintf(&file, "%s/%s", folder, name) >= 0 && access(file, X_OK) == 0)
            return true;
    }
    return false;
}

/* In the child. */
static void become(const char *const argv[], int out, int err)
{
    cleanup_free char *path = search_path();
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (!path || setenv("PATH", path, 1) != 0)
        _exit(NOT_STARTED);
    if (nothing >= 0 && dup2(nothing, 0) == 0 && dup2(out, 1) == 1 && dup2(err, 2) == 2)
        execvp(argv[0], (char *const *)argv);
    _exit(NOT_STARTED);
}

/* Appends the available output; drops what exceeds size. Returns false at the end. */
static bool collect(int fd, char *text, size_t size)
{
    char beyond[4096];
    size_t used = strlen(text), room = size - 1 - used;
    ssize_t got = room ? read(fd, text + used, room) : read(fd, beyond, sizeof(beyond));
    if (got > 0 && room) {
        text[used + (size_t)got] = '\0';
        for (char *at = text + used; at < text + used + got; at++)
            if (!*at)
                *at = '?';
    }
    return got > 0 || (got < 0 && errno == EINTR);
}

/* Reads both pipes to their ends. Returns 0, or -1 at the deadline. */
static int collect_both(int out, int err, int64_t deadline, struct check_output *output)
{
    struct pollfd polls[2] = {{.fd = out, .events = POLLIN}, {.fd = err, .events = POLLIN}};
    while (polls[0].fd >= 0 || polls[1].fd >= 0) {
        int64_t left = deadline - tccl_now_ms();
        if (left <= 0)
            return -1;
        if (poll(polls, 2, (int)left) < 0 && errno != EINTR)
            return -1;
        if (polls[0].revents && !collect(out, output->out, sizeof(output->out)))
            polls[0].fd = -1;
        if (polls[1].revents && !collect(err, output->err, sizeof(output->err)))
            polls[1].fd = -1;
    }
    return 0;
}

/* Waits for the child's exit, at most until deadline: waitpid has no timeout, so it is polled. */
static int reap(pid_t pid, int64_t deadline, int *status)
{
    for (;;) {
        pid_t done = waitpid(pid, status, WNOHANG);
        if (done == pid)
            return 0;
        if ((done < 0 && errno != EINTR) || tccl_now_ms() >= deadline)
            return -1;
        poll(NULL, 0, WAIT_MS);
    }
}

int check_run(const char *const argv[], int64_t deadline, struct check_output *output)
{
    int out[2], err[2], status;
    memset(output, 0, sizeof(*output));
    if (pipe2(out, O_CLOEXEC) != 0)
        return CHECK_RUN_NONE;
    cleanup_close int out_end = out[0];
    if (pipe2(err, O_CLOEXEC) != 0) {
        close(out[1]);
        return CHECK_RUN_NONE;
    }
    cleanup_close int err_end = err[0];
    pid_t pid = fork();
    if (pid == 0)
        become(argv, out[1], err[1]);
    close(out[1]);
    close(err[1]);
    if (pid < 0)
        return CHECK_RUN_NONE;
    if (collect_both(out_end, err_end, deadline, output) != 0 ||
        reap(pid, deadline, &status) != 0) {
        kill(pid, SIGKILL);
        reap(pid, tccl_now_ms() + 10 * WAIT_MS, &status);
        return CHECK_RUN_LATE;
    }
    if (WIFSIGNALED(status))
        return 128 + WTERMSIG(status);
    return WEXITSTATUS(status) == NOT_STARTED && !check_program(argv[0]) ? CHECK_RUN_NONE
                                                                         : WEXITSTATUS(status);
}
