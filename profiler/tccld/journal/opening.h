/* opening.h: store and spool are opened, and opened again where they can't be used. */
#ifndef TCCL_OPENING_H
#define TCCL_OPENING_H

#include "tccld/journal/journal-internal.h"

enum { OPENING_FIRST_MS = 2000, OPENING_RETRY_MS = 1000, OPENING_RETRY_MOST_MS = 60000 };

/* Opens what StateDir holds. Where that can't be done, it says so and tries again from time to
 * time: meanwhile journal->store, or the spool too, is NULL, and rings are served all the same. */
void opening_begin(struct journal *journal);
/* Callback of journal->opening. */
void opening_on_time(evutil_socket_t fd, short what, void *journal);

/* In the disk's thread: the store has failed with this error. It is closed, and opened anew when
 * opening_again has been called on the event loop, with the same error. */
void opening_lost(struct journal *journal, const struct tccl_error *why);
void opening_again(struct journal *journal, const struct tccl_error *why);

/* In the disk's thread: is there a store? Returns 0, or -1 with err: why there is none. */
int opening_check(const struct journal *journal, struct tccl_error *err);

#endif
