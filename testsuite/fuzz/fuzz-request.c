/* What a browser, or anybody else on the machine, sends to tcclacct's page: the head of an HTTP
 * request. Then the same bytes as what squeue prints. */
#include <string.h>

#include "acct/serve-request.h"
#include "acct/serve-running.h"
#include "base/cleanup.h"
#include "fuzz.h"

static const char cookie[] = "tcclacct-80";

static bool is_visible(const char *text)
{
    for (; *text; text++)
        if (*text <= ' ' || *text > '~')
            return false;
    return true;
}

/* More bytes behind a whole head don't move its end. */
static void check_end(const char *head, size_t size)
{
    size_t end = serve_request_end(head, size);
    FUZZ_CHECK(end <= size);
    for (size_t less = 0; less < end; less += 1 + end / 16)
        FUZZ_CHECK(serve_request_end(head, less) == 0);
    if (end)
        FUZZ_CHECK(head[end - 1] == '\n' && serve_request_end(head, end) == end);
}

static void check_values(const struct serve_request *request)
{
    static const char *const names[] = {"range", "step", ""};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        char value[24];
        if (serve_request_value(request, names[i], value, sizeof(value)) != 0)
            continue;
        FUZZ_CHECK(memchr(value, '\0', sizeof(value)));
        for (const char *at = value; *at; at++)
            FUZZ_CHECK((unsigned char)*at >= ' ' && *at != 0x7f);
        FUZZ_CHECK(strstr(request->query, names[i]));
    }
}

/* What was read, written again, reads the same. */
static void check_again(const struct serve_request *request)
{
    struct serve_request again;
    cleanup_free char *head = NULL;
    int size = asprintf(&head, "%s %s?%s HTTP/1.0\n%s%s%s%s; x; %s=%s\r\n\r\n",
                        request->head ? "HEAD" : "GET", request->path, request->query,
                        *request->host ? "host:" : "x:", request->host, "\nCookie: a=b;", cookie,
                        cookie, request->cookie);
    if (size < 0)
        abort();
    FUZZ_CHECK(serve_request_end(head, (size_t)size) == (size_t)size);
    FUZZ_CHECK(serve_request_parse(head, (size_t)size, cookie, &again) == 0);
    FUZZ_CHECK(request->head == again.head && strcmp(request->path, again.path) == 0 &&
               strcmp(request->query, again.query) == 0 && strcmp(request->host, again.host) == 0 &&
               strcmp(request->cookie, again.cookie) == 0);
}

static void check_request(const char *head, size_t size)
{
    struct serve_request request;
    int status = serve_request_parse(head, size, cookie, &request);
    FUZZ_CHECK(status == 0 || status == 400 || status == 405 || status == 413 || status == 414);
    FUZZ_CHECK(is_visible(request.path) && is_visible(request.query) && is_visible(request.host) &&
               is_visible(request.cookie));
    if (serve_host_is_local(request.host))
        FUZZ_CHECK(strspn(request.host, "localhostLOCALHOST0123456789.:[]") ==
                   strlen(request.host));
    FUZZ_CHECK(!serve_token_equal("0123456789abcdef0123456789abcdef", request.cookie) ||
               strcmp(request.cookie, "0123456789abcdef0123456789abcdef") == 0);
    if (status != 0)
        return;
    FUZZ_CHECK(*request.path == '/');
    check_values(&request);
    if (!strchr(request.cookie, ';'))
        check_again(&request);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* Without a NUL behind it, so that AddressSanitizer sees what reads on. */
    cleanup_free char *head = malloc(size ? size : 1);
    cleanup_free char *text = fuzz_text(data, size);
    if (!head)
        abort();
    memcpy(head, text, size);
    check_end(head, size);
    check_request(head, size);
    cleanup_json json_t *running = serve_running_parse(text, text);
    FUZZ_CHECK(json_is_object(running));
    return 0;
}

void fuzz_seeds(fuzz_add *add, void *context)
{
    static const char head[] =
        "GET /data/steps?range=week&step=7%2e3 HTTP/1.1\r\nHost: localhost:8518\r\n"
        "Cookie: a=b; tcclacct-80=0123456789abcdef0123456789abcdef; c\r\nAccept: x\r\n\r\n";
    const char *const seeds[] = {
        head,
        "HEAD / HTTP/1.0\nhost:[::1]:1\n\n",
        "GET /?range=a&range=%41 HTTP/1.1\r\nContent-Length: 0\r\nHost:127.0.0.1\r\n\r\nmore",
        "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "15 12_3\n12_3.batch\n14 14+1\n14+1.0\n",
    };
    for (size_t i = 0; i < sizeof(seeds) / sizeof(*seeds); i++)
        add(context, seeds[i], strlen(seeds[i]));
}
