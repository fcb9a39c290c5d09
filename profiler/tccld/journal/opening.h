/* opening.h: store and outbox are opened, and opened again where they can't be used. */
#ifndef TCCL_OPENING_H
#define TCCL_OPENING_H

#include "tccld/journal/journal-internal.h"

enum { OPENING_FIRST_MS = 2000, OPENING_RETRY_MS = 1000, OPENING_RETRY_MOST_MS = 60000 };

/* Opens what StateDir holds. Where that can't be done, it says so and tries again from time to
 * time: meanwhile journal->store, or the outbox too, is NULL, and rings are served all the same. */
void opening_begin(struct journal *journal);
/* Callback of journal->opening. */
void opening_on_time(evutil_socket_t fd, short what, void *journal);

/* In the disk's thread: the store has failed with this error. It is closed, and opened anew when
 * opening_again has been called on the event loop, with the same error. */
void opening_lost(struct journal *journal, const struct tccl_error *why);
void opening_again(struct journal *journal, const struct tccl_error *why);

/* After the outbox was used, in the disk's thread: what it holds; a damaged one is closed, and made
 * anew later. Then on the event loop: what was in that is lost. */
struct disk_task;
void opening_look_at_outbox(struct disk_task *task);
void opening_after_outbox(struct disk_task *task);

/* In the disk's thread: is there a store? Returns 0, or -1 with err: why there is none. */
int opening_check(const struct journal *journal, struct tccl_error *err);

#endif
