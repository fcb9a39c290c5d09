/* step-signal.h: is this step about to be cancelled, while its tasks have not started? */
#ifndef TCCL_STEP_SIGNAL_H
#define TCCL_STEP_SIGNAL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { SIGNAL_PEERS = 16, SIGNAL_HELD_MS = 300 };

struct signal_watch {
    char socket[320];             /* its last component, "/n1_7.0" */
    int64_t since;                /* when `held` was looked up, tccl_now_ms */
    int n_first, n_held;          /* connections by their inodes: */
    uint64_t first[SIGNAL_PEERS]; /* that were there at the beginning, */
    uint64_t held[SIGNAL_PEERS];  /* and SIGNAL_HELD_MS ago at least */
};

/* The step of this slurmstepd, on that node. */
void signal_watch_begin(struct signal_watch *watch, const char *node, uint32_t job, uint32_t step);
/* Has somebody waited for SIGNAL_HELD_MS for slurmstepd to answer? To be called now and then. */
bool signal_watch_look(struct signal_watch *watch, int64_t now);

/* slurmd's connections to the socket that this process has accepted, by their inodes; at most
 * SIGNAL_PEERS. */
int signal_peers(const char *socket, uint64_t inodes[static SIGNAL_PEERS]);

#endif
