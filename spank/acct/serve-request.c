/* serve-request.c: the head of an HTTP request. */
#include "acct/serve-request.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

enum { OK = 0, BAD = 400, WRONG_METHOD = 405, HAS_BODY = 413, TOO_LONG = 414 };

/* A piece of the head. */
struct span {
    const char *at;
    size_t size;
};

static bool span_is(struct span span, const char *text)
{
    return span.size == strlen(text) && strncasecmp(span.at, text, span.size) == 0;
}

/* Cuts the next line, without its end. */
static bool next_line(struct span *rest, struct span *line)
{
    const char *end = memchr(rest->at, '\n', rest->size);
    if (!end)
        return false;
    *line = (struct span){rest->at, (size_t)(end - rest->at)};
    rest->size -= line->size + 1;
    rest->at = end + 1;
    if (line->size > 0 && line->at[line->size - 1] == '\r')
        line->size--;
    return true;
}

static struct span trim(struct span span)
{
    while (span.size > 0 && (*span.at == ' ' || *span.at == '\t')) {
        span.at++;
        span.size--;
    }
    while (span.size > 0 && (span.at[span.size - 1] == ' ' || span.at[span.size - 1] == '\t'))
        span.size--;
    return span;
}

/* What stands before the character, which is cut off with it; all of it where it isn't there. */
static struct span cut(struct span *rest, char at)
{
    const char *end = memchr(rest->at, at, rest->size);
    struct span part = {rest->at, end ? (size_t)(end - rest->at) : rest->size};
    size_t used = part.size + (end != NULL);
    *rest = (struct span){rest->at + used, rest->size - used};
    return part;
}

/* Visible ASCII only. */
static bool copy(struct span span, char *text, size_t size)
{
    if (span.size >= size)
        return false;
    for (size_t i = 0; i < span.size; i++)
        if (span.at[i] <= ' ' || span.at[i] > '~')
            return false;
    memcpy(text, span.at, span.size);
    text[span.size] = '\0';
    return true;
}

static int take_target(struct span target, struct serve_request *request)
{
    struct span path = cut(&target, '?');
    if (path.size == 0 || *path.at != '/')
        return BAD;
    if (path.size >= sizeof(request->path) || target.size >= sizeof(request->query))
        return TOO_LONG;
    return copy(path, request->path, sizeof(request->path)) &&
                   copy(target, request->query, sizeof(request->query))
               ? OK
               : BAD;
}

static int take_request_line(struct span line, struct serve_request *request)
{
    struct span method = cut(&line, ' '), target = cut(&line, ' ');
    if (!span_is(line, "HTTP/1.1") && !span_is(line, "HTTP/1.0"))
        return BAD;
    request->head = method.size == 4 && memcmp(method.at, "HEAD", 4) == 0;
    if (!request->head && !(method.size == 3 && memcmp(method.at, "GET", 3) == 0))
        return WRONG_METHOD;
    return take_target(target, request);
}

/* The first cookie of that name counts. One that is longer than a token is none. */
static void take_cookies(struct span list, const char *name, struct serve_request *request)
{
    while (list.size > 0) {
        struct span value = trim(cut(&list, ';')), key = trim(cut(&value, '='));
        if (!*request->cookie && key.size == strlen(name) && memcmp(key.at, name, key.size) == 0)
            copy(trim(value), request->cookie, sizeof(request->cookie));
    }
}

static int take_header(struct span line, const char *cookie, struct serve_request *request)
{
    if (!memchr(line.at, ':', line.size))
        return BAD;
    struct span name = cut(&line, ':'), value = trim(line);
    if (name.size == 0 || memchr(name.at, ' ', name.size) || memchr(name.at, '\t', name.size))
        return BAD;
    if (span_is(name, "Host"))
        return !*request->host && value.size > 0 &&
                       copy(value, request->host, sizeof(request->host))
                   ? OK
                   : BAD;
    if (span_is(name, "Transfer-Encoding") ||
        (span_is(name, "Content-Length") && !span_is(value, "0")))
        return HAS_BODY;
    if (span_is(name, "Cookie"))
        take_cookies(value, cookie, request);
    return OK;
}

int serve_request_parse(const char *head, size_t size, const char *cookie,
                        struct serve_request *request)
{
    struct span rest = {head, size}, line;
    *request = (struct serve_request){0};
    if (memchr(head, '\0', size) || !next_line(&rest, &line))
        return BAD;
    int status = take_request_line(line, request);
    while (status == OK && next_line(&rest, &line) && line.size > 0)
        status = take_header(line, cookie, request);
    return status;
}

size_t serve_request_end(const char *data, size_t size)
{
    struct span rest = {data, size}, line;
    bool any = false;
    while (next_line(&rest, &line)) {
        if (line.size == 0 && any)
            return size - rest.size;
        any = true;
    }
    return 0;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return isxdigit((unsigned char)c) ? tolower((unsigned char)c) - 'a' + 10 : -1;
}

static int decode(struct span text, char *value, size_t size)
{
    size_t used = 0;
    for (size_t i = 0; i < text.size; i++) {
        unsigned char c = (unsigned char)text.at[i];
        if (c == '%') {
            int high = i + 2 < text.size ? hex_digit(text.at[i + 1]) : -1;
            int low = i + 2 < text.size ? hex_digit(text.at[i + 2]) : -1;
            if (high < 0 || low < 0)
                return -1;
            c = (unsigned char)(high * 16 + low);
            i += 2;
        }
        if (used + 1 >= size || c < ' ' || c == 0x7f)
            return -1;
        value[used++] = (char)c;
    }
    value[used] = '\0';
    return 0;
}

int serve_request_value(const struct serve_request *request, const char *name, char *value,
                        size_t size)
{
    struct span rest = {request->query, strlen(request->query)};
    int found = 1;
    while (rest.size > 0) {
        struct span text = cut(&rest, '&'), key = cut(&text, '=');
        if (key.size != strlen(name) || memcmp(key.at, name, key.size) != 0)
            continue;
        if (found != 1 || decode(text, value, size) != 0)
            return -1;
        found = 0;
    }
    return found;
}

bool serve_host_is_local(const char *host)
{
    static const char *const names[] = {"localhost", "127.0.0.1", "[::1]"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        size_t length = strlen(names[i]);
        if (strncasecmp(host, names[i], length) != 0)
            continue;
        const char *port = host + length;
        if (!*port ||
            (*port == ':' && port[1] && strspn(port + 1, "0123456789") == strlen(port + 1)))
            return true;
    }
    return false;
}

bool serve_token_equal(const char token[static SERVE_TOKEN], const char *other)
{
    unsigned char differs = strlen(other) != SERVE_TOKEN - 1;
    size_t length = strlen(other);
    for (size_t i = 0; i < SERVE_TOKEN - 1; i++)
        differs |= (unsigned char)(token[i] ^ (length ? other[i % length] : 1));
    return differs == 0;
}
