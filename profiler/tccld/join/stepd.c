/* stepd.c: the slurmstepd of a step, by its process. A step has ended with it: slurmctld and slurmd
 * know of no other sign of life either. It is the process that sent the JOIN, as the kernel says,
 * so neither Slurm's folders nor the names of its sockets need be known. */
#include "tccld/join/stepd.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"

/* 0: can't be seen. */
static uint64_t own_namespace(void)
{
    struct stat stat_;
    return stat("/proc/self/ns/pid", &stat_) == 0 ? stat_.st_ino : 0;
}

/* proc(5): the fields behind the name, which may contain anything. Returns 0, or -1. */
static int read_start(pid_t pid, char *state, uint64_t *start)
{
    char path[64], text[1024];
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    cleanup_file FILE *file = fopen(path, "re");
    const char *name_end = file && fgets(text, sizeof(text), file) ? strrchr(text, ')') : NULL;
    if (!name_end ||
        sscanf(name_end,
               ") %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
               "%" SCNu64,
               state, start) != 2)
        return -1;
    return 0;
}

void stepd_name(pid_t pid, char text[static STEPD_TEXT])
{
    uint64_t start, namespace = own_namespace();
    char state;
    text[0] = '\0';
    if (pid > 0 && namespace && read_start(pid, &state, &start) == 0)
        snprintf(text, STEPD_TEXT, "%d %" PRIu64 " %" PRIu64, (int)pid, start, namespace);
}

/* That /proc shows nothing may be due to hidepid=; a killed one may wait for its parent. */
enum stepd_state stepd_look(const char *text)
{
    uint64_t start, namespace, start_now;
    int pid;
    char state;
    if (sscanf(text, "%d %" SCNu64 " %" SCNu64, &pid, &start, &namespace) != 3 || pid <= 0 ||
        namespace != own_namespace())
        return STEPD_UNKNOWN;
    if (kill(pid, 0) != 0 && errno == ESRCH)
        return STEPD_GONE;
    if (read_start(pid, &state, &start_now) != 0)
        return STEPD_UNKNOWN;
    return start_now != start || state == 'Z' || state == 'X' ? STEPD_GONE : STEPD_LIVES;
}
