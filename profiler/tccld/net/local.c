#include "tccld/net/local.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <event2/bufferevent.h>
#include <event2/listener.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "client/frame.h"
#include "client/message.h"
#include "tccld/join/confirm.h"
#include "tccld/join/step.h"
#include "tccld/join/subset.h"
#include "tccld/journal/journal.h"
#include "tccld/main/log.h"
#include "tccld/net/frames.h"

struct local {
    TAILQ_ENTRY(local) link;
    struct locals *locals;
    int holders;
    bool known, asking;         /* known: has sent a good message; asking: not answered yet */
    bool trusted;               /* root, TccldUser or SlurmUser */
    struct bufferevent *stream; /* NULL: closed */
    struct event *timer;
    int64_t due_ms; /* when it fires */
    bool spared;    /* it has fired late once */
    uid_t uid;
    pid_t pid;
    size_t limit; /* of its messages */
};

TAILQ_HEAD(local_list, local);

struct locals {
    struct daemon *daemon;
    struct evconnlistener *listener;
    struct local_list waiting, others; /* waiting: not known yet, the oldest first */
    int n_waiting, n_all;
    int accepted;        /* in this turn of the loop */
    struct event *again; /* the next turn */
    char path[PATH_MAX];
    int lock;
    struct log_limit refused, crowd;
};

static const struct {
    const char *type;
    bool trusted; /* from root, TccldUser and SlurmUser only */
    local_handler *handle;
} handlers[] = {
    {"announce", true, step_announce},
    {"join", true, step_join},
    {"leave", true, step_leave},
    {"query", false, journal_query_local},
    {"summary", false, journal_summary_local},
    {"chain", false, subset_ask},
    {"confirm", false, confirm_hear},
};

uid_t local_uid(const struct local *local)
{
    return local->uid;
}

bool local_closed(const struct local *local)
{
    char byte;
    if (!local->stream)
        return true;
    /* It may have gone before the event loop has seen it. */
    ssize_t size =
        recv(bufferevent_getfd(local->stream), &byte, sizeof(byte), MSG_PEEK | MSG_DONTWAIT);
    return size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR);
}

struct local *local_hold(struct local *local)
{
    local->holders++;
    return local;
}

void local_drop(struct local *local)
{
    if (--local->holders == 0)
        free(local);
}

static void hang_up(struct local *local)
{
    struct locals *locals = local->locals;
    if (!local->stream)
        return;
    TAILQ_REMOVE(local->known ? &locals->others : &locals->waiting, local, link);
    locals->n_waiting -= !local->known;
    locals->n_all--;
    bufferevent_free(local->stream);
    event_free(local->timer);
    local->stream = NULL;
    local_drop(local);
}

static void set_timer(struct local *local, int64_t ms)
{
    struct timeval wait = daemon_in(ms);
    local->due_ms = tccl_now_ms() + ms;
    evtimer_add(local->timer, &wait);
}

void local_answer(struct local *local, const json_t *message)
{
    if (!local->stream)
        return;
    if (frames_add_json(bufferevent_get_output(local->stream), message, TCCL_FRAME_UNIX) != 0) {
        hang_up(local);
        return;
    }
    local->asking = false;
    set_timer(local, LOCAL_NEXT_MS);
    bufferevent_trigger(local->stream, EV_READ, 0); /* for what came meanwhile */
}

void local_refuse(struct local *local, const char *text)
{
    cleanup_json json_t *message = tccl_message_new("error");
    tccl_put_text(message, "text", text, 511);
    local_answer(local, message);
}

static void become_known(struct local *local)
{
    struct locals *locals = local->locals;
    if (local->known)
        return;
    TAILQ_REMOVE(&locals->waiting, local, link);
    TAILQ_INSERT_TAIL(&locals->others, local, link);
    locals->n_waiting--;
    local->known = true;
}

/* Returns the handler's index, or -1 with err. */
static int check(const struct local *local, const json_t *message, struct tccl_error *err)
{
    const char *type = tccl_message_type(message);
    for (int i = 0; i < (int)(sizeof(handlers) / sizeof(*handlers)); i++)
        if (strcmp(type, handlers[i].type) == 0)
            return !handlers[i].trusted || daemon_trusts(local->locals->daemon, local->uid)
                       ? i
                       : tccl_fail(err, "uid %u may not send \"%s\"", local->uid, type);
    return tccl_fail(err, "a message of type \"%s\"", type);
}

static void hear(struct local *local, const char *data, size_t size)
{
    struct tccl_error err = {0};
    cleanup_json json_t *message = tccl_message_parse(data, size, &err);
    int handler = message ? check(local, message, &err) : -1;
    if (handler >= 0) {
        become_known(local);
        local->asking = true;
        local->spared = false;
        evtimer_del(local->timer);
        handlers[handler].handle(local->locals->daemon, local, message);
        return;
    }
    log_limited(&local->locals->refused, "refused a message from uid %u (pid %d): %s", local->uid,
                local->pid, err.text);
    local_refuse(local, err.text);
}

