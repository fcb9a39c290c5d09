/* questions.h: questions about records: each in a thread beside the one that writes, and of a user
 * one at a time. */
#ifndef TCCL_QUESTIONS_H
#define TCCL_QUESTIONS_H

#include "tccld/journal/journal-internal.h"

/* Returns 0, or -1 with err; closed in either case. */
int questions_open(struct journal *journal, struct tccl_error *err);
/* Drops those that wait and ends those under way, for which it waits that long. Returns 0; 1: one
 * is stuck, and uses the journal until the end of the process. */
int questions_close(struct journal *journal, int wait_ms);

#endif
