/* notice.h: the one-line message to the user, with the prefix "tccl: ", without newline. */
#ifndef TCCL_NOTICE_H
#define TCCL_NOTICE_H

#include <stdbool.h>
#include <stddef.h>

#include "client/client.h"

enum { NOTICE_SIZE = 1024 };

/* The outcome of a step of n_nodes nodes in this mode. plan->reason is set on fallback, where
 * there is nothing to do, and if a planned ring will not be built. Returns false if there is no
 * message: in modes off and auto, and in state off. */
bool notice_of_plan(enum tccl_mode mode, const struct tccl_outcome *plan, int n_nodes,
                    char line[static NOTICE_SIZE]);

/* Replaces control characters by blanks, so that external text stays one line. */
void notice_clean(char *text);

#endif