static void on_read(struct bufferevent *stream, void *argument)
{
    struct local *local = argument;
    char *data;
    size_t size;
    if (local->asking)
        return;
    int taken = frames_take(bufferevent_get_input(stream), local->limit, &data, &size);
    if (taken > 0) {
        hear(local, data, size);
        free(data);
    } else if (taken < 0) {
        log_limited(&local->locals->refused,
                    "closed the connection from uid %u (pid %d): its message is longer than %zu "
                    "bytes",
                    local->uid, local->pid, local->limit);
        hang_up(local);
    }
}

static void on_event(struct bufferevent *stream, short what, void *argument)
{
    (void)stream;
    (void)what;
    hang_up(argument);
}

static void on_silence(evutil_socket_t fd, short what, void *argument)
{
    struct local *local = argument;
    (void)fd;
    (void)what;
    if (daemon_spares(local->due_ms, &local->spared))
        set_timer(local, LOCAL_FIRST_MS);
    else
        hang_up(local);
}

/* The oldest one that can go for a new one: a stranger's, else one of the trusted for another. */
static struct local *oldest_in(const struct local_list *list, bool trusted)
{
    struct local *own = NULL, *local;
    TAILQ_FOREACH(local, list, link)
    {
        if (!local->asking && !local->trusted)
            return local;
        if (!local->asking && !own)
            own = local;
    }
    return trusted ? own : NULL;
}

/* Returns whether there is room for one more. */
static bool make_room(struct locals *locals, bool trusted)
{
    struct local *oldest;
    if (locals->n_all >= LOCAL_MOST && (oldest = oldest_in(&locals->others, trusted)))
        hang_up(oldest);
    if (locals->n_waiting >= LOCAL_WAITING && (oldest = oldest_in(&locals->waiting, trusted)))
        hang_up(oldest);
    return locals->n_all < LOCAL_MOST && locals->n_waiting < LOCAL_WAITING;
}

static int count_of(const struct locals *locals, uid_t uid)
{
    const struct local *local;
    int count = 0;
    TAILQ_FOREACH(local, &locals->waiting, link)
    count += local->uid == uid;
    TAILQ_FOREACH(local, &locals->others, link)
    count += local->uid == uid;
    return count;
}

/* So that those who only connect leave time for all else. */
static void take_turns(struct locals *locals)
{
    static const struct timeval now = {0, 0};
    if (locals->accepted++ == 0)
        evtimer_add(locals->again, &now);
    if (locals->accepted == LOCAL_AT_ONCE)
        evconnlistener_disable(locals->listener);
}

static void next_turn(evutil_socket_t fd, short what, void *argument)
{
    struct locals *locals = argument;
    (void)fd;
    (void)what;
    if (locals->accepted >= LOCAL_AT_ONCE)
        evconnlistener_enable(locals->listener);
    locals->accepted = 0;
}

/* Who connects, and may they? */
static bool admit(struct locals *locals, evutil_socket_t fd, struct ucred *ucred)
{
    socklen_t length = sizeof(*ucred);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, ucred, &length) != 0)
        return false;
    bool trusted = daemon_trusts(locals->daemon, ucred->uid);
    if (!trusted && count_of(locals, ucred->uid) >= LOCAL_EACH) {
        log_limited(&locals->crowd, "closed a connection from uid %u (pid %d), which has %d",
                    ucred->uid, ucred->pid, LOCAL_EACH);
        return false;
    }
    return make_room(locals, trusted);
}

/* Without memory for it. */
static void refuse_connection(struct local *local, evutil_socket_t fd)
{
    if (local->timer)
        event_free(local->timer);
    if (local->stream)
        bufferevent_free(local->stream); /* closes fd */
    else
        close(fd);
    free(local);
}

static void on_connection(struct evconnlistener *listener, evutil_socket_t fd,
                          struct sockaddr *address, int size, void *argument)
{
    struct locals *locals = argument;
    struct ucred ucred;
    (void)listener;
    (void)address;
    (void)size;
    take_turns(locals);
    struct local *local = admit(locals, fd, &ucred) ? calloc(1, sizeof(*local)) : NULL;
    if (!local) {
        close(fd);
        return;
    }
    local->locals = locals;
    local->holders = 1;
    local->uid = ucred.uid;
    local->pid = ucred.pid;
    local->trusted = daemon_trusts(locals->daemon, ucred.uid);
    local->limit = local->trusted ? TCCL_FRAME_UNIX : LOCAL_STRANGER;
    local->timer = evtimer_new(locals->daemon->base, on_silence, local);
    local->stream = bufferevent_socket_new(locals->daemon->base, fd,
                                           BEV_OPT_CLOSE_ON_FREE | BEV_OPT_DEFER_CALLBACKS);
    if (!local->timer || !local->stream) {
        refuse_connection(local, fd);
        return;
    }
    TAILQ_INSERT_TAIL(&locals->waiting, local, link);
    locals->n_waiting++;
    locals->n_all++;
    if (!local->trusted)
        bufferevent_priority_set(local->stream, DAEMON_PATIENT);
    bufferevent_setcb(local->stream, on_read, NULL, on_event, local);
    bufferevent_setwatermark(local->stream, EV_READ, 0, local->limit + TCCL_FRAME_HEADER);
    set_timer(local, LOCAL_FIRST_MS);
    bufferevent_enable(local->stream, EV_READ | EV_WRITE);
}

