/* groups.c: joint choices, and who they are for. */
#include "tccld/join/groups.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "tccld/join/alongside.h"
#include "tccld/join/node-profile.h"

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

struct groups {
    struct daemon *daemon;
    struct entry entries[GROUPS_KEPT];
    uint64_t made;
    struct groups_turns turns;
};

struct groups *groups_new(struct daemon *daemon)
{
    struct groups *groups = calloc(1, sizeof(*groups));
    if (groups)
        groups->daemon = daemon;
    return groups;
}

void groups_free(struct groups *groups)
{
    free(groups);
}

static const struct tccl_group_choice *part_of(const struct entry *entry, uint32_t gpus)
{
    for (int i = 0; i < entry->n; i++)
        if (entry->gpus[i] == gpus)
            return &entry->choices[i];
    return NULL;
}

static const struct tccl_group_choice *find(const struct groups *groups,
                                            const struct tccl_step_key *key,
                                            const struct tccl_node_class *class, bool closed)
{
    for (int i = 0; i < GROUPS_KEPT; i++) {
        const struct entry *entry = &groups->entries[i];
        if (entry->n == 0 || entry->closed != closed || !tccl_key_equal(&entry->key, key) ||
            strcmp(entry->machine, class->machine) != 0)
            continue;
        const struct tccl_group_choice *choice = part_of(entry, class->gpus);
        if (choice)
            return choice;
    }
    return NULL;
}

bool groups_admit(struct groups_turns *turns, uid_t user, int64_t now_ms)
{
    int made = 0;
    if (now_ms - turns->second >= SECOND_MS)
        *turns = (struct groups_turns){.second = now_ms};
    for (int i = 0; i < turns->n; i++)
        made += turns->users[i] == user;
    if (made == GROUPS_USER || turns->n == GROUPS_SECOND)
        return false;
    turns->users[turns->n++] = user;
    return true;
}

static int kept_for(const struct groups *groups, uid_t user)
{
    int kept = 0;
    for (int i = 0; i < GROUPS_KEPT; i++)
        kept += groups->entries[i].n > 0 && groups->entries[i].user == user;
    return kept;
}

/* A free place, or that of the oldest choice of the user who has most. */
static struct entry *make_room(struct groups *groups)
{
    struct entry *found = NULL;
    int most = 0;
    for (int i = 0; i < GROUPS_KEPT; i++) {
        struct entry *entry = &groups->entries[i];
        if (entry->n == 0)
            return entry;
        int kept = kept_for(groups, entry->user);
        if (kept > most || (kept == most && entry->order < found->order)) {
            most = kept;
            found = entry;
        }
    }
    return found;
}

const struct tccl_group_choice *groups_choice(struct groups *groups,
                                              const struct running_step *step,
                                              const struct tccl_node_class *class, bool closed)
{
    const struct tccl_group_choice *known = find(groups, &step->key, class, closed);
    struct entry made = {.key = step->key, .user = step->uid, .closed = closed};
    uint32_t all;
    if (known)
        return known;
    if (own_mask(groups->daemon->own, step->gpus, step->n_gpus, &all) != 0)
        return NULL;
    made.n = tccl_groups_split(all, class->gpus, made.gpus);
    if (made.n == 0 || !groups_admit(&groups->turns, step->uid, tccl_now_ms()) ||
        alongside_choose(groups->daemon->running, &step->key, made.gpus, made.n, closed,
                         step->hidden, made.choices) != 0)
        return NULL;
    memcpy(made.machine, class->machine, sizeof(made.machine));
    made.order = ++groups->made;
    struct entry *entry = make_room(groups);
    *entry = made;
    return part_of(entry, class->gpus);
}
