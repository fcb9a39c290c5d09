/* test-serve.c: what tcclacct's page is asked, who may ask, where it listens, and what squeue says.
 */
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "acct/serve-data.h"
#include "acct/serve-listen.h"
#include "acct/serve-pages.h"
#include "acct/serve-request.h"
#include "acct/serve-running.h"
#include "base/cleanup.h"
#include "check.h"

static const char token[SERVE_TOKEN] = "0123456789abcdef0123456789abcdef";

static int parse(const char *head, struct serve_request *request)
{
    return serve_request_parse(head, strlen(head), "tcclacct-80", request);
}

static void test_good(void)
{
    struct serve_request request;
    CHECK_INT(parse("GET /api/step?id=12%2B1.0&start=7 HTTP/1.1\r\nhOsT: localhost:80\r\nX: y\r\n"
                    "Cookie: a=b; tcclacct-80=0123456789abcdef0123456789abcdef; c\r\n\r\n",
                    &request),
              0);
    CHECK(!request.head);
    CHECK_STR(request.path, "/api/step");
    CHECK_STR(request.query, "id=12%2B1.0&start=7");
    CHECK_STR(request.host, "localhost:80");
    CHECK_STR(request.cookie, token);
    CHECK_INT(parse("HEAD / HTTP/1.0\n\n", &request), 0);
    CHECK(request.head);
    CHECK_STR(request.path, "/");
    CHECK_STR(request.host, "");
    CHECK_STR(request.cookie, "");
}

static void test_bad(void)
{
    static const struct {
        const char *head;
        int status;
    } cases[] = {
        {"POST / HTTP/1.1\r\nHost: localhost\r\n\r\n", 405},
        {"get / HTTP/1.1\r\n\r\n", 405},
        {"GETX / HTTP/1.1\r\n\r\n", 405},
        {"CONNECT localhost:80 HTTP/1.1\r\n\r\n", 405},
        {"GET /\r\n\r\n", 400},
        {"GET / HTTP/2.0\r\n\r\n", 400},
        {"GET / HTTP/1.1 more\r\n\r\n", 400},
        {"GET  / HTTP/1.1\r\n\r\n", 400},
        {"GET http://localhost/ HTTP/1.1\r\n\r\n", 400},
        {"GET * HTTP/1.1\r\n\r\n", 400},
        {"GET /\x01 HTTP/1.1\r\n\r\n", 400},
        {"GET /\xc3\xa9 HTTP/1.1\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost:\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost : a\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nA: b\r\n folded: c\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nno colon\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nContent-Length: 1\r\n\r\n", 413},
        {"GET / HTTP/1.1\r\nContent-Length: 0\r\n\r\n", 0},
        {"GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", 413},
    };
    struct serve_request request;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int status = parse(cases[i].head, &request);
        if (status != cases[i].status)
            fprintf(stderr, "case %zu: %s", i, cases[i].head);
        CHECK_INT(status, cases[i].status);
    }
    CHECK_INT(serve_request_parse("GET / HTTP/1.1\r\nA: \0\r\n\r\n", 24, "c", &request), 400);
}

static void test_long(void)
{
    struct serve_request request;
    char head[2 * SERVE_QUERY + 64];
    memset(head, 'a', sizeof(head));
    memcpy(head, "GET /", 5);
    strcpy(head + 5 + SERVE_PATH, " HTTP/1.1\r\n\r\n");
    CHECK_INT(parse(head, &request), 414);
    memset(head, 'a', sizeof(head));
    memcpy(head, "GET /?", 6);
    strcpy(head + 6 + SERVE_QUERY, " HTTP/1.1\r\n\r\n");
    CHECK_INT(parse(head, &request), 414);
    strcpy(head + 6 + SERVE_QUERY - 1, " HTTP/1.1\r\n\r\n");
    CHECK_INT(parse(head, &request), 0);
    CHECK_INT((int)strlen(request.query), SERVE_QUERY - 1);
}

static void test_end(void)
{
    const char *head = "GET / HTTP/1.1\r\nHost: a\r\n\r\nmore";
    size_t whole = strlen(head) - 4;
    for (size_t size = 0; size <= strlen(head); size++)
        CHECK_INT((int)serve_request_end(head, size), size < whole ? 0 : (int)whole);
    CHECK_INT((int)serve_request_end("\r\n\r\n", 4), 4); /* whole, and refused */
}

static int value_of(const char *query, const char *name, char *value, size_t size)
{
    struct serve_request request = {0};
    snprintf(request.query, sizeof(request.query), "%s", query);
    return serve_request_value(&request, name, value, size);
}

