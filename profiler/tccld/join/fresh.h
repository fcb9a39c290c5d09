/* fresh.h: a search for rings on this node as it is now, where those of the profile, judged again,
 * may be far from the best. */
#pragma once

#include "tccld/main/daemon.h"

struct fresh;

/* Searches in a thread of its own that leaves the processor to others. NULL with err. */
struct fresh *fresh_new(struct daemon *daemon, struct tccl_error *err);
/* Begins with the next GPU set that own_wants names, if none is being searched: by the model where
 * one made the profile, else by what was measured (search/recall.h), for a minute at most. NULL is
 * fine. */
void fresh_look(struct fresh *fresh);
void fresh_free(struct fresh *fresh); /* NULL is fine */
