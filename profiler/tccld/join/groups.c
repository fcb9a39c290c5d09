/* groups.c: joint choices, and who they are for. */
#include "tccld/join/groups.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "tccld/join/node-profile.h"
#include "tccld/join/running.h"

enum { SECOND_MS = 1000 };

/* The groups of one step that run at once. */
struct entry {
    struct tccl_step_key key;
    char machine[TCCL_HASH_HEX];
    bool closed;
    int n; /* 0: free */
    uint32_t gpus[TCCL_MAX_GROUPS];
    struct tccl_group_choice choices[TCCL_MAX_GROUPS];
};

struct groups {
    struct daemon *daemon;
    struct entry entries[GROUPS_KEPT];
    int next; /* to be replaced */
    int64_t second;
    int made; /* since then */
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

static bool too_often(struct groups *groups)
{
    int64_t now = tccl_now_ms();
    if (now - groups->second >= SECOND_MS) {
        groups->second = now;
        groups->made = 0;
    }
    return ++groups->made > GROUPS_SECOND;
}

const struct tccl_group_choice *groups_choice(struct groups *groups, const struct alive *alive,
                                              const struct tccl_node_class *class, bool closed)
{
    const struct tccl_group_choice *known = find(groups, &alive->key, class, closed);
    struct entry made = {.key = alive->key, .closed = closed};
    uint32_t step;
    if (known)
        return known;
    if (own_mask(groups->daemon->own, alive->gpus, alive->n_gpus, &step) != 0)
        return NULL;
    made.n = tccl_groups_split(step, class->gpus, made.gpus);
    if (made.n == 0 || too_often(groups) ||
        running_choose(groups->daemon->running, &alive->key, made.gpus, made.n,
                       tccl_source_background(class->source), closed, alive->hidden,
                       made.choices) != 0)
        return NULL;
    memcpy(made.machine, class->machine, sizeof(made.machine));
    struct entry *entry = &groups->entries[groups->next];
    *entry = made;
    groups->next = (groups->next + 1) % GROUPS_KEPT;
    return part_of(entry, class->gpus);
}
