/* slurm-conf.h: finds slurm.conf on this node, and reads what tccl-check needs from it. */
#pragma once

#include <glob.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#include "base/error.h"

enum { TCCL_SLURM_ENTRIES = 65536 /* keys and node lines that are read */ };

struct tccl_slurm_entry {
    char *key, *value; /* the first key of a line, and what it is set to */
    char *rest;        /* the other keys of the line: "Gres=gpu:4 CPUs=8"; "": none */
};

struct tccl_slurm_conf {
    char path[PATH_MAX]; /* "" none found */
    struct tccl_slurm_entry *entries;
    size_t count;
    int files; /* read so far */
};

/* Looks where Slurm's programs look, in this order: $SLURM_CONF, the usual paths, the copy that a
 * configless slurmd got from slurmctld. Writes the path, "" if there is none; *from (static) says
 * how it was found. */
void tccl_slurm_conf_find(char path[static PATH_MAX], const char **from);

/* Reads the file and those it includes. Returns 0, or -1 with err. clear is safe after
 * both. */
int tccl_slurm_conf_read(const char *path, struct tccl_slurm_conf *conf, struct tccl_error *err);
void tccl_slurm_conf_clear(struct tccl_slurm_conf *conf);

/* The files that an include of one of Slurm's files means: a pattern, which, unless absolute, is
 * relative to the folder of the file `beside`; whole: all of it. Returns true with found, which the
 * caller frees; false: none. */
bool tccl_slurm_include(const char *beside, const char *pattern, char whole[static PATH_MAX],
                        glob_t *found);

/* The path of a file beside slurm.conf (its path; without a folder: in the current one). */
void tccl_slurm_beside(const char *conf, const char *name, char path[static PATH_MAX]);

/* Is ConstrainDevices=yes in the cgroup.conf beside slurm.conf? *seen: can the file be read? */
bool tccl_slurm_constrains(const char *conf, bool *seen);

/* The last value of a key, not case-sensitive; NULL if it is not set. Borrowed. */
const char *tccl_slurm_get(const struct tccl_slurm_conf *conf, const char *key);

/* Is word an item of value, a comma-separated list ("task/cgroup,task/affinity")? value may be
 * NULL.
 */
bool tccl_slurm_lists(const char *value, const char *word);

/* One node of slurm.conf. */
struct tccl_slurm_node {
    char name[256], hostname[256];
    int gpus; /* from Gres=; 0: none */
};

/* Calls each for every node in order, until it returns non-zero. Returns the number of calls. */
size_t tccl_slurm_nodes(const struct tccl_slurm_conf *conf,
                        int (*each)(void *context, const struct tccl_slurm_node *node),
                        void *context);

/* GPUs in a list of generic resources: "gpu:a100:4(S:0-1),shard:8" -> 4. */
int tccl_slurm_gpus(const char *gres);

/* plugstack.c: plugstack.conf, followed as Slurm follows it. */

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
