#include "tccld/journal/fair-queue.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/queue.h>

struct turn {
    TAILQ_ENTRY(turn) link;
    uid_t user;
    uint64_t round; /* in each round comes one of each user */
    void *what;
};

struct turns {
    TAILQ_HEAD(, turn) list; /* by round */
    int count, most, most_of_one;
    uint64_t round; /* of what was taken last: nothing is added to it any more */
};

struct turns *turns_new(int most, int most_of_one)
{
    struct turns *turns = calloc(1, sizeof(*turns));
    if (!turns)
        return NULL;
    TAILQ_INIT(&turns->list);
    turns->most = most;
    turns->most_of_one = most_of_one;
    return turns;
}

void turns_free(struct turns *turns)
{
    free(turns);
}

int turns_add(struct turns *turns, uid_t user, int unbounded, void *what)
{
    uint64_t round = turns->round + 1;
    struct turn *each, *turn;
    int own = 0;
    TAILQ_FOREACH(each, &turns->list, link)
    {
        if (each->user != user)
            continue;
        own++;
        round = each->round + 1;
    }
    if (turns->count >= turns->most || (!unbounded && own >= turns->most_of_one) ||
        !(turn = malloc(sizeof(*turn))))
        return -1;
    *turn = (struct turn){.user = user, .round = round, .what = what};
    TAILQ_FOREACH(each, &turns->list, link)
    if (each->round > round)
        break;
    if (each)
        TAILQ_INSERT_BEFORE(each, turn, link);
    else
        TAILQ_INSERT_TAIL(&turns->list, turn, link);
    turns->count++;
    return 0;
}

void *turns_take(struct turns *turns)
{
    struct turn *turn = TAILQ_FIRST(&turns->list);
    if (!turn)
        return NULL;
    void *what = turn->what;
    TAILQ_REMOVE(&turns->list, turn, link);
    turns->count--;
    turns->round = turn->round;
    free(turn);
    return what;
}
