/* dial.h: a TCP connection to a tccld, for tools. */
#ifndef TCCL_DIAL_H
#define TCCL_DIAL_H

#include <stdint.h>

#include "error.h"

/* Connects to host (a name or address) and port until deadline (tccl_now_ms), trying its addresses
 * in turn. Returns a close-on-exec, non-blocking descriptor, or -1 with err. */
int tccl_dial(const char *host, uint16_t port, int64_t deadline, struct tccl_error *err);

#endif
