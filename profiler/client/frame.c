/* frame.c: frames on a blocking or non-blocking descriptor, with a deadline. */
#include "client/frame.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/clock.h"

void tccl_frame_header(size_t size, unsigned char header[static TCCL_FRAME_HEADER])
{
    for (int i = 0; i < TCCL_FRAME_HEADER; i++)
        header[i] = (unsigned char)(size >> (8 * (TCCL_FRAME_HEADER - 1 - i)));
}

size_t tccl_frame_size(const unsigned char header[static TCCL_FRAME_HEADER])
{
    size_t size = 0;
    for (int i = 0; i < TCCL_FRAME_HEADER; i++)
        size = size << 8 | header[i];
    return size;
}

/* Waits until fd is ready for events. Returns 0; 1 when the time is over; -1 with err. */
static int wait_ready(int fd, short events, int64_t deadline, struct tccl_error *err)
{
    for (;;) {
        int64_t left = deadline - tccl_now_ms();
        if (left < 0)
            left = 0;
        struct pollfd pollfd = {.fd = fd, .events = events};
        int ready = poll(&pollfd, 1, left > INT32_MAX ? INT32_MAX : (int)left);
        if (ready > 0)
            return 0;
        if (ready == 0)
            return 1;
        if (errno != EINTR)
            return tccl_fail(err, "poll: %s", strerror(errno));
    }
}

static int write_all(int fd, const char *data, size_t size, int64_t deadline,
                     struct tccl_error *err)
{
    while (size > 0) {
        ssize_t done = send(fd, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (done >= 0) {
            data += done;
            size -= (size_t)done;
            continue;
        }
        if (errno != EINTR && errno != EAGAIN)
            return tccl_fail(err, "write: %s", strerror(errno));
        int late = wait_ready(fd, POLLOUT, deadline, err);
        if (late)
            return late;
    }
    return 0;
}

static int read_all(int fd, char *data, size_t size, int64_t deadline, struct tccl_error *err)
{
    while (size > 0) {
        ssize_t done = recv(fd, data, size, MSG_DONTWAIT);
        if (done == 0)
            return tccl_fail_as(err, TCCL_REASON_NO_DAEMON,
                                "the connection was closed without an answer");
        if (done > 0) {
            data += done;
            size -= (size_t)done;
            continue;
        }
        if (errno != EINTR && errno != EAGAIN)
            return tccl_fail(err, "read: %s", strerror(errno));
        int late = wait_ready(fd, POLLIN, deadline, err);
        if (late)
            return late;
    }
    return 0;
}

int tccl_frame_write(int fd, const char *data, size_t size, size_t limit, int64_t deadline,
                     struct tccl_error *err)
{
    if (size == 0 || size > limit)
        return tccl_fail_as(err, TCCL_REASON_MESSAGE,
                            "a message of %zu bytes is beyond the limit of %zu", size, limit);
    unsigned char header[TCCL_FRAME_HEADER];
    tccl_frame_header(size, header);
    int late = write_all(fd, (char *)header, sizeof(header), deadline, err);
    return late ? late : write_all(fd, data, size, deadline, err);
}

int tccl_frame_read(int fd, size_t limit, int64_t deadline, char **data, size_t *size,
                    struct tccl_error *err)
{
    unsigned char header[TCCL_FRAME_HEADER];
    int late = read_all(fd, (char *)header, sizeof(header), deadline, err);
    if (late)
        return late;
    *size = tccl_frame_size(header);
    if (*size == 0 || *size > limit)
        return tccl_fail_as(err, TCCL_REASON_MESSAGE,
                            "a message of %zu bytes is beyond the limit of %zu", *size, limit);
    cleanup_free char *text = malloc(*size + 1);
    if (!text)
        return tccl_fail(err, "out of memory");
    late = read_all(fd, text, *size, deadline, err);
    if (late)
        return late;
    text[*size] = '\0';
    *data = tccl_steal(text);
    return 0;
}
