#include "tccld/net/peer.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/bufferevent.h>
#include <event2/listener.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "client/envelope.h"
#include "client/frame.h"
#include "client/message.h"
#include "tccld/join/step.h"
#include "tccld/journal/journal.h"
#include "tccld/main/log.h"
#include "tccld/net/frames.h"
#include "tccld/net/replay.h"
#include "tccld/net/seal.h"

struct peer {
    TAILQ_ENTRY(peer) link;
    struct peers *peers;
    int holders;                /* the connection itself, and each task or answer under way */
    bool known;                 /* has shown a good credential */
    bool asking;                /* a question is under way */
    struct bufferevent *stream; /* NULL: closed */
    struct event *timer;
    int64_t due_ms; /* when it fires */
    bool spared;    /* it has fired late once */
    uid_t uid;
    char node[TCCL_CONF_NAME];
    char nonce[TCCL_NONCE];
    char place[128];
};

TAILQ_HEAD(peer_list, peer);

struct peers {
    struct daemon *daemon;
    struct evconnlistener *listeners[4];
    int n_listeners;
    struct peer_list waiting, others; /* waiting: not known yet, the oldest first */
    int n_waiting, n_all;
    struct log_limit malformed, refused, full;
};

enum { PEER_SHORT = 16384 /* a message that need not be counted */ };

static const struct {
    const char *type;
    bool trusted; /* from root, TccldUser and SlurmUser only */
    peer_handler *handle;
} handlers[] = {
    {"call", true, step_call},
    {"merge", true, step_merge},
    {"record", true, journal_receive},
    {"query", false, journal_query_peer},
    {"summary", false, journal_summary_peer},
};

uid_t peer_uid(const struct peer *peer)
{
    return peer->uid;
}

const char *peer_node(const struct peer *peer)
{
    return peer->node;
}

struct peer *peer_hold(struct peer *peer)
{
    peer->holders++;
    return peer;
}

void peer_drop(struct peer *peer)
{
    if (--peer->holders == 0)
        free(peer);
}

bool peer_closed(const struct peer *peer)
{
    return !peer->stream;
}

static void hang_up(struct peer *peer)
{
    struct peers *peers = peer->peers;
    if (!peer->stream)
        return;
    TAILQ_REMOVE(peer->known ? &peers->others : &peers->waiting, peer, link);
    peers->n_waiting -= !peer->known;
    peers->n_all--;
    bufferevent_free(peer->stream);
    event_free(peer->timer);
    peer->stream = NULL;
    peer_drop(peer);
}

static void set_timer(struct peer *peer, int64_t ms)
{
    struct timeval wait = daemon_in(ms);
    peer->due_ms = tccl_now_ms() + ms;
    evtimer_add(peer->timer, &wait);
}

static void on_sealed(void *context, char *cred, const struct tccl_error *err)
{
    struct peer *peer = context;
    if (peer->stream && !cred)
        log_limited(&peer->peers->refused, "no answer to %s (%s): %s", peer->node, peer->place,
                    err->text);
    if (peer->stream && (!cred || frames_add(bufferevent_get_output(peer->stream), cred,
                                             strlen(cred), TCCL_FRAME_TCP) != 0))
        hang_up(peer);
    if (peer->stream) {
        peer->asking = false;
        set_timer(peer, PEER_NEXT_MS);
        bufferevent_trigger(peer->stream, EV_READ, 0); /* for what came meanwhile */
    }
    free(cred);
    peer_drop(peer);
}

void peer_answer(struct peer *peer, json_t *message)
{
    struct daemon *daemon = peer->peers->daemon;
    struct tccl_envelope envelope = {
        .to = peer->node, .from = daemon->conf->node, .epoch = daemon->epoch};
    struct tccl_error err = {0};
    char *text = NULL;
    if (peer->stream && tccl_envelope_put(message, &envelope, &err) == 0 &&
        json_object_set_new(message, "re", json_string(peer->nonce)) == 0)
        text = tccl_message_text(message);
    if (!text || seal_close(daemon, peer->uid, text, tccl_now_ms() + SEAL_PATIENCE_MS, on_sealed,
                            peer, &err) != 0) {
        hang_up(peer);
        peer_drop(peer);
    }
}

static void become_known(struct peer *peer)
{
    struct peers *peers = peer->peers;
    if (peer->known)
        return;
    TAILQ_REMOVE(&peers->waiting, peer, link);
    TAILQ_INSERT_TAIL(&peers->others, peer, link);
    peers->n_waiting--;
    peer->known = true;
}

