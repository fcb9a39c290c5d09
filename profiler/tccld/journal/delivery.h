/* delivery.h: records on their way to another node, AccountingHost as a rule. */
#ifndef TCCL_DELIVERY_H
#define TCCL_DELIVERY_H

#include "tccld/journal/journal-internal.h"

/* Sends a record (borrowed). What is not taken goes into the spool, where it is already if name,
 * its file there, is not "". Returns 0, or -1 without memory. */
int delivery_send(struct journal *journal, json_t *record, const char *to, const char *name);

/* Ends all; what could be lost by that goes into the spool. */
void delivery_cancel_all(struct journal *journal);

#endif
