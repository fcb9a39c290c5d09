/* step.h: steps that start: JOINs of this node, MERGEs of the nodes below it in the tree, the
 * answer of the node above, and what is left of a closed step for nodes that come late. */
#ifndef TCCL_STEP_H
#define TCCL_STEP_H

#include "tccld/main/daemon.h"
#include "tccld/net/connection.h"

enum {
    STEP_MOST = 2048,    /* steps kept, open and closed */
    STEP_KEEP_MS = 60000 /* how long a closed step answers late nodes */
};

struct steps *steps_new(struct daemon *daemon); /* NULL without memory */
/* Ends all open steps, with a fallback where somebody waits. */
void steps_stop(struct steps *steps);
/* NULL is fine. */
void steps_free(struct steps *steps);

request_handler step_alive, step_here, step_join, step_leave, step_merge;

#endif
