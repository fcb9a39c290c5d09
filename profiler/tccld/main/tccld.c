/* tccld: serves the profile cache, joins and merges the nodes of a step, and keeps the records. */
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fileio.h"
#include "base/options.h"
#include "tccld/jobs/jobs.h"
#include "tccld/join/evidence.h"
#include "tccld/join/nic-links.h"
#include "tccld/join/own.h"
#include "tccld/join/running.h"
#include "tccld/join/step.h"
#include "tccld/journal/journal.h"
#include "tccld/main/daemon.h"
#include "tccld/main/metrics.h"
#include "tccld/main/run-dir.h"
#include "tccld/net/front.h"
#include "tccld/net/resolver.h"
#include "tccld/net/share.h"
#include "tccld/rights/monitor.h"

enum { MUNGE_THREADS = 4, NAME_THREADS = 3, STOP_MS = 500, DESCRIPTORS = 8192 };
/* Turns. Credentials with munge (each 64 KiB one more) of an address and of all, where they aren't
 * trusted and where they are: a quarter of munge's queue is left for what this tccld asks and
 * answers. Questions under way, to their answers' last byte: of a user, of all users who may only
 * ask; who has none has one, whatever the others have. */
static const struct turn_limits decoding_strangers = {.each = 16, .all = 256},
                                decoding_trusted = {.each = 256, .all = 512},
                                questions = {.each = 8, .all = 32};
_Static_assert(256 + 512 <= THREADS_QUEUE * 3 / 4, "credentials of others may fill munge's queue");

struct options {
    struct conf_source conf;
    const char *pid_file;
    bool foreground;
};

static TCCL_OPTION_SETTER(refuse_check)
{
    return tccl_fail(err, "tccld has no --check: run tccl-check, or tccld --check-config");
}

static const struct tccl_command commands[] = {
    {"",
     "Usage: tccld [OPTION]...\n"
     "Serve this node's measured bandwidths to jobs, agree with the tccld of other\n"
     "nodes on the ring of each job step, keep the records. Runs in the foreground.\n\n",
     "\nSIGHUP makes it read the configuration again, SIGTERM ends it. See tccld(8);\n"
     "tccl-check(8) says whether all works on this node.\n"}};

static const struct tccl_option option_table[] = {
    {"config", 'f', 0, TCCL_OPTION_TEXT, offsetof(struct options, conf.path), "@file",
     "  -f, --config FILE     read FILE instead of " TCCL_SYSCONFDIR "/slurm/tccl.conf\n"},
    {"node", 'N', 0, TCCL_OPTION_TEXT, offsetof(struct options, conf.node), NULL,
     "  -N, --node NAME       this node's name in Slurm, default: the short host name\n"},
    {"pid-file", 0, 0, TCCL_OPTION_TEXT, offsetof(struct options, pid_file), "@file",
     "      --pid-file FILE   write the process id to FILE, remove it at the end\n"},
    {"check-config", 0, 0, TCCL_OPTION_FLAG, offsetof(struct options, conf.check), NULL,
     "      --check-config    read the configuration, say what is wrong, and exit\n"},
    /* else getopt would take it for the start of --check-config */
    {"check", 0, 0, TCCL_OPTION_OWN_FLAG, 0, NULL, "", 0, 0, refuse_check},
    {"alone", 0, 0, TCCL_OPTION_FLAG, offsetof(struct options, conf.alone), NULL,
     "      --alone           of a machine by itself: no Slurm, no network, nobody but\n"
     "                        the user who starts it (tccl-run(1) does)\n"},
    {"foreground", 0, 0, TCCL_OPTION_FLAG, offsetof(struct options, foreground), NULL,
     "      --foreground      accepted, and the only way it runs\n"},
    {"help", 'h', 0, TCCL_OPTION_HELP, 0, NULL,
     "  -h, --help            show this help and exit\n"},
    {"version", 'V', 0, TCCL_OPTION_VERSION, 0, NULL,
     "  -V, --version         show the version and exit\n"},
};

