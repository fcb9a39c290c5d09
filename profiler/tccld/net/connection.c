/* One connection:
 *
 *   state     | until                                  | its timer
 *   LISTENING | a frame has come: ASKED                | first_ms, later next_ms
 *   ASKED     | the frame has been opened (TCP: in the | next_ms while it waits for its
 *             | turn of its address), and answered (a  | address's turn, else none
 *             | user's in his turn): ANSWERED          |
 *   ANSWERED  | the answer has been read: LISTENING    | next_ms
 *
 * In each state it can be closed: by its other side, by its timer, by connections.c for lack of
 * room, or since what came is no good. What comes while it isn't LISTENING stays in the kernel's
 * buffers and, up to one frame, in ours. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "client/frame.h"
#include "client/message.h"
#include "tccld/net/connection-internal.h"
#include "tccld/net/front.h"

enum { SHORT = 16384 /* bytes that need not be counted */, MOST_VALUES = 4096 };

uid_t connection_uid(const struct connection *connection)
{
    return connection->asker.uid;
}

bool connection_trusted(const struct connection *connection)
{
    return connection->trusted;
}

pid_t connection_pid(const struct connection *connection)
{
    return connection->asker.pid;
}

const char *connection_node(const struct connection *connection)
{
    return connection->asker.node;
}

const struct asker *connection_asker(const struct connection *connection)
{
    return &connection->asker;
}

bool connection_closed(const struct connection *connection)
{
    char byte;
    if (!connection->stream)
        return true;
    /* It may have gone before the event loop has seen it. */
    ssize_t size =
        recv(bufferevent_getfd(connection->stream), &byte, sizeof(byte), MSG_PEEK | MSG_DONTWAIT);
    return size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR);
}

struct connection *connection_hold(struct connection *connection)
{
    connection->holders++;
    return connection;
}

void connection_close(struct connection *connection)
{
    struct connections *all = connection->all;
    if (!connection->stream)
        return;
    /* libevent would close it by the stream's priority: later than the next ones come. */
    int fd = bufferevent_getfd(connection->stream);
    bufferevent_setfd(connection->stream, -1);
    close(fd);
    TAILQ_REMOVE(&all->list, connection, link);
    all->n_all--; /* it counts no more */
    connection_owner(connection)->open--;
    bufferevent_free(connection->stream);
    event_free(connection->timer);
    connection->stream = NULL;
    if (connection->turn.state == TURN_IN_LINE) { /* who waits in the line holds its connection */
        turn_end(&connection->turn);
        free(tccl_steal(connection->held));
        connection->holders--;
    }
    connection_drop(connection);
}

void connection_drop(struct connection *connection)
{
    if (--connection->holders == 0) {
        /* A turn lasts until the question is answered and the answer has gone, or nobody works on
         * it any more, although the connection has been closed before. */
        turn_end(&connection->turn);
        share_drop(connection->share);
        share_drop(connection->user);
        free(connection);
    } else if (connection->holders == 1 && connection->stream && connection->state == ASKED)
        connection_close(connection);
}

static void set_timer(struct connection *connection, int64_t ms)
{
    connection->due_ms = tccl_now_ms() + ms;
    daemon_set(connection->timer, ms);
}

static const char *what_is_late(const struct connection *connection)
{
    if (connection->state == ANSWERED)
        return "it has not read its answer";
    if (connection->state == ASKED)
        return "too many credentials of its address wait for munge";
    return "it has not sent its message in time";
}

static void on_silence(evutil_socket_t fd UNUSED, short what UNUSED, void *argument)
{
    struct connection *connection = argument;
    if (daemon_spares(connection->due_ms, &connection->spared)) {
        set_timer(connection, connection->all->front->first_ms);
        return;
    }
    if (connection->state == ANSWERED || !connection->known)
        log_limited(&connection->all->closed, "closed the connection from %s: %s",
                    connection->asker.place, what_is_late(connection));
    connection_close(connection);
}

/* Questions */

/* Returns NULL with err. */
static const struct request *find_request(const struct connection *connection, const char *type,
                                          struct tccl_error *err)
{
    const struct connections *all = connection->all;
    for (const struct request *each = all->requests; each->type; each++) {
        if (!(each->from & all->front->from) || strcmp(type, each->type) != 0 ||
            !each->handle_lines == connection->lines)
            continue;
        if (!each->trusted || connection->trusted)
            return each;
        return tccl_fail_null(err, "uid %u may not send \"%s\"", connection->asker.uid, type);
    }
    return tccl_fail_null(err, "a message of type \"%s\"", type);
}

/* At most as many values are in a JSON text: each takes hundreds of bytes when it is parsed. */
static int count_values(const char *text, size_t size)
{
    int count = 0;
    bool quoted = false;
    for (size_t i = 0; i < size; i++) {
        if (quoted && text[i] == '\\')
            i++;
        else if (text[i] == '"')
            quoted = !quoted;
        else if (!quoted)
            count += text[i] == ',' || text[i] == '[' || text[i] == '{';
    }
    return count;
}