/* Returns the handler's index, or -1 with err. */
static int check_question(struct peer *peer, uid_t uid, const json_t *message,
                          struct tccl_error *err)
{
    struct daemon *daemon = peer->peers->daemon;
    struct tccl_envelope envelope;
    if (tccl_envelope_get(message, &envelope, err) != 0)
        return -1;
    if (strcmp(envelope.to, daemon->conf->node) != 0)
        return tccl_fail(err, "a message of %s for %s", envelope.from, envelope.to);
    if (!daemon_trusts(daemon, uid))
        envelope.epoch = 0; /* who may only ask can't say that another's tccld was started again */
    if (seen_check(daemon->seen, &envelope, tccl_now_ms() / 1000, err) != 0)
        return -1;
    peer->uid = uid;
    snprintf(peer->node, sizeof(peer->node), "%s", envelope.from);
    memcpy(peer->nonce, envelope.nonce, sizeof(peer->nonce));
    const char *type = tccl_message_type(message);
    for (int i = 0; i < (int)(sizeof(handlers) / sizeof(*handlers)); i++)
        if (strcmp(type, handlers[i].type) == 0)
            return !handlers[i].trusted || daemon_trusts(daemon, uid)
                       ? i
                       : tccl_fail(err, "uid %u may not send \"%s\"", uid, type);
    return tccl_fail(err, "a message of type \"%s\"", type);
}

static void on_opened(void *context, uid_t uid, char *text, size_t size,
                      const struct tccl_error *why)
{
    struct peer *peer = context;
    struct tccl_error err = {0};
    if (peer->stream) {
        bool bounded = size <= PEER_STRANGER || daemon_trusts(peer->peers->daemon, uid);
        if (text && !bounded)
            tccl_fail(&err, "uid %u has sent a message of %zu bytes", uid, size);
        cleanup_json json_t *message =
            text && bounded ? tccl_message_parse(text, size, &err) : NULL;
        int handler = message ? check_question(peer, uid, message, &err) : -1;
        if (handler >= 0) {
            become_known(peer);
            handlers[handler].handle(peer->peers->daemon, peer, message);
        } else {
            log_limited(&peer->peers->refused, "refused a message from %s: %s", peer->place,
                        text ? err.text : why->text);
            hang_up(peer);
        }
    }
    free(text);
    peer_drop(peer);
}

/* Many that begin a long message and don't end it: the longest has to go. */
static void bound_buffers(struct peers *peers)
{
    struct peer *each, *longest = NULL;
    size_t total = 0, most = 0;
    struct peer_list *lists[] = {&peers->waiting, &peers->others};
    for (int i = 0; i < 2; i++) {
        TAILQ_FOREACH(each, lists[i], link)
        {
            size_t size = evbuffer_get_length(bufferevent_get_input(each->stream));
            total += size;
            if (size > most) {
                most = size;
                longest = each;
            }
        }
    }
    if (total <= PEER_BUFFERS)
        return;
    log_limited(&peers->full, "closed the connection from %s: too many unfinished messages",
                longest->place);
    hang_up(longest);
}

static void on_read(struct bufferevent *stream, void *argument)
{
    struct peer *peer = argument;
    struct tccl_error err = {0};
    char *data;
    size_t size;
    size_t waiting = evbuffer_get_length(bufferevent_get_input(stream));
    if (peer->asking) { /* what comes meanwhile has to wait, but a hang-up is seen */
        if (waiting > PEER_SHORT)
            bound_buffers(peer->peers);
        return;
    }
    int taken = frames_take(bufferevent_get_input(stream), TCCL_FRAME_TCP, &data, &size);
    if (taken < 0)
        log_limited(&peer->peers->malformed,
                    "closed the connection from %s: its message is longer than %d bytes",
                    peer->place, TCCL_FRAME_TCP);
    if (taken > 0) {
        peer->asking = true;
        peer->spared = false;
        evtimer_del(peer->timer);
        if (seal_open(peer->peers->daemon, data, tccl_now_ms() + SEAL_PATIENCE_MS, on_opened,
                      peer_hold(peer), &err) == 0)
            return;
        log_limited(&peer->peers->refused, "refused a message from %s: %s", peer->place, err.text);
        peer_drop(peer);
    }
    if (taken != 0)
        hang_up(peer);
    else if (waiting > PEER_SHORT)
        bound_buffers(peer->peers);
}

static void on_event(struct bufferevent *stream, short what, void *argument)
{
    (void)stream;
    (void)what;
    hang_up(argument);
}

static void on_silence(evutil_socket_t fd, short what, void *argument)
{
    struct peer *peer = argument;
    (void)fd;
    (void)what;
    if (daemon_spares(peer->due_ms, &peer->spared)) {
        set_timer(peer, PEER_FIRST_MS);
        return;
    }
    if (!peer->known)
        log_limited(&peer->peers->refused,
                    "closed the connection from %s: no credential within %d ms", peer->place,
                    PEER_FIRST_MS);
    hang_up(peer);
}

