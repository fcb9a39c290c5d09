/* replay.h: messages between machines that were heard already, so that none counts twice. munged's
 * own replay detection stands in front of this, but is one host's and forgets when munged restarts.
 */
#pragma once

#include "client/message.h"

struct replay;

struct replay *replay_new(void); /* NULL without memory */
void replay_free(struct replay *replay);

/* Remembers a message for as long as its credential is good. now: seconds of a clock that never
 * jumps. Returns 0; -1 with err: heard before, or sent in an earlier life of its sender. Memory is
 * bounded: of very many messages within a minute the oldest are forgotten. */
int replay_check(struct replay *replay, const struct tccl_envelope *envelope, int64_t now,
                 struct tccl_error *err);
