/* An event loop that closes a TCP socket which waits for a reader (SO_LINGER) goes on at once where
 * that is watched. Where it isn't, the same socket holds it up: else this test would say nothing.
 */
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "check.h"
#include "tccld/main/daemon.h"
#include "tccld/main/stalls.h"

enum { SHORT_S = 1, LONG_S = 600 };

static int theirs[3], n_theirs;

/* Full of data that nobody reads. */
static int lingering(int seconds)
{
    static char data[65536];
    struct linger linger = {.l_onoff = 1, .l_linger = seconds};
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    int listener = socket(AF_INET, SOCK_STREAM, 0), fd = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(bind(listener, (struct sockaddr *)&address, size) == 0 && listen(listener, 1) == 0);
    CHECK_INT(getsockname(listener, (struct sockaddr *)&address, &size), 0);
    CHECK_INT(connect(fd, (struct sockaddr *)&address, size), 0);
    theirs[n_theirs++] = accept(listener, NULL, NULL);
    close(listener);
    while (send(fd, data, sizeof(data), MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
        ;
    CHECK_INT(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), 0);
    return fd;
}

/* Seconds that it takes to close it. */
static double close_it(int fd)
{
    int64_t begun = tccl_now_ms();
    close(fd);
    return (double)(tccl_now_ms() - begun) / 1000;
}

static double took[2];

static void on_time(evutil_socket_t fd, short what, void *sockets)
{
    for (int i = 0; i < 2; i++)
        took[i] = close_it(((int *)sockets)[i]);
}

static void count(evutil_socket_t fd, short what, void *ticks)
{
    ++*(int *)ticks;
}

TEST(stalls)
{
    static const struct timeval soon = {0, 50000}, after = {0, 10000};
    int sockets[2], ticks = 0;
    double alone = close_it(lingering(SHORT_S));
    if (alone < SHORT_S / 2.0) {
        check_skip("this kernel does not wait for a reader: %.3f s", alone);
        return;
    }
    struct event_base *base = event_base_new();
    struct stalls *stalls = stalls_new(base);
    struct event *event = evtimer_new(base, on_time, sockets);
    struct event *tick = event_new(base, -1, EV_PERSIST, count, &ticks);
    for (int i = 0; i < 2; i++)
        sockets[i] = lingering(LONG_S);
    stalls_watch(stalls, 1);
    evtimer_add(event, &soon);
    event_add(tick, &after);
    while (ticks < 20)
        event_base_loop(base, EVLOOP_ONCE);
    printf("closed after %.3f s where nobody looks (of %d s), %.3f and %.3f s where somebody does "
           "(of %d s)\n",
           alone, SHORT_S, took[0], took[1], LONG_S);
    for (int i = 0; i < 2; i++)
        CHECK(took[i] < LONG_S / 2.0);
    stalls_watch(stalls, -1);
    /* The loop has nothing left to do once that has gone. */
    event_del(tick);
    CHECK_INT(event_base_loop(base, 0), 1);
    event_free(event);
    event_free(tick);
    stalls_free(stalls);
    event_base_free(base);
    for (int i = 0; i < n_theirs; i++)
        close(theirs[i]);
}
