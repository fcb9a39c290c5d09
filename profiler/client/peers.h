/* peers.h: where the tccld of a node listens. */
#ifndef TCCL_PEERS_H
#define TCCL_PEERS_H

#include "client/conf.h"

/* Host and port of a node's tccld: its entry in [peers], else its own name and Port=. *host is
 * borrowed from conf or is node itself. */
void tccl_peer_find(const struct tccl_conf *conf, const char *node, const char **host,
                    uint16_t *port);

/* The first of these nodes that [peers] excludes from rings, NULL: none. *more: how many others
 * are.
 */
const struct tccl_peer *tccl_peer_down(const struct tccl_conf *conf, char *const *nodes, int count,
                                       int *more);

#endif
