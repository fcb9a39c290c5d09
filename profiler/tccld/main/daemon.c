/* What all parts of tccld share: who is trusted, and the times of the event loop. */
#include "tccld/main/daemon.h"

#include "base/clock.h"

enum { LATE_MS = 100 };

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
