/* test-serve-site.c: connections of others who are not let in must not keep the user out. */
#include <arpa/inet.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "acct/serve-site.h"
#include "check.h"

enum { PATIENCE_S = 30, ANSWER = 4096 };

static int report = -1; /* where the server writes its URL */

static int work(void *context, const struct serve_request *request, FILE *out)
{
    (void)context;
    (void)request;
    fputs("{}", out);
    return 200;
}

static void ready(const struct serve_place *place, const char *url)
{
    (void)place;
    if (write(report, url, strlen(url)) < 0)
        _exit(1);
    close(report);
}

static pid_t start(char *url, size_t size)
{
    const struct serve_place place = {.work = work};
    int ends[2];
    if (pipe(ends) != 0)
        exit(1);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(ends[0]);
        report = ends[1];
        _exit(serve_site_run(&place, ready, NULL) != 0);
    }
    close(ends[1]);
    ssize_t got = read(ends[0], url, size - 1);
    url[got > 0 ? got : 0] = '\0';
    close(ends[0]);
    return pid;
}

/* A connection that has asked; it may be closed by the server at any time. */
static int ask(unsigned port, const char *token)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    const struct timeval patience = {.tv_sec = PATIENCE_S};
    char head[256];
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    int size = snprintf(
        head, sizeof(head),
        "GET /page.css HTTP/1.1\r\nHost: localhost\r\nCookie: tcclacct-%u=%s\r\n\r\n", port, token);
    CHECK(connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
    CHECK(send(fd, head, (size_t)size, MSG_NOSIGNAL) == size);
    return fd;
}

/* The status of the answer; 0: none. */
static int status_of(int fd)
{
    char answer[ANSWER] = "";
    int status = 0;
    if (recv(fd, answer, sizeof(answer) - 1, MSG_WAITALL) >= 0)
        sscanf(answer, "HTTP/1.1 %d", &status);
    return status;
}

/* As many as there is room for have been refused, and stay. */
static void test_crowd(unsigned port, const char *token)
{
    int crowd[SERVE_VISITS];
    for (int i = 0; i < SERVE_VISITS; i++) {
        char byte;
        crowd[i] = ask(port, "0123456789abcdef0123456789abcdef");
        CHECK(recv(crowd[i], &byte, 1, MSG_PEEK) == 1);
    }
    int own = ask(port, token);
    CHECK_INT(status_of(own), 200);
    CHECK_INT(status_of(crowd[SERVE_VISITS - 1]), 403);
    close(own);
    for (int i = 0; i < SERVE_VISITS; i++)
        close(crowd[i]);
}

int main(void)
{
    char url[128], token[SERVE_TOKEN] = "";
    unsigned port = 0;
    int ended;
    pid_t pid = start(url, sizeof(url));
    CHECK(sscanf(url, "http://127.0.0.1:%u/?token=%32s", &port, token) == 2);
    test_crowd(port, token);
    kill(pid, SIGTERM);
    CHECK(waitpid(pid, &ended, 0) == pid && ended == 0);
    return check_result();
}
