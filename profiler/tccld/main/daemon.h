/* daemon.h: the parts of a running tccld, as they know each other. */
#pragma once

#include <event2/event.h>
#include <jansson.h>

#include "client/conf.h"
#include "client/users.h"
#include "tccld/main/threads.h"

struct evidence;
struct jobs;
struct journal;
struct metrics;
struct monitor;
struct own;
struct peer_trust;
struct presence;
struct resolver;
struct run_dir;
struct running;
struct replay;
struct shares;
struct metrics_file;
struct nic_links;
struct fresh;
struct slurm_gpus;
struct steps;
struct sweep;
struct turns;

enum { THREADS_QUEUE = 1024 };
/* Priorities of the event loop: what has none set is served before those who may only ask. */
enum { DAEMON_DEFAULT = 1, DAEMON_PATIENT = 2, DAEMON_PRIORITIES = 3 };

struct daemon {
    struct event_base *base;
    struct tccl_conf *conf;  /* replaced by SIGHUP */
    json_int_t epoch;        /* when this tccld started, microseconds of the clock */
    struct tccl_users users; /* of conf; we run as TccldUser, or as root that will */
    bool alone;              /* on a machine by itself: no Slurm, no other node */
    char munge_socket[PATH_MAX];
    struct monitor *monitor; /* NULL: tccld is who it was started as */
    struct threads *munge, *names;
    int64_t munge_ms; /* when munge has made or opened a credential last */
    struct run_dir *run_dir;
    struct resolver *resolver;
    struct replay *replay;
    struct shares *shares;
    struct peer_trust *peer_trust;
    struct turns *decoding, *questions; /* of addresses, of users */
    struct own *own;
    struct nic_links *links;
    struct fresh *fresh;
    struct slurm_gpus *gpus;
    struct presence *presence;
    struct journal *journal;
    struct jobs *jobs;
    struct running *running;
    struct steps *steps;
    struct sweep *sweep;
    struct evidence *evidence;
    struct metrics *metrics;
    struct metrics_file *metrics_file;
};

/* log.c: tccld's lines on standard error, "tccl: what, where, what now". */

/* Writes one line. Control characters in it become '?'. */
void log_line(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* For lines that a stranger can cause: at most one in LOG_LIMIT_MS from each place; the next line
 * says how many were left out. */
enum { LOG_LIMIT_MS = 10000 };
struct log_limit {
    int64_t next_ms;
    unsigned left_out;
};
void log_limited(struct log_limit *limit, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* daemon.c: what all parts share. */

/* Who may do all: root and SlurmUser; on the unix socket TccldUser, in credentials MungeUser, as
 * TccldUser's number may be somebody else's on another node. */
bool daemon_trusts(const struct daemon *daemon, uid_t uid);
bool daemon_trusts_maker(const struct daemon *daemon, uid_t uid);
/* Who else may see all records. */
bool daemon_is_admin(const struct daemon *daemon, uid_t uid);

/* The event comes so many milliseconds from now, at once if there are none. Returns 0, or -1
 * without memory. */
int daemon_set(struct event *event, int64_t ms);
/* Ends and frees it. NULL is fine. */
void daemon_drop(struct event *event);
/* In the callback of a timer that was due at due_ms (tccl_now_ms): does who was silent get one more
 * chance, since the callback comes late? This tccld was given no time to run then, or was busy, and
 * could not hear what others have sent meanwhile. Sets *spared; nobody is spared twice. */
bool daemon_spares(int64_t due_ms, bool *spared);

/* reload.c: reads tccl.conf, at the start and, beside the event loop, at SIGHUP. */

/* What tccld's options say of it. NULL: the defaults. check: any user may read it.
 * monitored: root has started it, and it has become TccldUser. alone: it serves whoever has started
 * it, on a machine by itself. */
struct conf_source {
    const char *path, *node;
    bool check, monitored, alone;
};

/* A configuration and the users it names, checked; the caller clears and frees it. NULL with err.
 */
struct tccl_conf *reload_read(const struct conf_source *source, struct tccl_users *users,
                              struct tccl_error *err);

/* Reads it again at SIGHUP; source stays the caller's. NULL with err. */
struct reload *reload_new(struct daemon *daemon, const struct conf_source *source,
                          struct tccl_error *err);
void reload_free(struct reload *reload); /* NULL is fine */
