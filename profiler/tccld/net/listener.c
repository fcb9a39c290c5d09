/* What can't be accepted now (no descriptors left) is tried again a little later, and not over and
 * over. Listening has the last priority: with any other one a flood of connections would keep from
 * their turn those who have it, since there is always one more to accept. */
#include "tccld/net/listener.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tccld/main/daemon.h"
#include "tccld/main/log.h"

/* AT_ONCE: accepted before others have their turn. BACKLOG: less where the kernel has less room. */
enum { AT_ONCE = 64, BACKLOG = 4096, PAUSE_MS = 200 };

struct listener {
    struct event *event, *again;
    listener_accepted *accepted;
    void *context;
    int fd;
};

static void listen_again(evutil_socket_t fd, short what, void *argument)
{
    struct listener *listener = argument;
    (void)fd;
    (void)what;
    event_add(listener->event, NULL);
}

static void pause_listening(struct listener *listener)
{
    static struct log_limit limit;
    struct timeval wait = daemon_in(PAUSE_MS);
    log_limited(&limit, "a connection can't be accepted, it is tried again in %d ms: %s", PAUSE_MS,
                strerror(errno));
    event_del(listener->event);
    evtimer_add(listener->again, &wait);
}

static void on_connection(evutil_socket_t fd, short what, void *argument)
{
    struct listener *listener = argument;
    (void)what;
    for (int i = 0; i < AT_ONCE; i++) {
        struct sockaddr_storage address = {0};
        socklen_t size = sizeof(address);
        int accepted =
            accept4(fd, (struct sockaddr *)&address, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (accepted >= 0)
            listener->accepted(listener->context, accepted, (struct sockaddr *)&address, size);
        else if (errno == EAGAIN)
            return;
        else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            pause_listening(listener);
            return;
        }
    }
}

static int open_socket(const struct sockaddr *address, socklen_t size)
{
    int yes = 1, fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    bool good = address->sa_family == AF_UNIX ||
                setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) == 0;
    if (address->sa_family == AF_INET6)
        good = good && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof(yes)) == 0;
    if (good && bind(fd, address, size) == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    int code = errno;
    close(fd);
    errno = code;
    return -1;
}

struct listener *listener_new(struct event_base *base, const struct sockaddr *address,
                              socklen_t size, listener_accepted *accepted, void *context)
{
    int fd = open_socket(address, size);
    struct listener *listener = fd >= 0 ? malloc(sizeof(*listener)) : NULL;
    if (!listener) {
        if (fd >= 0)
            close(fd);
        return NULL;
    }
    *listener = (struct listener){.accepted = accepted, .context = context, .fd = fd};
    listener->event = event_new(base, fd, EV_READ | EV_PERSIST, on_connection, listener);
    listener->again = evtimer_new(base, listen_again, listener);
    if (listener->event && listener->again &&
        event_priority_set(listener->event, DAEMON_PATIENT) == 0 &&
        event_add(listener->event, NULL) == 0)
        return listener;
    listener_free(listener);
    errno = ENOMEM;
    return NULL;
}

void listener_free(struct listener *listener)
{
    if (listener->event)
        event_free(listener->event);
    if (listener->again)
        event_free(listener->again);
    close(listener->fd);
    free(listener);
}
