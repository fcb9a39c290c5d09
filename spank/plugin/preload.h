/* preload.h: which file goes in front of LD_PRELOAD of a step that has a plan, if any. */
#ifndef TCCL_PRELOAD_H
#define TCCL_PRELOAD_H

#include <stdbool.h>

#include "client/conf.h"

/* The path as ld.so reads it for programs of this plugin's own kind: $LIB and ${LIB} are replaced
 * by the folder of the system's libraries ("lib64", "lib/x86_64-linux-gnu"). Allocated; NULL
 * without memory. */
char *preload_native(const char *path);

/* Is the file there, for the effective user, where this process sees it? */
bool preload_readable(const char *path);

/* Is one of pyxis' options for a container in the environment, as SPANK hands them to slurmstepd?
 * They are gone after slurm_spank_init. env may be NULL. */
bool preload_pyxis(char *const *env);

/* What is put in front of LD_PRELOAD, borrowed from conf; NULL with *why (static): nothing. pyxis:
 * preload_pyxis said so. */
const char *preload_choose(const struct tccl_conf *conf, char *const *env, bool pyxis,
                           const char **why);

#endif
