/* groups.h: the groups of one step on this node (data, tensor, expert parallel), whose chains are
 * chosen jointly at the first question of one of them, and stay so: each group gets its own part
 * when it asks. */
#ifndef TCCL_TCCLD_GROUPS_H
#define TCCL_TCCLD_GROUPS_H

#include "ring/groups.h"
#include "tccld/net/liveness.h"

enum {
    GROUPS_KEPT = 64,   /* joint choices; beyond, the oldest ones are forgotten */
    GROUPS_SECOND = 16, /* that are made within a second; who asks for more is planned alone */
};

struct groups;

struct groups *groups_new(struct daemon *daemon); /* NULL without memory */
void groups_free(struct groups *groups);          /* NULL is fine */

/* The part of a group of that step, whose class without neighbours this is. NULL: it is no group of
 * a layout (tccl_groups_split), or there is no table to choose by: it is planned as if no other
 * group ran. Borrowed until the next call. */
const struct tccl_group_choice *groups_choice(struct groups *groups, const struct alive *alive,
                                              const struct tccl_node_class *class, bool closed);

#endif
