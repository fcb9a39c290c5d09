/* serve-request.h: the head of an HTTP request to tcclacct's page, read strictly. Knows no sockets.
 */
#ifndef TCCL_SERVE_REQUEST_H
#define TCCL_SERVE_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

/* Bounds, in bytes with the NUL. */
enum {
    SERVE_HEAD = 16384, /* a whole head; browsers send all cookies of the host */
    SERVE_PATH = 64,
    SERVE_QUERY = 512,
    SERVE_HOST = 256,
    SERVE_TOKEN = 33, /* 32 hexadecimal digits */
    SERVE_COOKIE = 64 /* name of the cookie */
};

struct serve_request {
    bool head;                /* HEAD: the answer is sent without its body */
    char path[SERVE_PATH];    /* as it was sent, up to '?': no path here needs decoding */
    char query[SERVE_QUERY];  /* behind '?', not decoded */
    char host[SERVE_HOST];    /* Host; "" if there is none */
    char cookie[SERVE_TOKEN]; /* value of the cookie that was asked for, "" if there is none */
};

/* Reads a head with the empty line at its end; of cookies only the one of that name is kept.
 * Returns 0, or the HTTP status to refuse it with: 400 (not HTTP/1, two Hosts, folded lines, NUL),
 * 405 (neither GET nor HEAD), 413 (it has a body), 414 (the target is too long). *request is good
 * in any case, but incomplete after a refusal. */
int serve_request_parse(const char *head, size_t size, const char *cookie,
                        struct serve_request *request);

/* Where the head in data ends: its length with the empty line; 0: it is not whole yet. */
size_t serve_request_end(const char *data, size_t size);

/* A value of the query, decoded. Returns 0; 1 if it isn't there; -1 if it is there twice, too long
 * for size bytes, badly encoded, or has a control character. */
int serve_request_value(const struct serve_request *request, const char *name, char *value,
                        size_t size);

/* Is the Host a name of this machine's loopback, with any port or none? Others lead here only when
 * a name was turned round to point at the browser's own machine (DNS rebinding). */
bool serve_host_is_local(const char *host);

/* Are they equal? Takes as long wherever they differ. */
bool serve_token_equal(const char token[static SERVE_TOKEN], const char *other);

#endif
