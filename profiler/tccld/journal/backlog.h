/* backlog.h: records that wait in the spool, and the rounds in which they leave it. */
#ifndef TCCL_BACKLOG_H
#define TCCL_BACKLOG_H

#include "tccld/journal/disk-task.h"

/* Has a record (borrowed) spooled; what the disk does not take goes into memory. */
void backlog_put(struct journal *journal, json_t *record);
/* The parts of that, for a task whose records (an array) did not get where they should: in the
 * disk's thread, and then. */
void backlog_run(struct disk_task *task);
void backlog_then(struct disk_task *task);

/* Files of the spool (borrowed), [[name], …], whose records were taken by their home go. */
void backlog_remove(struct journal *journal, json_t *files);
/* A record (borrowed) of the spool was refused for good: it is kept aside. */
void backlog_put_aside(struct journal *journal, json_t *record, const char *reason);

/* Begins a round, or goes on with it. */
void backlog_next(struct journal *journal);
/* What such a round had sent has landed, or not. */
void backlog_delivered(struct journal *journal, bool settled);

#endif
