/* command.c: runs another program and keeps its output, within a bound and a time. All that needs
 * memory is done before the fork, since tccld has threads. */
#include "base/command.h"

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

enum { NOT_STARTED = 127, WAIT_MS = 5, KILLED_MS = 1000 };

/* What a child is started with. */
struct start {
    const char *const *argv;
    char *path;    /* "PATH=…" */
    char *program; /* argv[0] with its folder */
    char **environment;
};

static void clear_start(struct start *start)
{
    free(start->path);
    free(start->program);
    free(start->environment);
}

/* Nobody but their owner can put a program there that this user would run: not the folder that we
 * are in, whatever it is, and not one that all can write to. */
static bool is_safe(const char *folder)
{
    struct stat about;
    return *folder == '/' && stat(folder, &about) == 0 && (about.st_mode & S_IWOTH) == 0;
}

/* "PATH=", PATH's safe folders, and those that an ordinary user's PATH lacks. Allocated; NULL
 * without memory. */
static char *search_path(void)
{
    const char *path = getenv("PATH");
    cleanup_free char *copy = strdup(path ? path : "");
    char *rest = copy, *folder, *whole = NULL;
    size_t size;
    FILE *out = copy ? open_memstream(&whole, &size) : NULL;
    if (!out)
        return NULL;
    fputs("PATH=", out);
    while ((folder = strsep(&rest, ":")))
        if (is_safe(folder))
            fprintf(out, "%s:", folder);
    fputs("/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", out);
    if (fclose(out) == 0)
        return whole;
    free(whole);
    return NULL;
}

/* The file of a program, allocated; NULL: there is none. path: "PATH=…". */
static char *find_program(const char *name, const char *path)
{
    cleanup_free char *copy = strdup(path + strlen("PATH="));
    char *rest = copy, *folder, *file;
    if (strchr(name, '/'))
        return access(name, X_OK) == 0 ? strdup(name) : NULL;
    while ((folder = strsep(&rest, ":"))) {
        if (asprintf(&file, "%s/%s", folder, name) < 0)
            return NULL;
        if (access(file, X_OK) == 0)
            return file;
        free(file);
    }
    return NULL;
}

bool tccl_command_exists(const char *name)
{
    cleanup_free char *path = search_path();
    cleanup_free char *file = path ? find_program(name, path) : NULL;
    return file != NULL;
}

static bool begins_with_one(const char *text, const char *const *prefixes)
{
    for (; prefixes && *prefixes; prefixes++)
        if (strncmp(text, *prefixes, strlen(*prefixes)) == 0)
            return true;
    return false;
}

static int prepare(const char *const argv[], const char *const *without, struct start *start)
{
    *start = (struct start){.argv = argv, .path = search_path()};
    if (start->path)
        start->program = find_program(argv[0], start->path);
    if (start->program) {
        /* This process's environment but for what is left out, with the safe PATH. Borrows. */
        size_t count = 0, kept = 0;
        while (environ[count])
            count++;
        char **environment = calloc(count + 2, sizeof(*environment));
        for (size_t i = 0; environment && i < count; i++)
            if (strncmp(environ[i], "PATH=", strlen("PATH=")) != 0 &&
                !begins_with_one(environ[i], without))
                environment[kept++] = environ[i];
        if (environment)
            environment[kept] = start->path;
        start->environment = environment;
    }
    return start->environment ? 0 : -1;
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
static int collect_both(int out, int err, int64_t deadline, struct tccl_command_output *output)
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

static int run(const struct start *start, int64_t deadline, struct tccl_command_output *output)
{
    int out[2], err[2];
    if (pipe2(out, O_CLOEXEC) != 0)
        return TCCL_COMMAND_NONE;
    cleanup_close int out_end = out[0];
    if (pipe2(err, O_CLOEXEC) != 0) {
        close(out[1]);
        return TCCL_COMMAND_NONE;
    }
    cleanup_close int err_end = err[0];
    pid_t pid = fork();
    if (pid == 0) {
        /* In the child: no memory, no locks. Threads of tccld block all signals. */
        sigset_t none;
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        signal(SIGPIPE, SIG_DFL);
        int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
        if (nothing >= 0 && dup2(nothing, 0) == 0 && dup2(out[1], 1) == 1 && dup2(err[1], 2) == 2)
            execve(start->program, (char *const *)start->argv, start->environment);
        _exit(NOT_STARTED);
    }
    close(out[1]);
    close(err[1]);
    if (pid < 0)
        return TCCL_COMMAND_NONE;
    int status;
    if (collect_both(out_end, err_end, deadline, output) != 0 ||
        reap(pid, deadline, &status) != 0) {
        kill(pid, SIGKILL);
        reap(pid, tccl_now_ms() + KILLED_MS, &status);
        return TCCL_COMMAND_LATE;
    }
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int tccl_command_run(const char *const argv[], const char *const *without, int64_t deadline,
                     struct tccl_command_output *output)
{
    __attribute__((cleanup(clear_start))) struct start start;
    memset(output, 0, sizeof(*output));
    return prepare(argv, without, &start) == 0 ? run(&start, deadline, output) : TCCL_COMMAND_NONE;
}
