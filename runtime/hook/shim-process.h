/* shim-process.h: what this process knows once it has called NCCL in a step with a ring. */
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

/* What the user has set (settings.h); read at the first question for it. */
uint32_t shim_process_user(void);
/* A communicator is made and no wrapper has been called in this program: the log says so, once. */
void shim_process_bypassed(void);

#endif
