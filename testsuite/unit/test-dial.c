/* Connections of tools: by number and by name, refused, and to nobody, each within its time. */
#include "client/frame.h"

#include <arpa/inet.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "check.h"

static uint16_t port;

static int listen_somewhere(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    CHECK_INT(bind(fd, (struct sockaddr *)&address, size), 0);
    CHECK_INT(listen(fd, 8), 0);
    CHECK_INT(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    port = ntohs(address.sin_port);
    return fd;
}

static void check_dial(const char *host, const char *expected)
{
    int fd = tccl_dial(host, port, tccl_now_ms() + 60000, ERR);
    CHECK((fd >= 0) == (*expected == '\0'));
    CHECK_HOLDS(check_err.text, expected);
    if (fd >= 0)
        close(fd);
}

TEST(dial)
{
    int fd = listen_somewhere();
    check_dial("127.0.0.1", "");
    check_dial("localhost", "");
    check_dial("no-such-node.invalid", "no-such-node.invalid: ");
    close(fd);
    check_dial("127.0.0.1", "no tccld at 127.0.0.1:");
    check_dial("localhost", "Connection refused");
}
