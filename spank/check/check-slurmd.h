/* check-slurmd.h: the slurmd that runs on this machine for a node. */
#ifndef TCCL_CHECK_SLURMD_H
#define TCCL_CHECK_SLURMD_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>
#include <time.h>

struct check_slurmd {
    pid_t pid; /* 0: none seen */
    time_t started;
    bool configless;     /* it was told to ask slurmctld for its configuration */
    bool replaced;       /* its program is not the file any more that was started */
    char node[256];      /* what -N names; "" nothing */
    char conf[PATH_MAX]; /* its slurm.conf; "" slurmctld's, or not known; "/" none */
};

/* Looks for a slurmd that was started for this node (with -N NODE, or without -N) and with
 * this slurm.conf, as far as that can be seen. NULL: any. What an ordinary user may
 * not see is left as it is at zero. Returns whether there is one. */
bool check_slurmd_find(const char *node, const char *conf, struct check_slurmd *slurmd);

#endif
