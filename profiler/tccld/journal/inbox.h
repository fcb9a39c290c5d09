/* inbox.h: records on their way to the disk: those of this node into its store, or, for another
 * node, into the outbox; those that other nodes send into the store. */
#ifndef TCCL_INBOX_H
#define TCCL_INBOX_H

#include "tccld/journal/disk-task.h"

/* Takes a record of this node (borrowed). What the disk does not take stays in memory. */
void inbox_add(struct journal *journal, json_t *record);

/* In the disk's thread: as tccl_records_put; what came so late that it would be removed at once is
 * not stored. */
int inbox_store(struct disk_task *task, const json_t *record);
/* Logs how much of that there was, and of records whose start can't be right. */
void inbox_log_dates(struct disk_task *task);

/* What no batch has taken goes into memory; peers hear nothing, and send it again. */
void inbox_empty(struct journal *journal);

#endif
