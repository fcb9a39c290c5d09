/* front.h: a front end (front-unix.c, front-tcp.c): who is at the other end, how a message lies in
 * a frame, and what is allowed; and all connections of one. */
#pragma once

#include <stdbool.h>
#include <sys/socket.h>

#include <event2/event.h>

#include "client/conf.h"
#include "client/message.h"
#include "tccld/net/connection.h"

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
