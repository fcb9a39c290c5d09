/* check-item-daemon.c: the items munge, daemon (this node's tccld) and accounting. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fields.h"
#include "check/check-items.h"
#include "client/client.h"
#include "client/credential.h"
#include "client/frame.h"
#include "client/users.h"

enum {
    MUNGE_MS = 3000,
    DAEMON_MS = 3000,
    ACCOUNTING_MS = 4000,
    SACCTMGR_MS = 2000,
    METRICS_OLD = 60,
    STATE_LEAST_KIB = 256 /* a few records, and what SQLite needs besides */
};

static int64_t within(const struct check_site *site, int ms)
{
    return check_run_until(site->deadline, ms);
}

/* ---- munge ---- */

/* Slurm may do without munge. */
static const char *start_munged(const struct check_site *site)
{
    char type[64] = "";
    check_site_value(site, "AuthType", type, sizeof(type));
    if (strcasecmp(type, "auth/slurm") != 0)
        return "start munged, or correct MungeSocket=";
    return "Slurm has AuthType=auth/slurm, but tccld needs munge: start a munged with the same key "
           "on all nodes, or correct MungeSocket=";
}

static const char *munge_advice(const struct check_site *site, const char *text)
{
    if (strstr(text, "xpired") || strstr(text, "ewound"))
        return "the clock was set back or forward: check its synchronisation";
    if (strstr(text, "imed-out") || strstr(text, "imed out"))
        return "what hangs is munged: restart it";
    if (strstr(text, "ocket") || strstr(text, "onnect"))
        return start_munged(site);
    return "see munged's log";
}

void check_item_munge(const struct check_site *site, struct check_result *result)
{
    static const char word[] = "tccl-check";
    const char *socket = site->conf.munge_socket;
    cleanup_free char *cred = NULL, *data = NULL;
    struct tccl_error err = {0};
    struct stat st;
    size_t size;
    uid_t uid;
    int64_t deadline = within(site, MUNGE_MS);
    if (*socket && (stat(socket, &st) != 0 || !S_ISSOCK(st.st_mode)))
        check_say(result, CHECK_FAIL, "MungeSocket=%s: no munged has this socket: %s", socket,
                  start_munged(site));
    else if (tccl_cred_encode(socket, geteuid(), word, sizeof(word), deadline, &cred, &err) != 0 ||
             tccl_cred_decode(socket, cred, deadline, &uid, &data, &size, &err) != 0)
        check_say(result, CHECK_FAIL, "%s: %s", err.text, munge_advice(site, err.text));
    else if (uid != geteuid() || size != sizeof(word) || memcmp(data, word, size) != 0)
        check_say(result, CHECK_FAIL, "a credential was altered (uid %u): check munged", uid);
    else
        check_say(result, CHECK_OK, "a credential was encoded and decoded at %s",
                  *socket ? socket : "munge's default socket");
}

/* ---- tccld ---- */

static void check_user(const struct check_site *site, int fd, struct check_result *result)
{
    struct ucred peer;
    socklen_t size = sizeof(peer);
    struct tccl_error err = {0};
    uid_t wanted;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
        return;
    if (tccl_user_tccld(&site->conf, &wanted, &err) != 0)
        check_say(result, CHECK_FAIL, "%s: correct TccldUser=", err.text);
    else if (peer.uid != wanted)
        check_say(
            result, CHECK_FAIL,
            "tccld (pid %d) runs as uid %u, but TccldUser= is uid %u: restart it, as root: it "
            "becomes that user by itself",
            peer.pid, peer.uid, wanted);
    else if (wanted == 0 && !tccl_conf_line(&site->conf, "TccldUser"))
        check_say(
            result, CHECK_WARN,
            "tccld runs as root, as there is no user tccl: make one (systemd-sysusers), or set "
            "TccldUser=root");
}

/* tccld asks slurmctld whose a job is, as its user. */
static void check_private(const struct check_site *site, struct check_result *result)
{
    char hidden[256];
    struct tccl_error err = {0};
    struct tccl_users users;
    char where[TCCL_CONF_NAME + 8];
    if (!*site->conf.squeue || tccl_users_find(&site->conf, &users, &err) != 0 ||
        users.tccld == 0 || users.tccld == users.slurm ||
        !check_site_value(site, "PrivateData", hidden, sizeof(hidden)) || !strstr(hidden, "jobs"))
        return;
    /* Does slurmdbd say that this user sees the jobs of all? */
    snprintf(where, sizeof(where), "name=%s", site->conf.tccld_user);
    const char *const ask[] = {"sacctmgr",          "-nP", "show", "user", "where", where,
                               "format=adminlevel", NULL};
    cleanup_free char *output = check_site_run(site, SACCTMGR_MS, ask);
    if (output && (strncmp(output, "Operator", 8) == 0 || strncmp(output, "Admin", 5) == 0))
        return;
    check_say(result, CHECK_WARN,
              "Slurm has PrivateData=jobs, so %s is not told whose a job is, and policies by "
              "Partition, Account or Qos give no ring: sacctmgr add user %s adminlevel=operator "
              "account=ACCOUNT, or TccldUser=SLURMUSER",
              site->conf.tccld_user, site->conf.tccld_user);
}

