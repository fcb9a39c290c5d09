/* process.h: what this process knows once it has called NCCL in a step with a ring. */
#ifndef SHIM_PROCESS_H
#define SHIM_PROCESS_H

#include "base/resolve.h"
#include "plan/plan.h"
#include "plan/registry.h"

struct shim_process {
    struct shim_plan plan;
    struct shim_registry *registry;
    uint64_t host;    /* member.host */
    uint32_t version; /* of the NCCL that was called first */
};

/* A wrapper of an NCCL of that version was called. Returns the process, or NULL: it has no plan
 * that fits, which was logged at the first time. A child of fork begins anew. */
const struct shim_process *shim_process_arm(uint32_t version);
/* What shim_process_arm returned before, in this very process; NULL if it was not called. No lock.
 */
const struct shim_process *shim_process_armed(void);

/* The settings of this process (settings.h); worked out at the first question for them. user: what
 * the user has set; may be NULL. */
uint32_t shim_process_given(uint32_t *user);
/* Somebody has asked for a setting before the process was armed: NCCL may have read it. */
void shim_process_asked_early(void);
/* A communicator is made and no wrapper has been called in this program: the log says so, once. */
void shim_process_bypassed(void);

#endif
