/* peer-trust.h: the addresses of [peers] are trusted from the start. */
#ifndef TCCL_PEER_TRUST_H
#define TCCL_PEER_TRUST_H

#include "tccld/main/daemon.h"

struct peer_trust;

/* NULL without memory. */
struct peer_trust *peer_trust_new(struct daemon *daemon);
/* The configuration has been read: from now on, and as its names are found. Those that have gone
 * stay trusted. */
void peer_trust_reloaded(struct peer_trust *trust);
void peer_trust_free(struct peer_trust *trust); /* NULL is fine */

#endif
