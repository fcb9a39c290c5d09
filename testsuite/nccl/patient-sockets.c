/* patient-sockets.c: part of programs on the rig. NCCL waits for other ranks in loops of accept()
 * and recv() that don't wait themselves. Where there are fewer processors than ranks, that takes
 * them from those that are waited for. Here these calls wait a moment for what has not come. */
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

enum { MOMENT_MS = 2 };

static bool comes(int fd)
{
    struct pollfd one = {.fd = fd, .events = POLLIN};
    int why = errno;
    bool come = (why == EAGAIN || why == EWOULDBLOCK) && poll(&one, 1, MOMENT_MS) > 0;
    errno = why;
    return come;
}

int accept(int fd, struct sockaddr *from, socklen_t *size)
{
    int end = accept4(fd, from, size, 0);
    return end < 0 && comes(fd) ? accept4(fd, from, size, 0) : end;
}

ssize_t recv(int fd, void *data, size_t size, int flags)
{
    ssize_t got = recvfrom(fd, data, size, flags, NULL, NULL);
    return got < 0 && comes(fd) ? recvfrom(fd, data, size, flags, NULL, NULL) : got;
}
