/* check-peers.h: is the tccld of another node reached, and does it believe us? */
#ifndef TCCL_CHECK_PEERS_H
#define TCCL_CHECK_PEERS_H

#include <stdint.h>

#include "client/conf.h"

/* Asks the tccld of a node, this one too, over TCP, by munge. Returns 0, or -1 with err. */
int check_peer(const struct tccl_conf *conf, const char *node, int64_t deadline,
               struct tccl_error *err);

/* What to do about an error of check_peer: one of a few texts, the same pointer for the same. */
const char *check_peer_advice(const char *text);

#endif
