/* question.h: what NCCL is answered when it asks for its environment. */
#ifndef SHIM_QUESTION_H
#define SHIM_QUESTION_H

#include "hook/pending.h"

/* The wrapper of ncclGroupEnd runs in this thread: it calls shim_question_finish_over at the end.
 */
extern __thread int shim_in_group_end;
extern __thread int shim_group_depth; /* of this thread's groups */

/* getenv as asked from caller (its return address). errno stays. */
char *shim_question(const char *name, const void *caller);

/* NCCL is done with an init that was claimed: forgets it, and looks after its communicator
 * (steered.h). */
void shim_question_finish(struct shim_init *init);
/* The same of all that are over. */
void shim_question_finish_over(void);

#endif
