/* tccl-comment: shows the rings of jobs in Slurm's own records, as their AdminComment. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "acct/acct-time.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "client/users.h"
#include "comment/comment-run.h"

enum { SAVE_MS = 10000, EXIT_REFUSED = 2 };

static const char help[] =
    "Usage: tccl-comment [OPTION]…\n"
    "Writes which ring a job got into its AdminComment, so that sacct shows it. Runs in the\n"
    "foreground, as root or SlurmUser, on one host, and only if AdminComment=yes in tccl.conf.\n"
    "\n"
    "      --once           work off what there is, and end\n"
    "      --dry-run        print what would be written, and end\n"
    "  -S, --since=TIME     read the records of all steps since then (0131, now-30days)\n"
    "      --state=FILE     instead of comment.json in StateDir\n"
    "      --config=FILE    instead of $TCCL_CONF or " TCCL_SYSCONFDIR "/slurm/tccl.conf\n"
    "      --node=NAME      this node's Slurm name, where it isn't the host's\n"
    "  -h, --help   -V, --version\n"
    "SIGHUP makes it read tccl.conf again, SIGTERM ends it. See tccl-comment(8).\n";

struct options {
    const char *config, *node, *state;
    int64_t since;
    bool once, dry;
};

static volatile sig_atomic_t hung_up;

static void on_hangup(int signal)
{
    (void)signal;
    hung_up = 1;
}

/* Nothing is left half done: the state is written with these signals blocked. */
static void on_stop(int signal)
{
    static const char line[] = "tccl: tccl-comment ends\n";
    ssize_t written = write(STDERR_FILENO, line, sizeof(line) - 1);
    (void)signal;
    (void)written;
    _exit(0);
}

static int take_since(struct options *options, const char *text)
{
    struct tccl_error err = {0};
    time_t when;
    if (acct_time_parse(text, time(NULL), &when, &err) != 0) {
        comment_say("--since: %s", err.text);
        return EXIT_REFUSED;
    }
    options->since = when > 0 ? when : 0;
    return -1;
}

/* Returns -1 to go on, else the exit status. */
static int read_options(int argc, char **argv, struct options *options)
{
    enum { ONCE = 256, DRY_RUN, STATE, CONFIG, NODE };
    static const struct option longs[] = {{"once", no_argument, NULL, ONCE},
                                          {"dry-run", no_argument, NULL, DRY_RUN},
                                          {"since", required_argument, NULL, 'S'},
                                          {"state", required_argument, NULL, STATE},
                                          {"config", required_argument, NULL, CONFIG},
                                          {"node", required_argument, NULL, NODE},
                                          {"help", no_argument, NULL, 'h'},
                                          {"version", no_argument, NULL, 'V'},
                                          {0}};
    int option, status = -1;
    while (status < 0 && (option = getopt_long(argc, argv, "S:hV", longs, NULL)) != -1) {
        switch (option) {
        case ONCE:
            options->once = true;
            break;
        case DRY_RUN:
            options->dry = options->once = true;
            break;
        case 'S':
            status = take_since(options, optarg);
            break;
        case STATE:
            options->state = optarg;
            break;
        case CONFIG:
            options->config = optarg;
            break;
        case NODE:
            options->node = optarg;
            break;
        case 'h':
            fputs(help, stdout);
            return 0;
        case 'V':
            puts("tccl-comment (slurm-tccl) " TCCL_VERSION);
            return 0;
        default:
            fputs("Try 'tccl-comment --help'.\n", stderr);
            return EXIT_REFUSED;
        }
    }
    if (status < 0 && optind < argc) {
        comment_say("tccl-comment takes no argument \"%s\": see tccl-comment --help", argv[optind]);
        return EXIT_REFUSED;
    }
    return status;
}

/* A configuration that allows what is done here. NULL with err. */
static struct tccl_conf *read_conf(const struct options *options, struct tccl_error *err)
{
    struct tccl_conf *conf = calloc(1, sizeof(*conf));
    uid_t slurm;
    if (!conf) {
        tccl_fail(err, "out of memory");
        return NULL;
    }
    if (tccl_conf_read(tccl_conf_tool_path(options->config), options->node, conf, err) == 0) {
        if (!conf->admin_comment)
            tccl_fail(err, "AdminComment=yes is not set in %s: nothing is done", conf->path);
        else if (geteuid() != 0 &&
                 (tccl_user_find("SlurmUser", conf->slurm_user, &slurm, err) != 0 ||
                  slurm != geteuid()))
            tccl_fail(err, "only root and SlurmUser (%s) may write AdminComment", conf->slurm_user);
        else
            return conf;
    }
    tccl_conf_clear(conf);
    free(conf);
    return NULL;
}

static void hold_stop(bool hold)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigprocmask(hold ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
}