static void name_place(struct peer *peer, struct sockaddr *address, int size)
{
    char host[64], port[8];
    if (getnameinfo(address, (socklen_t)size, host, sizeof(host), port, sizeof(port),
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        strcpy(host, "?"), strcpy(port, "?");
    snprintf(peer->place, sizeof(peer->place), "%s:%s", host, port);
}

/* A stranger's crowd must not keep others out: the one who has waited longest has to go. */
static void make_room(struct peers *peers)
{
    struct peer *oldest = TAILQ_FIRST(&peers->others);
    while (oldest && oldest->asking)
        oldest = TAILQ_NEXT(oldest, link);
    if (oldest && peers->n_all >= PEER_MOST)
        hang_up(oldest);
    if (peers->n_waiting < PEER_WAITING)
        return;
    oldest = TAILQ_FIRST(&peers->waiting);
    log_limited(&peers->full, "closed the connection from %s: more than %d wait without credential",
                oldest->place, PEER_WAITING);
    hang_up(oldest);
}

/* Without memory for it. */
static void refuse_connection(struct peer *peer, evutil_socket_t fd)
{
    if (peer->timer)
        event_free(peer->timer);
    if (peer->stream)
        bufferevent_free(peer->stream); /* closes fd */
    else
        close(fd);
    free(peer);
}

static void on_connection(struct evconnlistener *listener, evutil_socket_t fd,
                          struct sockaddr *address, int size, void *argument)
{
    struct peers *peers = argument;
    int one = 1;
    (void)listener;
    make_room(peers);
    struct peer *peer = peers->n_all < PEER_MOST ? calloc(1, sizeof(*peer)) : NULL;
    if (!peer) {
        close(fd);
        return;
    }
    peer->peers = peers;
    peer->holders = 1;
    name_place(peer, address, size);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    peer->timer = evtimer_new(peers->daemon->base, on_silence, peer);
    peer->stream = bufferevent_socket_new(peers->daemon->base, fd, BEV_OPT_CLOSE_ON_FREE);
    if (!peer->timer || !peer->stream) {
        refuse_connection(peer, fd);
        return;
    }
    TAILQ_INSERT_TAIL(&peers->waiting, peer, link);
    peers->n_waiting++;
    peers->n_all++;
    bufferevent_setcb(peer->stream, on_read, NULL, on_event, peer);
    bufferevent_setwatermark(peer->stream, EV_READ, 0, TCCL_FRAME_TCP + TCCL_FRAME_HEADER);
    set_timer(peer, PEER_FIRST_MS);
    bufferevent_enable(peer->stream, EV_READ | EV_WRITE);
}

static int listen_at(struct peers *peers, const struct addrinfo *address)
{
    unsigned flags = LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC | LEV_OPT_REUSEABLE |
                     (address->ai_family == AF_INET6 ? LEV_OPT_BIND_IPV6ONLY : 0);
    struct evconnlistener *listener =
        evconnlistener_new_bind(peers->daemon->base, on_connection, peers, flags, 512,
                                address->ai_addr, (int)address->ai_addrlen);
    if (!listener)
        return -1;
    evconnlistener_set_error_cb(listener, daemon_accept_failed);
    peers->listeners[peers->n_listeners++] = listener;
    return 0;
}

/* Any of the addresses will do, where all addresses are meant (a machine without IPv6). */
static int listen_all(struct peers *peers, struct tccl_error *err)
{
    const struct tccl_conf *conf = peers->daemon->conf;
    const char *host = *conf->bind_addr ? conf->bind_addr : NULL;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE}, *found;
    char port[8];
    int failure = 0;
    snprintf(port, sizeof(port), "%u", conf->port);
    int code = getaddrinfo(host, port, &hints, &found);
    if (code != 0)
        return tccl_fail(err, "BindAddr=%s: %s", conf->bind_addr, gai_strerror(code));
    for (struct addrinfo *each = found; each && peers->n_listeners < 4; each = each->ai_next)
        if (listen_at(peers, each) != 0 && errno != EAFNOSUPPORT && errno != EADDRNOTAVAIL)
            failure = errno;
    freeaddrinfo(found);
    if (failure || !peers->n_listeners)
        return tccl_fail(err, "can't listen at %s:%s: %s", host ? host : "*", port,
                         strerror(failure ? failure : errno));
    return 0;
}

struct peers *peers_listen(struct daemon *daemon, struct tccl_error *err)
{
    struct peers *peers = calloc(1, sizeof(*peers));
    if (!peers) {
        tccl_fail(err, "out of memory");
        return NULL;
    }
    peers->daemon = daemon;
    TAILQ_INIT(&peers->waiting);
    TAILQ_INIT(&peers->others);
    if (listen_all(peers, err) != 0) {
        peers_free(peers);
        return NULL;
    }
    return peers;
}

void peers_stop(struct peers *peers)
{
    struct peer *peer;
    for (int i = 0; i < peers->n_listeners; i++)
        evconnlistener_free(peers->listeners[i]);
    peers->n_listeners = 0;
    while ((peer = TAILQ_FIRST(&peers->waiting)) || (peer = TAILQ_FIRST(&peers->others)))
        hang_up(peer);
}

void peers_free(struct peers *peers)
{
    if (!peers)
        return;
    peers_stop(peers);
    free(peers);
}
