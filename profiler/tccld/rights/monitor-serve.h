/* monitor-serve.h: the monitor's process. */
#ifndef TCCL_MONITOR_SERVE_H
#define TCCL_MONITOR_SERVE_H

#include "tccld/rights/monitor-wire.h"

/* What it is given: the other ends of tccld's sockets. */
struct monitor_service {
    const char *munge_socket;
    int channels[MONITOR_CHANNELS]; /* SOCK_STREAM */
    int files;                      /* SOCK_SEQPACKET; once it is closed, the monitor ends */
};

/* Gives up what it doesn't need, and serves until tccld ends. For a process that has just been
 * forked and has one thread. */
_Noreturn void monitor_serve(const struct monitor_service *service);

#endif