/* Returns NULL with err. */
static json_t *read_message(struct connection *connection, const char *text, size_t size,
                            struct tccl_error *err)
{
    const struct front *front = connection->all->front;
    if (!connection->trusted && count_values(text, size) > MOST_VALUES)
        return tccl_fail_null(err, "uid %u has sent a message of more than %d values",
                              connection->asker.uid, MOST_VALUES);
    cleanup_json json_t *message = tccl_message_parse(text, size, err);
    if (message && front->check &&
        front->check(connection->all->daemon, &connection->asker, message, err) != 0)
        return NULL;
    return tccl_steal(message);
}

/* Its priority stays: libevent takes a callback that is deferred out of the wrong list when that
 * changes meanwhile, and the loop then turns for ever and loses events. */
static void become_known(struct connection *connection)
{
    connection->known = true;
    if (!connection->trusted || connection->all->front->from == FROM_UNIX)
        return;
    shares_trust(connection->all->daemon->shares, (struct sockaddr *)&connection->address);
}

static void hear_lines(struct connection *connection, const char *text, size_t size)
{
    struct tccl_error err = {0};
    struct tccl_lines lines;
    const struct request *request = NULL;
    if (tccl_lines_open(text, size, &lines, &err) == 0)
        request = find_request(connection, lines.name, &err);
    if (request && lines.version != 1)
        tccl_fail(&err, "version %d of \"%s\", this tccld knows 1", lines.version, lines.name);
    if (!request || err.text[0]) {
        connection_reject(connection, err.text);
        return;
    }
    become_known(connection);
    request->handle_lines(connection->all->daemon, connection, &lines);
}

static void hear_json(struct connection *connection, const char *text, size_t size)
{
    struct tccl_error err = {0};
    cleanup_json json_t *message = read_message(connection, text, size, &err);
    const struct request *request =
        message ? find_request(connection, tccl_message_type(message), &err) : NULL;
    if (!request) {
        connection_reject(connection, err.text);
        return;
    }
    become_known(connection);
    request->handle(connection->all->daemon, connection, message);
}

static void hear_now(struct connection *connection)
{
    cleanup_free char *text = tccl_steal(connection->held);
    connection->lines = connection->all->front->from == FROM_UNIX && *text != '{';
    if (connection->lines)
        hear_lines(connection, text, connection->held_size);
    else
        hear_json(connection, text, connection->held_size);
}

static void hear_in_turn(void *argument)
{
    struct connection *connection = argument;
    hear_now(connection);
    connection_drop(connection);
}

/* Over TCP a credential says whose the connection is. Returns whether it goes on. */
static bool find_user(struct connection *connection, uid_t uid)
{
    struct daemon *daemon = connection->all->daemon;
    if (connection->all->front->from == FROM_UNIX)
        return true;
    connection->asker.uid = uid;
    connection->trusted = daemon_trusts_maker(daemon, uid);
    struct share *user = share_of_user(daemon->shares, uid, connection->trusted);
    return user && connections_own(connection, user);
}

void connection_hear(struct connection *connection, uid_t uid, char *text, size_t size)
{
    turn_end(&connection->turn);
    if (!connection->stream || !find_user(connection, uid)) {
        free(text);
        connection_close(connection);
        return;
    }
    /* A credential is shorter than the message in it, which munge may have compressed. */
    if (!connection->trusted && size > connection->all->front->untrusted) {
        struct tccl_error err = {0};
        tccl_fail(&err, "uid %u has sent a message of %zu bytes", connection->asker.uid, size);
        free(text);
        connection_reject(connection, err.text);
        return;
    }
    connection->held = text;
    connection->held_size = size;
    if (connection->trusted)
        hear_now(connection);
    else {
        /* The connection may be closed when it returns; it is there as long as the caller holds it.
         */
        struct connections *all = connection->all;
        connection_hold(connection);
        if (turn_take(all->daemon->questions, &connection->turn, connection_owner(connection), 1,
                      hear_in_turn, connection))
            hear_in_turn(connection);
        else if (connection->held_size > SHORT)
            connections_bound_buffers(all);
    }
}

void connection_reject(struct connection *connection, const char *why)
{
    if (!connection->stream)
        return;
    log_limited(&connection->all->refused, "refused a message from %s: %s", connection->asker.place,
                why);
    if (connection->all->front->forgiving)
        connection_refuse(connection, why);
    else
        connection_close(connection);
}

static void open_in_turn(void *argument)
{
    struct connection *connection = argument;
    struct connections *all = connection->all;
    evtimer_del(connection->timer);
    all->front->open(all->daemon, connection, tccl_steal(connection->held), connection->held_size);
    connection_drop(connection);
}

static void take_question(struct connection *connection, char *data, size_t size)
{
    const struct front *front = connection->all->front;
    connection->state = ASKED;
    connection->spared = false;
    if (front->tell && connection->share->trusted && !connection->told) {
        connection->told = true; /* before: telling may end the connection */
        if (front->tell(connection->all->daemon, connection, data)) {
            free(data);
            return;
        }
        connection->told = false;
    }
    connection->held = data;
    connection->held_size = size;
    connection_hold(connection);
    if (!front->cost || turn_take(connection->all->daemon->decoding, &connection->turn,
                                  connection->share, front->cost(size), open_in_turn, connection))
        open_in_turn(connection);
    else
        set_timer(connection, front->next_ms);
}

