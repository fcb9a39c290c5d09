/* question.h: what NCCL is answered when it asks for its environment. */
#ifndef SHIM_QUESTION_H
#define SHIM_QUESTION_H

#include "hook/pending.h"

/* getenv as asked from caller (its return address). errno stays. */
char *shim_question(const char *name, const void *caller);

/* NCCL is done with an init that was claimed: what it built is compared and told. Forgets it. */
void shim_question_finish(struct shim_init *init);

#endif
