/* All connections of a front end: accepting them, and who has to go when there are too many. Those
 * who only connect, or may only ask, must not keep out those whose JOINs are heard. */
#include <stdlib.h>
#include <unistd.h>

#include <event2/buffer.h>

#include "tccld/net/connection-internal.h"

enum { AT_ONCE = 64 /* accepted before others have their turn */ };

int connections_count(const struct connections *all)
{
    return all->n_all;
}

static size_t bytes_of(const struct connection *connection)
{
    return evbuffer_get_length(bufferevent_get_input(connection->stream)) +
           evbuffer_get_length(bufferevent_get_output(connection->stream));
}

/* Many that begin a long message and don't end it, or don't read their answers: the longest has to
 * go. */
void connections_bound_buffers(struct connections *all)
{
    struct connection *each, *longest = NULL;
    size_t total = 0, most = 0;
    TAILQ_FOREACH(each, &all->list, link)
    {
        size_t size = bytes_of(each);
        total += size;
        if (!each->trusted && size > most) {
            most = size;
            longest = each;
        }
    }
    if (total <= all->front->buffered || !longest)
        return;
    log_limited(&all->over_bound,
                "closed the connection from %s: too many unfinished messages or unread answers",
                longest->asker.place);
    connection_close(longest);
}

/* The oldest one that can go for a new one: of who may only ask, else a trusted one for another. */
static struct connection *oldest(const struct connections *all, bool known, bool trusted)
{
    struct connection *own = NULL, *each;
    TAILQ_FOREACH(each, &all->list, link)
    {
        if (each->known != known || each->state != LISTENING)
            continue;
        if (!each->trusted)
            return each;
        if (!own)
            own = each;
    }
    return trusted ? own : NULL;
}

static int count_of(const struct connections *all, uid_t uid)
{
    const struct connection *each;
    int count = 0;
    TAILQ_FOREACH(each, &all->list, link)
    count += each->asker.uid == uid;
    return count;
}

/* Returns whether there is room for one more. */
static bool make_room(struct connections *all, const struct asker *asker)
{
    const struct front *front = all->front;
    bool unknown = asker->uid == (uid_t)-1;
    bool trusted = unknown || daemon_trusts(all->daemon, asker->uid);
    struct connection *old;
    if (!trusted && front->each && count_of(all, asker->uid) >= front->each) {
        log_limited(&all->over_bound, "closed a connection from %s, which has %d", asker->place,
                    front->each);
        return false;
    }
    if (all->n_all >= front->most && (old = oldest(all, true, trusted)))
        connection_close(old);
    if (all->n_waiting >= front->waiting && (old = oldest(all, false, trusted))) {
        log_limited(&all->over_bound,
                    "closed the connection from %s: more than %d have said nothing yet",
                    old->asker.place, front->waiting);
        connection_close(old);
    }
    return all->n_all < front->most && all->n_waiting < front->waiting;
}

void connections_add(struct connections *all, int fd, const struct sockaddr *address,
                     socklen_t size)
{
    struct asker asker = {.uid = (uid_t)-1};
    if (all->front->meet(fd, address, size, &asker) != 0 || !make_room(all, &asker)) {
        close(fd);
        return;
    }
    struct connection *connection = connection_new(all, fd, &asker);
    if (!connection)
        return;
    TAILQ_INSERT_TAIL(&all->list, connection, link);
    all->n_waiting++;
    all->n_all++;
}

/* Listening */

static void next_turn(evutil_socket_t fd, short what, void *argument)
{
    struct connections *all = argument;
    (void)fd;
    (void)what;
    for (int i = 0; i < all->n_listeners && all->accepted >= AT_ONCE; i++)
        evconnlistener_enable(all->listeners[i]);
    all->accepted = 0;
}

static void on_connection(struct evconnlistener *listener, evutil_socket_t fd,
                          struct sockaddr *address, int size, void *argument)
{
    static const struct timeval now = {0, 0};
    struct connections *all = argument;
    (void)listener;
    /* So that those who only connect leave time for all else. */
    if (all->accepted++ == 0)
        evtimer_add(all->again, &now);
    for (int i = 0; i < all->n_listeners && all->accepted == AT_ONCE; i++)
        evconnlistener_disable(all->listeners[i]);
    connections_add(all, fd, address, (socklen_t)size);
}

int connections_listen(struct connections *all, const struct sockaddr *address, socklen_t size,
                       unsigned flags)
{
    if (all->n_listeners == LISTENERS)
        return 0;
    struct evconnlistener *listener = evconnlistener_new_bind(
        all->daemon->base, on_connection, all,
        LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC | flags, 512, address, (int)size);
    if (!listener)
        return -1;
    evconnlistener_set_error_cb(listener, daemon_accept_failed);
    all->listeners[all->n_listeners++] = listener;
    return 0;
}

struct connections *connections_new(struct daemon *daemon, const struct front *front,
                                    const struct request *requests)
{
    struct connections *all = calloc(1, sizeof(*all));
    if (!all)
        return NULL;
    *all = (struct connections){.daemon = daemon, .front = front, .requests = requests};
    TAILQ_INIT(&all->list);
    all->again = evtimer_new(daemon->base, next_turn, all);
    if (!all->again) {
        free(all);
        return NULL;
    }
    return all;
}

void connections_free(struct connections *all)
{
    if (!all)
        return;
    for (int i = 0; i < all->n_listeners; i++)
        evconnlistener_free(all->listeners[i]);
    while (!TAILQ_EMPTY(&all->list))
        connection_close(TAILQ_FIRST(&all->list));
    event_free(all->again);
    free(all);
}
