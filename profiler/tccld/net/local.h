/* local.h: the unix socket of tccld: the plugin and the tools of this node. */
#ifndef TCCL_LOCAL_H
#define TCCL_LOCAL_H

#include <jansson.h>

#include "tccld/main/daemon.h"

enum {
    LOCAL_FIRST_MS = 1000,      /* a connection must bring its message within this time */
    LOCAL_NEXT_MS = 10000,      /* and the next one, or its end, within this after an answer */
    LOCAL_WAITING = 256,        /* connections without a message yet */
    LOCAL_MOST = 2048,          /* connections in all */
    LOCAL_EACH = 128,           /* of them those of one user who may only ask */
    LOCAL_AT_ONCE = 64,         /* accepted before others have their turn */
    LOCAL_STRANGER = 64 * 1024, /* longest message of a user who may only ask */
};

struct locals;
struct local; /* one connection */

/* Takes the lock beside the socket. Returns NULL with err: another tccld runs. */
struct locals *locals_new(struct daemon *daemon, struct tccl_error *err);
/* Listens, when all else is ready to serve. Returns 0, or -1 with err. */
int locals_listen(struct locals *locals, struct tccl_error *err);
/* Removes the socket. NULL is fine. */
void locals_free(struct locals *locals);

uid_t local_uid(const struct local *local);
/* Keeps the connection's memory beyond the handler; each hold ends with local_drop. */
struct local *local_hold(struct local *local);
void local_drop(struct local *local);
/* Sends an answer (borrowed) and waits for the next message; does nothing on a closed connection.
 */
void local_answer(struct local *local, const json_t *message);
/* Answers with an error. */
void local_refuse(struct local *local, const char *text);
/* Has the other side gone? */
bool local_closed(const struct local *local);

/* The handlers of messages, by their type (see local.c). They answer now or later. */
typedef void local_handler(struct daemon *daemon, struct local *local, json_t *message);

#endif
