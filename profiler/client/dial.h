/* dial.h: TCP connections to a tccld, or another program of ours, for tools. */
#pragma once

#include <stdint.h>

#include "base/error.h"

/* Connects to host (a name or address) and port until deadline (tccl_now_ms), trying its addresses
 * in turn. Returns a close-on-exec, non-blocking descriptor, or -1 with err. */
int tccl_dial(const char *host, uint16_t port, int64_t deadline, struct tccl_error *err);

/* The same to another kind of program, whom, as err calls it; through the network interface device
 * if it is not "". */
int tccl_dial_as(const char *whom, const char *device, const char *host, uint16_t port,
                 int64_t deadline, struct tccl_error *err);
