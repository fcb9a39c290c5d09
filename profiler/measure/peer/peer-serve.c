/* peer-serve.c: the peer's side of one connection: swallows and sends bytes until it ends. */
#include "measure/peer/peer.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"

enum { ENDED = 1, NO_PROGRESS = 0, PROGRESS = 2 };

struct serving {
    int fd;
    uint64_t head, answer; /* as they are sent */
    size_t head_have, answer_left;
    uint64_t swallow, owed; /* bytes of this block still to come; bytes to be sent */
    struct tccl_peer_count *count;
    unsigned char *buffer;
};

static bool is_idle(const struct serving *serving)
{
    return !serving->head_have && !serving->answer_left && !serving->swallow && !serving->owed;
}

/* What recv or send returned, less than 1. */
static int no_bytes(const struct serving *serving, ssize_t done, struct tccl_error *err)
{
    if (done < 0 && (errno == EAGAIN || errno == EINTR))
        return NO_PROGRESS;
    if (done == 0 && is_idle(serving))
        return ENDED;
    return tccl_fail(err, "closed the connection while it measured%s%s", done < 0 ? ": " : "",
                     done < 0 ? strerror(errno) : "");
}

static int read_head(struct serving *serving, struct tccl_error *err)
{
    ssize_t done = recv(serving->fd, (char *)&serving->head + serving->head_have,
                        sizeof(serving->head) - serving->head_have, MSG_DONTWAIT);
    if (done < 1)
        return no_bytes(serving, done, err);
    serving->head_have += (size_t)done;
    if (serving->head_have < sizeof(serving->head))
        return PROGRESS;
    uint64_t head = be64toh(serving->head), kind = head >> TCCL_PEER_SHIFT;
    uint64_t bytes = head & ((UINT64_C(1) << TCCL_PEER_SHIFT) - 1);
    uint64_t most = kind == TCCL_PEER_DATA     ? TCCL_PEER_PIECE
                    : kind == TCCL_PEER_CREDIT ? TCCL_PEER_WINDOW
                                               : 0;
    serving->head_have = 0;
    if (bytes == 0 || bytes > most)
        return tccl_fail(err, "sends invalid data");
    if (kind == TCCL_PEER_DATA ? serving->owed > 0 : serving->owed + bytes > TCCL_PEER_WINDOW)
        return tccl_fail(err, "asks for too much at once");
    if (kind == TCCL_PEER_DATA)
        serving->swallow = bytes;
    else
        serving->owed += bytes;
    return PROGRESS;
}

static int swallow(struct serving *serving, struct tccl_error *err)
{
    ssize_t done = recv(serving->fd, serving->buffer, serving->swallow, MSG_DONTWAIT);
    if (done < 1)
        return no_bytes(serving, done, err);
    serving->swallow -= (uint64_t)done;
    serving->count->received += (uint64_t)done;
    if (serving->swallow == 0) {
        serving->answer = htobe64(serving->count->received);
        serving->answer_left = sizeof(serving->answer);
    }
    return PROGRESS;
}

/* An answer first, then what was asked for. */
static int give(struct serving *serving, struct tccl_error *err)
{
    bool answers = serving->answer_left > 0;
    size_t size = answers                           ? serving->answer_left
                  : serving->owed < TCCL_PEER_PIECE ? serving->owed
                                                    : TCCL_PEER_PIECE;
    ssize_t done = send(serving->fd,
                        answers ? (void *)((char *)(&serving->answer + 1) - size) : serving->buffer,
                        size, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (done < 1)
        return no_bytes(serving, done, err);
    if (answers) {
        serving->answer_left -= (size_t)done;
    } else {
        serving->owed -= (uint64_t)done;
        serving->count->sent += (uint64_t)done;
    }
    return PROGRESS;
}

static int step(struct serving *serving, const struct tccl_peer_limits *limits,
                struct tccl_error *err)
{
    /* Nothing is read while an answer waits: so at most one does. */
    int in = serving->answer_left > 0 ? NO_PROGRESS
             : serving->swallow > 0   ? swallow(serving, err)
                                      : read_head(serving, err);
    if (in == ENDED || in < 0)
        return in;
    int out = serving->answer_left > 0 || serving->owed > 0 ? give(serving, err) : NO_PROGRESS;
    if (out < 0 || in == PROGRESS || out == PROGRESS)
        return out;
    /* Waits for the next thing to do. */
    bool full = serving->answer_left > 0 || serving->owed > 0;
    struct pollfd ready = {.fd = serving->fd,
                           .events =
                               (short)((serving->answer_left ? 0 : POLLIN) | (full ? POLLOUT : 0))};
    int limit = is_idle(serving) ? limits->idle_ms : limits->stall_ms;
    int rc = poll(&ready, 1, limit);
    if (rc < 0 && errno != EINTR)
        return tccl_fail(err, "poll: %s", strerror(errno));
    if (rc == 0)
        return tccl_fail(err, "silent for %d s", limit / 1000);
    return 0;
}

int tccl_peer_serve(int fd, const struct tccl_peer_limits *limits, struct tccl_peer_count *count,
                    struct tccl_error *err)
{
    cleanup_free unsigned char *buffer = calloc(1, TCCL_PEER_PIECE);
    struct serving serving = {.fd = fd, .count = count, .buffer = buffer};
    int rc;
    *count = (struct tccl_peer_count){0};
    if (!buffer)
        return tccl_fail(err, "out of memory");
    do
        rc = step(&serving, limits, err);
    while (rc >= 0 && rc != ENDED);
    return rc < 0 ? -1 : 0;
}
