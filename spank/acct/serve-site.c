/* serve-site.c: the server of tcclacct's page. */
#include "acct/serve-site.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/listener.h>

#include "acct/serve-listen.h"
#include "acct/serve-pages.h"

enum { KEEP_MS = 2000, KEEP_KIND_MS = 60000, LINGER_MS = 2000, HEADERS = 1024 };

struct site;

/* One connection: one request, one answer. */
struct visit {
    struct visit *next; /* the latest first */
    struct site *site;
    struct bufferevent *stream;
    struct event *late;
    struct serve_request request;
    bool answered; /* what is left is to be sent */
    bool asked;
};

struct site {
    struct event_base *base;
    struct serve_helpers *helpers;
    struct visit *visits;
    int count;
    bool tcp;
    char token[SERVE_TOKEN];   /* TCP only */
    char cookie[SERVE_COOKIE]; /* its name: another port's server has its own */
    char folder[SERVE_TOKEN];  /* where the cookie is sent to, as random as the token */
};

static const char common[] =
    "Connection: close\r\n"
    "Cache-Control: no-store\r\n"
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'\r\n"
    "X-Content-Type-Options: nosniff\r\n"
    "X-Frame-Options: DENY\r\n"
    "Referrer-Policy: no-referrer\r\n"
    "Cross-Origin-Resource-Policy: same-origin\r\n"
    "Cross-Origin-Opener-Policy: same-origin\r\n";

static void leave(struct visit *visit)
{
    struct site *site = visit->site;
    for (struct visit **at = &site->visits; *at; at = &(*at)->next)
        if (*at == visit) {
            *at = visit->next;
            break;
        }
    site->count--;
    serve_helpers_forget(site->helpers, visit);
    event_free(visit->late);
    bufferevent_free(visit->stream);
    free(visit);
}

/* Answers */

static const char *status_word(int status)
{
    static const struct {
        int status;
        const char *word;
    } words[] = {{200, "OK"},
                 {303, "See Other"},
                 {400, "Bad Request"},
                 {403, "Forbidden"},
                 {404, "Not Found"},
                 {405, "Method Not Allowed"},
                 {413, "Content Too Large"},
                 {414, "URI Too Long"},
                 {431, "Request Header Fields Too Large"},
                 {502, "Bad Gateway"},
                 {503, "Service Unavailable"},
                 {504, "Gateway Timeout"}};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (words[i].status == status)
            return words[i].word;
    return "Internal Server Error";
}

static void wait_for(struct visit *visit, int ms)
{
    const struct timeval most = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
    evtimer_add(visit->late, &most);
}

/* extra: header lines, each with its end; may be "". */
static void reply(struct visit *visit, int status, const char *type, const char *extra,
                  const void *body, size_t size)
{
    struct evbuffer *out = bufferevent_get_output(visit->stream);
    visit->answered = true;
    bufferevent_disable(visit->stream, EV_READ);
    evbuffer_add_printf(out,
                        "HTTP/1.1 %d %s\r\n%s%sContent-Type: %s\r\nContent-Length: %zu\r\n\r\n",
                        status, status_word(status), common, extra, type, size);
    if (!visit->request.head)
        evbuffer_add(out, body, size);
    wait_for(visit, SERVE_SEND_MS);
}

static void reply_text(struct visit *visit, int status, const char *text)
{
    reply(visit, status, "text/plain; charset=utf-8", status == 405 ? "Allow: GET, HEAD\r\n" : "",
          text, strlen(text));
}

static void refuse(struct visit *visit, int status)
{
    switch (status) {
    case 404:
        reply_text(visit, status, "There is no such page here.\n");
        break;
    case 405:
        reply_text(visit, status, "Nothing can be changed here: GET and HEAD only.\n");
        break;
    default:
        reply_text(visit, status, "The request is not understood.\n");
    }
}

static void on_told(void *who, int status, const char *body, size_t size)
{
    reply(who, status, "application/json", "", body, size);
}

static void reply_page(struct visit *visit)
{
    for (const struct serve_page *page = serve_pages; page->path; page++)
        if (strcmp(page->path, visit->request.path) == 0) {
            reply(visit, 200, page->type, "", page->data, page->size);
            return;
        }
    refuse(visit, 404);
}

static void reply_api(struct visit *visit)
{
    static const char kind[] = "/api/kind";
    int keep = strncmp(visit->request.path, kind, strlen(kind)) == 0 ? KEEP_KIND_MS : KEEP_MS;
    struct serve_request request = visit->request;
    *request.host = *request.cookie = '\0';
    wait_for(visit, SERVE_SEND_MS); /* the helper has its own, shorter deadline */
    visit->asked = true;
    if (serve_helpers_ask(visit->site->helpers, &request, keep, on_told, visit) != 0)
        reply_text(visit, 503, "Too many are asking at once: try again.\n");
}