static void test_values(void)
{
    char value[8];
    CHECK_INT(value_of("a=1&id=12%2b1&b", "id", value, sizeof(value)), 0);
    CHECK_STR(value, "12+1");
    CHECK_INT(value_of("id=", "id", value, sizeof(value)), 0);
    CHECK_STR(value, "");
    CHECK_INT(value_of("id", "id", value, sizeof(value)), 0);
    CHECK_STR(value, "");
    CHECK_INT(value_of("xid=1&idx=2", "id", value, sizeof(value)), 1);
    CHECK_INT(value_of("", "id", value, sizeof(value)), 1);
    CHECK_INT(value_of("id=1234567", "id", value, sizeof(value)), 0);
    CHECK_INT(value_of("id=12345678", "id", value, sizeof(value)), -1);
    CHECK_INT(value_of("id=1&id=1", "id", value, sizeof(value)), -1);
    CHECK_INT(value_of("id=%", "id", value, sizeof(value)), -1);
    CHECK_INT(value_of("id=%4", "id", value, sizeof(value)), -1);
    CHECK_INT(value_of("id=%4g", "id", value, sizeof(value)), -1);
    CHECK_INT(value_of("id=%41", "id", value, sizeof(value)), 0);
    CHECK_STR(value, "A");
    CHECK_INT(value_of("id=a%00b", "id", value, sizeof(value)), -1);
    CHECK_INT(value_of("id=a%0a", "id", value, sizeof(value)), -1);
}

static void test_hosts(void)
{
    static const char *const good[] = {"localhost",   "LOCALHOST:8080", "127.0.0.1",
                                       "127.0.0.1:1", "[::1]",          "[::1]:65535"};
    static const char *const bad[] = {"",
                                      "evil.example",
                                      "localhost.evil.example",
                                      "127.0.0.1.evil.example",
                                      "localhost:",
                                      "localhost:80x",
                                      "127.0.0.2",
                                      "0.0.0.0",
                                      "[::1",
                                      "localhost@evil",
                                      "localhost:1:2"};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        CHECK(serve_host_is_local(good[i]));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        CHECK(!serve_host_is_local(bad[i]));
}

static void test_tokens(void)
{
    char other[2 * SERVE_TOKEN];
    CHECK(serve_token_equal(token, token));
    CHECK(!serve_token_equal(token, ""));
    for (size_t i = 0; i < SERVE_TOKEN - 1; i++) {
        strcpy(other, token);
        other[i] ^= 1;
        CHECK(!serve_token_equal(token, other));
        other[i] = '\0';
        CHECK(!serve_token_equal(token, other));
    }
    snprintf(other, sizeof(other), "%s%s", token, token);
    CHECK(!serve_token_equal(token, other));
}

/* Whatever comes, the answer is one of those statuses, and its texts end within their bounds. */
static void test_any(void)
{
    static const char *const pieces[] = {
        "GET ", "HEAD ", "/",      "?", "a=b&",         "%41",  " HTTP/1.1",
        "\r\n", "\n",    "Host: ", "x", ": ",           ";",    "Cookie: ",
        "\x80", "\t",    " ",      "=", "tcclacct-80=", "POST "};
    struct serve_request request;
    char value[16];
    srand((unsigned)check_seed());
    for (int i = 0; i < 20000; i++) {
        char head[512] = "";
        for (int n = rand() % 24; n > 0; n--)
            strcat(head, pieces[(size_t)rand() % (sizeof(pieces) / sizeof(pieces[0]))]);
        size_t size = strlen(head);
        cleanup_free char *exact = malloc(size ? size : 1); /* so that a byte too many is seen */
        memcpy(exact, head, size);
        int status = serve_request_parse(exact, size, "tcclacct-80", &request);
        CHECK(status == 0 || status == 400 || status == 405 || status == 413 || status == 414);
        CHECK(serve_request_end(exact, size) <= size);
        CHECK(memchr(request.path, '\0', sizeof(request.path)) != NULL);
        CHECK(status != 0 || request.path[0] == '/');
        serve_request_value(&request, "a", value, sizeof(value));
    }
}

static void test_running(void)
{
    cleanup_json json_t *running = serve_running_parse(
        "12 12\n15 14_3\n17 16+1\n\nnonsense\n18 18_[1-9]\n",
        "12.0\n12.batch\n14_3.extern\n16+1.4\n99.1\n\n.\n..\nx\n"
        "1234567890123456789012345678901234567890123456789012345678901234567.0\n");
    CHECK_INT((int)json_object_size(running), 6);
    CHECK(json_object_get(running, "12.0") != NULL);
    CHECK(json_object_get(running, "12.batch") != NULL);
    CHECK(json_object_get(running, "15.extern") != NULL);
    CHECK(json_object_get(running, "17.4") != NULL);
    CHECK(json_object_get(running, "99.1") != NULL);
    cleanup_json json_t *none = serve_running_parse("", "");
    CHECK_INT((int)json_object_size(none), 0);
}

static void write_program(const char *folder, const char *text)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/squeue", folder);
    cleanup_file FILE *out = fopen(path, "w");
    CHECK(out != NULL);
    fprintf(out, "#!/bin/sh\n%s\n", text);
    CHECK(chmod(path, 0755) == 0);
}

