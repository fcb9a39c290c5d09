/* questions.h: questions about records. Of each kind one at a time is worked on, so that those
 * who ask don't keep records out, nor one of them the others. */
#ifndef TCCL_QUESTIONS_H
#define TCCL_QUESTIONS_H

#include "tccld/journal/journal-internal.h"

/* When the pools are there. Returns 0, or -1 with err. */
int questions_open(struct journal *journal, struct tccl_error *err);
/* Drops those that wait; those under way go on. */
void questions_drop(struct journal *journal);
/* Frees what questions_open made, when none waits or is under way, or also when it failed. */
void questions_close(struct journal *journal);

#endif
