/* So many are accepted in a millisecond, and of those that are turned away at once eight times as
 * many, ahead of users' questions, so that a step is heard at once; then these have their turn, as
 * many as there are, but for no longer than about a millisecond: nobody is to fill the backlog.
 * What can't be accepted now (no descriptors left) is tried again a little later, and not over and
 * over. */
#include "tccld/net/front.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83 /* Linux 6.16 */
#endif

/* BACKLOG: less where the kernel has less room. */
enum {
    COST = 8 /* of a connection; of one turned away: 1 */,
    IN_A_MS = 32 * COST,
    BACKLOG = 4096,
    PAUSE_MS = 200
};

struct listener {
    struct event *event, *again, *turn; /* turn: the others have had theirs */
    listener_accepted *accepted;
    void *context;
    struct sockaddr_storage address;
    int fd, left; /* left: in this millisecond */
    int64_t ms;
};

static void listen_again(evutil_socket_t fd UNUSED, short what UNUSED, void *argument)
{
    struct listener *listener = argument;
    listener->left = IN_A_MS;
    event_del(listener->again);
    event_del(listener->turn);
    event_add(listener->event, NULL);
}

static void pause_listening(struct listener *listener, int ms)
{
    event_del(listener->event);
    daemon_set(listener->again, ms);
}

/* Returns whether it was something that passes with the next one. */
static bool accept_failed(struct listener *listener)
{
    static struct log_limit limit;
    if (errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM)
        return errno != EAGAIN;
    log_limited(&limit, "a connection can't be accepted, it is tried again in %d ms: %s", PAUSE_MS,
                strerror(errno));
    pause_listening(listener, PAUSE_MS);
    return false;
}

static void on_connection(evutil_socket_t fd, short what UNUSED, void *argument)
{
    struct listener *listener = argument;
    int64_t now = tccl_now_ms();
    if (now != listener->ms)
        listener->left = IN_A_MS;
    listener->ms = now;
    while (listener->left > 0) {
        struct sockaddr_storage address = {0};
        socklen_t size = sizeof(address);
        int accepted =
            accept4(fd, (struct sockaddr *)&address, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (accepted < 0 && !accept_failed(listener))
            return;
        bool taken = accepted >= 0 && listener->accepted(listener->context, accepted,
                                                         (struct sockaddr *)&address, size);
        listener->left -= taken ? COST : 1;
    }
    pause_listening(listener, 1);
    daemon_set(listener->turn, 0);
}

static int open_socket(const struct sockaddr *address, socklen_t size)
{
    int no = 0, yes = 1,
        fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    /* Nobody passes us descriptors, nor to those that are accepted. What a user passes ends with us
     * when it is thrown away, in the event loop: a TCP socket with SO_LINGER and data that nobody
     * reads keeps it there as long as he likes. Before Linux 6.16 that can't be refused. */
    if (address->sa_family == AF_UNIX)
        setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &no, sizeof(no));
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
    memcpy(&listener->address, address, size);
    listener->event = event_new(base, fd, EV_READ | EV_PERSIST, on_connection, listener);
    listener->again = evtimer_new(base, listen_again, listener);
    listener->turn = evtimer_new(base, listen_again, listener);
    if (listener->event && listener->again && listener->turn &&
        event_priority_set(listener->turn, DAEMON_PATIENT) == 0 &&
        event_add(listener->event, NULL) == 0)
        return listener;
    listener_free(listener);
    errno = ENOMEM;
    return NULL;
}

bool listener_is_at(const struct listener *listener, const struct sockaddr *address, socklen_t size)
{
    return memcmp(&listener->address, address, size) == 0;
}

void listener_free(struct listener *listener)
{
    daemon_drop(listener->event);
    daemon_drop(listener->again);
    daemon_drop(listener->turn);
    close(listener->fd);
    free(listener);
}