static const struct tccl_program program = {
    "tccld", commands, 1, option_table, sizeof(option_table) / sizeof(*option_table), false, NULL};

static void on_stop(evutil_socket_t signal UNUSED, short what UNUSED, void *argument)
{
    event_base_loopbreak(argument);
}

static int make_folders(const struct tccl_conf *conf, struct tccl_error *err)
{
    char folder[PATH_MAX];
    snprintf(folder, sizeof(folder), "%s", conf->socket);
    char *slash = strrchr(folder, '/');
    if (slash && slash != folder) {
        *slash = '\0';
        if (access(folder, F_OK) != 0 && tccl_make_folder(folder, 0711, err) != 0)
            return -1;
    }
    if (access(conf->run_dir, F_OK) != 0 && tccl_make_folder(conf->run_dir, 0711, err) != 0)
        return -1;
    return 0; /* StateDir: journal/opening.c */
}

static int write_pid(const char *path, struct tccl_error *err)
{
    char text[32];
    int size = snprintf(text, sizeof(text), "%d\n", getpid());
    return path ? tccl_write_file(path, 0644, text, (size_t)size, err) : 0;
}

/* Room for all connections that the bounds allow. */
static void allow_descriptors(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    limit.rlim_cur = limit.rlim_max < DESCRIPTORS ? limit.rlim_max : DESCRIPTORS;
    setrlimit(RLIMIT_NOFILE, &limit);
}

/* Everything that serves, in the order in which it is made; freed in the reverse order. */
struct parts {
    struct daemon daemon;
    struct unix_socket *unix_socket;
    struct tcp_socket *tcp;
    struct reload *reload;
    struct event *terminate, *interrupt;
    bool lost; /* the monitor */
};

static int add_signals(struct parts *parts, struct tccl_error *err)
{
    struct event_base *base = parts->daemon.base;
    signal(SIGPIPE, SIG_IGN);
    parts->terminate = evsignal_new(base, SIGTERM, on_stop, base);
    parts->interrupt = evsignal_new(base, SIGINT, on_stop, base);
    if (!parts->terminate || !parts->interrupt || evsignal_add(parts->terminate, NULL) != 0 ||
        evsignal_add(parts->interrupt, NULL) != 0)
        return tccl_fail(err, "signals can't be caught");
    return 0;
}

/* It looks for what is more urgent after every few patient events. */
static struct event_base *new_base(void)
{
    static const struct timeval interval = {0, 1000};
    struct event_config *config = event_config_new();
    struct event_base *base = NULL;
    if (config && event_config_set_max_dispatch_interval(config, &interval, 8, DAEMON_PATIENT) == 0)
        base = event_base_new_with_config(config);
    if (config)
        event_config_free(config);
    if (base && event_base_priority_init(base, DAEMON_PRIORITIES) != 0) {
        event_base_free(base);
        return NULL;
    }
    return base;
}

/* The next start has a new one. */
static void on_lost(void *context)
{
    struct parts *parts = context;
    log_line("tccld's monitor (root's part of it) has ended or does not answer, so tccld ends");
    parts->lost = true;
    event_base_loopbreak(parts->daemon.base);
}

static void hear_gpus(struct daemon *daemon, unsigned look)
{
    join_heard(daemon, look);
    presence_heard(daemon, look);
}

