/* stepd.h: which slurmstepd a plan belongs to, and whether that still lives. */
#ifndef TCCL_STEPD_H
#define TCCL_STEPD_H

#include <sys/types.h>

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

#endif
