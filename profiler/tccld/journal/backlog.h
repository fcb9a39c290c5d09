/* backlog.h: records that wait in the spool, and the rounds in which they leave it. */
#ifndef TCCL_BACKLOG_H
#define TCCL_BACKLOG_H

#include "tccld/journal/disk-task.h"

/* Has a record (borrowed) spooled; what the disk does not take goes into memory. */
void backlog_put(struct journal *journal, json_t *record);
/* The parts of that, for a task whose record did not get where it should: in the disk's thread,
 * and then. */
void backlog_run(struct disk_task *task);
void backlog_then(struct disk_task *task);

/* A record was taken by its home, or refused for good: it has to go from the spool. name: its file
 * there; "": none is known. */
void backlog_settle(struct journal *journal, json_t *record, const char *name, const char *refused);

/* Begins a round, or goes on with it. */
void backlog_next(struct journal *journal);
/* One that such a round had sent has landed. */
void backlog_delivered(struct journal *journal, bool settled);

#endif
