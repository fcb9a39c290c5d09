/* A queue in rounds: each holds at most one entry of each user. */
#include "tccld/journal/journal-internal.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/queue.h>

struct entry {
    TAILQ_ENTRY(entry) link;
    uid_t user;
    uint64_t round; /* in each round comes one of each user */
    void *what;
};

struct fair_queue {
    TAILQ_HEAD(, entry) list; /* by round */
    int count, most, most_of_one;
    uint64_t round; /* of what was taken last: nothing is added to it any more */
};

struct fair_queue *fair_queue_new(int most, int most_of_one)
{
    struct fair_queue *queue = calloc(1, sizeof(*queue));
    if (!queue)
        return NULL;
    TAILQ_INIT(&queue->list);
    queue->most = most;
    queue->most_of_one = most_of_one;
    return queue;
}

void fair_queue_free(struct fair_queue *queue)
{
    free(queue);
}

int fair_queue_add(struct fair_queue *queue, uid_t user, int unbounded, void *what)
{
    uint64_t round = queue->round + 1;
    struct entry *each, *entry;
    int own = 0;
    TAILQ_FOREACH(each, &queue->list, link)
    {
        if (each->user != user)
            continue;
        own++;
        round = each->round + 1;
    }
    if ((!unbounded && (queue->count >= queue->most || own >= queue->most_of_one)) ||
        !(entry = malloc(sizeof(*entry))))
        return -1;
    *entry = (struct entry){.user = user, .round = round, .what = what};
    TAILQ_FOREACH(each, &queue->list, link)
    if (each->round > round)
        break;
    if (each)
        TAILQ_INSERT_BEFORE(each, entry, link);
    else
        TAILQ_INSERT_TAIL(&queue->list, entry, link);
    queue->count++;
    return 0;
}

void *fair_queue_take_unless(struct fair_queue *queue,
                             int (*has_to_wait)(const void *context, uid_t user),
                             const void *context)
{
    struct entry *entry = TAILQ_FIRST(&queue->list);
    while (entry && has_to_wait && has_to_wait(context, entry->user))
        entry = TAILQ_NEXT(entry, link);
    if (!entry)
        return NULL;
    void *what = entry->what;
    TAILQ_REMOVE(&queue->list, entry, link);
    queue->count--;
    if (entry->round > queue->round)
        queue->round = entry->round;
    free(entry);
    return what;
}

void *fair_queue_take(struct fair_queue *queue)
{
    return fair_queue_take_unless(queue, NULL, NULL);
}