/* A disk that takes no records is seen before the first one comes. Returns whether it takes some.
 */
static bool check_disk(const struct check_site *site, struct check_result *result)
{
    const char *folder = site->conf.state_dir;
    struct statvfs disk;
    if (statvfs(folder, &disk) != 0)
        return true; /* tccld knows */
    unsigned long long kib = (unsigned long long)disk.f_bavail * disk.f_frsize / 1024;
    const char *state = disk.f_flag & ST_RDONLY                  ? "read-only"
                        : kib < STATE_LEAST_KIB                  ? "full"
                        : disk.f_files > 0 && disk.f_favail == 0 ? "full (no inodes)"
                                                                 : NULL;
    if (state)
        check_say(
            result, CHECK_FAIL,
            "the file system of StateDir=%s is %s: steps have their rings, but new records are "
            "not stored, and may be lost: %s",
            folder, state, disk.f_flag & ST_RDONLY ? "mount it for writing" : "make room");
    return !state;
}

/* Other nodes address it by its Slurm name. */
static void check_name(const struct check_site *site, struct check_result *result)
{
    struct tccl_error err = {0};
    const char *node = site->conf.node;
    const struct tccl_peer *own = tccl_conf_peer(&site->conf, node);
    cleanup_json json_t *answer = check_peer(&site->conf, node, within(site, DAEMON_MS), &err);
    if (answer)
        check_say(result, CHECK_OK, "as %s, and also over TCP", node);
    else if (strncmp(err.text, "munge: ", 7) == 0)
        check_say(
            result, CHECK_FAIL,
            "tccld answers at its socket, but not over TCP, which needs munge: see the item munge");
    else
        check_say(result, CHECK_FAIL,
                  "tccld answers at its socket, but not over TCP as node %s: %s: start it "
                  "with --node %s if that is not the host's name, and make it listen on %s%u",
                  node, err.text, node,
                  own ? "the port of [peers], " : "Port=", own ? own->port : site->conf.port);
}

/* Its tccld writes the file every few seconds, and makes it anew each time. */
static void check_metrics(const struct check_site *site, struct check_result *result)
{
    const char *path = site->conf.metrics_file;
    struct stat st;
    if (!*path)
        return;
    if (stat(path, &st) != 0)
        check_say(result, errno == EACCES ? CHECK_WARN : CHECK_FAIL,
                  errno == EACCES
                      ? "MetricsFile=%s: %s: run this as root to see whether it is there"
                      : "MetricsFile=%s: %s: see tccld's log; under systemd, "
                        "/var/lib/tccl/metrics is for it",
                  path, strerror(errno));
    else if (time(NULL) - st.st_mtime > METRICS_OLD)
        check_say(result, CHECK_FAIL,
                  "MetricsFile=%s has not been written for %lld s: see tccld's log", path,
                  (long long)(time(NULL) - st.st_mtime));
}

void check_item_daemon(const struct check_site *site, struct check_result *result)
{
    const char *socket = site->conf.socket;
    struct tccl_error err = {0};
    if (!site->compute && !site->accounting && access(socket, F_OK) != 0) {
        check_say(result, CHECK_OK, "not needed here: this is no compute node");
        return;
    }
    cleanup_close int fd = tccl_frame_connect(socket, within(site, DAEMON_MS), &err);
    if (fd < 0) {
        check_say(result, CHECK_FAIL, "%s: start tccld (systemctl start tccld), see its log",
                  err.text);
        return;
    }
    cleanup_json json_t *answer = check_site_ask(site, false, DAEMON_MS, &err);
    if (!answer) {
        check_say(result, CHECK_FAIL, "tccld at %s: %s: restart it, see its log", socket, err.text);
        return;
    }
    check_user(site, fd, result);
    check_private(site, result);
    const char *version = tccl_text_of(answer, "version");
    if (strcmp(version, TCCL_VERSION) != 0)
        check_say(result, CHECK_WARN, "tccld has version %.40s, this is %s: restart tccld",
                  *version ? version : "0.1.0 or older", TCCL_VERSION);
    else
        check_say(result, CHECK_OK, "tccld %s answers", version);
    const char *trouble = json_string_value(json_object_get(answer, "trouble"));
    if (check_disk(site, result) && trouble)
        check_say(result, CHECK_FAIL, "new records are not stored: %.300s: see tccld's log",
                  trouble);
    check_name(site, result);
    check_metrics(site, result);
}

/* ---- AccountingHost ---- */

void check_item_accounting(const struct check_site *site, struct check_result *result)
{
    const char *host = site->conf.accounting_host;
    struct tccl_error err = {0};
    cleanup_json json_t *filter = json_pack("{s:i}", "limit", 1);
    int complete;
    if (!*host) {
        check_say(
            result, CHECK_WARN,
            "AccountingHost= is not set, so each node keeps the records of its own steps: set "
            "it to one node for all");
        return;
    }
    int left = tccl_left_ms(within(site, ACCOUNTING_MS));
    cleanup_json json_t *records =
        tccl_client_query(&site->conf, filter, left, false, &complete, NULL, &err);
    if (!records)
        check_say(result, CHECK_FAIL, "%s: %s: %s", host, err.text, check_peer_advice(err.text));
    else
        check_say(result, CHECK_OK, "%s answers", host);
}
