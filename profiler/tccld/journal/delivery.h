/* delivery.h: records out of the outbox, to the node that keeps them, AccountingHost as a rule, or
 * into the store here. */
#ifndef TCCL_DELIVERY_H
#define TCCL_DELIVERY_H

#include "tccld/journal/journal-internal.h"

/* Takes a new record (borrowed) for another node. Returns 0, or -1: it has to go to the disk first.
 */
int delivery_add(struct journal *journal, json_t *record);

/* Delivers what waits in the outbox, or in memory, unless that is under way. What is not taken
 * stays there, and is tried again later. */
void delivery_look(struct journal *journal);

/* The timer for records that wait for others. */
void delivery_on_time(evutil_socket_t fd, short what, void *journal);

/* Ends what is under way; what is in no outbox is in memory again. */
void delivery_cancel(struct journal *journal);

#endif
