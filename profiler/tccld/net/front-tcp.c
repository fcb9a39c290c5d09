/* TCP: a frame is a munge credential that says who made it, with a message in it, which an envelope
 * makes good for this node, once. */
#include "tccld/net/front-tcp.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "client/frame.h"
#include "client/message.h"
#include "tccld/net/replay.h"
#include "tccld/net/seal.h"

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
                       size_t size)
{
    struct tccl_error err = {0};
    (void)size;
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
        return tccl_fail(err, "a message of %s for %s", envelope.from, envelope.to);
    if (!daemon_trusts(daemon, asker->uid))
        envelope.epoch = 0; /* who may only ask can't say that another's tccld was started again */
    if (seen_check(daemon->seen, &envelope, tccl_now_ms() / 1000, err) != 0)
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
    .waiting = 1024,
    .each = 128,
    .each_waiting = 64,
    .first_ms = 1000,
    .next_ms = 10000,
    .meet = meet,
    .cost = cost,
    .open = open_frame,
    .check = check,
    .answer = answer,
};

/* Any of the addresses will do, where all addresses are meant (a machine without IPv6). */
static int listen_all(struct connections *all, const struct tccl_conf *conf, struct tccl_error *err)
{
    const char *host = *conf->bind_addr ? conf->bind_addr : NULL;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE}, *found;
    char port[8];
    int failure = 0;
    bool any = false;
    snprintf(port, sizeof(port), "%u", conf->port);
    int code = getaddrinfo(host, port, &hints, &found);
    if (code != 0)
        return tccl_fail(err, "BindAddr=%s: %s", conf->bind_addr, gai_strerror(code));
    for (struct addrinfo *each = found; each; each = each->ai_next) {
        if (connections_listen(all, each->ai_addr, each->ai_addrlen) == 0)
            any = true;
        else if (errno != EAFNOSUPPORT && errno != EADDRNOTAVAIL)
            failure = errno;
    }
    freeaddrinfo(found);
    if (failure || !any)
        return tccl_fail(err, "can't listen at %s:%s: %s", host ? host : "*", port,
                         strerror(failure ? failure : errno));
    return 0;
}

struct connections *tcp_listen(struct daemon *daemon, struct tccl_error *err)
{
    struct connections *all = connections_new(daemon, &front_tcp, tccld_requests);
    if (!all)
        tccl_fail(err, "out of memory");
    else if (listen_all(all, daemon->conf, err) == 0)
        return all;
    connections_free(all);
    return NULL;
}
