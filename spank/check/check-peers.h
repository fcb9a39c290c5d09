/* check-peers.h: can the tccld of another node be reached, and does it accept our credential? */
#ifndef TCCL_CHECK_PEERS_H
#define TCCL_CHECK_PEERS_H

#include <stdint.h>

#include <jansson.h>

#include "client/conf.h"

/* Asks the tccld of a node, also of this one, over TCP with a munge credential. Returns its answer
 * (NODE in profiler/client/README.md), a new reference, or NULL with err. */
json_t *check_peer(const struct tccl_conf *conf, const char *node, int64_t deadline,
                   struct tccl_error *err);

/* What to do about an error of check_peer: a static text. Equal advice has equal pointers. */
const char *check_peer_advice(const char *text);

#endif
