/* journal-spool.h: records that wait in the spool, and the rounds in which they leave it. */
#ifndef TCCL_JOURNAL_SPOOL_H
#define TCCL_JOURNAL_SPOOL_H

#include "tccld/journal/journal-chore.h"

/* Has a record (borrowed) spooled; what the disk does not take goes into memory. */
void spooled_put(struct journal *journal, json_t *record);
/* The parts of that, for a chore whose record did not get where it should: in the disk's thread,
 * and then. */
void spooled_run(struct chore *chore);
void spooled_then(struct chore *chore);

/* A record was taken by its home, or refused for good: it has to go from the spool. name: its file
 * there; "": none is known. */
void spooled_settle(struct journal *journal, json_t *record, const char *name, const char *refused);

/* Begins a round, or goes on with it. */
void spooled_next(struct journal *journal);
/* One that such a round had sent has landed. */
void spooled_landed(struct journal *journal, bool settled);

#endif
