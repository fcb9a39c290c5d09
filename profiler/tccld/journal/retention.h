/* retention.h: records that are older than KeepRecords, out of the store. */
#ifndef TCCL_RETENTION_H
#define TCCL_RETENTION_H

#include <event2/util.h>

#include "tccld/journal/journal-internal.h"

enum { RETENTION_FIRST_MS = 2000 };

/* Looks for them after so many milliseconds, and then each hour. */
void retention_look(struct journal *journal, int64_t ms);
/* Callback of journal->retention. */
void retention_on_time(evutil_socket_t fd, short what, void *journal);

#endif
