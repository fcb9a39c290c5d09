/* link.h: one question to the tccld of another node, and its answer. */
#ifndef TCCL_LINK_H
#define TCCL_LINK_H

#include <stdbool.h>

#include <jansson.h>

#include "tccld/main/daemon.h"

enum { LINK_BYTES = 704 * 1024 /* longest message, before it is put in a credential */ };

struct link;

/* Sends a message (an envelope is put on it) and waits for the answer until deadline (tccl_now_ms).
 * Calls done once, on the event loop and never before link_ask has returned: with the answer,
 * checked (borrowed), or NULL and err, which begins with the node's name. The link ends with that
 * call. Returns NULL only without memory. */
struct link *link_ask(struct daemon *daemon, const char *node, json_t *message, int64_t deadline,
                      void (*done)(void *context, json_t *answer, const struct tccl_error *err),
                      void *context);

/* For done: did it fail on this node? The message had no credential yet, or this tccld was given no
 * time to run at the deadline, when the answer may have been there. */
bool link_failed_here(const struct link *link);

/* For done: was there a connection? */
bool link_connected(const struct link *link);

/* Ends a link; done is not called. */
void link_cancel(struct link *link);

#endif
