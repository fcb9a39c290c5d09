/* peer.h: the TCP side of tccld: what other nodes' tccld and the tools ask. */
#ifndef TCCL_PEER_H
#define TCCL_PEER_H

#include <stdbool.h>

#include <jansson.h>

#include "tccld/main/daemon.h"

enum {
    PEER_FIRST_MS = 1000,     /* a connection must bring its credential within this time */
    PEER_NEXT_MS = 10000,     /* and the next one within this after an answer */
    PEER_WAITING = 256,       /* connections that have not shown a good credential yet */
    PEER_MOST = 2048,         /* connections in all */
    PEER_STRANGER = 64 << 10, /* longest message of a user who may only ask */
    PEER_BUFFERS = 64 << 20,  /* bytes of messages that have not come to their end, of all */
};

struct peers;
struct peer; /* one connection with one question under way */

/* Listens at conf's BindAddr and Port. Returns NULL with err. */
struct peers *peers_listen(struct daemon *daemon, struct tccl_error *err);
/* Hangs up on everybody and listens no more. */
void peers_stop(struct peers *peers);
/* When no task of a pool can call back any more. NULL is fine. */
void peers_free(struct peers *peers);

/* Who asks: the uid of the credential, the node that its envelope names (both until the next
 * question). */
uid_t peer_uid(const struct peer *peer);
const char *peer_node(const struct peer *peer);

/* Keeps the question open beyond its handler; each hold ends with one peer_answer or peer_drop. */
struct peer *peer_hold(struct peer *peer);
void peer_drop(struct peer *peer);
/* Has the other side gone? */
bool peer_closed(const struct peer *peer);
/* Answers the question and drops the hold. message is borrowed; an envelope is put on it. */
void peer_answer(struct peer *peer, json_t *message);

/* The handlers of questions, by their type (see peer.c): called with a checked envelope. */
typedef void peer_handler(struct daemon *daemon, struct peer *peer, json_t *message);

#endif
