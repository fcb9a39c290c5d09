/* confirm.h: what NCCL built of a step's ring, as its processes say: it is put on record. */
#ifndef TCCL_CONFIRM_H
#define TCCL_CONFIRM_H

#include "client/client.h"
#include "tccld/net/connection.h"

enum { CONFIRM_TEXT = 255 };

/* Handler of CONFIRM. */
lines_handler confirm_hear;

/* The step ends on this node, its plan file is still there: if nothing was heard, that is put on
 * record, by node 0. */
void confirm_end(struct daemon *daemon, const struct tccl_step_key *key);

#endif
