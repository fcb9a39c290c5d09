/* journal-store.h: records on their way into the store of this node. */
#ifndef TCCL_JOURNAL_STORE_H
#define TCCL_JOURNAL_STORE_H

#include "tccld/journal/journal-chore.h"

/* Has a record (borrowed) stored. What the disk does not take goes to the spool or into memory. */
void store_add(struct journal *journal, json_t *record);

/* In the disk's thread: as tccl_records_put; what came so late that it would be removed at once is
 * not stored. */
int store_put(struct chore *chore, const json_t *record);
/* Logs how much of that there was. */
void store_log_late(struct chore *chore);

/* What no batch has taken goes into memory; peers hear nothing, and send it again. */
void store_empty_inbox(struct journal *journal);

#endif
