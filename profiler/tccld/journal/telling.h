/* telling.h: the node that keeps the records hears how many of this node's are lost. */
#ifndef TCCL_TELLING_H
#define TCCL_TELLING_H

#include <event2/util.h>

#include "tccld/journal/journal-internal.h"

/* Tells it soon, if there is something that it has not heard. */
void telling_look(struct journal *journal);
/* The same, as if it had heard nothing: it may be another node now. */
void telling_again(struct journal *journal);
/* Callback of journal->tell. */
void telling_on_time(evutil_socket_t fd, short what, void *journal);
/* At the end. */
void telling_cancel(struct journal *journal);

#endif
