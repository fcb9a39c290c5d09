/* front-unix.h: the unix socket of tccld: the plugin, the tools and the jobs of this node. */
#ifndef TCCL_FRONT_UNIX_H
#define TCCL_FRONT_UNIX_H

#include "tccld/net/front.h"

struct unix_socket;

/* Takes the lock beside the socket. Returns NULL with err: another tccld runs. */
struct unix_socket *unix_socket_new(struct daemon *daemon, struct tccl_error *err);
/* Listens, when all else is ready to serve. Returns 0, or -1 with err. */
int unix_socket_listen(struct unix_socket *unix_socket, struct tccl_error *err);
/* Hangs up on everybody and removes the socket. NULL is fine. */
void unix_socket_free(struct unix_socket *unix_socket);

#endif
