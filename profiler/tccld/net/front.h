/* front.h: a front end (front-unix.c, front-tcp.c): who is at the other end, how a message lies in
 * a frame, and what is allowed; and all connections of one. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include <event2/buffer.h>
#include <event2/event.h>

#include "client/conf.h"
#include "client/message.h"
#include "tccld/main/daemon.h"
#include "tccld/net/connection.h"
#include "tccld/net/share.h"

/* Who is at the other end, as far as it is known. */
struct asker {
    uid_t uid; /* -1: not known yet */
    pid_t pid; /* 0: not known */
    char place[128];
    char node[TCCL_CONF_NAME], nonce[TCCL_NONCE]; /* of the envelope */
};

struct front {
    unsigned from;    /* FROM_UNIX or FROM_TCP */
    size_t frame;     /* longest frame, bytes */
    size_t untrusted; /* longest message of a user who may only ask, bytes */
    size_t buffered;  /* bytes that have come, or wait to be read, of all connections */
    int most;         /* connections in all */
    int each;         /* of a user who may only ask */
    int each_address; /* of an address, as long as nobody knows whose they are */
    int first_ms;     /* a connection must bring its message within this time */
    int next_ms;      /* read its answer within this, and bring the next message */
    bool forgiving;   /* what is refused is answered by an error, else the connection is closed */
    /* Answers a frame that needs no credential, of a trusted address. Returns whether it was one.
     */
    bool (*tell)(struct daemon *daemon, struct connection *connection, const char *data);
    /* Fills in who has connected. Returns 0, or -1: it is closed. */
    int (*meet)(int fd, const struct sockaddr *address, socklen_t size, struct asker *asker);
    /* What a frame (taken over) costs of the turns of its address. NULL: it needs none. */
    int (*cost)(size_t size);
    /* A frame (taken over) has its turn: ends, now or later, in connection_hear or
     * connection_reject. */
    void (*open)(struct daemon *daemon, struct connection *connection, char *data, size_t size);
    /* Checks what goes with a message. Returns 0, or -1 with err. NULL: nothing. */
    int (*check)(struct daemon *daemon, struct asker *asker, const json_t *message,
                 struct tccl_error *err);
    /* An answer: ends, now or later, in connection_send or connection_close. */
    void (*answer)(struct daemon *daemon, struct connection *connection, json_t *message);
};

extern const struct front front_unix, front_tcp;

/* For open and answer. None of them does anything on a closed connection. */
const struct asker *connection_asker(const struct connection *connection);
/* The message of the frame (allocated, taken over), and who has made it. */
void connection_hear(struct connection *connection, uid_t uid, char *text, size_t size);
/* The frame is no good. */
void connection_reject(struct connection *connection, const char *why);
void connection_send(struct connection *connection, const char *data, size_t size);
void connection_close(struct connection *connection);

/* All connections of a front end, which with requests must outlive them. NULL without memory. */
struct connections *connections_new(struct daemon *daemon, const struct front *front,
                                    const struct request *requests);
/* Listens there, too, if it doesn't yet. Returns 0, or -1 with errno. */
int connections_listen(struct connections *all, const struct sockaddr *address, socklen_t size);
/* Takes over the descriptor of whoever has connected. Returns whether there is a connection now. */
bool connections_add(struct connections *all, int fd, const struct sockaddr *address,
                     socklen_t size);
/* Those that are open. */
int connections_count(const struct connections *all);
/* Hangs up on everybody and listens no more. NULL is fine. */
void connections_free(struct connections *all);

/* listener.c: a socket that listens; those who only connect leave time for all else. */

struct listener;

/* Takes over the descriptor of whoever has connected. Returns whether there is a connection now. */
typedef bool listener_accepted(void *context, int fd, const struct sockaddr *address,
                               socklen_t size);

/* Listens at the address. Returns NULL with errno. */
struct listener *listener_new(struct event_base *base, const struct sockaddr *address,
                              socklen_t size, listener_accepted *accepted, void *context);
bool listener_is_at(const struct listener *listener, const struct sockaddr *address,
                    socklen_t size);
void listener_free(struct listener *listener);

/* front-unix.c: the unix socket of tccld: the plugin, the tools and the jobs of this node. */

struct unix_socket;

/* Takes the lock beside the socket. Returns NULL with err: another tccld runs. */
struct unix_socket *unix_socket_new(struct daemon *daemon, struct tccl_error *err);
/* Listens, when all else is ready to serve. Returns 0, or -1 with err. */
int unix_socket_listen(struct unix_socket *unix_socket, struct tccl_error *err);
/* Hangs up on everybody and removes the socket. NULL is fine. */
void unix_socket_free(struct unix_socket *unix_socket);

/* front-tcp.c: the TCP side of tccld: what other nodes' tccld and the tools ask. */

struct tcp_socket;

/* Listens at conf's BindAddr and Port; where it can't, or BindAddr is a name that has no address
 * yet, it says so and tries again. Returns NULL with err: no memory. */
struct tcp_socket *tcp_socket_new(struct daemon *daemon, struct tccl_error *err);
void tcp_socket_free(struct tcp_socket *own); /* NULL is fine */

/* frames.c: frames in libevent's buffers. */

/* Takes one whole frame of 1 to limit bytes out of a buffer. *data is allocated (caller frees), has
 * a NUL behind its *size bytes. Returns 1; 0: more bytes must come first; -1: the length is beyond
 * the limit, or no memory. */
int frames_take(struct evbuffer *in, size_t limit, char **data, size_t *size);
/* Appends a frame. Returns 0, or -1 if it is beyond the limit or without memory. */
int frames_add(struct evbuffer *out, const char *data, size_t size, size_t limit);

/* replay.c: messages between machines that were heard already, so that none counts twice. munged's
 * own replay detection stands in front of this, but is one host's and forgets when munged restarts.
 */

struct replay;

struct replay *replay_new(void); /* NULL without memory */
void replay_free(struct replay *replay);

/* Remembers a message for as long as its credential is good. now: seconds of a clock that never
 * jumps. Returns 0; -1 with err: heard before, or sent in an earlier life of its sender. Memory is
 * bounded: of very many messages within a minute the oldest are forgotten. */
int replay_check(struct replay *replay, const struct tccl_envelope *envelope, int64_t now,
                 struct tccl_error *err);

/* seal.c: credentials made and opened in the pool of munge threads. */

enum { SEAL_PATIENCE_MS = 5000 /* the longest that a task may go on trying */ };

/* Puts a text (taken over) in a credential for reader, until deadline. Calls done on the event loop
 * with the credential, which it owns, or NULL and err. Returns 0, or -1 with err (done isn't
 * called). */
int seal_close(struct daemon *daemon, uid_t reader, char *text, int64_t deadline,
               void (*done)(void *context, char *cred, const struct tccl_error *err), void *context,
               struct tccl_error *err);

/* Opens a credential (taken over). Calls done with who made it and the text in it, which it owns,
 * or NULL and err. Returns as above. */
int seal_open(struct daemon *daemon, char *cred, int64_t deadline,
              void (*done)(void *context, uid_t uid, char *text, size_t size,
                           const struct tccl_error *err),
              void *context, struct tccl_error *err);

/* Does munge work, and have more to do than it has done? */
bool seal_is_busy(const struct daemon *daemon);

/* turns.c: what shares have at the same time of something scarce, and the line in which those wait
 * who have theirs. */

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
