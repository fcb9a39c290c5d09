/* step-end.c: libslurm waits for a slurmctld that does not answer for several times MessageTimeout,
 * and has no deadline of its own. So a child asks, and is killed if it takes too long. It is no
 * thread, since this process may be left, or unload the plugin, while a thread still waits. */
#include "plugin/step-end.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <slurm/slurm.h>

#include "base/cleanup.h"
#include "base/clock.h"

static int kill_step(const struct tccl_step_key *key)
{
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(25, 11, 0)
    slurm_step_id_t step = SLURM_STEP_ID_INITIALIZER;
    step.job_id = key->job;
    step.step_id = key->step;
    return slurm_kill_job_step(&step, SIGKILL, 0);
#elif SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(23, 11, 0)
    return slurm_kill_job_step(key->job, key->step, SIGKILL, 0);
#else
    return slurm_kill_job_step(key->job, key->step, SIGKILL);
#endif
}

/* The child: writes whether slurmctld will. */
static __attribute__((noreturn)) void ask(const struct tccl_step_key *key, int fd)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    char refused = kill_step(key) != 0;
    _exit(write(fd, &refused, 1) == 1 ? 0 : 1);
}

/* Waits for the child's word. Returns 0, or -1: it has given none. */
static int hear(int fd, int64_t deadline, char *refused)
{
    struct pollfd pollfd = {.fd = fd, .events = POLLIN};
    for (int64_t left; (left = deadline - tccl_now_ms()) > 0;)
        if (poll(&pollfd, 1, (int)left) > 0)
            return read(fd, refused, 1) == 1 ? 0 : -1;
    return -1;
}

static void reap(pid_t child)
{
    kill(child, SIGKILL);
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
        ;
}

int step_end(const struct tccl_step_key *key, struct tccl_error *err)
{
    char refused;
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return tccl_fail(err, "pipe: %s", strerror(errno));
    cleanup_close int mine = ends[0];
    pid_t child = fork();
    if (child == 0)
        ask(key, ends[1]);
    close(ends[1]);
    if (child < 0)
        return tccl_fail(err, "fork: %s", strerror(errno));
    int heard = hear(mine, tccl_now_ms() + STEP_END_MS, &refused);
    reap(child);
    if (heard != 0)
        return tccl_fail(err, "slurmctld has not answered within %d s", STEP_END_MS / 1000);
    return refused ? tccl_fail(err, "slurmctld refused") : 0;
}
