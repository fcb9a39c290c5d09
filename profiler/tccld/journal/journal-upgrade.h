/* journal-upgrade.h: a store that an older version made is brought up to date beside everything
 * else: of a million records that takes up to a minute, and steps begin meanwhile. Until then new
 * records wait, those of other nodes there, and questions are refused. */
#ifndef TCCL_JOURNAL_UPGRADE_H
#define TCCL_JOURNAL_UPGRADE_H

#include "tccld/journal/journal-internal.h"

/* Opens the store at journal->path, or, where it is older, begins to bring it up to date, and says
 * so in the log; what fails then is tried again. Returns 0, or -1 with err. */
int upgrade_open(struct journal *journal, struct tccl_error *err);

/* No more lines about it; what is under way goes on. */
void upgrade_close(struct journal *journal);

/* In the disk's thread: is there a store? Else false with err. */
bool upgrade_has_store(const struct journal *journal, struct tccl_error *err);

#endif
