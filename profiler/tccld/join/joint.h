/* joint.h: the groups of one step on this node (data, tensor, expert parallel), whose chains are
 * chosen jointly at the first question of one of them, and stay so: each group gets its own part
 * when it asks. */
#pragma once

#include "ring/groups.h"
#include "tccld/join/running.h"

enum {
    JOINT_KEPT = 64,   /* joint choices; beyond, the oldest ones of the user who has most go */
    JOINT_USER = 16,   /* that are made for one user within a second, */
    JOINT_SECOND = 64, /* and for all; who asks for more is planned alone */
};

struct joint;

/* Whom choices were made for in this second. */
struct joint_turns {
    int64_t second; /* tccl_now_ms */
    int n;
    uid_t users[JOINT_SECOND];
};

/* May one more be made for that user? Then it counts. A choice takes 0.1 to 4 ms of the event loop.
 */
bool joint_admit(struct joint_turns *turns, uid_t user, int64_t now_ms);

struct joint *joint_new(struct daemon *daemon); /* NULL without memory */
void joint_free(struct joint *joint);           /* NULL is fine */

/* The part of a group of that step, whose class without neighbours this is. NULL: it is no group of
 * a layout (tccl_groups_split), or there is no table to choose by: it is planned as if no other
 * group ran. Borrowed until the next call. */
const struct tccl_group_choice *joint_choice(struct joint *joint, const struct running_step *step,
                                             const struct tccl_node_class *class, bool closed);
