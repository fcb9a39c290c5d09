/* journal-old.h: records that are older than KeepRecords, out of the store. */
#ifndef TCCL_JOURNAL_OLD_H
#define TCCL_JOURNAL_OLD_H

#include <event2/util.h>

#include "tccld/journal/journal-internal.h"

enum { JOURNAL_OLD_FIRST_MS = 2000 };

/* Looks for them after so many milliseconds, and then each hour. */
void old_look(struct journal *journal, int64_t ms);
/* Callback of journal->old. */
void old_on_time(evutil_socket_t fd, short what, void *journal);

#endif
