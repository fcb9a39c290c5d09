/* serve-helper.h: answers that take time are made by processes of their own, each with a deadline,
 * so that whatever they wait for, nobody else waits with them. Who asks the same at the same time,
 * or shortly after, gets the same answer. */
#ifndef TCCL_SERVE_HELPER_H
#define TCCL_SERVE_HELPER_H

#include <stdio.h>

#include <event2/event.h>

#include "acct/serve-request.h"

enum { SERVE_HELPERS = 6, SERVE_HELPER_MS = 25000, SERVE_ANSWER_MOST = 32 << 20 };

/* In the helper: writes the body of the answer, JSON, and returns its HTTP status. */
typedef int serve_work(void *context, const struct serve_request *request, FILE *out);

/* The answer; body is borrowed for the call. */
typedef void serve_told(void *who, int status, const char *body, size_t size);

struct serve_helpers;
/* NULL only without memory. serve_helpers_free ends what still runs. */
struct serve_helpers *serve_helpers_new(struct event_base *base, serve_work *work, void *context);
void serve_helpers_free(struct serve_helpers *helpers); /* NULL is fine */

/* Asks for the answer to a request. told is called once, now or later, unless serve_helpers_forget
 * comes before. keep_ms: how old an answer may be that others got. At most SERVE_HELPERS run at a
 * time, the others wait. Returns 0, or -1 without memory (told is then not called). */
int serve_helpers_ask(struct serve_helpers *helpers, const struct serve_request *request,
                      int keep_ms, serve_told *told, void *who);
/* who has gone. */
void serve_helpers_forget(struct serve_helpers *helpers, const void *who);
/* To be called after SIGCHLD. */
void serve_helpers_reap(void);

#endif
