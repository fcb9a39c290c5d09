/* share.h: what one user, or one address, has of tccld's time and memory. A user that floods tccld,
 * or an address, uses up its own share. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/types.h>

/* Connections that may still be made, in thousandths. */
struct rate {
    int64_t at_ms, left;
};

struct shares;

struct share {
    LIST_ENTRY(share) link;
    struct shares *all;
    uint64_t hash; /* of its owner */
    int holders;
    bool user;    /* else an address */
    bool trusted; /* a trusted user; an address of [peers], or that a trusted user has sent from */
    int open;     /* connections that count for it */
    size_t bytes; /* in buffers of those, when they were counted last */
    int turns;    /* what it has taken of turns (front.h) */
    struct rate rate; /* of a trusted address */
};

/* NULL without memory. */
struct shares *shares_new(void);
/* The share of a user, who is trusted or not; held until share_drop. NULL without memory. */
struct share *share_of_user(struct shares *shares, uid_t uid, bool trusted);
/* The share of an address. IPv6: its own if it is trusted, else that of its network of 64 bits,
 * since a host has as many addresses there as it likes. Held and NULL as above. */
struct share *share_of_address(struct shares *shares, const struct sockaddr *address);
void share_drop(struct share *share); /* NULL is fine */
/* The address is trusted from now on, for as long as tccld runs. */
void shares_trust(struct shares *shares, const struct sockaddr *address);
/* May an address connect once more in this second? What is beyond is not worth a connection. */
bool shares_admit(struct shares *shares, const struct sockaddr *address, int64_t now_ms);
/* Those that are held end with their holders. NULL is fine. */
void shares_free(struct shares *shares);
