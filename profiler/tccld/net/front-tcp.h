/* front-tcp.h: the TCP side of tccld: what other nodes' tccld and the tools ask. */
#ifndef TCCL_FRONT_TCP_H
#define TCCL_FRONT_TCP_H

#include "tccld/net/front.h"

/* Listens at conf's BindAddr and Port. Returns NULL with err; else ends with connections_free. */
struct connections *tcp_listen(struct daemon *daemon, struct tccl_error *err);

#endif
