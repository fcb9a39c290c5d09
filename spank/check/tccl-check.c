/* tccl-check.c: checks the installation on this node, item by item, and says what to do. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fields.h"
#include "check/check-bundle.h"
#include "check/check-items.h"
#include "check/check-policy.h"
#include "check/check-step.h"
#include "client/hostlist.h"

enum {
    USAGE = 2,
    SECONDS = 10,
    MOST_SECONDS = 600,
    PATIENT_MS = 2000,
    LAST_MS = 500,
    NODES_MOST = 65536
};

struct options {
    struct check_options site;
    bool json, quiet, no_peers;
    int seconds;
    const char *only, *bundle;
};

static const struct {
    const char *name;
    check_item *run;
    const char *hanging; /* what probably hangs if it does not finish */
    bool by_conf;        /* needs tccl.conf */
} items[] = {
    {"config", check_item_config, "the file system of tccl.conf", false},
    {"slurm", check_item_slurm, "srun or slurmd, or the file system of slurm.conf", false},
    {"node", check_item_node, "the file system of slurm.conf", false},
    {"plugstack", check_item_plugstack, "the file system of plugstack.conf", false},
    {"plugin", check_item_plugin, "srun, slurmd or scontrol, or the file system of the plugin",
     false},
    {"loaded", check_item_loaded, "srun", false},
    {"configless", check_item_configless, "the file system of plugstack.conf", false},
    {"munge", check_item_munge, "munged (restart it)", true},
    {"daemon", check_item_daemon, "tccld or munged (see the item munge, restart tccld)", true},
    {"accounting", check_item_accounting, "munged (see the item munge)", true},
    {"policy", check_item_policy, "the file system of tccl.conf", true},
    {"profile", check_item_profile, "a driver, or the file system of the profile", true},
    {"gpus", check_item_gpus, "scontrol", true},
    {"shim", check_item_shim, "the file system of the shim", true},
    {"nccl", check_item_nccl, "a file system of PATH, PYTHONPATH or LD_LIBRARY_PATH", false},
    {"isolation", check_item_isolation, "scontrol", false},
    {"peers", check_item_peers, "munged (see the item munge)", true},
};
enum { ITEMS = sizeof(items) / sizeof(*items) };

/* A running item. Each has its own process, so that one that hangs or crashes does not affect the
 * others. */
struct probe {
    bool wanted, done;
    pid_t pid;
    int fd;
    size_t got;
    struct check_result result;
};

/* ---- options ---- */

static void usage(FILE *out)
{
    fputs(
        "Usage: tccl-check [OPTION]...\n"
        "       tccl-check policy [OPTION]...\n"
        "       tccl-check step JOB.STEP --node NODE\n"
        "Check whether slurm-tccl works on this node. Prints one line per item: ok, warn or fail,\n"
        "the finding, and what to do. Changes nothing. policy: the site policy of a step; step:\n"
        "whether the plugin was there when it ran.\n\n"
        "  -f, --config FILE     read FILE instead of " TCCL_SYSCONFDIR "/slurm/tccl.conf\n"
        "  -N, --node NAME       this node's name in Slurm, default: from slurm.conf\n"
        "      --peers LIST      contact the tccld of these nodes, default: all with GPUs\n"
        "      --no-peers        skip the item peers\n"
        "      --only LIST       check these items only, comma-separated\n"
        "      --timeout SECONDS time limit for all items, default 10\n"
        "      --bundle FILE     put all that a support request needs into FILE, a tar.gz\n"
        "  -j, --json            print one JSON object\n"
        "  -q, --quiet           print only items that are not ok\n"
        "  -h, --help            show this help and exit\n"
        "  -V, --version         show the version and exit\n\n"
        "Exit status: 0 nothing failed, 1 something did, 2 wrong usage. See tccl-check(8).\n",
        out);
}

static bool in_list(const char *list, const char *name)
{
    return !list || tccl_slurm_lists(list, name);
}

