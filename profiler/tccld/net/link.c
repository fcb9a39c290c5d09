/* A question to another node: address, connection, credential and answer, one after the other, each
 * without blocking and all before one deadline. */
#include "tccld/net/link.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <event2/bufferevent.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "client/frame.h"
#include "client/message.h"
#include "tccld/net/front.h"
#include "tccld/net/resolver.h"

/* The kernel of a node whose port is flooded drops what should begin a connection, and ours tries
 * it again only after 1 s, then 3 s: a new one is begun sooner, a few times. */
enum { STALLED_MS = 100, DIAL_AGAIN_MS = 250, DIALS = 6 };

struct link {
    struct daemon *daemon;
    int holders; /* the asker, until it is over, and each task under way */
    bool started, over, connected, sealing, sealed, stalled;
    bool plain; /* no credential goes with it */
    bool heard; /* an answer has come, and is being opened */
    struct address address;
    char node[TCCL_CONF_NAME];
    char nonce[TCCL_NONCE];
    char place[300];
    struct tccl_error early; /* what went wrong before it began */
    char *cred;              /* made, and not sent yet */
    int64_t begun, deadline;
    int64_t wait_ms; /* for the answer, once the message is on its way; 0: until deadline */
    int dials;
    struct event *timer;
    struct bufferevent *stream;
    link_done *done;
    void *context;
};

/* Not inlined: gcc 12 then warns of uses after a free that can't be. */
__attribute__((noinline)) static void drop(struct link *link)
{
    if (--link->holders > 0)
        return;
    free(link->cred);
    free(link);
}

void link_cancel(struct link *link)
{
    link->over = true;
    daemon_drop(link->timer);
    if (link->stream)
        bufferevent_free(link->stream);
    link->timer = NULL;
    link->stream = NULL;
    drop(link);
}

static void finish(struct link *link, json_t *answer, const struct tccl_error *err)
{
    link->holders++;
    link_cancel(link);
    link->done(link->context, answer, err);
    drop(link);
}

__attribute__((format(printf, 3, 4))) static void fail(struct link *link, enum tccl_reason reason,
                                                       const char *fmt, ...)
{
    struct tccl_error err = {0};
    char text[400];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    tccl_fail_as(&err, reason, "%s: %s", link->node, text);
    finish(link, NULL, &err);
}

bool link_failed_here(const struct link *link)
{
    return !link->sealed || link->heard || link->stalled;
}

void link_wait(struct link *link, int64_t ms)
{
    link->wait_ms = ms;
}

bool link_connected(const struct link *link)
{
    return link->connected;
}

static void set_timer(struct link *link)
{
    int64_t ms = link->deadline - tccl_now_ms();
    bool is_dialling = link->stream && !link->connected && link->dials < DIALS;
    daemon_set(link->timer, is_dialling && ms > DIAL_AGAIN_MS ? DIAL_AGAIN_MS : ms);
}

static void begin(struct link *link);
static void connect_now(struct link *link);

static void on_timer(evutil_socket_t fd UNUSED, short what UNUSED, void *argument)
{
    struct link *link = argument;
    if (!link->started) {
        begin(link);
        return;
    }
    if (tccl_now_ms() < link->deadline) {
        if (link->stream && !link->connected)
            connect_now(link);
        else
            set_timer(link);
        return;
    }
    link->stalled = tccl_now_ms() >= link->deadline + STALLED_MS;
    enum tccl_reason reason = TCCL_REASON_NO_ANSWER;
    const char *missing = link->connected ? "answer" : "connection";
    if (!*link->place) {
        missing = "address found";
    } else if (link->sealing) {
        missing = "credential made by munged for it";
        reason = TCCL_REASON_MUNGE;
    }
    fail(link, reason, "no %s within %lld ms (%s)", missing,
         (long long)(tccl_now_ms() - link->begun),
         *link->place ? link->place : "looking up its name");
}

static void send_cred(struct link *link)
{
    if (frames_add(bufferevent_get_output(link->stream), link->cred, strlen(link->cred),
                   TCCL_FRAME_TCP) != 0) {
        fail(link, TCCL_REASON_MESSAGE, "a message of %zu bytes is beyond the limit of %d",
             strlen(link->cred), TCCL_FRAME_TCP);
        return;
    }
    free(link->cred);
    link->cred = NULL;
}

