/* listener.h: a socket that listens; those who only connect leave time for all else. */
#ifndef TCCL_LISTENER_H
#define TCCL_LISTENER_H

#include <stdbool.h>
#include <sys/socket.h>

#include <event2/event.h>

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

#endif
