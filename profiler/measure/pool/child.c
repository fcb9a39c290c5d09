/* child.c: a process that works for this one and never outlives it. */
#include "measure/pool/pool-run.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Kernels before 5.9 have no close_range. */
static void close_one_by_one(int from)
{
    DIR *folder = opendir("/proc/self/fd");
    struct dirent *entry;
    while (folder && (entry = readdir(folder))) {
        int fd = atoi(entry->d_name);
        if (fd >= from && fd != dirfd(folder))
            close(fd);
    }
    if (folder)
        closedir(folder);
}

/* Keeps the socket, as fd 3, and stderr. Readers of the parent's stdout see its end when it dies.
 */
static int detach(int fd)
{
    int null = open("/dev/null", O_RDWR);
    if (null >= 0) {
        dup2(null, STDIN_FILENO);
        dup2(null, STDOUT_FILENO);
    }
    if (fd != 3)
        dup2(fd, 3);
    if (syscall(SYS_close_range, 4U, ~0U, 0U) < 0)
        close_one_by_one(4);
    return 3;
}

int tccl_child_start(struct tccl_child *child, const char *name, const cpu_set_t *cpus,
                     void (*body)(int fd, void *context), void *context, struct tccl_error *err)
{
    pid_t parent = getpid();
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return tccl_fail(err, "%s: no socket can be made for its process: %s", name,
                         strerror(errno));
    pid_t pid = fork();
    if (pid == 0) {
        /* Signals as in a fresh process, but for those of the terminal: the parent decides on them.
         */
        sigset_t none;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(1);
        for (int number = 1; number < NSIG; number++)
            signal(number, SIG_DFL);
        signal(SIGINT, SIG_IGN);
        signal(SIGQUIT, SIG_IGN);
        signal(SIGPIPE, SIG_IGN);
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        prctl(PR_SET_NAME, name);
        prctl(PR_SET_TIMERSLACK, 1UL);
        if (CPU_COUNT(cpus) > 0)
            sched_setaffinity(0, sizeof(*cpus), cpus);
        body(detach(ends[1]), context);
        _exit(0);
    }
    int failed = errno;
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        return tccl_fail(err, "%s: its process can't be started: %s", name, strerror(failed));
    }
    *child = (struct tccl_child){pid, ends[0]};
    return 0;
}

static bool reap(struct tccl_child *child, char how[TCCL_CHILD_HOW])
{
    int status = 0;
    pid_t pid = waitpid(child->pid, &status, WNOHANG);
    if (pid == 0 || (pid < 0 && errno == EINTR))
        return false;
    if (how && pid < 0)
        snprintf(how, TCCL_CHILD_HOW, "is gone");
    else if (how)
        snprintf(how, TCCL_CHILD_HOW,
                 WIFSIGNALED(status) ? "was killed by signal %d" : "ended with status %d",
                 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    close(child->fd);
    *child = (struct tccl_child){0, -1};
    return true;
}

bool tccl_child_ended(struct tccl_child *child, double seconds, char how[TCCL_CHILD_HOW])
{
    struct timespec nap = {0, 1000000};
    for (double waited = 0; child->pid > 0 && !reap(child, how); waited += 1e-3) {
        if (waited >= seconds)
            return false;
        nanosleep(&nap, NULL);
    }
    return true;
}

void tccl_child_kill(const struct tccl_child *child)
{
    if (child->pid > 0)
        kill(child->pid, SIGKILL);
}
