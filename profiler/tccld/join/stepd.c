/* stepd.c: the slurmstepd of a step, by its process. A step has ended with it: slurmctld and slurmd
 * know of no other sign of life either. It is the process that sent the JOIN, as the kernel says,
 * so neither Slurm's folders nor the names of its sockets need be known. */
#include "tccld/join/stepd.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/command.h"

/* 0: can't be seen. */
static uint64_t own_namespace(void)
{
    struct stat stat_;
    return stat("/proc/self/ns/pid", &stat_) == 0 ? stat_.st_ino : 0;
}

void stepd_name(pid_t pid, char text[static STEPD_TEXT])
{
    struct tccl_process stepd;
    uint64_t namespace = own_namespace();
    text[0] = '\0';
    if (pid > 0 && namespace && tccl_process_look(pid, &stepd) == 0)
        snprintf(text, STEPD_TEXT, "%d %" PRId64 " %" PRIu64, (int)pid, stepd.started, namespace);
}

/* That /proc shows nothing may be due to hidepid=; a killed one may wait for its parent. */
enum stepd_state stepd_look(const char *text)
{
    struct tccl_process now;
    uint64_t namespace;
    int64_t start;
    int pid;
    if (sscanf(text, "%d %" SCNd64 " %" SCNu64, &pid, &start, &namespace) != 3 || pid <= 0 ||
        namespace != own_namespace())
        return STEPD_UNKNOWN;
    if (kill(pid, 0) != 0 && errno == ESRCH)
        return STEPD_GONE;
    if (tccl_process_look(pid, &now) != 0)
        return STEPD_UNKNOWN;
    return now.started != start || now.state == 'Z' || now.state == 'X' ? STEPD_GONE : STEPD_LIVES;
}