/* The answer must come from a tccld, from the node that was asked, to this node's question. */
static json_t *check_answer(struct link *link, uid_t uid, const char *text, size_t size,
                            struct tccl_error *err)
{
    struct tccl_envelope envelope;
    const char *re = "";
    cleanup_json json_t *answer = tccl_message_parse(text, size, err);
    if (!answer || tccl_envelope_get(answer, &envelope, err) != 0 ||
        tccl_get_text(answer, "re", TCCL_NONCE, &re, err) != 0)
        return NULL;
    if (!daemon_trusts_maker(link->daemon, uid))
        tccl_fail_as(err, TCCL_REASON_MUNGE,
                     "its answer was made by uid %u, which is neither root nor MungeUser", uid);
    else if (strcmp(envelope.to, link->daemon->conf->node) != 0 ||
             strcmp(envelope.from, link->node) != 0 || strcmp(re, link->nonce) != 0)
        tccl_fail(err, "its answer belongs to another question, of %s to %s", envelope.to,
                  envelope.from);
    else if (replay_check(link->daemon->replay, &envelope, tccl_now_ms() / 1000, err) == 0)
        return tccl_steal(answer);
    return NULL;
}

static void on_opened(void *context, uid_t uid, char *text, size_t size,
                      const struct tccl_error *why)
{
    struct link *link = context;
    struct tccl_error err = {0};
    cleanup_json json_t *answer = NULL;
    if (!link->over) {
        if (!text)
            tccl_fail_as(&err, TCCL_REASON_MUNGE, "its answer can't be read: %s", why->text);
        else
            answer = check_answer(link, uid, text, size, &err);
        if (answer)
            finish(link, answer, NULL);
        else
            fail(link, err.reason ? err.reason : TCCL_REASON_MESSAGE, "%s", err.text);
    }
    free(text);
    drop(link);
}

static void on_read(struct bufferevent *stream, void *argument)
{
    struct link *link = argument;
    struct tccl_error err = {0};
    char *data;
    size_t size;
    int taken = frames_take(bufferevent_get_input(stream), TCCL_FRAME_TCP, &data, &size);
    if (taken > 0 && link->plain) {
        bool is_known = strcmp(data, LINK_BUSY) == 0 || strcmp(data, LINK_IDLE) == 0;
        cleanup_json json_t *answer = is_known ? tccl_message_new(data) : NULL;
        if (answer)
            finish(link, answer, NULL);
        else
            fail(link, TCCL_REASON_MESSAGE,
                 "its answer can't be read: it does not say whether it is busy");
        free(data);
    } else if (taken < 0) {
        fail(link, TCCL_REASON_MESSAGE, "its answer is beyond the limit of %d bytes",
             TCCL_FRAME_TCP);
    } else if (taken > 0) {
        bufferevent_disable(stream, EV_READ);
        link->heard = true;
        link->holders++;
        if (seal_open(link->daemon, data, link->deadline, on_opened, link, &err) != 0) {
            drop(link);
            fail(link, TCCL_REASON_MUNGE, "%s", err.text);
        }
    }
}