static int begin(struct parts *parts, const struct conf_source *source, struct tccl_error *err)
{
    struct daemon *daemon = &parts->daemon;
    if (make_folders(daemon->conf, err) != 0)
        return -1;
    daemon->base = new_base();
    if (daemon->base) {
        daemon->decoding = turns_new(daemon->base, decoding_strangers, decoding_trusted, false);
        daemon->questions = turns_new(daemon->base, questions, questions, true);
    }
    daemon->own = own_new();
    daemon->replay = replay_new();
    daemon->shares = shares_new();
    daemon->metrics = metrics_new();
    if (!daemon->base || !daemon->decoding || !daemon->questions || !daemon->own ||
        !daemon->replay || !daemon->shares || !daemon->metrics)
        return tccl_fail(err, "out of memory");
    if (daemon->monitor && monitor_watch(daemon->monitor, daemon->base, on_lost, parts, err) != 0)
        return -1;
    if (add_signals(parts, err) != 0 || !(parts->reload = reload_new(daemon, source, err)) ||
        !(parts->unix_socket = unix_socket_new(daemon, err)) ||
        !(daemon->munge = threads_new(daemon->base, MUNGE_THREADS, THREADS_QUEUE, err)) ||
        !(daemon->names = threads_new(daemon->base, NAME_THREADS, THREADS_QUEUE, err)) ||
        /* root itself takes files of users away there, which may be long */
        (((!daemon->monitor && geteuid() == 0) || !run_dir_in_memory(daemon->conf->run_dir)) &&
         !(daemon->run_dir = run_dir_new(daemon->base, err))))
        return -1;
    sweep_unfinished(daemon->conf->run_dir);
    daemon->resolver = resolver_new(daemon->names);
    if (daemon->resolver)
        resolver_look(daemon->resolver, daemon->conf);
    daemon->journal = daemon->resolver ? journal_open(daemon, err) : NULL;
    daemon->jobs = daemon->journal ? jobs_new(daemon, err) : NULL;
    daemon->steps = daemon->jobs ? steps_new(daemon) : NULL;
    daemon->running = daemon->steps ? running_new(daemon) : NULL;
    daemon->peer_trust = daemon->running ? peer_trust_new(daemon) : NULL;
    if (!daemon->peer_trust)
        return tccl_fail(err, "out of memory");
    daemon->gpus = slurm_gpus_new(daemon, hear_gpus, err);
    if (!daemon->gpus || !(daemon->links = nic_links_new(daemon, err)) ||
        !(daemon->fresh = fresh_new(daemon, err)) ||
        !(daemon->presence = presence_new(daemon, err)) ||
        !(daemon->evidence = evidence_new(daemon, err)))
        return -1;
    parts->tcp = tcp_socket_new(daemon, err);
    if (!parts->tcp || !(daemon->metrics_file = metrics_file_new(daemon, err)))
        return -1;
    daemon->sweep = sweep_new(daemon, SWEEP_MS);
    if (!daemon->sweep)
        return tccl_fail(err, "out of memory");
    return unix_socket_listen(parts->unix_socket, err);
}

/* Those who wait get an answer, for which the loop turns a little longer. */
static void end(struct parts *parts)
{
    struct daemon *daemon = &parts->daemon;
    if (daemon->steps)
        steps_stop(daemon->steps);
    for (int64_t until = tccl_now_ms() + STOP_MS; daemon->steps && tccl_now_ms() < until;)
        if (event_base_loop(daemon->base, EVLOOP_NONBLOCK) != 0 ||
            event_base_get_num_events(daemon->base, EVENT_BASE_COUNT_ACTIVE) == 0)
            break;
    reload_free(parts->reload);
    sweep_free(daemon->sweep);
    tcp_socket_free(parts->tcp);
    peer_trust_free(daemon->peer_trust);
    unix_socket_free(parts->unix_socket);
    presence_free(daemon->presence);
    slurm_gpus_free(daemon->gpus);
    nic_links_free(daemon->links);
    fresh_free(daemon->fresh);
    steps_free(daemon->steps);
    running_free(daemon->running);
    evidence_free(daemon->evidence);
    jobs_free(daemon->jobs);
    journal_close(daemon->journal);
    metrics_file_free(daemon->metrics_file);
    int stuck = threads_free(daemon->munge, STOP_MS) + threads_free(daemon->names, 0) +
                run_dir_free(daemon->run_dir);
    if (!stuck) {
        resolver_free(daemon->resolver);
        monitor_free(daemon->monitor);
    }
    turns_free(daemon->decoding);
    turns_free(daemon->questions);
    shares_free(daemon->shares);
    own_free(daemon->own);
    replay_free(daemon->replay);
    metrics_free(daemon->metrics);
    daemon_drop(parts->terminate);
    daemon_drop(parts->interrupt);
    if (daemon->base)
        event_base_free(daemon->base);
}

