/* joint.c: joint choices, each of the groups of one step that run at once. */
#include "tccld/join/running.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "tccld/join/alongside.h"
#include "tccld/join/own.h"

enum { SECOND_MS = 1000 };

struct joint {
    TAILQ_ENTRY(joint) link;
    const struct running_step *step;
    char machine[TCCL_HASH_HEX];
    bool closed;
    int n;
    uint32_t gpus[TCCL_MAX_GROUPS];
    struct tccl_group_choice choices[TCCL_MAX_GROUPS];
};

static const struct tccl_group_choice *part_of(const struct joint *joint, uint32_t gpus)
{
    for (int i = 0; i < joint->n; i++)
        if (joint->gpus[i] == gpus)
            return &joint->choices[i];
    return NULL;
}

bool joint_admit(struct joint_turns *turns, uid_t user, int64_t now_ms)
{
    int made = 0;
    if (now_ms - turns->second >= SECOND_MS)
        *turns = (struct joint_turns){.second = now_ms};
    for (int i = 0; i < turns->n; i++)
        made += turns->users[i] == user;
    if (made == JOINT_USER || turns->n == JOINT_SECOND)
        return false;
    turns->users[turns->n++] = user;
    return true;
}

static void drop(struct running *running, struct joint *joint)
{
    TAILQ_REMOVE(&running->joints, joint, link);
    running->n_joints--;
    free(joint);
}

void joint_drop(struct running *running, const struct running_step *step)
{
    struct joint *joint = TAILQ_FIRST(&running->joints), *next;
    for (; joint; joint = next) {
        next = TAILQ_NEXT(joint, link);
        if (joint->step == step)
            drop(running, joint);
    }
}

/* The oldest choice of the user who has most. */
static struct joint *find_oldest(const struct running *running)
{
    struct joint *each, *other, *found = NULL;
    int most = 0;
    TAILQ_FOREACH(each, &running->joints, link)
    {
        int kept = 0;
        TAILQ_FOREACH(other, &running->joints, link)
        kept += other->step->uid == each->step->uid;
        if (kept > most) {
            most = kept;
            found = each;
        }
    }
    return found;
}

const struct tccl_group_choice *joint_choice(struct running *running,
                                             const struct running_step *step,
                                             const struct tccl_node_class *class, bool closed)
{
    const struct tccl_group_choice *known;
    struct joint *joint;
    uint32_t all;
    TAILQ_FOREACH(joint, &running->joints, link)
    if (joint->step == step && joint->closed == closed &&
        strcmp(joint->machine, class->machine) == 0 && (known = part_of(joint, class->gpus)))
        return known;
    joint = calloc(1, sizeof(*joint));
    if (joint && own_mask(running->daemon->own, step->gpus, step->n_gpus, &all) == 0)
        joint->n = tccl_groups_split(all, class->gpus, joint->gpus);
    if (!joint || joint->n == 0 || !joint_admit(&running->turns, step->uid, tccl_now_ms()) ||
        alongside_choose(running, &step->key, joint->gpus, joint->n, closed, running_view(step),
                         joint->choices) != 0) {
        free(joint);
        return NULL;
    }
    joint->step = step;
    joint->closed = closed;
    memcpy(joint->machine, class->machine, sizeof(joint->machine));
    if (running->n_joints++ == JOINT_KEPT)
        drop(running, find_oldest(running));
    TAILQ_INSERT_TAIL(&running->joints, joint, link);
    return part_of(joint, class->gpus);
}