/* With programs in squeue's place. */
static void test_squeue(const char *folder)
{
    struct tccl_error err = {0};
    setenv("PATH", folder, 1);
    CHECK(serve_running(20000, &err) == NULL);
    CHECK_STR(err.text, "there is no squeue here");
    write_program(folder, "case \"$*\" in *-s*) echo 5.0;; *) echo 5 5;; esac");
    cleanup_json json_t *running = serve_running(20000, NULL);
    CHECK(json_object_get(running, "5.0") != NULL);
    write_program(folder, "exit 1");
    err.text[0] = '\0';
    CHECK(serve_running(20000, &err) == NULL);
    CHECK_STR(err.text, "squeue has failed: does slurmctld run?");
    write_program(folder, "while :; do :; done");
    err.text[0] = '\0';
    CHECK(serve_running(200, &err) == NULL);
    CHECK_STR(err.text, "squeue: no answer in time");
}

static void test_socket(const char *folder)
{
    struct tccl_error err = {0};
    struct stat about;
    char path[96], file[96], long_path[200];
    snprintf(path, sizeof(path), "%s/socket", folder);
    umask(0);
    int fd = serve_listen_unix(path, &err);
    CHECK(fd >= 0);
    CHECK(lstat(path, &about) == 0 && S_ISSOCK(about.st_mode) && (about.st_mode & 0777) == 0600);
    CHECK_INT(umask(022), 0);
    CHECK(serve_listen_unix(path, &err) == -1);
    CHECK(strstr(err.text, "another one serves there") != NULL);
    close(fd);
    fd = serve_listen_unix(path, NULL); /* left behind by one that ended */
    CHECK(fd >= 0);
    close(fd);
    snprintf(file, sizeof(file), "%s/file", folder);
    fclose(fopen(file, "w"));
    err.text[0] = '\0';
    CHECK(serve_listen_unix(file, &err) == -1);
    CHECK(strstr(err.text, "something else is there") != NULL);
    CHECK(lstat(file, &about) == 0 && S_ISREG(about.st_mode));
    memset(long_path, 'a', sizeof(long_path) - 1);
    long_path[0] = '/';
    long_path[sizeof(long_path) - 1] = '\0';
    CHECK(serve_listen_unix(long_path, NULL) == -1);
    CHECK(serve_listen_unix("", NULL) == -1);
}

static void test_loopback(void)
{
    uint16_t port = 0, again;
    int fds[2], others[2];
    struct sockaddr_storage name;
    socklen_t size = sizeof(name);
    CHECK(serve_listen_loopback(&port, fds, NULL) == 0);
    CHECK(port != 0);
    CHECK(getsockname(fds[0], (struct sockaddr *)&name, &size) == 0);
    CHECK_INT(((struct sockaddr_in *)&name)->sin_addr.s_addr, htonl(INADDR_LOOPBACK));
    size = sizeof(name);
    if (fds[1] >= 0) {
        CHECK(getsockname(fds[1], (struct sockaddr *)&name, &size) == 0);
        CHECK(IN6_IS_ADDR_LOOPBACK(&((struct sockaddr_in6 *)&name)->sin6_addr));
        CHECK_INT(ntohs(((struct sockaddr_in6 *)&name)->sin6_port), port);
    }
    again = port;
    CHECK(serve_listen_loopback(&again, others, NULL) == -1);
    close(fds[0]);
    if (fds[1] >= 0)
        close(fds[1]);
}

static void test_ranges(void)
{
    const long long now = 1700000000; /* 2023-11-14T22:13:20Z; midnight is 22:13:20 before */
    setenv("TZ", "UTC", 1);
    CHECK_INT(serve_range_start("day", now), 1699920000);
    CHECK_INT(serve_range_start("week", now), 1699920000 - 6 * 86400);
    CHECK_INT(serve_range_start("month", now), 1699920000 - 30 * 86400);
    CHECK_INT(serve_range_start("all", now), 0);
    CHECK_INT(serve_range_start("year", now), -1);
    CHECK_INT(serve_range_start("", now), -1);
}

static void test_pages(void)
{
    int pages = 0;
    for (const struct serve_page *page = serve_pages; page->path; page++) {
        CHECK(page->path[0] == '/' && strlen(page->path) < SERVE_PATH && page->size > 0);
        pages++;
    }
    CHECK_INT(pages, 4);
    CHECK_STR(serve_pages[0].path, "/");
    CHECK_STR(serve_pages[0].type, "text/html; charset=utf-8");
}

int main(void)
{
    char folder[] = "/tmp/test-serve-XXXXXX", command[64];
    if (!mkdtemp(folder))
        return 1;
    test_good();
    test_bad();
    test_long();
    test_end();
    test_values();
    test_hosts();
    test_tokens();
    test_any();
    test_running();
    test_ranges();
    test_pages();
    test_socket(folder);
    test_loopback();
    snprintf(command, sizeof(command), "/bin/rm -rf %s/*", folder);
    CHECK(system(command) == 0);
    test_squeue(folder);
    snprintf(command, sizeof(command), "/bin/rm -rf %s", folder);
    CHECK(system(command) == 0);
    return check_result();
}
