/* link.h: one question to the tccld of another node, and its answer. */
#pragma once

#include <stdbool.h>

#include <jansson.h>

#include "tccld/main/daemon.h"

enum { LINK_BYTES = 704 * 1024 /* longest message, before it is put in a credential */ };

/* What is said without a credential, each in a frame: a question, and its answers. */
#define LINK_ASK_BUSY "busy?"
#define LINK_BUSY "busy"
#define LINK_IDLE "idle"

struct link;

/* Called once, on the event loop and never before the question's function has returned: with the
 * answer, checked (borrowed), or NULL and err, which begins with the node's name. The link ends
 * with that call. */
typedef void link_done(void *context, json_t *answer, const struct tccl_error *err);

/* Sends a message (an envelope is put on it) and waits for the answer until deadline (tccl_now_ms).
 * Returns NULL only without memory. */
struct link *link_ask(struct daemon *daemon, const char *node, json_t *message, int64_t deadline,
                      link_done *done, void *context);

/* From when the message is on its way, the other side has ms to answer, whatever the deadline: what
 * this node's munge takes for the credential does not count. */
void link_wait(struct link *link, int64_t ms);

/* Asks, without munge, whether the tccld there has more to do than it has done. done has an answer
 * of type "busy" or "idle", or err as above. */
struct link *link_ask_busy(struct daemon *daemon, const char *node, int64_t deadline,
                           link_done *done, void *context);

/* Did it fail on this node, or would it, if it ended now? The message has no credential yet, the
 * answer has come and munge has not opened it, or this tccld was given no time to run at the
 * deadline, when the answer may have been there. */
bool link_failed_here(const struct link *link);

/* For done: was there a connection? */
bool link_connected(const struct link *link);

/* Ends a link; done is not called. */
void link_cancel(struct link *link);
