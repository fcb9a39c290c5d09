/* What all parts of tccld share: who is trusted, and the times of the event loop. */
#include "tccld/main/daemon.h"

#include "base/clock.h"

enum { LATE_MS = 100 };

static bool is_one_of(uid_t uid, uid_t own, uid_t slurm)
{
    return uid != (uid_t)-1 && (uid == 0 || uid == own || uid == slurm);
}

bool daemon_trusts(const struct daemon *daemon, uid_t uid)
{
    return is_one_of(uid, daemon->users.tccld, daemon->users.slurm);
}

bool daemon_trusts_maker(const struct daemon *daemon, uid_t uid)
{
    return is_one_of(uid, daemon->users.munge, daemon->users.slurm);
}

bool daemon_is_admin(const struct daemon *daemon, uid_t uid)
{
    for (int i = 0; i < daemon->users.n_admins; i++)
        if (daemon->users.admins[i] == uid)
            return true;
    return false;
}

int daemon_set(struct event *event, int64_t ms)
{
    const int64_t wait = ms > 0 ? ms : 0;
    return event_add(event,
                     &(struct timeval){.tv_sec = wait / 1000, .tv_usec = wait % 1000 * 1000});
}

void daemon_drop(struct event *event)
{
    if (event)
        event_free(event);
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