/* Checks that --only lists items only. */
static int check_only(const char *list)
{
    cleanup_free char *copy = strdup(list ? list : "");
    char *rest = copy, *word;
    while (list && rest && (word = strsep(&rest, ","))) {
        int i = 0;
        while (i < ITEMS && strcasecmp(items[i].name, word) != 0)
            i++;
        if (i < ITEMS)
            continue;
        fprintf(stderr, "tccl: --only: no item \"%s\": there are", word);
        for (i = 0; i < ITEMS; i++)
            fprintf(stderr, " %s", items[i].name);
        fputc('\n', stderr);
        return -1;
    }
    return 0;
}

/* Checks the syntax of --node and --peers. */
static int check_names(const struct check_options *options)
{
    struct tccl_hosts hosts;
    struct tccl_error err = {0};
    if (options->node && !tccl_host_valid(options->node)) {
        fprintf(stderr, "tccl: --node %.80s: give the name of one node\n", options->node);
        return -1;
    }
    if (options->peers && tccl_hosts_expand(options->peers, NODES_MOST, &hosts, &err) != 0) {
        fprintf(stderr, "tccl: --peers: %s\n", err.text);
        return -1;
    }
    if (options->peers)
        tccl_hosts_clear(&hosts);
    return 0;
}

static int read_seconds(const char *text, int *seconds)
{
    char *end;
    long value = strtol(text, &end, 10);
    if (*text && !*end && value >= 1 && value <= MOST_SECONDS) {
        *seconds = (int)value;
        return 0;
    }
    fprintf(stderr, "tccl: --timeout %s: give a whole number of seconds from 1 to %d\n", text,
            MOST_SECONDS);
    return -1;
}

/* Returns -1 to go on, else the exit status. */
static int read_options(int argc, char **argv, struct options *options)
{
    enum { PEERS = 256, NO_PEERS, ONLY, TIMEOUT, BUNDLE };
    static const struct option longs[] = {
        {"config", required_argument, NULL, 'f'},    {"node", required_argument, NULL, 'N'},
        {"peers", required_argument, NULL, PEERS},   {"no-peers", no_argument, NULL, NO_PEERS},
        {"only", required_argument, NULL, ONLY},     {"timeout", required_argument, NULL, TIMEOUT},
        {"bundle", required_argument, NULL, BUNDLE}, {"json", no_argument, NULL, 'j'},
        {"quiet", no_argument, NULL, 'q'},           {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'V'},         {0}};
    int option;
    while ((option = getopt_long(argc, argv, "f:N:jqhV", longs, NULL)) != -1) {
        switch (option) {
        case 'f':
            options->site.config = optarg;
            break;
        case 'N':
            options->site.node = optarg;
            break;
        case PEERS:
            options->site.peers = optarg;
            break;
        case NO_PEERS:
            options->no_peers = true;
            break;
        case ONLY:
            options->only = optarg;
            break;
        case TIMEOUT:
            if (read_seconds(optarg, &options->seconds) != 0)
                return USAGE;
            break;
        case BUNDLE:
            options->bundle = optarg;
            break;
        case 'j':
            options->json = true;
            break;
        case 'q':
            options->quiet = true;
            break;
        case 'h':
            usage(stdout);
            return 0;
        case 'V':
            puts("tccl-check (slurm-tccl) " TCCL_RELEASE);
            return 0;
        default:
            fputs("Try 'tccl-check --help'.\n", stderr);
            return USAGE;
        }
    }
    if (optind < argc) {
        fprintf(stderr, "tccl: tccl-check takes no argument \"%s\": see tccl-check --help\n",
                argv[optind]);
        return USAGE;
    }
    return check_only(options->only) == 0 && check_names(&options->site) == 0 ? -1 : USAGE;
}

/* ---- probes ---- */

/* Runs in the child, which leads a process group: killing that ends its own children, too. */
static void run_item(int item, const struct options *options, int64_t deadline, int fd)
{
    static struct check_site site;
    static struct check_result result;
    check_site_read(&options->site, deadline, &site);
    if (items[item].by_conf && site.conf_unread)
        check_say(&result, site.conf_closed ? CHECK_WARN : CHECK_FAIL,
                  "can't be told without %s: see the item config", site.conf.path);
    else
        items[item].run(&site, &result);
    size_t sent = 0;
    while (sent < sizeof(result)) {
        ssize_t size = write(fd, (const char *)&result + sent, sizeof(result) - sent);
        if (size <= 0)
            break;
        sent += (size_t)size;
    }
    _exit(0);
}

