/* All connections of a front end: accepting them, and who has to go when there are too many. Those
 * who only connect, or may only ask, must not keep out those whose JOINs are heard. */
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/buffer.h>

#include "base/clock.h"
#include "tccld/net/connection-internal.h"

enum { TRUSTED = 4 /* times as many may have said nothing yet, of a trusted share */ };

int connections_count(const struct connections *all)
{
    return all->n_all;
}

static size_t bytes_of(const struct connection *connection)
{
    return evbuffer_get_length(bufferevent_get_input(connection->stream)) +
           evbuffer_get_length(bufferevent_get_output(connection->stream)) +
           (connection->held ? connection->held_size : 0);
}

/* Many that begin a long message and don't end it, or don't read their answers: the longest has to
 * go. None whose question is being answered. */
void connections_bound_buffers(struct connections *all)
{
    struct connection *each, *longest = NULL;
    size_t total = 0, most = 0;
    TAILQ_FOREACH(each, &all->list, link)
    {
        size_t size = bytes_of(each);
        bool goes = !each->trusted && (each->state != ASKED || each->held) &&
                    (!longest || longest->share->trusted >= each->share->trusted);
        total += size;
        if (goes && (size > most || (longest && longest->share->trusted > each->share->trusted))) {
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

/* Those that are between two questions go for new ones: of who may only ask, else a trusted one for
 * another. The oldest of them. */
static struct connection *oldest_known(const struct connections *all, bool trusted)
{
    struct connection *own = NULL, *each;
    TAILQ_FOREACH(each, &all->list, link)
    {
        if (!each->known || each->state != LISTENING)
            continue;
        if (!each->trusted)
            return each;
        if (!own)
            own = each;
    }
    return trusted ? own : NULL;
}

/* How far a share is filled by those that have said nothing yet. */
static int fullness(const struct share *share)
{
    return share->trusted ? share->waiting : share->waiting * TRUSTED;
}

/* Of those the oldest of the fullest share goes. of: of this share; NULL: of any. */
static struct connection *oldest_waiting(const struct connections *all, const struct share *of)
{
    struct connection *found = NULL, *each;
    TAILQ_FOREACH(each, &all->list, link)
    {
        if (each->known || each->state != LISTENING || (of && each->share != of))
            continue;
        if (!found || fullness(each->share) > fullness(found->share))
            found = each;
    }
    return found;
}

static void make_way(struct connections *all, const struct share *of, int most)
{
    struct connection *old = oldest_waiting(all, of);
    if (!old)
        return;
    log_limited(&all->over_bound,
                "closed the connection from %s: more than %d have said nothing yet",
                old->asker.place, most);
    connection_close(old);
}

/* Returns whether there is room for one more. */
static bool make_room(struct connections *all, const struct asker *asker, const struct share *share)
{
    const struct front *front = all->front;
    int waiting = front->each_waiting * (share->trusted ? TRUSTED : 1);
    struct connection *old;
    if (!share->trusted && share->open >= front->each) {
        log_limited(&all->over_bound, "closed a connection from %s, which has %d", asker->place,
                    front->each);
        return false;
    }
    if (share->waiting >= waiting)
        make_way(all, share, waiting);
    if (all->n_all >= front->most && (old = oldest_known(all, share->trusted)))
        connection_close(old);
    if (all->n_waiting >= front->waiting)
        make_way(all, NULL, front->waiting);
    return share->waiting < waiting && all->n_all < front->most && all->n_waiting < front->waiting;
}

/* Is it the address of a node of [peers]? */
static bool is_peer(const struct tccl_conf *conf, const struct sockaddr *address, socklen_t size)
{
    char host[NI_MAXHOST];
    if (conf->n_peers == 0 ||
        getnameinfo(address, size, host, sizeof(host), NULL, 0, NI_NUMERICHOST) != 0)
        return false;
    for (int i = 0; i < conf->n_peers; i++)
        if (strcmp(conf->peers[i].host, host) == 0)
            return true;
    return false;
}

static struct share *share_of(struct connections *all, const struct asker *asker,
                              const struct sockaddr *address, socklen_t size)
{
    struct daemon *daemon = all->daemon;
    bool unknown = asker->uid == (uid_t)-1;
    struct share *share = unknown ? share_of_address(daemon->shares, address)
                                  : share_of_user(daemon->shares, asker->uid);
    if (!share)
        return NULL;
    if (!unknown)
        share->trusted = daemon_trusts(daemon, asker->uid);
    else if (share->open == 0 && !share->trusted && is_peer(daemon->conf, address, size))
        share_trust(share);
    return share;
}

void connections_forget(struct connection *connection)
{
    connection->all->n_waiting -= !connection->known;
    connection->all->n_all--;
    connection->share->waiting -= !connection->known;
    connection->share->open--;
}

bool connections_add(struct connections *all, int fd, const struct sockaddr *address,
                     socklen_t size)
{
    struct asker asker = {.uid = (uid_t)-1};
    bool far = all->front->from == FROM_TCP; /* users here have no addresses */
    if ((far && !share_admits(all->daemon->shares, address, tccl_now_ms())) ||
        all->front->meet(fd, address, size, &asker) != 0) {
        close(fd);
        return false;
    }
    struct share *share = share_of(all, &asker, address, size);
    if (!share || !make_room(all, &asker, share)) {
        share_drop(share);
        close(fd);
        return false;
    }
    struct connection *connection = connection_new(all, fd, &asker, share);
    if (!connection)
        return false;
    TAILQ_INSERT_TAIL(&all->list, connection, link);
    all->n_waiting++;
    all->n_all++;
    share->waiting++;
    share->open++;
    return true;
}

static bool on_connection(void *context, int fd, const struct sockaddr *address, socklen_t size)
{
    return connections_add(context, fd, address, size);
}

int connections_listen(struct connections *all, const struct sockaddr *address, socklen_t size)
{
    if (all->n_listeners == LISTENERS)
        return 0;
    struct listener *listener = listener_new(all->daemon->base, address, size, on_connection, all);
    if (!listener)
        return -1;
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
    return all;
}

void connections_free(struct connections *all)
{
    if (!all)
        return;
    for (int i = 0; i < all->n_listeners; i++)
        listener_free(all->listeners[i]);
    while (!TAILQ_EMPTY(&all->list))
        connection_close(TAILQ_FIRST(&all->list));
    free(all);
}
