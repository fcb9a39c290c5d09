/* groups.h: the groups of one step on this node (data, tensor, expert parallel), whose chains are
 * chosen jointly at the first question of one of them, and stay so: each group gets its own part
 * when it asks. */
#ifndef TCCL_TCCLD_GROUPS_H
#define TCCL_TCCLD_GROUPS_H

#include "ring/groups.h"
#include "tccld/join/running.h"

enum {
    GROUPS_KEPT = 64,   /* joint choices; beyond, the oldest ones of the user who has most go */
    GROUPS_USER = 16,   /* that are made for one user within a second, */
    GROUPS_SECOND = 64, /* and for all; who asks for more is planned alone */
};

struct groups;

/* Whom choices were made for in this second. */
struct groups_turns {
    int64_t second; /* tccl_now_ms */
    int n;
    uid_t users[GROUPS_SECOND];
};

/* May one more be made for that user? Then it counts. A choice takes 0.1 to 4 ms of the event loop.
 */
bool groups_admit(struct groups_turns *turns, uid_t user, int64_t now_ms);

struct groups *groups_new(struct daemon *daemon); /* NULL without memory */
void groups_free(struct groups *groups);          /* NULL is fine */

/* The part of a group of that step, whose class without neighbours this is. NULL: it is no group of
 * a layout (tccl_groups_split), or there is no table to choose by: it is planned as if no other
 * group ran. Borrowed until the next call. */
const struct tccl_group_choice *groups_choice(struct groups *groups,
                                              const struct running_step *step,
                                              const struct tccl_node_class *class, bool closed);

#endif
