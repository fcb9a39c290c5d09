/* turns.h: what shares have at the same time of something scarce, and the line in which those wait
 * who have theirs. */
#pragma once

#include <stdbool.h>
#include <sys/queue.h>

#include <event2/event.h>

#include "tccld/net/share.h"

/* Of each share, and of all of its kind. */
struct turn_limits {
    int each, all;
};

struct turns;
enum turn_state { TURN_NONE, TURN_IN_LINE, TURN_TAKEN };
struct turn {
    TAILQ_ENTRY(turn) link;
    enum turn_state state;
    struct turns *turns;
    struct share *share;
    int cost;
    bool trusted; /* the limits that it counts for */
    void (*call)(void *context);
    void *context;
};

/* others: the limits of shares that aren't trusted. first: each share has its first one, even where
 * all have theirs. NULL without memory. */
struct turns *turns_new(struct event_base *base, struct turn_limits others,
                        struct turn_limits trusted, bool first);
/* Returns whether turn has it now; else it is in the line, and call(context) comes, on the event
 * loop, when it has. The first of a share counts as one that fits, whatever its cost. The share
 * must be held. */
bool turn_take(struct turns *turns, struct turn *turn, struct share *share, int cost,
               void (*call)(void *context), void *context);
/* Gives it back, or leaves the line. */
void turn_end(struct turn *turn);
void turns_free(struct turns *turns);
