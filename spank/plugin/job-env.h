/* job-env.h: the environment variables of a step with a ring. Pure functions over an environment
 * array: they compute edits, which spank-remote.c applies. */
#ifndef TCCL_JOB_ENV_H
#define TCCL_JOB_ENV_H

#include "client/client.h"

enum { JOB_ENV_EDITS = 16 };

/* One change: set name to value, or unset it where value is NULL. */
struct job_env_edit {
    const char *name; /* static */
    char *value;      /* allocated */
};

struct job_env_edits {
    struct job_env_edit list[JOB_ENV_EDITS];
    int count;
};

void job_env_edits_clear(struct job_env_edits *edits);

/* The value of name, or NULL; borrowed from env. env ends with NULL and may be NULL itself. */
const char *job_env_get(char *const *env, const char *name);

/* The value of a variable as an unsigned integer; fallback if it is unset, not a number, or exceeds
 * 32 bits. */
uint32_t job_env_number(char *const *env, const char *name, uint32_t fallback);

/* The list LD_PRELOAD (separated by colons and blanks) without the elements equal to a or b (NULL
 * or
 * "": none). The others keep their order and separators. Allocated; NULL if out of memory. */
char *job_env_preload_without(const char *list, const char *a, const char *b);

/* Removes what was set for an outer step: TCCL_STATE, TCCL_REASON, TCCL_GBPS, TCCL_ALONE_GBPS,
 * TCCL_NEIGHBOURS_BY, TCCL_BASELINE_GBPS, TCCL_PLAN, TCCL_RING, TCCL_SHIM, from LD_PRELOAD the
 * elements shim (may be NULL) and $TCCL_SHIM, with TCCL_SHIM also JOB_ENV_ASAN from the front of
 * ASAN_OPTIONS, and what job_env_contain set. Options (TCCL=) and the user's own entries are kept.
 * Adds to edits. Returns 0, or -1 if out of memory. */
int job_env_forget(char *const *env, const char *shim, struct job_env_edits *edits);

/* Removes only the preload of this or an outer step: TCCL_SHIM and what was set with it. */
int job_env_unload(char *const *env, struct job_env_edits *edits);

/* A program built with AddressSanitizer's shared runtime exits at startup if another library is
 * loaded before the runtime, unless ASAN_OPTIONS contains this. */
#define JOB_ENV_ASAN "verify_asan_link_order=0"

/* Sets the variables for plan. If it is applied, or has a path (for groups alone), and shim is not
 * NULL, also puts shim first in LD_PRELOAD (as in env after job_env_forget) and JOB_ENV_ASAN first
 * in ASAN_OPTIONS, and sets TCCL_SHIM. Returns 0, or -1 if out of memory. */
int job_env_announce(char *const *env, const struct tccl_outcome *plan, const char *shim,
                     struct job_env_edits *edits);

/* For a job script without a ring of its own whose mpirun may start a step with one: TCCL_PLAN, and
 * shim as above. Returns 0, or -1 if out of memory. */
int job_env_prepare(char *const *env, const char *path, const char *shim,
                    struct job_env_edits *edits);

/* Apptainer passes LD_PRELOAD on to the programs in its containers. The shim's path does not exist
 * there, and ld.so prints an error for each program. APPTAINERENV_LD_PRELOAD (and SINGULARITYENV_…)
 * takes precedence (Apptainer's manual, "Environment and Metadata"). Sets it, unless the user did,
 * to the LD_PRELOAD from before job_env_announce, preceded by inside, the shim's path in containers
 * ("": not available there). The value begins with ':', by which nested steps recognise it.
 * Apptainer evaluates it like a shell, so nothing is set if inside or the user's own list contains
 * a '$'. Returns 0, or -1 if out of memory. */
int job_env_contain(char *const *env, const char *inside, struct job_env_edits *edits);

#endif