static int serve(const struct options *options, struct parts *parts)
{
    struct daemon *daemon = &parts->daemon;
    struct tccl_error err = {0};
    daemon->epoch = tccl_wall_us();
    strcpy(daemon->munge_socket, daemon->conf->munge_socket);
    int failed = begin(parts, &options->conf, &err) || write_pid(options->pid_file, &err);
    if (failed) {
        log_line("%s", err.text);
    } else {
        char port[16] = "no port";
        if (!daemon->alone)
            snprintf(port, sizeof(port), "port %u", daemon->conf->port);
        log_line("tccld %s serves node %s at %s and %s, as uid %u", TCCL_VERSION,
                 daemon->conf->node, daemon->conf->socket, port, geteuid());
        event_base_dispatch(daemon->base);
        log_line("tccld of node %s stops", daemon->conf->node);
    }
    end(parts);
    if (options->pid_file && !failed)
        tccl_remove_file(options->pid_file, NULL);
    return failed || parts->lost ? 1 : 0;
}

/* Root becomes TccldUser, and leaves behind what that can't do. */
static int become_user(struct daemon *daemon, struct conf_source *source, struct tccl_error *err)
{
    if (geteuid() != 0 || daemon->alone)
        return 0;
    if (daemon->users.tccld == 0) {
        if (!tccl_conf_line(daemon->conf, "TccldUser"))
            log_line(
                "there is no user %s, so tccld stays root: make one (systemd-sysusers), or set "
                "TccldUser=root",
                daemon->conf->tccld_user);
        return 0;
    }
    hand_over(daemon->conf, daemon->users.tccld);
    daemon->monitor = monitor_start(daemon->conf->munge_socket, err);
    source->monitored = true;
    return daemon->monitor ? drop_to_user(daemon->users.tccld, err) : -1;
}

int main(int argc, char **argv)
{
    struct options options = {0};
    struct parts parts = {0};
    struct tccl_error err = {0};
    int status = tccl_options_read(&program, 0, argc, argv, &options, &err);
    if (status == 0 && optind < argc)
        status = tccl_usage_fail(&program, 0, &err, "%.60s: not an option", argv[optind]);
    if (status < 0)
        fprintf(stderr, "tccl: %s\n", err.text);
    if (status != 0)
        return status < 0 ? 2 : tccl_end_output(0);
    umask(022);
    allow_descriptors();
    parts.daemon.alone = options.conf.alone;
    parts.daemon.conf = reload_read(&options.conf, &parts.daemon.users, &err);
    if (!parts.daemon.conf) {
        log_line("%s", err.text);
        return 1;
    }
    if (!options.conf.check)
        run_dir_await(parts.daemon.conf->run_dir);
    if (!options.conf.check && become_user(&parts.daemon, &options.conf, &err) != 0) {
        log_line("%s", err.text);
        return 1;
    }
    /* Sorting a large store anew takes room: of its own disk, not of /var/tmp. */
    setenv("SQLITE_TMPDIR", parts.daemon.conf->state_dir, 0);
    status = options.conf.check ? 0 : serve(&options, &parts);
    const struct tccl_conf *conf = parts.daemon.conf;
    if (options.conf.check && access(conf->path, F_OK) == 0)
        printf("tccl: %s is good, as read for node %s\n", conf->path, conf->node);
    else if (options.conf.check)
        printf("tccl: there is no %s: the default values are used\n", conf->path);
    tccl_conf_clear(parts.daemon.conf);
    free(parts.daemon.conf);
    return status;
}
