/* preload.h: the path that is put first in LD_PRELOAD of a step with a plan, if any. */
#ifndef TCCL_PRELOAD_H
#define TCCL_PRELOAD_H

#include <stdbool.h>

#include "client/conf.h"

/* The path as ld.so expands it for programs of the same architecture as this plugin: $LIB and
 * ${LIB} are replaced by the system's library directory ("lib64", "lib/x86_64-linux-gnu").
 * Allocated; NULL if out of memory. */
char *preload_native(const char *path);

/* Can the effective user read the file, in this process's mount namespace? */
bool preload_readable(const char *path);

/* Does the environment have a container option of pyxis, as SPANK passes options to slurmstepd?
 * They are removed after slurm_spank_init. env may be NULL. */
bool preload_pyxis(char *const *env);

/* The path to put first in LD_PRELOAD, borrowed from conf; NULL with *why (static): none. pyxis:
 * the result of preload_pyxis. */
const char *preload_choose(const struct tccl_conf *conf, char *const *env, bool pyxis,
                           const char **why);

#endif
