/* job-env.h: the variables of a step that speak of its ring. Pure functions over an environment
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

/* A whole number of a variable; otherwise (unset, not a number, beyond 32 bits) fallback. */
uint32_t job_env_number(char *const *env, const char *name, uint32_t fallback);

/* A list of LD_PRELOAD (divided by colons and blanks) without each element that is equal to a or b
 * (NULL or "": none); the rest keeps its order and its dividers. Allocated; NULL without memory. */
char *job_env_preload_without(const char *list, const char *a, const char *b);

/* Removes what a surrounding step left: TCCL_STATE, TCCL_REASON, TCCL_GBPS, TCCL_BASELINE_GBPS,
 * TCCL_PLAN, TCCL_RING, TCCL_SHIM, from LD_PRELOAD the elements shim (may be NULL) and $TCCL_SHIM,
 * with TCCL_SHIM also JOB_ENV_ASAN from the front of ASAN_OPTIONS, and what job_env_contain set.
 * Options (TCCL=) and the user's own entries stay. Adds its edits to edits: 0, or -1 without
 * memory.
 */
int job_env_forget(char *const *env, const char *shim, struct job_env_edits *edits);

/* Only the preload of this or a surrounding step: TCCL_SHIM and what comes with it. */
int job_env_unload(char *const *env, struct job_env_edits *edits);

/* A program that is made with AddressSanitizer's shared runtime ends at once where that is not the
 * first of its libraries, unless it finds this in ASAN_OPTIONS. */
#define JOB_ENV_ASAN "verify_asan_link_order=0"

/* Sets what the step is told of plan. shim: put in front of the LD_PRELOAD that env (after
 * job_env_forget) holds, and TCCL_SHIM set, and JOB_ENV_ASAN in front of ASAN_OPTIONS, where the
 * plan is applied; NULL: none of these. Returns 0, or -1 without memory. */
int job_env_announce(char *const *env, const struct tccl_outcome *plan, const char *shim,
                     struct job_env_edits *edits);

/* Apptainer hands LD_PRELOAD on to the programs in its containers, where the shim's path leads
 * nowhere, and ld.so says so for each of them; but APPTAINERENV_LD_PRELOAD (and SINGULARITYENV_…)
 * goes first (Apptainer's manual, "Environment and Metadata"). Sets it, unless the user did, to
 * what LD_PRELOAD was before job_env_announce, with inside, the shim's path in containers ("": it
 * isn't there), in front. Such a value is known by its first character, ':'. Apptainer evaluates it
 * as a shell would: where inside or the user's own list has a '$', nothing is set. Returns 0, or -1
 * without memory. */
int job_env_contain(char *const *env, const char *inside, struct job_env_edits *edits);

#endif
