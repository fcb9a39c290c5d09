/* peer-serve.h: the other end of a NIC's transfer: swallows what comes and sends what is asked for,
 * as fast as it can. */
#ifndef TCCL_PEER_SERVE_H
#define TCCL_PEER_SERVE_H

#include "measure/peer/peer-end.h"

struct tccl_peer_count {
    uint64_t received, sent; /* bytes, without heads */
};

struct tccl_peer_limits {
    int idle_ms;  /* without a block, at most */
    int stall_ms; /* in the middle of one, at most */
};

/* Serves one connection (peer-end.h) until it ends. Allocates TCCL_PEER_PIECE bytes, whatever
 * comes. *count is right in any case. Returns 0: it was closed between blocks, with nothing under
 * way; or -1 with err: it ended in the middle, took too long, or what came is no block. */
int tccl_peer_serve(int fd, const struct tccl_peer_limits *limits, struct tccl_peer_count *count,
                    struct tccl_error *err);

/* The other end in this process, over 127.0.0.1, served by a thread. */
struct tccl_peer_loop;

/* Returns NULL with err; *fd is our end, which the caller closes. */
struct tccl_peer_loop *tccl_peer_loop_open(int *fd, struct tccl_error *err);
/* Closes the other end and frees it; *count (or NULL) is what it has seen. NULL is fine. */
void tccl_peer_loop_close(struct tccl_peer_loop *loop, struct tccl_peer_count *count);

#endif
