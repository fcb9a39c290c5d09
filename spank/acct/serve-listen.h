/* serve-listen.h: the sockets that tcclacct's page is served on. */
#ifndef TCCL_SERVE_LISTEN_H
#define TCCL_SERVE_LISTEN_H

#include <stdint.h>

#include "base/error.h"

/* A unix socket of mode 0600, close-on-exec, non-blocking, listening. What is left of a server that
 * ended is replaced; anything else at that path is not. Returns it, or -1 with err. */
int serve_listen_unix(const char *path, struct tccl_error *err);

/* The same port of 127.0.0.1 and, where this machine has IPv6, ::1; *port 0: one that is free on
 * both, which is put there. fds[1] is -1 without IPv6. Returns 0, or -1 with err. */
int serve_listen_loopback(uint16_t *port, int fds[static 2], struct tccl_error *err);

#endif
