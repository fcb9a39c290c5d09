/* What all parts of tccld share: who is trusted, and the times of the event loop. */
#include "tccld/main/daemon.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "tccld/main/log.h"

enum { ACCEPT_PAUSE_MS = 200, LATE_MS = 100 };

bool daemon_trusts(const struct daemon *daemon, uid_t uid)
{
    return uid != (uid_t)-1 &&
           (uid == 0 || uid == daemon->users.tccld || uid == daemon->users.slurm);
}

bool daemon_shows_all(const struct daemon *daemon, uid_t uid)
{
    for (int i = 0; i < daemon->users.n_admins; i++)
        if (daemon->users.admins[i] == uid)
            return true;
    return daemon_trusts(daemon, uid);
}

struct timeval daemon_in(int64_t ms)
{
    if (ms < 0)
        ms = 0;
    return (struct timeval){.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
}

bool daemon_spares(int64_t due_ms, bool *spared)
{
    int64_t late = tccl_now_ms() - due_ms;
    bool on_time = late >= 0 && late < LATE_MS;
    if (*spared || on_time)
        return false;
    *spared = true;
    return true;
}

static void accept_again(evutil_socket_t fd, short what, void *listener)
{
    (void)fd;
    (void)what;
    evconnlistener_enable(listener);
}

void daemon_accept_failed(struct evconnlistener *listener, void *context)
{
    static struct log_limit limit;
    struct timeval wait = daemon_in(ACCEPT_PAUSE_MS);
    (void)context;
    log_limited(&limit, "a connection can't be accepted, it is tried again in %d ms: %s",
                ACCEPT_PAUSE_MS, strerror(errno));
    if (event_base_once(evconnlistener_get_base(listener), -1, EV_TIMEOUT, accept_again, listener,
                        &wait) == 0)
        evconnlistener_disable(listener);
}
