/* The plans that this tccld has written, so that a sweep of RunDir leaves those of running steps
 * alone, however old they are. */
#include "tccld/join/planlist.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "client/key.h"

struct plan {
    TAILQ_ENTRY(plan) link;
    char folder[TCCL_KEY_TEXT];
    struct tccl_step_key key;
    bool of_script;
};

struct planlist {
    TAILQ_HEAD(, plan) plans; /* the oldest first */
    int count;
};

struct planlist *planlist_new(void)
{
    struct planlist *list = calloc(1, sizeof(*list));
    if (list)
        TAILQ_INIT(&list->plans);
    return list;
}

static struct plan *find(const struct planlist *list, const char *folder)
{
    struct plan *plan;
    TAILQ_FOREACH(plan, &list->plans, link)
    if (strcmp(plan->folder, folder) == 0)
        return plan;
    return NULL;
}

static void forget(struct planlist *list, struct plan *plan)
{
    TAILQ_REMOVE(&list->plans, plan, link);
    list->count--;
    free(plan);
}

void planlist_add(struct planlist *list, const struct tccl_step_key *key)
{
    struct plan *plan = calloc(1, sizeof(*plan));
    if (!plan)
        return;
    if (list->count == PLANLIST_MOST)
        forget(list, TAILQ_FIRST(&list->plans));
    tccl_key_folder(key, plan->folder);
    plan->key = *key;
    TAILQ_INSERT_TAIL(&list->plans, plan, link);
    list->count++;
}

void planlist_add_of_script(struct planlist *list, const struct tccl_step_key *key)
{
    char folder[TCCL_KEY_TEXT];
    planlist_add(list, key);
    tccl_key_folder(key, folder);
    struct plan *plan = find(list, folder);
    if (plan)
        plan->of_script = true;
}

bool planlist_next_of_script(const struct planlist *list, const struct tccl_step_key *script,
                             struct tccl_step_key *key)
{
    const struct plan *plan;
    TAILQ_FOREACH(plan, &list->plans, link)
    if (plan->of_script && plan->key.job == script->job &&
        strcmp(plan->key.cluster, script->cluster) == 0) {
        *key = plan->key;
        return true;
    }
    return false;
}

void planlist_remove(struct planlist *list, const struct tccl_step_key *key)
{
    char folder[TCCL_KEY_TEXT];
    struct plan *plan;
    tccl_key_folder(key, folder);
    while ((plan = find(list, folder)) != NULL)
        forget(list, plan);
}

bool planlist_has(const struct planlist *list, const char *folder)
{
    return find(list, folder) != NULL;
}

void planlist_free(struct planlist *list)
{
    while (list && !TAILQ_EMPTY(&list->plans))
        forget(list, TAILQ_FIRST(&list->plans));
    free(list);
}
