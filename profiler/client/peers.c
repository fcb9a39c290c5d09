/* peers.c: the address of a node's tccld; nodes that are excluded from rings. */
#include "client/peers.h"

#include <stddef.h>

void tccl_peer_find(const struct tccl_conf *conf, const char *node, const char **host,
                    uint16_t *port)
{
    const struct tccl_peer *peer = tccl_conf_peer(conf, node);
    *host = peer ? peer->host : node;
    *port = peer ? peer->port : conf->port;
}

const struct tccl_peer *tccl_peer_down(const struct tccl_conf *conf, char *const *nodes, int count,
                                       int *more)
{
    const struct tccl_peer *first = NULL;
    *more = 0;
    for (int i = 0; conf->n_down && i < count; i++) {
        const struct tccl_peer *peer = tccl_conf_peer(conf, nodes[i]);
        if (!peer || !peer->down)
            continue;
        *more += first != NULL;
        first = first ? first : peer;
    }
    return first;
}
