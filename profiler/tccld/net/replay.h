/* replay.h: messages between machines that were heard already, so that none counts twice. munged's
 * own replay detection stands in front of this, but is one host's and forgets when munged restarts.
 */
#ifndef TCCL_SEEN_H
#define TCCL_SEEN_H

#include "client/envelope.h"

struct seen;

struct seen *seen_new(void); /* NULL without memory */
void seen_free(struct seen *seen);

/* Remembers a message for as long as its credential is good. now: seconds of a clock that never
 * jumps. Returns 0; -1 with err: heard before, or sent in an earlier life of its sender. Memory is
 * bounded: of very many messages within a minute the oldest are forgotten. */
int seen_check(struct seen *seen, const struct tccl_envelope *envelope, int64_t now,
               struct tccl_error *err);

#endif
