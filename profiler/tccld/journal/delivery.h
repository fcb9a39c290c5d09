/* delivery.h: records on their way to another node, AccountingHost as a rule. */
#ifndef TCCL_DELIVERY_H
#define TCCL_DELIVERY_H

#include "tccld/journal/journal-internal.h"

/* Has a record (borrowed) sent, with those that come while an earlier batch is under way. What is
 * not taken goes into the spool, and at once what comes while nobody answers. */
void delivery_add(struct journal *journal, json_t *record);

/* The timer for those that wait for others. */
void delivery_on_time(evutil_socket_t fd, short what, void *journal);

/* Sends records; files: names of those of the spool that hold them, NULL: new ones (all borrowed).
 * backlog_delivered hears what came of files. Returns 0, or -1 without memory. */
int delivery_send(struct journal *journal, json_t *records, json_t *files, const char *to);

/* Ends all; what could be lost by that goes into the spool. */
void delivery_cancel_all(struct journal *journal);

#endif