static void catch_signals(void)
{
    struct sigaction hangup = {.sa_handler = on_hangup}, stop = {.sa_handler = on_stop};
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGHUP); /* let through while there is nothing to do */
    sigprocmask(SIG_BLOCK, &set, NULL);
    sigaction(SIGHUP, &hangup, NULL);
    sigaction(SIGTERM, &stop, NULL);
    sigaction(SIGINT, &stop, NULL);
    signal(SIGPIPE, SIG_IGN);
}

/* One at a time: two of them would write twice as often. Returns a descriptor that is kept, or -1
 * with err. */
static int lock_state(const char *path, struct tccl_error *err)
{
    cleanup_free char *lock = NULL;
    if (asprintf(&lock, "%s.lock", path) < 0) {
        lock = NULL;
        return tccl_fail(err, "out of memory");
    }
    int fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return tccl_fail(err, "%s: can't be written: %s", lock, strerror(errno));
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        return fd;
    close(fd);
    return tccl_fail(err, "%s: another tccl-comment runs", lock);
}

/* What was saved makes less work, and nothing of it is needed: without it, more is read. */
static void load(struct comment_run *run, const char *path)
{
    struct tccl_error err = {0};
    if (comment_state_read(&run->state, path, &err) < 0)
        comment_say("the last days' records are read again: %s", err.text);
}

static void save(struct comment_run *run, const char *path)
{
    struct tccl_error err = {0};
    if (!run->changed || run->dry)
        return;
    hold_stop(true);
    if (comment_state_write(&run->state, path, &err) != 0)
        comment_say("where it stands can't be saved: %s", err.text);
    else
        run->changed = false;
    hold_stop(false);
}

/* Returns false where it is not to go on. */
static bool reload(struct comment_run *run, const struct options *options)
{
    struct tccl_error err = {0};
    hung_up = 0;
    struct tccl_conf *conf = read_conf(options, &err);
    if (!conf && strncmp(err.text, "AdminComment=", strlen("AdminComment=")) == 0) {
        comment_say("%s", err.text);
        return false;
    }
    if (!conf) {
        comment_say("the configuration stays as it was: %s", err.text);
        return true;
    }
    tccl_conf_clear(run->conf);
    free(run->conf);
    run->conf = conf;
    run->scan_ms = run->scan_pause_ms = 0;
    comment_say("the configuration was read again");
    return true;
}

/* Sleeps; SIGHUP ends that early. */
static void rest(int64_t ms)
{
    struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    sigset_t mask;
    sigprocmask(SIG_BLOCK, NULL, &mask);
    sigdelset(&mask, SIGHUP);
    ppoll(NULL, 0, &time, &mask);
}

static int run_all(struct comment_run *run, const struct options *options, const char *path)
{
    int64_t save_ms = 0, wait;
    while ((wait = comment_run_step(run)) >= 0) {
        if (tccl_now_ms() >= save_ms) {
            save(run, path);
            save_ms = tccl_now_ms() + SAVE_MS;
        }
        rest(run->changed && wait > SAVE_MS ? SAVE_MS : wait);
        if (hung_up && !reload(run, options)) {
            save(run, path);
            return EXIT_REFUSED;
        }
    }
    save(run, path);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        comment_say("the output can't be written: %s", strerror(errno));
        return 1;
    }
    return run->failed ? 1 : 0;
}

static void greet(const struct comment_run *run)
{
    const struct tccl_conf *conf = run->conf;
    if (!*conf->accounting_host)
        comment_say("AccountingHost is not set in %s: only jobs whose first node is this one (%s) "
                    "get an AdminComment",
                    conf->path, conf->node);
    if (!run->once)
        comment_say("tccl-comment %s writes AdminComment from the records of %s", TCCL_VERSION,
                    *conf->accounting_host ? conf->accounting_host : conf->node);
}

static int serve(struct comment_run *run, const struct options *options)
{
    struct tccl_error err = {0};
    char path[PATH_MAX + 32];
    if (options->state)
        snprintf(path, sizeof(path), "%s", options->state);
    else
        snprintf(path, sizeof(path), "%s/comment.json", run->conf->state_dir);
    cleanup_close int lock = run->dry ? -1 : lock_state(path, &err);
    if (!run->dry && lock < 0) {
        comment_say("%s", err.text);
        return 1;
    }
    catch_signals();
    greet(run);
    if (!run->dry)
        load(run, path);
    return run_all(run, options, path);
}

int main(int argc, char **argv)
{
    struct options options = {.since = -1};
    struct comment_run run = {0};
    struct tccl_error err = {0};
    int status = read_options(argc, argv, &options);
    if (status >= 0)
        return status;
    umask(022);
    run.conf = read_conf(&options, &err);
    if (!run.conf) {
        comment_say("%s", err.text);
        return EXIT_REFUSED;
    }
    run.once = options.once;
    run.dry = options.dry;
    run.since = options.since;
    comment_state_init(&run.state);
    status = serve(&run, &options);
    comment_state_clear(&run.state);
    tccl_conf_clear(run.conf);
    free(run.conf);
    return status;
}