static void start(struct probe *probe, int item, const struct options *options, int64_t deadline)
{
    int ends[2];
    probe->fd = -1;
    if (pipe2(ends, O_CLOEXEC) != 0) {
        probe->done = true;
        check_say(&probe->result, CHECK_FAIL, "cannot be checked: %s", strerror(errno));
        return;
    }
    probe->pid = fork();
    if (probe->pid == 0) {
        setpgid(0, 0);
        run_item(item, options, deadline, ends[1]);
    }
    close(ends[1]);
    probe->fd = ends[0];
    if (probe->pid > 0)
        setpgid(probe->pid, probe->pid); /* parent and child both: either may run first */
}

/* The whole result has arrived, or the child has ended without it. */
static void finish(struct probe *probe)
{
    int status = 0;
    bool whole = probe->got == sizeof(probe->result);
    close(probe->fd);
    probe->fd = -1;
    probe->done = true;
    if (whole)
        return;
    if (probe->pid > 0)
        waitpid(probe->pid, &status, 0);
    memset(&probe->result, 0, sizeof(probe->result));
    if (probe->pid > 0)
        check_say(&probe->result, CHECK_FAIL, "tccl-check itself failed (%s %d): please report",
                  WIFSIGNALED(status) ? "signal" : "status",
                  WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    else
        check_say(&probe->result, CHECK_FAIL, "cannot be checked: no process could be started");
    probe->pid = 0;
}

static void receive(struct probe *probe)
{
    size_t left = sizeof(probe->result) - probe->got;
    ssize_t size = read(probe->fd, (char *)&probe->result + probe->got, left);
    if (size < 0 && errno == EINTR)
        return;
    probe->got += size > 0 ? (size_t)size : 0;
    if (size <= 0 || probe->got == sizeof(probe->result))
        finish(probe);
}

static void give_up(struct probe *probe, const char *hanging, int seconds)
{
    close(probe->fd);
    probe->fd = -1;
    probe->done = true;
    memset(&probe->result, 0, sizeof(probe->result));
    check_say(&probe->result, CHECK_FAIL,
              "not finished within %d s. Probable cause: %s hangs. Allow more time with --timeout",
              seconds, hanging);
}

/* Waits for a result, at most until `until`. */
static void wait_some(struct probe *probes, int64_t until)
{
    struct pollfd polls[ITEMS];
    int64_t left = until - tccl_now_ms();
    for (int i = 0; i < ITEMS; i++)
        polls[i] = (struct pollfd){.fd = probes[i].wanted && !probes[i].done ? probes[i].fd : -1,
                                   .events = POLLIN};
    if (poll(polls, ITEMS, left > 0 ? (int)left : 0) <= 0)
        return;
    for (int i = 0; i < ITEMS; i++)
        if (polls[i].fd >= 0 && polls[i].revents)
            receive(&probes[i]);
}

static int first_open(const struct probe *probes)
{
    for (int i = 0; i < ITEMS; i++)
        if (probes[i].wanted && !probes[i].done)
            return i;
    return ITEMS;
}

/* ---- what is shown ---- */

/* Prints the lines in the order of the items, each as soon as all before it are known. */
static void show(const struct options *options, const struct probe *probes, int *shown, int end)
{
    for (; *shown < end; ++*shown) {
        const struct probe *probe = &probes[*shown];
        if (!options->json && probe->wanted && !(options->quiet && probe->result.level == CHECK_OK))
            check_print(stdout, items[*shown].name, &probe->result, isatty(STDOUT_FILENO));
    }
    fflush(stdout);
}

/* A status line on the terminal, overwritten by the next output. */
static void say_waiting(const struct probe *probes, bool *said)
{
    if (!isatty(STDERR_FILENO))
        return;
    fputs("\r\033[Ktccl: waiting for", stderr);
    for (int i = 0; i < ITEMS; i++)
        if (probes[i].wanted && !probes[i].done)
            fprintf(stderr, " %s", items[i].name);
    *said = true;
}

static void clear_waiting(bool *said)
{
    if (*said)
        fputs("\r\033[K", stderr);
    *said = false;
}

static void wait_all(const struct options *options, struct probe *probes, int64_t began)
{
    int64_t deadline = began + options->seconds * 1000, patient = began + PATIENT_MS;
    int shown = 0, open;
    bool said = false;
    while ((open = first_open(probes)) < ITEMS && tccl_now_ms() < deadline) {
        if (open > shown) {
            clear_waiting(&said);
            show(options, probes, &shown, open);
        }
        if (tccl_now_ms() >= patient && !said)
            say_waiting(probes, &said);
        wait_some(probes, !said && patient < deadline ? patient : deadline);
    }
    clear_waiting(&said);
    for (int i = 0; i < ITEMS; i++)
        if (probes[i].wanted && !probes[i].done)
            give_up(&probes[i], items[i].hanging, options->seconds);
    show(options, probes, &shown, ITEMS);
}

static int print_json(const struct probe *probes, bool quiet, enum check_level worst)
{
    cleanup_json json_t *list = json_array();
    for (int i = 0; i < ITEMS; i++)
        if (probes[i].wanted && !(quiet && probes[i].result.level == CHECK_OK))
            json_array_append_new(list, check_to_json(items[i].name, &probes[i].result));
    cleanup_json json_t *all = json_pack("{s:s, s:s, s:O}", "version", TCCL_VERSION, "level",
                                         check_level_name(worst), "items", list);
    if (!all || json_dumpf(all, stdout, JSON_INDENT(2) | TCCL_JSON_DIGITS) != 0)
        return -1;
    putchar('\n');
    return 0;
}

/* Kills items that still run, and their children. */
static void end_all(struct probe *probes)
{
    for (int i = 0; i < ITEMS; i++)
        if (probes[i].pid > 0)
            kill(-probes[i].pid, SIGKILL);
    while (waitpid(-1, NULL, WNOHANG) > 0)
        continue;
}

static int write_bundle(const struct options *options)
{
    struct tccl_error err = {0};
    int files = check_bundle(&options->site, options->seconds, options->bundle, &err);
    if (files < 0)
        fprintf(stderr, "tccl: --bundle: %s\n", err.text);
    else
        printf("tccl: %s: %d files; names of nodes and users are in it: look at it before you send "
               "it\n",
               options->bundle, files);
    return files < 0;
}

int main(int argc, char **argv)
{
    static struct probe probes[ITEMS];
    struct options options = {.seconds = SECONDS};
    enum check_level worst = CHECK_OK;
    int64_t began = tccl_now_ms();
    if (argc > 1 && strcmp(argv[1], "policy") == 0)
        return check_policy(argc - 1, argv + 1);
    if (argc > 1 && strcmp(argv[1], "step") == 0)
        return check_step(argc - 1, argv + 1);
    int status = read_options(argc, argv, &options);
    if (status >= 0)
        return status;
    signal(SIGPIPE, SIG_IGN);
    if (options.bundle)
        return write_bundle(&options);
    for (int i = 0; i < ITEMS; i++) {
        probes[i].wanted = in_list(options.only, items[i].name) &&
                           !(options.no_peers && items[i].run == check_item_peers);
        if (probes[i].wanted)
            start(&probes[i], i, &options, began + options.seconds * 1000 - LAST_MS);
    }
    wait_all(&options, probes, began);
    end_all(probes);
    for (int i = 0; i < ITEMS; i++)
        if (probes[i].wanted && probes[i].result.level > worst)
            worst = probes[i].result.level;
    if (options.json && print_json(probes, options.quiet, worst) != 0)
        return 1;
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "tccl: standard output: %s\n", strerror(errno));
        return 1;
    }
    return worst == CHECK_FAIL;
}
