/* serve-listen.c: the sockets that tcclacct's page is served on. */
#include "acct/serve-listen.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"

enum { BACKLOG = 64, TRIES = 20 };

/* Hands out the descriptor of a cleanup variable. */
static int take(int *fd)
{
    int taken = *fd;
    *fd = -1;
    return taken;
}

/* Removes the socket at path if nobody listens there. Returns 0, or -1 with err. */
static int clear_path(const struct sockaddr_un *address, struct tccl_error *err)
{
    const char *path = address->sun_path;
    struct stat about;
    if (lstat(path, &about) != 0)
        return errno == ENOENT ? 0 : tccl_fail(err, "--socket %s: %s", path, strerror(errno));
    if (!S_ISSOCK(about.st_mode))
        return tccl_fail(err, "--socket %s: something else is there; choose another path", path);
    cleanup_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return tccl_fail(err, "no socket: %s", strerror(errno));
    if (connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0 || errno == EAGAIN)
        return tccl_fail(err, "--socket %s: another one serves there; stop it or choose another",
                         path);
    if (errno != ECONNREFUSED || unlink(path) != 0)
        return tccl_fail(err, "--socket %s: %s; choose another path", path, strerror(errno));
    return 0;
}

int serve_listen_unix(const char *path, struct tccl_error *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (!*path || strlen(path) >= sizeof(address.sun_path))
        return tccl_fail(err, "--socket %.60s: a path has 1 to %zu bytes", path,
                         sizeof(address.sun_path) - 1);
    memcpy(address.sun_path, path, strlen(path) + 1);
    if (clear_path(&address, err) != 0)
        return -1;
    cleanup_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    mode_t before = umask(0177); /* never open to others, not even for a moment */
    int bound = fd < 0 ? -1 : bind(fd, (struct sockaddr *)&address, sizeof(address));
    umask(before);
    if (bound != 0 || listen(fd, BACKLOG) != 0)
        return tccl_fail(err, "--socket %s: %s", path, strerror(errno));
    return take(&fd);
}

static int listen_tcp(const struct sockaddr *address, socklen_t size)
{
    const int on = 1;
    cleanup_close int fd =
        socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (address->sa_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
    if (bind(fd, address, size) != 0 || listen(fd, BACKLOG) != 0)
        return -1;
    return take(&fd);
}

static int listen_v4(uint16_t *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(*port)};
    socklen_t size = sizeof(address);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = listen_tcp((struct sockaddr *)&address, size);
    if (fd >= 0 && getsockname(fd, (struct sockaddr *)&address, &size) == 0)
        *port = ntohs(address.sin_port);
    return fd;
}

/* -1 with errno; EADDRNOTAVAIL and EAFNOSUPPORT: there is no IPv6 here. */
static int listen_v6(uint16_t port)
{
    struct sockaddr_in6 address = {
        .sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    return listen_tcp((struct sockaddr *)&address, sizeof(address));
}

int serve_listen_loopback(uint16_t *port, int fds[static 2], struct tccl_error *err)
{
    uint16_t wanted = *port;
    for (int i = 0; i < (wanted ? 1 : TRIES); i++) {
        *port = wanted;
        cleanup_close int fd = listen_v4(port);
        if (fd < 0)
            break;
        fds[1] = listen_v6(*port);
        if (fds[1] >= 0 || errno == EADDRNOTAVAIL || errno == EAFNOSUPPORT) {
            fds[0] = take(&fd);
            return 0;
        }
    }
    return tccl_fail(err, "--port %u: %s; choose another", wanted, strerror(errno));
}