/* One tccld a socket: whoever holds the lock. */
static int take_lock(struct locals *locals, struct tccl_error *err)
{
    char path[PATH_MAX + 8], pid[32] = "";
    snprintf(path, sizeof(path), "%s.lock", locals->path);
    locals->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (locals->lock < 0)
        return tccl_fail(err, "%s: %s", path, strerror(errno));
    if (flock(locals->lock, LOCK_EX | LOCK_NB) != 0) {
        ssize_t size = pread(locals->lock, pid, sizeof(pid) - 1, 0);
        pid[size > 0 ? strcspn(pid, "\n") : 0] = '\0';
        return tccl_fail(err, "tccld is already running (pid %s, %s)", *pid ? pid : "unknown",
                         locals->path);
    }
    int size = snprintf(pid, sizeof(pid), "%d\n", getpid());
    if (ftruncate(locals->lock, 0) != 0 || pwrite(locals->lock, pid, (size_t)size, 0) != size)
        return tccl_fail(err, "%s: %s", path, strerror(errno));
    return 0;
}

static int connects(const struct sockaddr_un *address)
{
    cleanup_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    return connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0 || errno == EAGAIN;
}

/* Removes a socket that a dead tccld left; anything else in its place stays. */
static int remove_stale(const struct sockaddr_un *address, struct tccl_error *err)
{
    struct stat stat;
    if (lstat(address->sun_path, &stat) != 0)
        return errno == ENOENT ? 0 : tccl_fail(err, "%s: %s", address->sun_path, strerror(errno));
    if (!S_ISSOCK(stat.st_mode))
        return tccl_fail(err, "%s is not a socket: remove it, or set Socket=", address->sun_path);
    if (connects(address))
        return tccl_fail(err, "%s: somebody else listens there", address->sun_path);
    if (unlink(address->sun_path) != 0)
        return tccl_fail(err, "%s: %s", address->sun_path, strerror(errno));
    return 0;
}

int locals_listen(struct locals *locals, struct tccl_error *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(locals->path) >= sizeof(address.sun_path))
        return tccl_fail(err, "Socket=%s: a socket's path has at most %zu bytes", locals->path,
                         sizeof(address.sun_path) - 1);
    strcpy(address.sun_path, locals->path);
    if (remove_stale(&address, err) != 0)
        return -1;
    locals->listener = evconnlistener_new_bind(locals->daemon->base, on_connection, locals,
                                               LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 512,
                                               (struct sockaddr *)&address, sizeof(address));
    if (!locals->listener || chmod(locals->path, 0666) != 0)
        return tccl_fail(err, "Socket=%s: %s", locals->path, strerror(errno));
    evconnlistener_set_error_cb(locals->listener, daemon_accept_failed);
    return 0;
}

struct locals *locals_new(struct daemon *daemon, struct tccl_error *err)
{
    struct locals *locals = calloc(1, sizeof(*locals));
    if (!locals) {
        tccl_fail(err, "out of memory");
        return NULL;
    }
    locals->daemon = daemon;
    locals->lock = -1;
    TAILQ_INIT(&locals->waiting);
    TAILQ_INIT(&locals->others);
    strcpy(locals->path, daemon->conf->socket);
    locals->again = evtimer_new(daemon->base, next_turn, locals);
    if (!locals->again)
        tccl_fail(err, "out of memory");
    if (!locals->again || take_lock(locals, err) != 0) {
        locals_free(locals);
        return NULL;
    }
    return locals;
}

void locals_free(struct locals *locals)
{
    struct local *local;
    if (!locals)
        return;
    if (locals->listener) {
        evconnlistener_free(locals->listener);
        unlink(locals->path);
    }
    while ((local = TAILQ_FIRST(&locals->waiting)) || (local = TAILQ_FIRST(&locals->others)))
        hang_up(local);
    if (locals->again)
        event_free(locals->again);
    if (locals->lock >= 0)
        close(locals->lock); /* the file stays: removing it would let two locks exist */
    free(locals);
}
