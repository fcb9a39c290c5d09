/* A turn that ends goes to who waits: to the share that has the fewest, and of its turns to the
 * first one. So whoever has many waits for himself. */
#include "tccld/net/front.h"

#include <stdlib.h>

#include "base/error.h"

enum { AT_ONCE = 64 /* called from the line before others have their turn */ };

struct turns {
    TAILQ_HEAD(, turn) line;
    struct turn_limits limits[2]; /* of those that aren't trusted, of those that are */
    int taken[2];
    bool first;
    struct event *again;
};

static bool fits(const struct turns *turns, const struct share *share, int cost)
{
    const struct turn_limits *limits = &turns->limits[share->trusted];
    int taken = turns->taken[share->trusted];
    if (share->turns == 0)
        return turns->first || taken < limits->all;
    return share->turns + cost <= limits->each && taken + cost <= limits->all;
}

static void take(struct turn *turn)
{
    turn->state = TURN_TAKEN;
    turn->trusted = turn->share->trusted;
    turn->share->turns += turn->cost;
    turn->turns->taken[turn->trusted] += turn->cost;
}

static void serve_later(struct turns *turns)
{
    if (!TAILQ_EMPTY(&turns->line) && !evtimer_pending(turns->again, NULL))
        daemon_set(turns->again, 0);
}

/* What is called may end turns, its own and others': each time the line is looked at anew. */
static void serve(evutil_socket_t fd UNUSED, short what UNUSED, void *argument)
{
    struct turns *turns = argument;
    for (int i = 0; i < AT_ONCE; i++) {
        struct turn *each, *turn = NULL;
        TAILQ_FOREACH(each, &turns->line, link)
        if ((!turn || each->share->turns < turn->share->turns) &&
            fits(turns, each->share, each->cost))
            turn = each;
        if (!turn)
            return;
        TAILQ_REMOVE(&turns->line, turn, link);
        take(turn);
        turn->call(turn->context);
    }
    serve_later(turns);
}

struct turns *turns_new(struct event_base *base, struct turn_limits others,
                        struct turn_limits trusted, bool first)
{
    struct turns *turns = calloc(1, sizeof(*turns));
    if (!turns)
        return NULL;
    *turns = (struct turns){.limits = {others, trusted}, .first = first};
    TAILQ_INIT(&turns->line);
    turns->again = evtimer_new(base, serve, turns);
    if (turns->again)
        return turns;
    free(turns);
    return NULL;
}

void turns_free(struct turns *turns)
{
    if (!turns)
        return;
    event_free(turns->again);
    free(turns);
}

bool turn_take(struct turns *turns, struct turn *turn, struct share *share, int cost,
               void (*call)(void *context), void *context)
{
    *turn = (struct turn){
        .turns = turns, .share = share, .cost = cost, .call = call, .context = context};
    if (fits(turns, share, cost)) {
        take(turn);
        return true;
    }
    turn->state = TURN_IN_LINE;
    TAILQ_INSERT_TAIL(&turns->line, turn, link);
    return false;
}

void turn_end(struct turn *turn)
{
    enum turn_state was = turn->state;
    turn->state = TURN_NONE;
    if (was == TURN_IN_LINE)
        TAILQ_REMOVE(&turn->turns->line, turn, link);
    if (was != TURN_TAKEN)
        return;
    turn->share->turns -= turn->cost;
    turn->turns->taken[turn->trusted] -= turn->cost;
    serve_later(turn->turns);
}
