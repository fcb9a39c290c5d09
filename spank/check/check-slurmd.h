/* check-slurmd.h: the slurmd of a node on this host. */
#ifndef TCCL_CHECK_SLURMD_H
#define TCCL_CHECK_SLURMD_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>
#include <time.h>

struct check_slurmd {
    pid_t pid; /* 0: none found */
    time_t started;
    bool configless;     /* started with --conf-server */
    bool replaced;       /* its executable file was replaced after its start */
    char node[256];      /* -N; "" if not given */
    char conf[PATH_MAX]; /* its slurm.conf; "": from slurmctld, or unknown; "/": none */
};

/* Looks for a slurmd that was started for this node (with -N NODE, or without -N) and with this
 * slurm.conf, as far as that can be seen. NULL: any. What an unprivileged user cannot see stays
 * zero. Returns whether there is one. */
bool check_slurmd_find(const char *node, const char *conf, struct check_slurmd *slurmd);

#endif
