/* peer-stream.h: our end of a connection to the other end (peer-end.h): a NIC's transfer moves
 * bytes over it between a region of memory and the network. Never waits. */
#ifndef TCCL_PEER_STREAM_H
#define TCCL_PEER_STREAM_H

#include <poll.h>
#include <stddef.h>

#include "measure/peer/peer-end.h"

struct tccl_peer_stream {
    int fd;
    uint64_t window;       /* bytes under way, at most; set before the first step */
    unsigned char *region; /* where data lie, used round and round; set before each run */
    size_t size;
    /* The rest is this file's. */
    size_t at;
    unsigned char head[TCCL_PEER_HEAD], answer[TCCL_PEER_HEAD];
    size_t head_left, block_left, answer_have;
    uint64_t begun, arrived;    /* sent: in blocks begun; what the other end says that it has */
    uint64_t granted, received; /* bytes asked for; of them here */
};

/* A fresh stream on a connection, which it takes over. */
void tccl_peer_stream_begin(struct tccl_peer_stream *stream, int fd, uint64_t window);
void tccl_peer_stream_close(struct tccl_peer_stream *stream); /* also if it was closed */

/* One step of sending, or of receiving; with more, new blocks are begun or asked for, otherwise
 * only what is under way is ended. Returns 1: something went on; 0: nothing can, now; -1: the
 * connection is lost, or what the other end says is nonsense. */
int tccl_peer_stream_send(struct tccl_peer_stream *stream, bool more);
int tccl_peer_stream_receive(struct tccl_peer_stream *stream, bool more);

/* Bytes that have arrived at the other end, and here, so far: both directions together. */
uint64_t tccl_peer_stream_moved(const struct tccl_peer_stream *stream);
/* Nothing is under way. */
bool tccl_peer_stream_quiet(const struct tccl_peer_stream *stream);
/* Quiet, and the other end is there, as far as one can see without asking it. */
bool tccl_peer_stream_alive(const struct tccl_peer_stream *stream);
/* What to poll for before the next step. */
struct pollfd tccl_peer_stream_poll(const struct tccl_peer_stream *stream);

#endif
