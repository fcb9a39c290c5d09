/* stepd.h: which slurmstepd a plan belongs to, and whether that still lives. */
#pragma once

#include <sys/types.h>

#include "client/key.h"

enum { STEPD_TEXT = 80 };
enum stepd_state {
    STEPD_UNKNOWN, /* it can't be seen from here, or is none */
    STEPD_LIVES,
    STEPD_GONE
};

/* What a process is told by, also by a tccld that is started again: its id, its start in ticks
 * since boot, and the namespace that the id is of. "": it can't be seen from here. */
void stepd_name(pid_t pid, char text[static STEPD_TEXT]);
enum stepd_state stepd_look(const char *text);

/* stepd-socket.c: since when a step's slurmstepd has been on this node. */

struct stepd_sockets;

/* NULL: out of memory. */
struct stepd_sockets *stepd_sockets_new(void);
void stepd_sockets_free(struct stepd_sockets *sockets);
/* How long, in ms; -1: it is not there, or can't be seen. The kernel is asked at most once a
 * second, for all steps. */
int64_t stepd_sockets_age(struct stepd_sockets *sockets, const char *node,
                          const struct tccl_step_key *key);
