/* losses.h: how many records of this node are on no disk: those that wait to be, and those that
 * were lost, however tccld ended. */
#pragma once

#include <stdint.h>

#include "tccld/main/run-dir.h"

enum { LOSSES_LEDGER = 16 /* hexadecimal digits */ };

struct losses {
    char ledger[LOSSES_LEDGER + 1]; /* its number */
    struct run_dir *run_dir;
    int fd;              /* of the ledger; -1: there is none, and the numbers end with tccld */
    int64_t pending;     /* records that neither a disk nor another node has yet */
    int64_t count;       /* records that were lost */
    int64_t first, last; /* when, unix time; 0: none was */
};

/* Opens the ledger, a file in RunDir (by which it is written), or makes it. What was pending when
 * the tccld before was killed is lost. Returns how many records that were. */
int64_t losses_open(struct losses *losses, struct run_dir *run_dir, const char *path, int64_t now);
void losses_close(struct losses *losses);

/* A record has come, or (-1) has got where it is safe. */
void losses_pend(struct losses *losses, int change);
/* Records are lost; pending: how many of them were. */
void losses_count(struct losses *losses, int64_t count, int pending, int64_t now);
