/* dial.c: TCP connections with a deadline. getaddrinfo has none, so names are looked up in a thread
 * that is abandoned when time is up. */
#include "client/frame.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"

enum { DROP_MS = 100 };

/* A lookup in the background, in one allocation: if it does not finish in time, it is abandoned
 * with its memory. */
struct lookup {
    struct gaicb request;
    struct addrinfo hints;
    char host[256];
    char port[8];
};

static int wait_lookup(struct lookup *lookup, int64_t deadline)
{
    const struct gaicb *list[1] = {&lookup->request};
    for (;;) {
        int64_t left = deadline - tccl_now_ms();
        if (left <= 0)
            return EAI_AGAIN;
        struct timespec wait = {.tv_sec = left / 1000, .tv_nsec = left % 1000 * 1000000};
        gai_suspend(list, 1, &wait);
        int state = gai_error(&lookup->request);
        if (state != EAI_INPROGRESS)
            return state;
    }
}

static struct addrinfo *look_up_name(const char *host, uint16_t port, int64_t deadline,
                                     struct tccl_error *err)
{
    struct lookup *lookup = calloc(1, sizeof(*lookup));
    struct gaicb *list[1] = {&lookup->request};
    if (!lookup)
        return tccl_fail_null(err, "out of memory");
    snprintf(lookup->host, sizeof(lookup->host), "%s", host);
    snprintf(lookup->port, sizeof(lookup->port), "%u", port);
    lookup->hints.ai_socktype = SOCK_STREAM;
    lookup->request = (struct gaicb){
        .ar_name = lookup->host, .ar_service = lookup->port, .ar_request = &lookup->hints};
    int code = getaddrinfo_a(GAI_NOWAIT, list, 1, NULL);
    if (code == 0)
        code = wait_lookup(lookup, deadline);
    struct addrinfo *found = code == 0 ? lookup->request.ar_result : NULL;
    if (code != 0)
        tccl_fail(err, "%s: %s", host, gai_strerror(code));
    /* Freed unless its thread still uses it, which it does for a moment after the answer. */
    int state = gai_cancel(&lookup->request);
    for (int ms = 0; code == 0 && state == EAI_NOTCANCELED && ms < DROP_MS; ms++) {
        poll(NULL, 0, 1);
        state = gai_cancel(&lookup->request);
    }
    if (state != EAI_NOTCANCELED)
        free(lookup);
    return found;
}

static int connect_until(int fd, const struct addrinfo *address, int64_t deadline)
{
    if (connect(fd, address->ai_addr, address->ai_addrlen) == 0)
        return 0;
    if (errno != EINPROGRESS)
        return -1;
    struct pollfd pollfd = {.fd = fd, .events = POLLOUT};
    int64_t left = deadline - tccl_now_ms();
    if (left < 0 || poll(&pollfd, 1, (int)left) != 1) {
        errno = ETIMEDOUT;
        return -1;
    }
    int code = 0;
    socklen_t size = sizeof(code);
    getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &size);
    errno = code;
    return code ? -1 : 0;
}

/* One of this machine's own: only these can be bound to. */
static bool is_own(const struct addrinfo *address)
{
    struct sockaddr_storage name = {0};
    memcpy(&name, address->ai_addr, address->ai_addrlen);
    ((struct sockaddr_in *)&name)->sin_port = 0; /* at the same place for IPv6 */
    cleanup_close int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return fd >= 0 && bind(fd, (struct sockaddr *)&name, address->ai_addrlen) == 0;
}

/* A socket to reach that address through the device, if one is named; what is here is reached
 * through none. */
static int open_socket(const struct addrinfo *address, const char *device)
{
    cleanup_close int fd =
        socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 ||
        (*device && !is_own(address) &&
         setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, device, (socklen_t)strlen(device)) != 0))
        return -1;
    int opened = fd;
    fd = -1;
    return opened;
}

int tccl_dial_as(const char *whom, const char *device, const char *host, uint16_t port,
                 int64_t deadline, struct tccl_error *err)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST}, *found;
    char number[8];
    snprintf(number, sizeof(number), "%u", port);
    /* A numeric address needs no thread. */
    if (getaddrinfo(host, number, &hints, &found) != 0)
        found = look_up_name(host, port, deadline, err);
    if (!found)
        return -1;
    int connected = -1;
    for (struct addrinfo *each = found; each && connected < 0; each = each->ai_next) {
        cleanup_close int fd = open_socket(each, device);
        if (fd < 0 || connect_until(fd, each, deadline) != 0)
            continue;
        connected = fd;
        fd = -1;
    }
    if (connected < 0)
        tccl_fail(err, "no %s at %s:%u%s%s: %s", whom, host, port, *device ? " through " : "",
                  device, strerror(errno));
    freeaddrinfo(found);
    return connected;
}

int tccl_dial(const char *host, uint16_t port, int64_t deadline, struct tccl_error *err)
{
    return tccl_dial_as("tccld", "", host, port, deadline, err);
}
