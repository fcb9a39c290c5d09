/* joint.c: joint choices, and who they are for. */
#include "tccld/join/joint.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "tccld/join/alongside.h"
#include "tccld/join/own.h"

enum { SECOND_MS = 1000 };

/* The groups of one step that run at once. */
struct entry {
    struct tccl_step_key key;
    uid_t user;
    uint64_t order; /* higher than that of those before */
    char machine[TCCL_HASH_HEX];
    bool closed;
    int n; /* 0: free */
    uint32_t gpus[TCCL_MAX_GROUPS];
    struct tccl_group_choice choices[TCCL_MAX_GROUPS];
};

struct joint {
    struct daemon *daemon;
    struct entry entries[JOINT_KEPT];
    uint64_t made;
    struct joint_turns turns;
};

struct joint *joint_new(struct daemon *daemon)
{
    struct joint *joint = calloc(1, sizeof(*joint));
    if (joint)
        joint->daemon = daemon;
    return joint;
}

void joint_free(struct joint *joint)
{
    free(joint);
}

static const struct tccl_group_choice *part_of(const struct entry *entry, uint32_t gpus)
{
    for (int i = 0; i < entry->n; i++)
        if (entry->gpus[i] == gpus)
            return &entry->choices[i];
    return NULL;
}

static const struct tccl_group_choice *find(const struct joint *joint,
                                            const struct tccl_step_key *key,
                                            const struct tccl_node_class *class, bool closed)
{
    for (int i = 0; i < JOINT_KEPT; i++) {
        const struct entry *entry = &joint->entries[i];
        if (entry->n == 0 || entry->closed != closed || !tccl_key_equal(&entry->key, key) ||
            strcmp(entry->machine, class->machine) != 0)
            continue;
        const struct tccl_group_choice *choice = part_of(entry, class->gpus);
        if (choice)
            return choice;
    }
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

static int kept_for(const struct joint *joint, uid_t user)
{
    int kept = 0;
    for (int i = 0; i < JOINT_KEPT; i++)
        kept += joint->entries[i].n > 0 && joint->entries[i].user == user;
    return kept;
}

/* A free place, or that of the oldest choice of the user who has most. */
static struct entry *make_room(struct joint *joint)
{
    struct entry *found = NULL;
    int most = 0;
    for (int i = 0; i < JOINT_KEPT; i++) {
        struct entry *entry = &joint->entries[i];
        if (entry->n == 0)
            return entry;
        int kept = kept_for(joint, entry->user);
        if (kept > most || (kept == most && entry->order < found->order)) {
            most = kept;
            found = entry;
        }
    }
    return found;
}

const struct tccl_group_choice *joint_choice(struct joint *joint, const struct running_step *step,
                                             const struct tccl_node_class *class, bool closed)
{
    const struct tccl_group_choice *known = find(joint, &step->key, class, closed);
    struct entry made = {.key = step->key, .user = step->uid, .closed = closed};
    uint32_t all;
    if (known)
        return known;
    if (own_mask(joint->daemon->own, step->gpus, step->n_gpus, &all) != 0)
        return NULL;
    made.n = tccl_groups_split(all, class->gpus, made.gpus);
    if (made.n == 0 || !joint_admit(&joint->turns, step->uid, tccl_now_ms()) ||
        alongside_choose(joint->daemon->running, &step->key, made.gpus, made.n, closed,
                         running_view(step), made.choices) != 0)
        return NULL;
    memcpy(made.machine, class->machine, sizeof(made.machine));
    made.order = ++joint->made;
    struct entry *entry = make_room(joint);
    *entry = made;
    return part_of(entry, class->gpus);
}
