/* sweep.h: what steps that ended without LEAVE have left in RunDir goes. */
#ifndef TCCL_SWEEP_H
#define TCCL_SWEEP_H

#include "tccld/main/daemon.h"

enum {
    SWEEP_MS = 3600000,
    SWEEP_KEEP_S = 7 * 86400, /* what is of an unknown step, */
    SWEEP_MANY = 4096,        /* or, beyond so many of them, */
    SWEEP_MANY_KEEP_S = 86400
};

struct sweep;

/* Sweeps when the event loop begins, and then every period_ms. NULL without memory. */
struct sweep *sweep_new(struct daemon *daemon, int period_ms);
/* Sweeps soon. */
void sweep_hurry(struct sweep *sweep);
void sweep_free(struct sweep *sweep); /* NULL is fine */

/* Before anything is written there: files that a tccld was killed while it wrote. */
void sweep_unfinished(const char *run_dir);

/* Sweeps now. now: unix time. Returns of how many steps something was removed. */
int sweep_run_dir(struct daemon *daemon, time_t now);

#endif
