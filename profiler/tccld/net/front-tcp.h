/* front-tcp.h: the TCP side of tccld: what other nodes' tccld and the tools ask. */
#ifndef TCCL_FRONT_TCP_H
#define TCCL_FRONT_TCP_H

#include "tccld/net/front.h"

struct tcp_socket;

/* Listens at conf's BindAddr and Port; where it can't, or BindAddr is a name that has no address
 * yet, it says so and tries again. Returns NULL with err: no memory. */
struct tcp_socket *tcp_socket_new(struct daemon *daemon, struct tccl_error *err);
void tcp_socket_free(struct tcp_socket *own); /* NULL is fine */

#endif
