/* built.h: what all nodes of a step say that NCCL built, one message per level of the tree: each
 * node adds its own word to those of the nodes below it, and node 0 puts the whole on record. */
#ifndef TCCLD_BUILT_H
#define TCCLD_BUILT_H

#include "tccld/join/running.h"
#include "tccld/net/connection.h"

enum {
    BUILT_LEVEL_MS = 3000,     /* after the step's end here, or "differs": for each level below, */
    BUILT_PATIENCE_MS = 60000, /* for the others, after the first word of all, */
    BUILT_UPDATE_MS = 1000,    /* for another word to follow soon on one that was sent, */
    BUILT_RETRY_MS = 5000,     /* until the parent is tried again, */
    BUILT_ANSWER_MS = 20000,   /* for it to answer, */
    BUILT_KEEP_MS = 600000     /* for nodes on which the step ends later */
};

/* Handler of CONFIRM: what the shim of a process on this node says. Of several words the highest
 * counts. */
lines_handler built_confirm;
enum { CONFIRM_TEXT = 255 };

/* The step has ended on this node. silent: nobody has said so, so a node that had not said what was
 * built stays silent. */
void built_end(struct running *running, struct running_step *step, bool silent);
/* Nothing of it is needed any more. */
void built_drop(struct running_step *step);

/* Handler of BUILT, of a node right below this one. */
request_handler built_receive;

#endif