/* Who may come in */

/* The URL that was printed: from now on the browser shows a cookie, and the token leaves its
 * address bar. Browsers send cookies to all ports of a host, so to other users' servers, too: this
 * one only to a folder that those can't know. */
static void welcome(struct visit *visit)
{
    const struct site *site = visit->site;
    char extra[HEADERS];
    snprintf(extra, sizeof(extra),
             "Location: /%s/\r\nSet-Cookie: %s=%s; Path=/%s/; HttpOnly; SameSite=Strict\r\n",
             site->folder, site->cookie, site->token, site->folder);
    reply(visit, 303, "text/plain; charset=utf-8", extra, "", 0);
}

static bool knows_token(const struct visit *visit, bool *in_url)
{
    const struct site *site = visit->site;
    char given[SERVE_TOKEN];
    *in_url = serve_request_value(&visit->request, "token", given, sizeof(given)) == 0 &&
              serve_token_equal(site->token, given);
    return *in_url || serve_token_equal(site->token, visit->request.cookie);
}

/* Cuts off the folder. */
static void leave_folder(const struct site *site, char *path)
{
    size_t length = strlen(site->folder);
    if (length && strncmp(path + 1, site->folder, length) == 0 && path[1 + length] == '/')
        memmove(path, path + 1 + length, strlen(path + 1 + length) + 1);
}

static void answer(struct visit *visit)
{
    const struct serve_request *request = &visit->request;
    bool in_url = false;
    leave_folder(visit->site, visit->request.path);
    if (!serve_host_is_local(request->host)) {
        reply_text(visit, 403,
                   "This is served as localhost, 127.0.0.1 or [::1] only: open it by one of "
                   "these names.\n");
        return;
    }
    if (visit->site->tcp && !knows_token(visit, &in_url)) {
        reply_text(visit, 403,
                   "The token is missing or wrong: open the address that tcclacct serve has "
                   "printed. It is a new one each time it starts.\n");
        return;
    }
    if (in_url && strcmp(request->path, "/") == 0)
        welcome(visit);
    else if (strncmp(request->path, "/api/", 5) == 0)
        reply_api(visit);
    else
        reply_page(visit);
}

/* Connections */

static void on_readable(struct bufferevent *stream, void *context)
{
    struct visit *visit = context;
    struct evbuffer *in = bufferevent_get_input(stream);
    size_t size = evbuffer_get_length(in);
    const char *data = (const char *)evbuffer_pullup(in, -1);
    if (visit->answered)
        evbuffer_drain(in, size);
    if (visit->asked || visit->answered || !data)
        return;
    size_t end = serve_request_end(data, size);
    int status = end ? serve_request_parse(data, end, visit->site->cookie, &visit->request)
                 : size >= SERVE_HEAD ? 431
                                      : -1;
    if (status < 0)
        return;
    evbuffer_drain(in, size);
    if (status > 0)
        refuse(visit, status);
    else
        answer(visit);
}

/* All is sent. To close while the other side still writes could take the answer from it again. */
static void on_written(struct bufferevent *stream, void *context)
{
    struct visit *visit = context;
    if (!visit->answered)
        return;
    shutdown(bufferevent_getfd(stream), SHUT_WR);
    bufferevent_enable(stream, EV_READ);
    wait_for(visit, LINGER_MS);
}

static void on_end(struct bufferevent *stream, short what, void *context)
{
    struct visit *visit = context;
    bool sent = visit->answered && evbuffer_get_length(bufferevent_get_output(stream)) == 0;
    /* A client that only writes no more may still wait for its answer. */
    if (!(what & BEV_EVENT_EOF) || sent || !(visit->asked || visit->answered))
        leave(visit);
}

static void on_late(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    leave(context);
}

/* May it go for another one? It has not asked yet, or has been sent all that it asked for. */
static bool can_go(const struct visit *visit)
{
    return visit->answered ? evbuffer_get_length(bufferevent_get_output(visit->stream)) == 0
                           : !visit->asked;
}

/* Room for one more: of those that can go, the one that came first does. */
static bool make_room(struct site *site)
{
    struct visit *oldest = NULL;
    if (site->count < SERVE_VISITS)
        return true;
    for (struct visit *each = site->visits; each; each = each->next)
        if (can_go(each))
            oldest = each;
    if (oldest)
        leave(oldest);
    return oldest != NULL;
}

