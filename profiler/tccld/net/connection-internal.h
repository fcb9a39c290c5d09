/* connection-internal.h: a connection as connection.c and connections.c know it. */
#pragma once

#include <sys/queue.h>

#include <event2/bufferevent.h>

#include "tccld/main/daemon.h"
#include "tccld/net/front.h"
#include "tccld/net/share.h"

enum { LISTENERS = 16 };

/* LISTENING: for the next frame. ASKED: a question is under way, or waits for its turn. ANSWERED:
 * the answer is on its way. */
enum connection_state { LISTENING, ASKED, ANSWERED };

struct connection {
    TAILQ_ENTRY(connection) link;
    struct connections *all; /* valid while it is open */
    int holders;             /* itself while it is open, and who will answer */
    enum connection_state state;
    bool known;                 /* a good message of it was heard */
    bool told;                  /* something without a credential, which is for once */
    bool lines;                 /* the question was of lines */
    bool trusted;               /* connection.h */
    struct bufferevent *stream; /* NULL: closed */
    struct event *timer;
    int64_t due_ms; /* when it fires */
    bool spared;    /* it has fired late once */
    size_t limit;   /* of its frames */
    struct asker asker;
    struct sockaddr_storage address; /* over TCP */
    struct share *share;             /* of its user (the unix socket) or address */
    struct share *user; /* over TCP of who has made the last credential; NULL: not known yet */
    struct turn turn;   /* to have its credential decoded, and then its question answered */
    char *held;         /* what waits for that turn */
    size_t held_size;
};

struct connections {
    struct daemon *daemon;
    const struct front *front;
    const struct request *requests;
    struct listener *listeners[LISTENERS];
    int n_listeners;
    TAILQ_HEAD(, connection) list; /* the oldest first */
    int n_all;
    struct log_limit refused, closed, over_bound;
};

/* A connection of asker over fd, in share (taken over). NULL without memory, with fd closed. */
struct connection *connection_new(struct connections *all, int fd, const struct asker *asker,
                                  struct share *share);
/* The share that it counts for: of its user, as soon as that is known, else of its address. */
struct share *connection_owner(const struct connection *connection);
/* From now on it is of that user (taken over). Returns whether he may have it. */
bool connections_own(struct connection *connection, struct share *user);
/* Who makes too much wait in buffers has to go. */
void connections_bound_buffers(struct connections *all);
