/* check-slurm-conf.h: slurm.conf: where this node has it, and what it says, as far as we care. */
#ifndef TCCL_CHECK_SLURM_CONF_H
#define TCCL_CHECK_SLURM_CONF_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

enum { CHECK_SLURM_ENTRIES = 65536 /* keys and node lines that are read */ };

struct check_slurm_entry {
    char *key, *value; /* the first key of a line, and what it is set to */
    char *rest;        /* the keys behind it on the line: "Gres=gpu:4 CPUs=8"; "" none */
};

struct check_slurm_conf {
    char path[PATH_MAX]; /* "" none found */
    struct check_slurm_entry *entries;
    size_t count;
    int files; /* read so far */
};

/* Where Slurm's programs look, in their order: $SLURM_CONF, the usual places, what a slurmd without
 * a file of its own has got from slurmctld. Writes the path, "" if there is none; *from (static)
 * says how it was found. */
void check_slurm_conf_find(char path[static PATH_MAX], const char **from);
/* The same without $SLURM_CONF. */
void check_slurm_conf_usual(char path[static PATH_MAX], const char **from);

/* Reads the file and those it includes. Returns 0, or -1 with err. clear is right after both. */
int check_slurm_conf_read(const char *path, struct check_slurm_conf *conf, struct tccl_error *err);
void check_slurm_conf_clear(struct check_slurm_conf *conf);

/* What a key was last set to, whatever its case; NULL if it is not set. Borrowed. */
const char *check_slurm_get(const struct check_slurm_conf *conf, const char *key);

/* Is a word in the value, a list with commas: ("task/cgroup,task/affinity", "task/cgroup")? value
 * may be NULL. */
bool check_slurm_lists(const char *value, const char *word);

/* One node of slurm.conf. */
struct check_slurm_node {
    char name[256], hostname[256];
    int gpus; /* as Gres= has it; 0 none */
};

/* Calls each for every node, in their order, until it returns non-zero. Returns how many. */
size_t check_slurm_nodes(const struct check_slurm_conf *conf,
                         int (*each)(void *context, const struct check_slurm_node *node),
                         void *context);

/* GPUs in a list of generic resources: "gpu:a100:4(S:0-1),shard:8" -> 4. */
int check_slurm_gpus(const char *gres);

#endif
