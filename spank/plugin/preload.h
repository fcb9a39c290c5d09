/* preload.h: the path that is put first in LD_PRELOAD of a step with a plan, if any. */
#ifndef TCCL_PRELOAD_H
#define TCCL_PRELOAD_H

#include <stdbool.h>

#include "client/conf.h"

/* The path as ld.so expands it for programs of the same architecture as this plugin: $LIB and
 * ${LIB} are replaced by the system's library directory ("lib64", "lib/x86_64-linux-gnu").
 * Allocated; NULL if out of memory. */
char *preload_native(const char *path);

/* ld.so.2 and its like, NULL at the end: what programs of 32 bits are loaded by. */
#define PRELOAD_LOADERS                                                                            \
    (const char *const[])                                                                          \
    {                                                                                              \
        "/lib/ld-linux.so.2", "/libx32/ld-linux-x32.so.2", "/lib/ld-linux-armhf.so.3", NULL        \
    }

/* For a path with a $ in it ld.so asks /proc for the program's own, which takes as long as to load
 * the shim. Where the node has none of these loaders no program needs another folder, so Shim= of
 * conf becomes the path that it stands for. */
void preload_simplify(struct tccl_conf *conf, const char *const *loaders);

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
