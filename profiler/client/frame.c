/* frame.c: frames on a blocking or non-blocking descriptor, with a deadline. The runtime shim has
 * this, too: libc only. */
#include "client/frame.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"

enum { BACKLOG_RETRY_MS = 2 };

int tccl_frame_connect(const char *path, int64_t deadline, struct tccl_error *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof(address.sun_path))
        return tccl_fail(err, "%s: a socket's path has at most %zu bytes", path,
                         sizeof(address.sun_path) - 1);
    strcpy(address.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return tccl_fail(err, "socket: %s", strerror(errno));
    while (connect(fd, (const struct sockaddr *)&address, sizeof(address)) != 0 &&
           errno != EISCONN) {
        bool waits = errno == EAGAIN || errno == EINTR; /* EAGAIN: its queue is full (unix(7)) */
        if (!waits || tccl_now_ms() >= deadline) {
            tccl_fail_as(err, TCCL_REASON_NO_DAEMON, "no tccld at %s: %s", path,
                         strerror(waits ? ETIMEDOUT : errno));
            close(fd);
            return -1;
        }
        poll(NULL, 0, BACKLOG_RETRY_MS);
    }
    return fd;
}

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
            return tccl_fail_as(err, TCCL_REASON_NO_DAEMON, "write: %s", strerror(errno));
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
        if (done == 0 || (done < 0 && errno == ECONNRESET))
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

static int read_size(int fd, size_t limit, int64_t deadline, size_t *size, struct tccl_error *err)
{
    unsigned char header[TCCL_FRAME_HEADER];
    int late = read_all(fd, (char *)header, sizeof(header), deadline, err);
    *size = late ? 0 : tccl_frame_size(header);
    if (late || (*size > 0 && *size <= limit))
        return late;
    return tccl_fail_as(err, TCCL_REASON_MESSAGE,
                        "a message of %zu bytes is beyond the limit of %zu", *size, limit);
}

int tccl_frame_take(int fd, char *data, size_t limit, int64_t deadline, size_t *size,
                    struct tccl_error *err)
{
    int late = read_size(fd, limit, deadline, size, err);
    return late ? late : read_all(fd, data, *size, deadline, err);
}

int tccl_frame_read(int fd, size_t limit, int64_t deadline, char **data, size_t *size,
                    struct tccl_error *err)
{
    int late = read_size(fd, limit, deadline, size, err);
    char *text = late ? NULL : malloc(*size + 1);
    if (!late && !text)
        return tccl_fail(err, "out of memory");
    if (!late)
        late = read_all(fd, text, *size, deadline, err);
    if (late) {
        free(text);
        return late;
    }
    text[*size] = '\0';
    *data = text;
    return 0;
}
