/* presence.h: is the plugin on this node? What slurmd's plugstack.conf says, and which steps have
 * sent a JOIN; for NODE, by which tccl-check and srun ask, since Slurm drops --tccl in silence
 * where nobody knows it. */
#ifndef TCCL_PRESENCE_H
#define TCCL_PRESENCE_H

#include "tccld/main/daemon.h"
#include "tccld/net/connection.h"

struct presence;

/* NULL with err. */
struct presence *presence_new(struct daemon *daemon, struct tccl_error *err);
/* NULL is fine. */
void presence_free(struct presence *presence);

/* Why this node has no plugin, by slurmd's plugstack.conf; NULL: it has one, or that is not known
 * yet: ask again in a second. Valid until the event loop goes on. */
const char *presence_missing(struct daemon *daemon);

/* NODE (profiler/client/README.md). */
void presence_ask(struct daemon *daemon, struct connection *connection, json_t *message);

#endif
