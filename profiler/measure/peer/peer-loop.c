/* peer-loop.c: the other end in a thread of this process. */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "measure/peer/peer.h"

struct tccl_peer_loop {
    int fd;
    pthread_t thread;
    struct tccl_peer_count count;
};

static void *serve(void *context)
{
    static const struct tccl_peer_limits limits = {.idle_ms = -1, .stall_ms = -1};
    struct tccl_peer_loop *loop = context;
    cpu_set_t all;
    /* Another machine would have cores of its own for it: not only those near the NIC. */
    memset(&all, 0xff, sizeof(all));
    pthread_setaffinity_np(pthread_self(), sizeof(all), &all);
    tccl_peer_serve(loop->fd, &limits, &loop->count, NULL);
    return NULL;
}

/* Two ends of one connection over 127.0.0.1. Returns 0, or -1 with errno. */
static int connect_both(int ends[static 2])
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof(address);
    cleanup_close int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    cleanup_close int ours = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    cleanup_close int accepted = -1;
    struct sockaddr_in remote = {0}, near = {0};
    socklen_t remote_size = sizeof(remote), near_size = sizeof(near);
    if (listener < 0 || ours < 0 || bind(listener, (struct sockaddr *)&address, size) != 0 ||
        listen(listener, 1) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &size) != 0 ||
        connect(ours, (struct sockaddr *)&address, size) != 0)
        return -1;
    accepted = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (accepted < 0)
        return -1;
    /* Is that the other end of our connection? Anybody here could have come first. */
    if (getpeername(accepted, (struct sockaddr *)&remote, &remote_size) != 0 ||
        getsockname(ours, (struct sockaddr *)&near, &near_size) != 0 ||
        remote.sin_port != near.sin_port || remote.sin_addr.s_addr != near.sin_addr.s_addr) {
        errno = EBUSY;
        return -1;
    }
    ends[0] = ours;
    ends[1] = accepted;
    ours = accepted = -1;
    return 0;
}

struct tccl_peer_loop *tccl_peer_loop_open(int *fd, struct tccl_error *err)
{
    cleanup_free struct tccl_peer_loop *loop = calloc(1, sizeof(*loop));
    int ends[2];
    if (!loop || connect_both(ends) != 0)
        return tccl_fail_null(err, "loopback: %s", strerror(errno));
    tccl_peer_tune(ends[0]);
    tccl_peer_tune(ends[1]);
    loop->fd = ends[1];
    int code = pthread_create(&loop->thread, NULL, serve, loop);
    if (code != 0) {
        tccl_fail(err, "loopback: no thread: %s", strerror(code));
        close(ends[0]);
        close(ends[1]);
        return NULL;
    }
    *fd = ends[0];
    return tccl_steal(loop);
}

void tccl_peer_loop_close(struct tccl_peer_loop *loop, struct tccl_peer_count *count)
{
    if (!loop)
        return;
    shutdown(loop->fd, SHUT_RDWR);
    pthread_join(loop->thread, NULL);
    close(loop->fd);
    if (count)
        *count = loop->count;
    free(loop);
}