static void on_event(struct bufferevent *stream UNUSED, short what, void *argument)
{
    struct link *link = argument;
    int code = EVUTIL_SOCKET_ERROR();
    if (what & BEV_EVENT_CONNECTED) {
        int one = 1;
        setsockopt(bufferevent_getfd(link->stream), IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
        link->connected = true;
        send_cred(link);
    } else if (what & BEV_EVENT_EOF)
        fail(link, TCCL_REASON_NO_DAEMON,
             "its tccld (%s) closed the connection without an answer: ask your administrator to "
             "check its clock and munge key",
             link->place);
    else if (code == ECONNREFUSED || (code == 0 && !link->connected))
        fail(link, TCCL_REASON_NO_DAEMON, "connection refused by %s: is its tccld running?",
             link->place);
    else
        fail(link, TCCL_REASON_UNREACHABLE, "no connection to %s: %s", link->place, strerror(code));
}

/* The other side waits only a moment for a message, and munged may take longer: it is there first.
 */
static void connect_if_ready(struct link *link)
{
    if (!*link->place || !link->cred)
        return;
    if (link->wait_ms > 0) {
        link->begun = tccl_now_ms();
        link->deadline = link->begun + link->wait_ms;
    }
    connect_now(link);
}

static void connect_now(struct link *link)
{
    if (link->stream)
        bufferevent_free(link->stream);
    link->dials++;
    link->stream = bufferevent_socket_new(link->daemon->base, -1,
                                          BEV_OPT_CLOSE_ON_FREE | BEV_OPT_DEFER_CALLBACKS);
    if (!link->stream) {
        fail(link, TCCL_REASON_OVERLOAD, "out of memory");
        return;
    }
    set_timer(link);
    bufferevent_setcb(link->stream, on_read, NULL, on_event, link);
    bufferevent_setwatermark(link->stream, EV_READ, 0, TCCL_FRAME_TCP + TCCL_FRAME_HEADER);
    bufferevent_enable(link->stream, EV_READ | EV_WRITE);
    if (bufferevent_socket_connect(link->stream, (const struct sockaddr *)&link->address.sockaddr,
                                   (int)link->address.size) != 0)
        fail(link, TCCL_REASON_UNREACHABLE, "no connection to %s: %s", link->place,
             strerror(errno));
}

static void on_sealed(void *context, char *cred, const struct tccl_error *err)
{
    struct link *link = context;
    link->sealing = false;
    if (link->over) {
        free(cred);
    } else if (!cred) {
        fail(link, TCCL_REASON_MUNGE, "can't sign the question to it: %s", err->text);
    } else {
        link->cred = cred;
        link->sealed = true;
        connect_if_ready(link);
    }
    drop(link);
}

static void on_found(void *context, const struct address *address, const struct tccl_error *err)
{
    struct link *link = context;
    if (link->over) {
        drop(link);
        return;
    }
    if (err) {
        fail(link, err->reason ? err->reason : TCCL_REASON_UNREACHABLE, "%s", err->text);
        drop(link);
        return;
    }
    strcpy(link->place, address->place);
    link->address = *address;
    connect_if_ready(link);
    drop(link);
}

/* Starts when the asker is back on the event loop. */
static void begin(struct link *link)
{
    link->started = true;
    if (link->early.text[0]) {
        fail(link, link->early.reason, "%s", link->early.text);
        return;
    }
    set_timer(link);
    link->holders++; /* on_found's */
    resolver_find(link->daemon->resolver, link->daemon->conf, link->node, on_found, link);
}

static struct link *start(struct link link)
{
    struct link *started = malloc(sizeof(*started));
    if (!started)
        return NULL;
    *started = link;
    started->holders = 1;
    started->begun = tccl_now_ms();
    started->timer = evtimer_new(link.daemon->base, on_timer, started);
    if (!started->timer) {
        free(started);
        return NULL;
    }
    event_active(started->timer, EV_TIMEOUT, 0);
    return started;
}

struct link *link_ask_busy(struct daemon *daemon, const char *node, int64_t deadline,
                           link_done *done, void *context)
{
    struct link link = {.daemon = daemon,
                        .deadline = deadline,
                        .done = done,
                        .context = context,
                        .plain = true,
                        .sealed = true,
                        .cred = strdup(LINK_ASK_BUSY)};
    snprintf(link.node, sizeof(link.node), "%s", node);
    struct link *started = link.cred ? start(link) : NULL;
    if (!started)
        free(link.cred);
    return started;
}

struct link *link_ask(struct daemon *daemon, const char *node, json_t *message, int64_t deadline,
                      link_done *done, void *context)
{
    struct link link = {.daemon = daemon, .deadline = deadline, .done = done, .context = context};
    struct tccl_envelope envelope = {
        .to = node, .from = daemon->conf->node, .epoch = daemon->epoch};
    snprintf(link.node, sizeof(link.node), "%s", node);
    if (tccl_envelope_put(message, &envelope, NULL) != 0)
        return NULL;
    memcpy(link.nonce, envelope.nonce, sizeof(link.nonce));
    char *text = tccl_message_text(message);
    struct link *started = text ? start(link) : NULL;
    if (!started) {
        free(text);
        return NULL;
    }
    if (strlen(text) > LINK_BYTES) {
        tccl_fail_as(&started->early, TCCL_REASON_MESSAGE,
                     "a message of %zu bytes is beyond the limit of %d: too many node classes?",
                     strlen(text), LINK_BYTES);
        free(text);
        return started;
    }
    started->holders++; /* on_sealed's */
    started->sealing = true;
    if (seal_close(daemon, daemon->users.munge, text, deadline, on_sealed, started,
                   &started->early) != 0) {
        tccl_fail_because(&started->early, TCCL_REASON_MUNGE);
        drop(started);
    }
    return started;
}
