/* plugstack.h: plugstack.conf, followed as Slurm follows it. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <time.h>

#include "base/error.h"
#include "gres/slurm-conf.h"

enum { TCCL_PLUGIN_ARGS = 32, TCCL_PLUGIN_ARG = 512 };

struct tccl_plugstack {
    char path[PATH_MAX];
    bool there;            /* the file can be read */
    time_t changed;        /* the latest change of all files that were read */
    char empty[PATH_MAX];  /* the first include that nothing matches; "" none */
    char wrong[64];        /* the first line that Slurm ignores: "FILE:LINE" cut; "" none */
    char closed[PATH_MAX]; /* an included file that can't be read; "" none */
    /* The first line for spank_tccl.so, if found. */
    bool found, required;
    int times;           /* how many such lines there are */
    char file[PATH_MAX]; /* where it stands */
    int line;
    int files;             /* read so far */
    char plugin[PATH_MAX]; /* as it is written */
    int n_args;
    char args[TCCL_PLUGIN_ARGS][TCCL_PLUGIN_ARG];
};

/* Where Slurm looks for it: PlugStackConfig= of slurm.conf, else beside that (conf->path "": in
 * /etc/slurm). */
void tccl_plugstack_path(const struct tccl_slurm_conf *conf, char path[static PATH_MAX]);

/* Reads path and what it includes. A file that isn't there is none: Slurm takes it as empty.
 * Returns 0, or -1 with err: it is there, and can't be read. */
int tccl_plugstack_read(const char *path, struct tccl_plugstack *stack, struct tccl_error *err);

/* The file of the plugin: as plugstack.conf has it, or in one of the folders of PluginDir
 * (separated by colons). Writes where it is, else what was looked for. Returns whether it is there.
 */
bool tccl_plugstack_locate(const char *plugin, const char *folders, char path[static PATH_MAX]);

/* What config= names, NULL if it is not there. */
const char *tccl_plugstack_config(const struct tccl_plugstack *stack);
