/* stalls.c: while it matters, a timer of the loop counts, and a thread looks whether it still does.
 * If not, the thread sends a signal to the loop's thread, which does nothing but end the wait: the
 * kernel closes a lingering socket at once then, and all others that are under way with it. A loop
 * that is just busy is not disturbed by it: what it calls is restarted. */
#include "tccld/main/stalls.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "tccld/main/daemon.h"

enum { BEAT_MS = 10, LOOK_MS = 30, AFTER_MS = 1000 /* connections may be closed a little later */ };

struct stalls {
    pthread_t loop, thread;
    bool started; /* the thread */
    int wake_fd;  /* that it may go on */
    struct event *beat;
    int connections;
    int64_t until_ms; /* where there are none */
    atomic_uint beats;
    atomic_bool watching, stop;
};

static void do_nothing(int number)
{
    (void)number;
}

static void sleep_ms(int ms)
{
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000L}, NULL);
}

static void *look(void *argument)
{
    struct stalls *stalls = argument;
    eventfd_t count;
    while (!atomic_load(&stalls->stop)) {
        if (!atomic_load(&stalls->watching)) {
            eventfd_read(stalls->wake_fd, &count);
            continue;
        }
        unsigned before = atomic_load(&stalls->beats);
        sleep_ms(LOOK_MS);
        if (atomic_load(&stalls->watching) && atomic_load(&stalls->beats) == before)
            pthread_kill(stalls->loop, SIGUSR1);
    }
    return NULL;
}

static void on_beat(evutil_socket_t fd, short what, void *argument)
{
    struct stalls *stalls = argument;
    struct timeval wait = daemon_in(BEAT_MS);
    (void)fd;
    (void)what;
    atomic_fetch_add(&stalls->beats, 1);
    if (stalls->connections > 0 || tccl_now_ms() < stalls->until_ms)
        evtimer_add(stalls->beat, &wait);
    else
        atomic_store(&stalls->watching, false);
}

static void start(struct stalls *stalls)
{
    sigset_t all, old;
    struct sigaction action = {.sa_handler = do_nothing, .sa_flags = SA_RESTART};
    if (stalls->started)
        return;
    sigfillset(&all);
    sigaction(SIGUSR1, &action, NULL);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    stalls->started = pthread_create(&stalls->thread, NULL, look, stalls) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

struct stalls *stalls_new(struct event_base *base)
{
    struct stalls *stalls = calloc(1, sizeof(*stalls));
    if (!stalls)
        return NULL;
    stalls->loop = pthread_self();
    stalls->wake_fd = eventfd(0, EFD_CLOEXEC);
    stalls->beat = evtimer_new(base, on_beat, stalls);
    if (stalls->wake_fd >= 0 && stalls->beat)
        return stalls;
    stalls_free(stalls);
    return NULL;
}

void stalls_watch(struct stalls *stalls, int change)
{
    if (!stalls)
        return;
    stalls->connections += change;
    stalls->until_ms = tccl_now_ms() + AFTER_MS;
    if (atomic_load(&stalls->watching))
        return;
    start(stalls);
    atomic_store(&stalls->watching, true);
    on_beat(-1, 0, stalls);
    eventfd_write(stalls->wake_fd, 1);
}

void stalls_free(struct stalls *stalls)
{
    if (!stalls)
        return;
    atomic_store(&stalls->stop, true);
    if (stalls->wake_fd >= 0)
        eventfd_write(stalls->wake_fd, 1);
    if (stalls->started)
        pthread_join(stalls->thread, NULL);
    if (stalls->beat)
        event_free(stalls->beat);
    if (stalls->wake_fd >= 0)
        close(stalls->wake_fd);
    free(stalls);
}
