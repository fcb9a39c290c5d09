/* notice.h: the one line that the user sees. Without the newline, with the prefix "tccl: ". */
#ifndef TCCL_NOTICE_H
#define TCCL_NOTICE_H

#include <stdbool.h>
#include <stddef.h>

#include "client/client.h"

enum { NOTICE_SIZE = 1024 };

/* What became of a step of n_nodes nodes under mode (plan->reason is set on fallback, and where a
 * ring that was planned will not be built). Returns
 * false where nothing is to be said: in modes off and auto, and in state nothing-to-do without a
 * reason (one GPU). */
bool notice_of_plan(enum tccl_mode mode, const struct tccl_outcome *plan, int n_nodes,
                    char line[static NOTICE_SIZE]);

/* Control characters, such as newlines, become blanks: text from outside stays one line. */
void notice_clean(char *text);

#endif
