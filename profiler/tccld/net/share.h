/* share.h: what one user, or one address, has of tccld's time and memory, and the lines in which
 * those wait who have theirs. A user that floods tccld, or an address, waits for itself alone. */
#ifndef TCCL_SHARE_H
#define TCCL_SHARE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/types.h>

#include <event2/event.h>

struct shares;

struct share {
    LIST_ENTRY(share) link;
    struct shares *all;
    uint64_t hash; /* of its owner */
    int holders;
    bool trusted; /* a trusted user; an address of [peers], or of which a trusted user has sent */
    int open, waiting; /* its connections; of them those without a good message yet */
    int turns;         /* what it has taken of turns */
};

/* The share of a user, or of an address (IPv6: of its network of 64 bits), held until share_drop.
 * NULL without memory. */
struct shares *shares_new(void);
struct share *share_of_user(struct shares *shares, uid_t uid);
struct share *share_of_address(struct shares *shares, const struct sockaddr *address);
void share_drop(struct share *share);
/* An address that a trusted user has sent from is known for as long as tccld runs. */
void share_trust(struct share *share);
/* May an address connect once more in this second? What is beyond is not worth a connection. */
bool share_admits(struct shares *shares, const struct sockaddr *address, int64_t now_ms);
/* Those that are held end with their holders. NULL is fine. */
void shares_free(struct shares *shares);

/* Turns: so many for each share that isn't trusted, so many for all of these, so many for each
 * that is. */
struct turns;
enum turn_state { TURN_NONE, TURN_IN_LINE, TURN_TAKEN };
struct turn {
    TAILQ_ENTRY(turn) link;
    enum turn_state state;
    struct turns *turns;
    struct share *share;
    int cost, counted; /* counted: among those that aren't trusted */
    void (*call)(void *context);
    void *context;
};

struct turns *turns_new(struct event_base *base, int each, int all, int trusted);
/* Returns whether turn has it now; else it is in the line, and call(context) comes, on the event
 * loop, when it has. The first of a share always fits, whatever its cost. The share must be held.
 */
bool turn_take(struct turns *turns, struct turn *turn, struct share *share, int cost,
               void (*call)(void *context), void *context);
/* Gives it back, or leaves the line. Returns whether it was in the line (call won't come). */
bool turn_end(struct turn *turn);
void turns_free(struct turns *turns);

#endif