static struct visit *visit_new(struct site *site, evutil_socket_t fd)
{
    struct visit *visit = calloc(1, sizeof(*visit));
    if (!visit)
        return NULL;
    visit->stream = bufferevent_socket_new(site->base, fd, BEV_OPT_CLOSE_ON_FREE);
    visit->late = evtimer_new(site->base, on_late, visit);
    if (!visit->stream || !visit->late) {
        if (visit->late)
            event_free(visit->late);
        if (visit->stream)
            bufferevent_free(visit->stream);
        free(visit);
        return NULL;
    }
    visit->site = site;
    visit->next = site->visits;
    site->visits = visit;
    site->count++;
    return visit;
}

static void on_accept(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *address,
                      int size, void *context)
{
    (void)listener;
    (void)address;
    (void)size;
    struct site *site = context;
    struct visit *visit = make_room(site) ? visit_new(site, fd) : NULL;
    if (!visit) {
        close(fd);
        return;
    }
    bufferevent_setcb(visit->stream, on_readable, on_written, on_end, visit);
    bufferevent_setwatermark(visit->stream, EV_READ, 0, SERVE_HEAD);
    bufferevent_enable(visit->stream, EV_READ | EV_WRITE);
    wait_for(visit, SERVE_HEAD_MS);
}

/* The whole */

static int make_token(char token[static SERVE_TOKEN], struct tccl_error *err)
{
    unsigned char bytes[(SERVE_TOKEN - 1) / 2];
    if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
        return tccl_fail(err, "no random numbers: %s", strerror(errno));
    for (size_t i = 0; i < sizeof(bytes); i++)
        snprintf(token + 2 * i, 3, "%02x", bytes[i]);
    return 0;
}

static int open_tcp(struct site *site, uint16_t port, int fds[static 2], char *url, size_t size,
                    struct tccl_error *err)
{
    site->tcp = true;
    if (make_token(site->token, err) != 0 || make_token(site->folder, err) != 0 ||
        serve_listen_loopback(&port, fds, err) != 0)
        return -1;
    snprintf(site->cookie, sizeof(site->cookie), "tcclacct-%u", port);
    snprintf(url, size, "http://127.0.0.1:%u/?token=%s", port, site->token);
    return 0;
}

static void on_signal(evutil_socket_t number, short what, void *context)
{
    (void)what;
    if (number == SIGCHLD)
        serve_helpers_reap();
    else
        event_base_loopbreak(context);
}

/* Runs the loop until a signal ends it. */
static void run(struct site *site)
{
    static const int numbers[] = {SIGTERM, SIGINT, SIGHUP, SIGCHLD};
    enum { SIGNALS = sizeof(numbers) / sizeof(numbers[0]) };
    struct event *events[SIGNALS];
    for (int i = 0; i < SIGNALS; i++) {
        events[i] = evsignal_new(site->base, numbers[i], on_signal, site->base);
        if (events[i])
            evsignal_add(events[i], NULL);
    }
    event_base_dispatch(site->base);
    for (int i = 0; i < SIGNALS; i++)
        if (events[i])
            event_free(events[i]);
}

static void listen_and_run(struct site *site, int fds[static 2])
{
    struct evconnlistener *listeners[2] = {NULL, NULL};
    for (int i = 0; i < 2; i++)
        if (fds[i] >= 0)
            listeners[i] =
                evconnlistener_new(site->base, on_accept, site,
                                   LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 0, fds[i]);
    run(site);
    for (int i = 0; i < 2; i++)
        if (listeners[i])
            evconnlistener_free(listeners[i]);
    while (site->visits)
        leave(site->visits);
}

/* The socket's path, if what stands there is still ours. */
static void remove_socket(const char *path, const struct stat *ours)
{
    struct stat now;
    if (lstat(path, &now) == 0 && now.st_dev == ours->st_dev && now.st_ino == ours->st_ino)
        unlink(path);
}

int serve_site_run(const struct serve_place *place,
                   void (*ready)(const struct serve_place *place, const char *url),
                   struct tccl_error *err)
{
    struct site site = {0};
    struct stat ours = {0};
    char url[128] = "";
    int fds[2] = {-1, -1};
    signal(SIGPIPE, SIG_IGN);
    if (place->socket)
        fds[0] = serve_listen_unix(place->socket, err);
    else if (open_tcp(&site, place->port, fds, url, sizeof(url), err) != 0)
        return -1;
    if (fds[0] < 0)
        return -1;
    if (place->socket)
        lstat(place->socket, &ours);
    site.base = event_base_new();
    site.helpers = site.base ? serve_helpers_new(site.base, place->work, place->context) : NULL;
    bool begun = site.helpers != NULL;
    if (begun) {
        ready(place, place->socket ? NULL : url);
        listen_and_run(&site, fds);
    }
    serve_helpers_free(site.helpers);
    if (site.base)
        event_base_free(site.base);
    if (place->socket)
        remove_socket(place->socket, &ours);
    return begun ? 0 : tccl_fail(err, "out of memory");
}
