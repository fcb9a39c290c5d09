/* slurmd.h: the slurmd that runs on this node, and what `slurmd -G` prints. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/command.h"
#include "base/error.h"
#include "client/hostlist.h"

struct tccl_slurmd {
    pid_t pid;
    int64_t started;               /* clock ticks after boot: with the pid, which process this is */
    int64_t age_us;                /* how long it has been running, when it was looked for */
    char node[TCCL_HOST_NAME + 1]; /* -N; "" if it was started without */
    bool replaced;          /* its executable file is another one by now; root alone sees that */
    char program[PATH_MAX]; /* its executable */
    char conf[PATH_MAX];    /* its slurm.conf; "": not known */
};

/* The slurmd of this node among root's processes (or our own) that have the same root folder as we,
 * and the same file as slurm.conf. Where its program can't be seen, that and slurm.conf must be
 * root's, whoever we are. node: NULL: of any name. conf: only one that has this slurm.conf; NULL:
 * whichever it has. slurm_user: who may own slurm.conf, and the program, beside root. Of several,
 * the one that its pid file names, or that is in a unit slurmd….service. Returns 0; 1: there is
 * none; -1 with err. */
int tccl_slurmd_find(const char *node, const char *conf, uid_t slurm_user,
                     struct tccl_slurmd *slurmd, struct tccl_error *err);

/* Of /proc/PID/cgroup: has systemd put it into a unit slurmd….service of its own? No user can go
 * there; but where Slurm has no cgroups, jobs are in it, too. */
bool tccl_slurmd_in_unit(const char *cgroups);

/* Does this process still run? */
bool tccl_slurmd_runs(const struct tccl_slurmd *slurmd);

/* Runs slurmd -G as that slurmd reads its configuration, until deadline (tccl_now_ms); blocks.
 * scratch: a folder of ours, for a copy of that configuration which leaves cgroups alone. Returns 0
 * with what it printed, or -1 with err. */
int tccl_slurmd_list(const struct tccl_slurmd *slurmd, const char *node, const char *scratch,
                     int64_t deadline, struct tccl_command_output *output, struct tccl_error *err);
