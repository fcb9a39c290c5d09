/* gres.h: what Slurm's GPU numbers mean on this node. A number is a position in slurmd's list of
 * devices, which `slurmd -G` prints. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/bus.h"
#include "base/command.h"
#include "base/error.h"
#include "base/lines.h"
#include "client/hostlist.h"
#include "machine/machine.h"

enum {
    TCCL_GRES_MAX = 128,  /* devices of a node: 16 GPUs with 7 MIG instances each fit */
    TCCL_GRES_FILE = 160, /* a device file's name, with its NUL */
    TCCL_GRES_LINKS = 64,
    TCCL_GRES_CORES = 512,
};

struct tccl_gres_device {
    char links[TCCL_GRES_LINKS]; /* Links=, "-1,4,0"; "": none */
    char cores[TCCL_GRES_CORES]; /* Cores=, "0-15,32-47", in the same way */
    int core_count;              /* so many has the node, as Slurm counts; 0: not said */
    char file[TCCL_GRES_FILE];   /* the first one, of a MIG instance that of its GPU */
    bool mig;                    /* an instance, or a GPU that has some */
    bool nvidia;                 /* a device of NVIDIA's driver; else minor and bus are unknown */
    int minor;
    bool has_bus; /* NVIDIA's driver tells the bus id of this minor */
    tccl_bus bus;
};

struct tccl_gres {
    int count;
    char refused[TCCL_GRES_LINKS]; /* the first Links= of a GPU that slurmd could not read; "" */
    struct tccl_gres_device devices[TCCL_GRES_MAX];
};

/* Reads what `slurmd -G` prints, of Slurm 22.05 to 25.11. Only files and instances are known then.
 * Returns 0, or -1 with err: no GPU, a GPU without a file, or a line that is not understood. */
int tccl_gres_parse(const char *text, struct tccl_gres *gres, struct tccl_error *err);

/* Are these cores of a node that has count of them, from 0 on: "0-15,32-47"? */
bool tccl_gres_cores_exist(const char *cores, int count);

/* Looks up all devices: numbers of the files, bus ids and MIG instances from NVIDIA's driver below
 * root (NULL: "/"). */
void tccl_gres_locate(struct tccl_gres *gres, const char *root);
/* What is known of its devices, not all that could be. */
void tccl_gres_copy(struct tccl_gres *to, const struct tccl_gres *from);

/* Are these the same files and devices in the same order? */
bool tccl_gres_equal(const struct tccl_gres *a, const struct tccl_gres *b);

/* Position in machine of Slurm's GPU with this number, or -1 with err. real: the machine was
 * measured by its GPUs, so what the driver says counts; the devices of a model are known by their
 * minors only. */
int tccl_gres_find(const struct tccl_gres *gres, const struct tccl_machine *machine, bool real,
                   int number, struct tccl_error *err);

/* The list as a text (base/lines.h), for tccl-check. pid and started say of which slurmd it is.
 * Returns its length, or -1: too long. Reading returns 0, or -1 with err. */
int tccl_gres_text(const struct tccl_gres *gres, int pid, int64_t started,
                   char text[static TCCL_LINES_SIZE]);
int tccl_gres_from_text(struct tccl_gres *gres, const char *text, size_t size, int *pid,
                        int64_t *started, struct tccl_error *err);

/* As a file, for the plugin, whose policies ask for models, and the next tccld. Returns 0, or -1
 * with err. */
int tccl_gres_save(const struct tccl_gres *gres, const char *path, int pid, int64_t started,
                   struct tccl_error *err);
int tccl_gres_load(struct tccl_gres *gres, const char *path, int *pid, int64_t *started,
                   struct tccl_error *err);

/* Its name below RunDir. */
#define TCCL_GRES_NAME "slurm-gpus"

/* slurmd.c: the slurmd that runs on this node, and what `slurmd -G` prints. */

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
