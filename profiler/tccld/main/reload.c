/* reload.c: a name service or a file server may take its time to say who a user is, or what
 * tccl.conf contains; steps go on meanwhile. */
#include "tccld/main/daemon.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "tccld/join/nic-links.h"
#include "tccld/join/running.h"
#include "tccld/journal/journal.h"
#include "tccld/main/metrics.h"
#include "tccld/net/resolver.h"

struct reload {
    struct daemon *daemon;
    const struct conf_source *source;
    struct threads *pool;
    struct event *hangup;
    bool again; /* SIGHUP has come since it is being read */
    struct tccl_conf *conf;
    struct tccl_users users;
    struct tccl_error err;
};

static void discard(struct tccl_conf *conf)
{
    if (conf)
        tccl_conf_clear(conf);
    free(conf);
}

/* Root can become TccldUser, and makes credentials as root; another user stays who he is. */
static int check_user(const struct conf_source *source, const struct tccl_users *users,
                      const struct tccl_conf *conf, struct tccl_error *err)
{
    uid_t uid = geteuid();
    bool by_root = uid == 0 || source->monitored;
    if (by_root && users->munge != 0)
        return tccl_fail(err,
                         "MungeUser=%s, but tccld was started by root: remove that, or start tccld "
                         "as that user on all nodes",
                         conf->munge_user);
    if (uid != 0 && users->tccld != uid)
        return tccl_fail(err,
                         "TccldUser=%s, but tccld is uid %u: have root start it, it becomes that "
                         "user by itself",
                         conf->tccld_user, uid);
    if (!by_root && users->munge != uid)
        return tccl_fail(err,
                         "MungeUser=%s, but tccld was started by uid %u: have root start it (no "
                         "User= in its unit), or set MungeUser= to that user on all nodes",
                         conf->munge_user, uid);
    return 0;
}

struct tccl_conf *reload_read(const struct conf_source *source, struct tccl_users *users,
                              struct tccl_error *err)
{
    struct tccl_conf *conf = calloc(1, sizeof(*conf));
    if (!conf)
        return tccl_fail_null(err, "out of memory");
    bool read = tccl_conf_read(tccl_conf_tool_path(source->path), source->node, conf, err) == 0;
    if (read && source->alone) { /* whoever that is; it may have no name here */
        *users = (struct tccl_users){.tccld = geteuid(), .munge = geteuid(), .slurm = (uid_t)-1};
        return conf;
    }
    if (read && tccl_users_find(conf, users, err) == 0) {
        /* Where others look for this node is where it listens. */
        const struct tccl_peer *own = tccl_conf_peer(conf, conf->node);
        if (own && own->port)
            conf->port = own->port;
        if (source->check || check_user(source, users, conf, err) == 0)
            return conf;
    }
    discard(conf);
    return NULL;
}

/* What has been read at the start and is in use stays as it was until the next start. */
static bool needs_restart(const struct reload *reload)
{
    const struct tccl_conf *old = reload->daemon->conf, *new = reload->conf;
    const struct tccl_users *before = &reload->daemon->users, *after = &reload->users;
    return before->tccld != after->tccld || before->munge != after->munge ||
           strcmp(old->socket, new->socket) != 0 || strcmp(old->bind_addr, new->bind_addr) != 0 ||
           old->port != new->port || strcmp(old->state_dir, new->state_dir) != 0 ||
           strcmp(old->run_dir, new->run_dir) != 0 ||
           strcmp(old->munge_socket, new->munge_socket) != 0 || strcmp(old->node, new->node) != 0;
}

/* In the pool's thread. */
static void read_again(void *context)
{
    struct reload *reload = context;
    reload->err = (struct tccl_error){""};
    reload->conf = reload_read(reload->source, &reload->users, &reload->err);
}

static void take(struct reload *reload)
{
    struct daemon *daemon = reload->daemon;
    discard(daemon->conf);
    daemon->conf = tccl_steal(reload->conf);
    daemon->users = reload->users;
    journal_reloaded(daemon->journal);
    peer_trust_reloaded(daemon->peer_trust);
    sweep_hurry(daemon->sweep);
    nic_links_hurry(daemon->links);
    metrics_file_hurry(daemon->metrics_file);
    log_line("configuration reloaded from %s", daemon->conf->path);
}

static void begin(struct reload *reload);

static void on_read(void *context)
{
    struct reload *reload = context;
    if (reload->conf && needs_restart(reload)) {
        tccl_fail(&reload->err, "Socket, BindAddr, Port, StateDir, RunDir, MungeSocket, TccldUser "
                                "and the node's name change only when tccld is started again");
        discard(tccl_steal(reload->conf));
    }
    if (reload->conf)
        take(reload);
    else
        log_line("configuration not reloaded, the old one stays in use: %s", reload->err.text);
    if (reload->again)
        begin(reload);
}

static void begin(struct reload *reload)
{
    reload->again = false;
    if (threads_submit(reload->pool, read_again, on_read, reload) != 0)
        log_line("configuration not reloaded, the old one stays in use: out of memory");
}

static void on_hangup(evutil_socket_t signal UNUSED, short what UNUSED, void *argument)
{
    struct reload *reload = argument;
    reload->again = true;
    if (threads_busy(reload->pool) == 0)
        begin(reload);
}

struct reload *reload_new(struct daemon *daemon, const struct conf_source *source,
                          struct tccl_error *err)
{
    struct reload *reload = calloc(1, sizeof(*reload));
    if (!reload)
        return tccl_fail_null(err, "out of memory");
    *reload = (struct reload){.daemon = daemon, .source = source};
    reload->pool = threads_new(daemon->base, 1, 1, err);
    reload->hangup = evsignal_new(daemon->base, SIGHUP, on_hangup, reload);
    if (reload->pool && reload->hangup && evsignal_add(reload->hangup, NULL) == 0)
        return reload;
    tccl_fail(err, "signals can't be caught");
    reload_free(reload);
    return NULL;
}

void reload_free(struct reload *reload)
{
    if (!reload)
        return;
    daemon_drop(reload->hangup);
    if (reload->pool && threads_free(reload->pool, 0) != 0)
        return; /* the thread uses it until the end of the process */
    discard(reload->conf);
    free(reload);
}
