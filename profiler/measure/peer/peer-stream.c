/* peer-stream.c: this side of one connection to the peer, never blocking. */
#include "measure/peer/peer.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { QUIET_SECONDS = 10, PROBE_SECONDS = 5, PROBES = 3 };

void tccl_peer_tune(int fd)
{
    static const int options[][3] = {{IPPROTO_TCP, TCP_NODELAY, 1},
                                     {SOL_SOCKET, SO_KEEPALIVE, 1},
                                     {IPPROTO_TCP, TCP_KEEPIDLE, QUIET_SECONDS},
                                     {IPPROTO_TCP, TCP_KEEPINTVL, PROBE_SECONDS},
                                     {IPPROTO_TCP, TCP_KEEPCNT, PROBES}};
    for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++) /* good to have, no more */
        setsockopt(fd, options[i][0], options[i][1], &options[i][2], sizeof(int));
}

void tccl_peer_stream_begin(struct tccl_peer_stream *stream, int fd, uint64_t window)
{
    *stream = (struct tccl_peer_stream){.fd = fd, .window = window};
}

void tccl_peer_stream_close(struct tccl_peer_stream *stream)
{
    if (stream->fd >= 0)
        close(stream->fd);
    stream->fd = -1;
}

/* What a call moved, or that it would have had to wait: bytes, 0, or -1. */
static ssize_t outcome(ssize_t done)
{
    if (done > 0)
        return done;
    return done < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
}

static size_t piece(const struct tccl_peer_stream *stream, uint64_t wanted)
{
    size_t left = stream->size - stream->at;
    size_t most = left < TCCL_PEER_PIECE ? left : TCCL_PEER_PIECE;
    return wanted < most ? wanted : most;
}

static void put_head(struct tccl_peer_stream *stream, enum tccl_peer_kind kind, uint64_t bytes)
{
    stream->head = tccl_peer_head(kind, bytes);
    stream->head_left = sizeof(stream->head);
}

/* Writes what is left of the head and the block. */
static int write_block(struct tccl_peer_stream *stream)
{
    struct iovec parts[2] = {
        {(char *)(&stream->head + 1) - stream->head_left, stream->head_left},
        {stream->region + stream->at, piece(stream, stream->block_left)},
    };
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    if (stream->head_left + stream->block_left == 0)
        return 0;
    ssize_t done = outcome(sendmsg(stream->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL));
    if (done < 1)
        return (int)done;
    size_t head = (size_t)done < stream->head_left ? (size_t)done : stream->head_left;
    stream->head_left -= head;
    stream->block_left -= (size_t)done - head;
    stream->at = (stream->at + (size_t)done - head) % stream->size;
    return 1;
}

/* The other end counts up, block by block. */
static int read_answer(struct tccl_peer_stream *stream)
{
    ssize_t done = outcome(recv(stream->fd, (char *)&stream->answer + stream->answer_have,
                                sizeof(stream->answer) - stream->answer_have, MSG_DONTWAIT));
    if (done < 1)
        return (int)done;
    stream->answer_have += (size_t)done;
    if (stream->answer_have < sizeof(stream->answer))
        return 1;
    stream->answer_have = 0;
    uint64_t arrived = be64toh(stream->answer);
    if (arrived <= stream->arrived || arrived > stream->begun)
        return -1;
    stream->arrived = arrived;
    return 1;
}

int tccl_peer_stream_send(struct tccl_peer_stream *stream, bool more)
{
    int answered = read_answer(stream);
    if (answered < 0)
        return -1;
    if (more && stream->head_left + stream->block_left == 0 &&
        stream->begun - stream->arrived + TCCL_PEER_PIECE <= stream->window) {
        put_head(stream, TCCL_PEER_DATA, TCCL_PEER_PIECE);
        stream->block_left = TCCL_PEER_PIECE;
        stream->begun += TCCL_PEER_PIECE;
    }
    int wrote = write_block(stream);
    return wrote < 0 ? -1 : answered || wrote;
}

static int read_bytes(struct tccl_peer_stream *stream)
{
    uint64_t wanted = stream->granted - stream->received;
    if (wanted == 0)
        return 0;
    ssize_t done =
        outcome(recv(stream->fd, stream->region + stream->at, piece(stream, wanted), MSG_DONTWAIT));
    if (done < 1)
        return (int)done;
    stream->received += (uint64_t)done;
    stream->at = (stream->at + (size_t)done) % stream->size;
    return 1;
}

int tccl_peer_stream_receive(struct tccl_peer_stream *stream, bool more)
{
    int got = read_bytes(stream);
    if (got < 0)
        return -1;
    uint64_t room = stream->window - (stream->granted - stream->received);
    if (more && stream->head_left == 0 && room >= stream->window / 2) {
        put_head(stream, TCCL_PEER_CREDIT, room);
        stream->granted += room;
    }
    int wrote = write_block(stream);
    return wrote < 0 ? -1 : got || wrote;
}

uint64_t tccl_peer_stream_moved(const struct tccl_peer_stream *stream)
{
    return stream->arrived + stream->received;
}

bool tccl_peer_stream_quiet(const struct tccl_peer_stream *stream)
{
    return stream->head_left + stream->block_left == 0 && stream->begun == stream->arrived &&
           stream->granted == stream->received;
}

bool tccl_peer_stream_alive(const struct tccl_peer_stream *stream)
{
    unsigned char byte;
    return stream->fd >= 0 && tccl_peer_stream_quiet(stream) &&
           recv(stream->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

struct pollfd tccl_peer_stream_poll(const struct tccl_peer_stream *stream)
{
    bool full = stream->head_left + stream->block_left > 0;
    return (struct pollfd){.fd = stream->fd, .events = (short)(POLLIN | (full ? POLLOUT : 0))};
}
