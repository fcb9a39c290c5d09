/* stepd-socket.c: the slurmstepd of a step that has sent no JOIN, by the socket on which it hears
 * slurmd: SlurmdSpoolDir/NODE_JOB.STEP (_domain_socket_create() in Slurm's slurmstepd/req.c, in all
 * releases from 22.05 to 25.11), which it makes right before it loads its plugins. /proc/net/unix
 * says who listens, and by which path, so slurm.conf need not be read; processes of several slurmd
 * on one machine would look alike. Anybody can give a socket that name, but not in a folder in
 * which only root (or this tccld's user) can write. */
#include "tccld/join/stepd.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"

enum {
    AGAIN_MS = 1000,
    MOST_LINES = 65536,   /* of /proc/net/unix */
    MOST_PATHS = 1024,    /* that look like a slurmstepd's */
    LISTENS = 0x00010000, /* __SO_ACCEPTCON, its flags */
    NAME_SIZE = 300       /* NODE_JOB.STEP */
};

struct stepd_sockets {
    int64_t read_ms; /* 0: never */
    char *paths[MOST_PATHS];
    int count;
};

struct stepd_sockets *stepd_sockets_new(void)
{
    return calloc(1, sizeof(struct stepd_sockets));
}

static void forget(struct stepd_sockets *sockets)
{
    while (sockets->count > 0)
        free(sockets->paths[--sockets->count]);
}

void stepd_sockets_free(struct stepd_sockets *sockets)
{
    if (!sockets)
        return;
    forget(sockets);
    free(sockets);
}

/* "/.../ANYTHING_JOB.STEP", and "...STEP.COMPONENT" in a heterogeneous step of one job. */
static bool is_like(const char *path)
{
    const char *name = strrchr(path, '/');
    const char *at = name && *path == '/' ? strrchr(name, '_') : NULL;
    return at && at[1 + strspn(at + 1, "0123456789.")] == '\0' && strchr(at, '.');
}

static void read_again(struct stepd_sockets *sockets)
{
    cleanup_file FILE *file = fopen("/proc/net/unix", "re");
    char line[PATH_MAX];
    forget(sockets);
    for (int i = 0; file && i < MOST_LINES && fgets(line, sizeof(line), file); i++) {
        unsigned flags;
        int path = -1;
        line[strcspn(line, "\n")] = '\0';
        if (sockets->count < MOST_PATHS &&
            sscanf(line, "%*s %*s %*s %x %*x %*x %*u %n", &flags, &path) == 1 && path > 0 &&
            (flags & LISTENS) && is_like(line + path) &&
            (sockets->paths[sockets->count] = strdup(line + path)))
            sockets->count++;
    }
    sockets->read_ms = tccl_now_ms();
}

static bool is_trusted(uid_t uid)
{
    return uid == 0 || uid == geteuid();
}

/* The age of a socket that only root can have made, in ms; else -1. */
static int64_t age_of(const char *path)
{
    char folder[PATH_MAX];
    struct stat above, own;
    struct timespec now;
    const char *name = strrchr(path, '/');
    if (!name)
        return -1;
    snprintf(folder, sizeof(folder), "%.*s/", (int)(name - path), path);
    if (stat(folder, &above) != 0 || lstat(path, &own) != 0 || !S_ISSOCK(own.st_mode) ||
        !is_trusted(above.st_uid) || !is_trusted(own.st_uid) || (above.st_mode & S_IWOTH) ||
        ((above.st_mode & S_IWGRP) && above.st_gid != 0))
        return -1;
    clock_gettime(CLOCK_REALTIME, &now);
    int64_t age = (now.tv_sec - own.st_ctim.tv_sec) * INT64_C(1000) +
                  (now.tv_nsec - own.st_ctim.tv_nsec) / 1000000;
    return age > 0 ? age : 0; /* the clock was set back */
}

int64_t stepd_sockets_age(struct stepd_sockets *sockets, const char *node,
                          const struct tccl_step_key *key)
{
    char name[NAME_SIZE];
    int length =
        snprintf(name, sizeof(name), "/%s_%" PRIu32 ".%" PRIu32, node, key->job, key->step);
    if (length >= (int)sizeof(name))
        return -1;
    if (!sockets->read_ms || tccl_now_ms() - sockets->read_ms >= AGAIN_MS)
        read_again(sockets);
    for (int i = 0; i < sockets->count; i++) {
        const char *last = strrchr(sockets->paths[i], '/');
        int64_t age = strncmp(last, name, (size_t)length) == 0 &&
                              (last[length] == '\0' || last[length] == '.')
                          ? age_of(sockets->paths[i])
                          : -1;
        if (age >= 0)
            return age;
    }
    return -1;
}
