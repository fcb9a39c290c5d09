#include "daemon.h"

#include <errno.h>
#include <string.h>

#include "cleanup.h"
#include "log.h"
#include "users.h"
#include "wire.h"

enum { ACCEPT_PAUSE_MS = 200, LATE_MS = 100 };

static int add_admins(struct daemon *daemon, const char *names, struct tccl_error *err)
{
    cleanup_free char *copy = strdup(names ? names : "");
    char *rest = copy, *name;
    daemon->n_admins = 0;
    while (rest && (name = strsep(&rest, ", ")) != NULL) {
        if (!*name)
            continue;
        if (daemon->n_admins == DAEMON_ADMINS)
            return tccl_fail(err, "Admins: more than %d names", DAEMON_ADMINS);
        if (tccl_user_find("Admins", name, &daemon->admins[daemon->n_admins], err) != 0)
            return -1;
        daemon->n_admins++;
    }
    return 0;
}

int daemon_users(struct daemon *daemon, const struct tccl_conf *conf, struct tccl_error *err)
{
    if (tccl_user_find("TccldUser", conf->tccld_user, &daemon->uid, err) != 0)
        return -1;
    if (tccl_user_find("SlurmUser", conf->slurm_user, &daemon->slurm_uid, NULL) != 0)
        daemon->slurm_uid = (uid_t)-1; /* the default, on a machine without it */
    return add_admins(daemon, conf->admins, err);
}

bool daemon_trusts(const struct daemon *daemon, uid_t uid)
{
    return uid != (uid_t)-1 && (uid == 0 || uid == daemon->uid || uid == daemon->slurm_uid);
}

bool daemon_shows_all(const struct daemon *daemon, uid_t uid)
{
    for (int i = 0; i < daemon->n_admins; i++)
        if (daemon->admins[i] == uid)
            return true;
    return daemon_trusts(daemon, uid);
}

struct timeval daemon_in(int64_t ms)
{
    if (ms < 0)
        ms = 0;
    return (struct timeval){.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
}

bool daemon_on_time(int64_t due_ms)
{
    int64_t late = tccl_now_ms() - due_ms;
    return late >= 0 && late < LATE_MS;
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
    log_limited(&limit, "a connection can't be accepted: %s", strerror(errno));
    if (event_base_once(evconnlistener_get_base(listener), -1, EV_TIMEOUT, accept_again, listener,
                        &wait) == 0)
        evconnlistener_disable(listener);
}
