/* All connections of a front end: accepting them, and who has to go when there are too many. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/buffer.h>

#include "base/clock.h"
#include "tccld/net/connection-internal.h"

enum {
    TRUSTED = 4,  /* times as many may have said nothing yet, of a trusted address */
    STRANGER = 8, /* connections of a user weigh as much as one of a stranger's address */
    PART = 64,    /* of all that there may be are closed at a time */
    IDLEST = 3
};

int connections_count(const struct connections *all)
{
    return all->n_all;
}

/* Room: a share may have so many connections, and so may all. Where there is no room for a new one
 * an idle one goes: of the share that has the most, so that nobody is shut out by another. */

struct share *connection_owner(const struct connection *connection)
{
    return connection->user ? connection->user : connection->share;
}

static int most_of(const struct front *front, const struct share *share)
{
    if (share->user)
        return share->trusted ? INT_MAX : front->each;
    return front->each_address * (share->trusted ? TRUSTED : 1);
}

/* How soon it goes, of those of one owner: who asks nothing first, then who waits in a line, then
 * who has not read its answer yet. 0: somebody works on its question. */
static int idleness(const struct connection *connection)
{
    if (connection->state == ASKED)
        return connection->held ? 2 : 0;
    return connection->state == LISTENING ? IDLEST : 1;
}

/* How soon it goes: by how many its owner has, where a stranger's address counts more than a user,
 * then by its idleness. Those of trusted users are the last to go. 0: not at all. */
static int rank(const struct connection *connection)
{
    const struct share *owner = connection_owner(connection);
    int fullness = owner->user || owner->trusted ? owner->open : owner->open * STRANGER;
    if (!idleness(connection) || connection->trusted)
        return idleness(connection);
    return fullness * (IDLEST + 1) + idleness(connection);
}

/* Closes those that go first: the oldest of each owner who has as many as the one that has most, at
 * most a part of all. To look through all of them takes as long as it takes to accept ten
 * connections: where each of a flood comes from an address of its own, that is not done for each.
 * of: of this share; NULL: of any. trusted: of trusted users, too. Returns whether there was one.
 */
static bool close_idle(struct connections *all, const struct share *of, bool trusted)
{
    int most = 0, count = 0;
    struct connection *each, *next;
    TAILQ_FOREACH(each, &all->list, link)
    if ((!of || connection_owner(each) == of) && (trusted || !each->trusted) && rank(each) > most)
        most = rank(each);
    for (each = TAILQ_FIRST(&all->list); most && each && count <= all->front->most / PART;
         each = next) {
        next = TAILQ_NEXT(each, link);
        if ((of && connection_owner(each) != of) || (each->trusted && !trusted) ||
            rank(each) != most)
            continue;
        log_limited(
            &all->over_bound,
            "closed the connection from %s: its user or address has %d, and all places are taken",
            each->asker.place, connection_owner(each)->open);
        connection_close(each);
        count++;
    }
    return count > 0;
}

/* Returns whether there is room for one more of the share. */
static bool make_room(struct connections *all, const struct share *share)
{
    return share->open < most_of(all->front, share) || close_idle(all, share, false);
}

bool connections_own(struct connection *connection, struct share *user)
{
    struct share *before = connection_owner(connection);
    if (user == before || !make_room(connection->all, user)) {
        share_drop(user);
        return user == before;
    }
    before->open--;
    user->open++;
    share_drop(connection->user);
    connection->user = user;
    return true;
}

/* Of a message that has come in part or waits, and of answers that wait to be read. */
static size_t bytes_of(const struct connection *connection)
{
    return evbuffer_get_length(bufferevent_get_input(connection->stream)) +
           evbuffer_get_length(bufferevent_get_output(connection->stream)) +
           (connection->held ? connection->held_size : 0);
}

/* Of each owner, too: what could go for him. Returns those of all. */
static size_t count_bytes(struct connections *all)
{
    struct connection *each;
    size_t total = 0;
    TAILQ_FOREACH(each, &all->list, link)
    connection_owner(each)->bytes = 0;
    TAILQ_FOREACH(each, &all->list, link)
    {
        size_t size = bytes_of(each);
        total += size;
        connection_owner(each)->bytes += each->trusted ? 0 : size;
    }
    return total;
}

/* The longest of the owner who has the most, those of trusted addresses last. */
static bool is_longer(const struct connection *a, const struct connection *b)
{
    size_t owner_a = connection_owner(a)->bytes, owner_b = connection_owner(b)->bytes;
    if (a->share->trusted != b->share->trusted)
        return b->share->trusted;
    return owner_a != owner_b ? owner_a > owner_b : bytes_of(a) > bytes_of(b);
}

/* Many may begin a long message and not end it, or not read their answers. None goes whose question
 * is being answered. */
void connections_bound_buffers(struct connections *all)
{
    struct connection *each, *longest = NULL;
    if (count_bytes(all) <= all->front->buffered)
        return;
    TAILQ_FOREACH(each, &all->list, link)
    if (!each->trusted && idleness(each) && bytes_of(each) > 0 &&
        (!longest || is_longer(each, longest)))
        longest = each;
    if (!longest)
        return;
    log_limited(&all->over_bound,
                "closed the connection from %s: too many unfinished messages or unread answers",
                longest->asker.place);
    connection_close(longest);
}

bool connections_add(struct connections *all, int fd, const struct sockaddr *address,
                     socklen_t size)
{
    struct asker asker = {.uid = (uid_t)-1};
    bool far = all->front->from == FROM_TCP; /* users here have no addresses */
    if ((far && !shares_admit(all->daemon->shares, address, tccl_now_ms())) ||
        all->front->meet(fd, address, size, &asker) != 0) {
        close(fd);
        return false;
    }
    struct shares *shares = all->daemon->shares;
    struct share *share =
        asker.uid == (uid_t)-1
            ? share_of_address(shares, address)
            : share_of_user(shares, asker.uid, daemon_trusts(all->daemon, asker.uid));
    if (!share || !make_room(all, share) ||
        (all->n_all >= all->front->most && !close_idle(all, NULL, share->trusted))) {
        share_drop(share);
        close(fd);
        return false;
    }
    struct connection *connection = connection_new(all, fd, &asker, share);
    if (!connection)
        return false;
    if (far)
        memcpy(&connection->address, address, size);
    TAILQ_INSERT_TAIL(&all->list, connection, link);
    all->n_all++;
    share->open++;
    return true;
}

static bool on_connection(void *context, int fd, const struct sockaddr *address, socklen_t size)
{
    return connections_add(context, fd, address, size);
}

int connections_listen(struct connections *all, const struct sockaddr *address, socklen_t size)
{
    for (int i = 0; i < all->n_listeners; i++)
        if (listener_is_at(all->listeners[i], address, size))
            return 0;
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
