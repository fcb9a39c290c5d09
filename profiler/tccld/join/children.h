/* children.h: the nodes right below this one in the tree: their MERGEs, and who of them is there.
 */
#ifndef TCCL_CHILDREN_H
#define TCCL_CHILDREN_H

#include "tccld/join/step-internal.h"

/* Makes the places of a new step's children. Returns 0, or -1 without memory. */
int children_init(struct step *step);
/* What has come of a child goes; a connection is closed without an answer. */
void child_clear(struct child *child);

/* Are the children that have come before this node's JOIN those that it names? Returns 0, or -1
 * with err. */
int children_check(const struct step *step, struct tccl_error *err);
/* A child that has hung up, and so can't be given its PLAN; NULL: none has. */
const struct child *children_lost(const struct step *step);
extern const char child_hung_up[];

/* This node, which has a class, and all below it, in order. The caller frees. NULL with err. */
struct merge *children_merge(const struct step *step, struct tccl_error *err);

/* What MERGE and HERE begin with. */
struct report {
    struct tccl_step_key key;
    json_int_t node, n_nodes, timeout_ms, wait_ms;
    const char *reason;
    enum tccl_reason cause;
    bool required;
};
/* first: the lowest index that its node may have. Returns 0, or -1 with err. reason is borrowed. */
int report_read(const json_t *json, int first, struct report *report, struct tccl_error *err);

#endif