static void on_read(struct bufferevent *stream, void *argument)
{
    struct connection *connection = argument;
    struct evbuffer *in = bufferevent_get_input(stream);
    bool counts = evbuffer_get_length(in) > SHORT;
    char *data;
    size_t size;
    int taken =
        connection->state == LISTENING ? frames_take(in, connection->limit, &data, &size) : 0;
    if (taken > 0) {
        take_question(connection, data, size);
    } else if (taken < 0) {
        log_limited(&connection->all->refused,
                    "closed the connection from %s: its message is longer than %zu bytes",
                    connection->asker.place, connection->limit);
        connection_close(connection);
    } else if (counts) {
        connections_bound_buffers(connection->all);
    }
}

/* Answers */

void connection_answer(struct connection *connection, json_t *message)
{
    if (connection->stream)
        connection->all->front->answer(connection->all->daemon, connection, message);
}

void connection_answer_lines(struct connection *connection, struct tccl_line_writer *lines)
{
    if (tccl_lines_end(lines) == 0)
        connection_send(connection, lines->text, lines->length);
    else
        connection_close(connection);
}

void connection_answer_ok(struct connection *connection)
{
    if (connection->lines) {
        char text[32];
        struct tccl_line_writer lines;
        tccl_lines_begin(&lines, text, sizeof(text), "tccl-ok", 1);
        connection_answer_lines(connection, &lines);
        return;
    }
    cleanup_json json_t *message = tccl_message_new("ok");
    connection_answer(connection, message);
}

void connection_refuse(struct connection *connection, const char *text)
{
    connection_refuse_as(connection, TCCL_REASON_OTHER, text);
}

void connection_refuse_as(struct connection *connection, enum tccl_reason reason, const char *text)
{
    if (connection->lines) {
        char buffer[1024];
        struct tccl_line_writer lines;
        tccl_lines_begin(&lines, buffer, sizeof(buffer), "tccl-error", 1);
        tccl_line_put(&lines, "text", "%.511s", text);
        connection_answer_lines(connection, &lines);
        return;
    }
    cleanup_json json_t *message = tccl_message_new("error");
    tccl_put_text(message, "text", text, 511);
    tccl_message_put_reason(message, reason, NULL);
    connection_answer(connection, message);
}

void connection_send(struct connection *connection, const char *data, size_t size)
{
    if (!connection->stream)
        return;
    if (frames_add(bufferevent_get_output(connection->stream), data, size,
                   connection->all->front->frame) != 0) {
        connection_close(connection);
        return;
    }
    connection->state = ANSWERED;
    set_timer(connection, connection->all->front->next_ms);
    if (size > SHORT)
        connections_bound_buffers(connection->all);
}

static void on_written(struct bufferevent *stream, void *argument)
{
    struct connection *connection = argument;
    if (connection->state != ANSWERED || evbuffer_get_length(bufferevent_get_output(stream)) > 0)
        return;
    connection->state = LISTENING;
    connection->spared = false;
    turn_end(&connection->turn);
    set_timer(connection, connection->all->front->next_ms);
    on_read(stream, connection); /* for what came meanwhile */
}

static void on_event(struct bufferevent *stream UNUSED, short what UNUSED, void *argument)
{
    connection_close(argument);
}

struct connection *connection_new(struct connections *all, int fd, const struct asker *asker,
                                  struct share *share)
{
    struct connection *connection = calloc(1, sizeof(*connection));
    struct event_base *base = all->daemon->base;
    struct bufferevent *stream =
        connection
            ? bufferevent_socket_new(base, fd, BEV_OPT_CLOSE_ON_FREE | BEV_OPT_DEFER_CALLBACKS)
            : NULL;
    struct event *timer = stream ? evtimer_new(base, on_silence, connection) : NULL;
    if (!timer) {
        if (stream)
            bufferevent_free(stream); /* closes fd */
        else
            close(fd);
        free(connection);
        share_drop(share);
        return NULL;
    }
    bool limited = asker->uid != (uid_t)-1 && !daemon_trusts(all->daemon, asker->uid);
    *connection = (struct connection){.all = all,
                                      .holders = 1,
                                      .trusted = daemon_trusts(all->daemon, asker->uid),
                                      .stream = stream,
                                      .timer = timer,
                                      .limit = limited ? all->front->untrusted : all->front->frame,
                                      .share = share,
                                      .asker = *asker};
    if (!connection->trusted && !share->trusted)
        bufferevent_priority_set(stream, DAEMON_PATIENT);
    bufferevent_setcb(stream, on_read, on_written, on_event, connection);
    bufferevent_setwatermark(stream, EV_READ, 0, connection->limit + TCCL_FRAME_HEADER);
    set_timer(connection, all->front->first_ms);
    bufferevent_enable(stream, EV_READ | EV_WRITE);
    return connection;
}
