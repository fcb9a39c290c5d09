/* peers.c: the address of a node's tccld. */
#include "client/peers.h"

void tccl_peer_find(const struct tccl_conf *conf, const char *node, const char **host,
                    uint16_t *port)
{
    const struct tccl_peer *peer = tccl_conf_peer(conf, node);
    *host = peer ? peer->host : node;
    *port = peer ? peer->port : conf->port;
}
