/* local-store.h: records on their way into the store of this node. */
#ifndef TCCL_LOCAL_STORE_H
#define TCCL_LOCAL_STORE_H

#include "tccld/journal/disk-task.h"

/* Has a record (borrowed) stored. What the disk does not take goes to the spool or into memory. */
void local_store_add(struct journal *journal, json_t *record);

/* In the disk's thread: as tccl_records_put; what came so late that it would be removed at once is
 * not stored. */
int local_store_put(struct disk_task *task, const json_t *record);
/* Logs how much of that there was, and of records whose start can't be right. */
void local_store_log_dates(struct disk_task *task);

/* What no batch has taken goes into memory; peers hear nothing, and send it again. */
void local_store_empty_inbox(struct journal *journal);

#endif
