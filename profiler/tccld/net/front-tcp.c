/* TCP: a frame is a munge credential that says who made it, with a message in it, which an envelope
 * makes good for this node, once. */
#include "tccld/net/front.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "client/frame.h"
#include "client/message.h"
#include "tccld/main/metrics.h"
#include "tccld/net/link.h"
#include "tccld/net/resolver.h"

enum { RETRY_MS = 1000, RETRY_MOST_MS = 30000 };

static int meet(int fd, const struct sockaddr *address, socklen_t size, struct asker *asker)
{
    char host[64], port[8];
    int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    if (getnameinfo(address, size, host, sizeof(host), port, sizeof(port),
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        strcpy(host, "?"), strcpy(port, "?");
    snprintf(asker->place, sizeof(asker->place), "%s:%s", host, port);
    return 0;
}

/* One for each 64 KiB that wait for munge. */
static int cost(size_t size)
{
    return 1 + (int)(size >> 16);
}

/* Munge has no part in it, since it may be what keeps others waiting. */
static bool tell(struct daemon *daemon, struct connection *connection, const char *data)
{
    const char *said = seal_is_busy(daemon) ? LINK_BUSY : LINK_IDLE;
    if (strcmp(data, LINK_ASK_BUSY) != 0)
        return false;
    connection_send(connection, said, strlen(said));
    return true;
}

static void on_opened(void *context, uid_t uid, char *text, size_t size,
                      const struct tccl_error *why)
{
    struct connection *connection = context;
    if (text)
        connection_hear(connection, uid, text, size);
    else
        connection_reject(connection, why->text);
    connection_drop(connection);
}

static void open_frame(struct daemon *daemon, struct connection *connection, char *data,
                       size_t size UNUSED)
{
    struct tccl_error err = {0};
    if (seal_open(daemon, data, tccl_now_ms() + SEAL_PATIENCE_MS, on_opened,
                  connection_hold(connection), &err) == 0)
        return;
    connection_reject(connection, err.text);
    connection_drop(connection);
}

static int check(struct daemon *daemon, struct asker *asker, const json_t *message,
                 struct tccl_error *err)
{
    struct tccl_envelope envelope;
    if (tccl_envelope_get(message, &envelope, err) != 0)
        return -1;
    if (strcmp(envelope.to, daemon->conf->node) != 0)
        return tccl_fail(err, "a message from %s for %s, not for this node: is [peers] right?",
                         envelope.from, envelope.to);
    if (!daemon_trusts_maker(daemon, asker->uid))
        envelope.epoch = 0; /* who may only ask can't say that another's tccld was started again */
    if (replay_check(daemon->replay, &envelope, tccl_now_ms() / 1000, err) != 0)
        return -1;
    snprintf(asker->node, sizeof(asker->node), "%s", envelope.from);
    memcpy(asker->nonce, envelope.nonce, sizeof(asker->nonce));
    return 0;
}

static void on_sealed(void *context, char *cred, const struct tccl_error *err)
{
    struct connection *connection = context;
    if (cred)
        connection_send(connection, cred, strlen(cred));
    else
        connection_reject(connection, err->text);
    free(cred);
    connection_drop(connection);
}

static void answer(struct daemon *daemon, struct connection *connection, json_t *message)
{
    const struct asker *asker = connection_asker(connection);
    struct tccl_envelope envelope = {
        .to = asker->node, .from = daemon->conf->node, .epoch = daemon->epoch};
    struct tccl_error err = {0};
    char *text = NULL;
    if (tccl_envelope_put(message, &envelope, &err) == 0 &&
        json_object_set_new(message, "re", json_string(asker->nonce)) == 0)
        text = tccl_message_text(message);
    if (!text) {
        connection_close(connection);
    } else if (seal_close(daemon, asker->uid, text, tccl_now_ms() + SEAL_PATIENCE_MS, on_sealed,
                          connection_hold(connection), &err) != 0) {
        connection_close(connection);
        connection_drop(connection);
    }
}

const struct front front_tcp = {
    .from = FROM_TCP,
    .frame = TCCL_FRAME_TCP,
    .untrusted = 64 << 10,
    .buffered = 24 << 20,
    .most = 2048,
    .each = 128,
    .each_address = 64,
    .first_ms = 1000,
    .next_ms = 10000,
    .tell = tell,
    .meet = meet,
    .cost = cost,
    .open = open_frame,
    .check = check,
    .answer = answer,
};

struct tcp_socket {
    struct daemon *daemon;
    struct connections *all;
    struct lookup *lookup; /* under way */
    struct event *retry;
    int64_t wait_ms;
};

/* This machine has no such address, and never may. */
static bool is_absent(int code)
{
    return code == EAFNOSUPPORT || code == EADDRNOTAVAIL;
}

/* Listens at the addresses where it doesn't yet. Returns 0; or errno, of the one that can be had
 * later. Any of them will do, where all addresses are meant (a machine without IPv6). */
static int listen_all(struct tcp_socket *own, const struct addrinfo *addresses)
{
    bool any = false;
    int failure = 0;
    for (; addresses; addresses = addresses->ai_next)
        if (connections_listen(own->all, addresses->ai_addr, addresses->ai_addrlen) == 0)
            any = true;
        else if (!failure || !is_absent(errno))
            failure = errno;
    return any && is_absent(failure) ? 0 : failure;
}

static const char *host_of(const struct tcp_socket *own)
{
    return *own->daemon->conf->bind_addr ? own->daemon->conf->bind_addr : "*";
}

/* Somebody else may have the port, or the network or DNS is not up: what this node does by itself
 * goes on, and it is tried again. */
static void try_again_later(struct tcp_socket *own, const char *why)
{
    if (!own->wait_ms)
        log_line(
            "can't listen at %s:%u: %s: steps of several nodes have no ring with this one, and "
            "other nodes can't ask it: tried again, at most every %d s",
            host_of(own), own->daemon->conf->port, why, RETRY_MOST_MS / 1000);
    own->wait_ms = own->wait_ms ? 2 * own->wait_ms : RETRY_MS;
    own->wait_ms = own->wait_ms < RETRY_MOST_MS ? own->wait_ms : RETRY_MOST_MS;
    daemon_set(own->retry, own->wait_ms);
}

static void on_addresses(void *context, const struct addrinfo *addresses, const char *why)
{
    struct tcp_socket *own = context;
    own->lookup = NULL;
    int failure = addresses ? listen_all(own, addresses) : 0;
    bool works = addresses && !failure;
    metrics_works(own->daemon->metrics, METRICS_TCP, works);
    if (!works)
        try_again_later(own, failure ? strerror(failure) : why);
    else if (own->wait_ms)
        log_line("listens at %s:%u now", host_of(own), own->daemon->conf->port);
}

/* An address in numbers is one at once; a name takes as long as it takes. */
static void try_listen(struct tcp_socket *own)
{
    const struct tccl_conf *conf = own->daemon->conf;
    const char *host = *conf->bind_addr ? conf->bind_addr : NULL;
    struct addrinfo *found = lookup_numbers(host, conf->port, AI_PASSIVE);
    if (found) {
        on_addresses(own, found, NULL);
        freeaddrinfo(found);
        return;
    }
    own->lookup = lookup_start(own->daemon->names, "", false, host, conf->port, AI_PASSIVE,
                               on_addresses, own);
    if (!own->lookup)
        on_addresses(own, NULL, "too many names are being looked up");
}

static void on_retry(evutil_socket_t fd UNUSED, short what UNUSED, void *own)
{
    try_listen(own);
}

struct tcp_socket *tcp_socket_new(struct daemon *daemon, struct tccl_error *err)
{
    struct tcp_socket *own = calloc(1, sizeof(*own));
    if (own) {
        own->daemon = daemon;
        own->all = connections_new(daemon, &front_tcp, tccld_requests);
        own->retry = evtimer_new(daemon->base, on_retry, own);
    }
    if (own && own->all && own->retry) {
        if (!daemon->alone)
            try_listen(own);
        return own;
    }
    tccl_fail(err, "out of memory");
    tcp_socket_free(own);
    return NULL;
}

void tcp_socket_free(struct tcp_socket *own)
{
    if (!own)
        return;
    connections_free(own->all);
    daemon_drop(own->retry);
    lookup_cancel(own->lookup);
    free(own);
}
