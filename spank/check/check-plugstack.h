/* check-plugstack.h: plugstack.conf, followed as Slurm follows it. */
#ifndef TCCL_CHECK_PLUGSTACK_H
#define TCCL_CHECK_PLUGSTACK_H

#include <limits.h>
#include <stdbool.h>
#include <time.h>

#include "base/error.h"

enum { CHECK_PLUGIN_ARGS = 32, CHECK_PLUGIN_ARG = 512 };

struct check_plugstack {
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
    char args[CHECK_PLUGIN_ARGS][CHECK_PLUGIN_ARG];
};

/* Reads path and what it includes. A file that isn't there is none: Slurm takes it as empty.
 * Returns 0, or -1 with err: it is there, and can't be read. */
int check_plugstack_read(const char *path, struct check_plugstack *stack, struct tccl_error *err);

/* What config= names, NULL if it is not there. */
const char *check_plugstack_config(const struct check_plugstack *stack);

#endif
