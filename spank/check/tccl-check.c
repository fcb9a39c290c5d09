/* tccl-check.c: checks the installation on this node, item by item, and says what to do. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fields.h"
#include "base/options.h"
#include "check/check-items.h"
#include "client/hostlist.h"
#include "draw/term.h"

enum { PATIENT_MS = 2000, LAST_MS = 500 };

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
    {"machine", check_item_machine, "a driver", false},
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
    struct check_result result;
};
_Static_assert(sizeof(struct check_result) <= PIPE_BUF, "it is written and read at once");

/* ---- options ---- */

enum {
    CHECK,
    POLICY,
    STEP,
    MACHINE,
    IN_CHECK = 1 << CHECK,
    IN_POLICY = 1 << POLICY,
    IN_STEP = 1 << STEP,
    IN_MACHINE = 1 << MACHINE
};

/* A list of items. */
static TCCL_OPTION_SETTER(set_only)
{
    char known[256] = "";
    cleanup_free char *copy = strdup(text);
    char *rest = copy, *word;
    *(const char **)field = text;
    for (int i = 0; i < ITEMS; i++)
        sprintf(known + strlen(known), "%s%s", i ? "," : "", items[i].name);
    while (rest && (word = strsep(&rest, ",")))
        if (!tccl_slurm_lists(known, word))
            return tccl_fail(err, "--%s: no item \"%.40s\": there are %s", option->name, word,
                             known);
    return 0;
}

static TCCL_OPTION_SETTER(set_node)
{
    *(const char **)field = text;
    if (tccl_host_valid(text))
        return 0;
    return tccl_fail(err, "--%s %.80s: give the name of one node", option->name, text);
}

static TCCL_OPTION_SETTER(set_nodes)
{
    size_t count;
    *(const char **)field = text;
    if (tccl_hosts_count(text, CHECK_NODES_MAX, &count, err) != 0)
        return tccl_fail_in(err, "--%s", option->name);
    return count || option->commands == IN_CHECK
               ? 0
               : tccl_fail(err, "--%s: give node names, such as n[1-4]", option->name);
}

static TCCL_OPTION_SETTER(set_mode)
{
    int mode = tccl_mode_parse(text, err);
    *(int *)field = mode;
    return mode < 0 ? tccl_fail_in(err, "--%s", option->name) : 0;
}

static const struct tccl_command commands[] = {
    {"",
     "Usage: tccl-check [OPTION]...\n"
     "       tccl-check policy|step|machine [OPTION]...       (each has a --help)\n"
     "Check whether slurm-tccl works on this node. Prints one line per item: ok, warn\n"
     "or fail, the finding, what to do. Changes nothing. policy: that of a step; step:\n"
     "was the plugin there; machine: what of hardware, BIOS, drivers slows transfers.\n\n",
     "\nExit status: 0 nothing failed, 1 something did, 2 wrong usage. tccl-check(8).\n"},
    {"policy",
     "Usage: tccl-check policy [--explain] [OPTION]...\n"
     "Show which policy of tccl.conf applies to a job step, and its settings.\n\n",
     "\nArguments of the plugin in plugstack.conf are not considered.\n"
     "Exit status: 0 success; 1 tccl.conf cannot be read; 2 wrong usage.\n"},
    {"step",
     "Usage: tccl-check step JOB.STEP --node NODE [OPTION]...\n"
     "Ask the tccld of a node whether the plugin has spoken for a job step of yours\n"
     "there. If it has not, Slurm has dropped --tccl in silence, require too.\n\n",
     "\nExit status: 0 it has, 1 it has not, 2 wrong usage, 3 that is not known.\n"},
    {"machine",
     "Usage: tccl-check machine [--json]\n"
     "Show what of this machine slows transfers down: links that are trained at less\n"
     "than they can, ACS, IOMMU, NUMA nodes, peer access, drivers, limits; what each\n"
     "costs, how it is mended, and the risk of that. Changes and measures nothing.\n"
     "root sees more.\n\n",
     "\nExit status: 0 nothing failed, 1 a device does not work, 2 wrong usage.\n"},
};

#define AT(member) offsetof(struct check_options, member)
#define PROPERTY(name, member, values, help)                                                       \
    {                                                                                              \
        name, 0, IN_POLICY, TCCL_OPTION_TEXT, AT(facts.member), values, help                       \
    }

static const struct tccl_option options[] = {
    {"explain", 0, IN_POLICY, TCCL_OPTION_FLAG, AT(explain), NULL,
     "      --explain         for each other policy, also the first condition that\n"
     "                        fails; and what this node's tccld knows of rings by\n"
     "                        their steps\n"},
    {"config", 'f', IN_CHECK | IN_POLICY | IN_STEP, TCCL_OPTION_TEXT, AT(config), "@file",
     "  -f, --config FILE     read FILE instead of " TCCL_SYSCONFDIR "/slurm/tccl.conf\n"},
    {"node", 'N', IN_CHECK, TCCL_OPTION_OWN, AT(node), NULL,
     "  -N, --node NAME       this node's name in Slurm, default: from slurm.conf\n", 0, 0,
     set_node},
    {"node", 'N', IN_POLICY, TCCL_OPTION_OWN, AT(node), NULL,
     "  -N, --node NAME       this node's name in Slurm, default: the short host name\n", 0, 0,
     set_node},
    {"node", 'N', IN_STEP, TCCL_OPTION_OWN, AT(node), NULL,
     "  -N, --node NODE       the first node of the step\n", 0, 0, set_node},
    {"since", 0, IN_STEP, TCCL_OPTION_COUNT, AT(since), NULL,
     "      --since SECONDS   how long ago the step began, default 0\n", 0, 2000000, NULL},
    {"peers", 0, IN_CHECK, TCCL_OPTION_OWN, AT(peers), NULL,
     "      --peers LIST      contact the tccld of these nodes, default: all with GPUs\n", 0, 0,
     set_nodes},
    {"no-peers", 0, IN_CHECK, TCCL_OPTION_FLAG, AT(no_peers), NULL,
     "      --no-peers        skip the item peers\n"},
    {"only", 0, IN_CHECK, TCCL_OPTION_OWN, AT(only), NULL,
     "      --only LIST       check these items only, comma-separated\n", 0, 0, set_only},
    {"timeout", 0, IN_CHECK, TCCL_OPTION_COUNT, AT(seconds), NULL,
     "      --timeout SECONDS time limit for all items, default 10\n", 1, 600, NULL},
    {"bundle", 0, IN_CHECK, TCCL_OPTION_TEXT, AT(bundle), "@file",
     "      --bundle FILE     put all that a support request needs into FILE, a tar.gz\n"},
    {"json", 'j', IN_CHECK | IN_POLICY | IN_MACHINE, TCCL_OPTION_FLAG, AT(json), NULL,
     "  -j, --json            print one JSON object\n"},
    {"quiet", 'q', IN_CHECK, TCCL_OPTION_FLAG, AT(quiet), NULL,
     "  -q, --quiet           print only items that are not ok\n"},
    PROPERTY("partition", partition, NULL,
             "\nThe step. A condition on something that is not given does not match:\n"
             "  --partition NAME, --account NAME, --qos NAME, --user NAME, --job-name NAME\n"),
    PROPERTY("account", account, NULL, NULL),
    PROPERTY("qos", qos, NULL, NULL),
    PROPERTY("user", user, "@user", NULL),
    PROPERTY("job-name", job_name, NULL, NULL),
    {"nodes", 0, IN_POLICY, TCCL_OPTION_OWN, AT(nodes), NULL,
     "      --nodes LIST      nodes, such as n[1-4]\n", 0, 0, set_nodes},
    {"gpus", 0, IN_POLICY, TCCL_OPTION_COUNT, AT(facts.gpus), NULL,
     "      --gpus N          total number of GPUs\n", 1, 1048576, NULL},
    {"gpu-type", 0, IN_POLICY, TCCL_OPTION_TEXT, AT(model), NULL,
     "      --gpu-type MODEL  GPU model: \"NVIDIA A100-SXM4-40GB\", or a part of it\n"},
    {"mode", 0, IN_POLICY, TCCL_OPTION_OWN, AT(mode), "off|auto|on|require",
     "      --mode MODE       mode requested by the user (with TCCL=, or in the\n"
     "                        command): off, auto, on or require\n",
     0, 0, set_mode},
    {"help", 'h', 0, TCCL_OPTION_HELP, 0, NULL,
     "  -h, --help            show this help and exit\n"},
    {"version", 'V', IN_CHECK, TCCL_OPTION_VERSION, 0, NULL,
     "  -V, --version         show the version and exit\n"},
};

static void complete_items(int command)
{
    for (int i = 0; command == CHECK && i < ITEMS; i++)
        printf("%s%s%s", i ? "|" : "--only||,", items[i].name, i + 1 < ITEMS ? "" : "\n");
}

static const struct tccl_program program = {"tccl-check",
                                            commands,
                                            sizeof(commands) / sizeof(*commands),
                                            options,
                                            sizeof(options) / sizeof(*options),
                                            false,
                                            complete_items};

/* ---- probes ---- */

static void start(struct probe *probe, int item, const struct check_options *options,
                  int64_t deadline)
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
        /* Runs in the child, which leads a process group: killing that ends its own children, too.
         */
        static struct check_site site;
        static struct check_result result;
        check_site_read(options, deadline, &site);
        if (items[item].by_conf && site.conf_unread)
            check_say(&result, site.conf_closed ? CHECK_WARN : CHECK_FAIL,
                      "can't be told without %s: see the item config", site.conf.path);
        else
            items[item].run(&site, &result);
        _exit(write(ends[1], &result, sizeof(result)) != sizeof(result));
    }
    close(ends[1]);
    probe->fd = ends[0];
    if (probe->pid > 0)
        setpgid(probe->pid, probe->pid); /* parent and child both: either may run first */
}

/* The result has arrived, or the child has ended without it. */
static void receive(struct probe *probe)
{
    int status = 0;
    ssize_t size = read(probe->fd, &probe->result, sizeof(probe->result));
    if (size < 0 && errno == EINTR)
        return;
    close(probe->fd);
    probe->fd = -1;
    probe->done = true;
    if (size == sizeof(probe->result))
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

/* Waits for a result, at most until `until`. */
static void wait_some(struct probe *probes, int64_t until)
{
    struct pollfd polls[ITEMS];
    for (int i = 0; i < ITEMS; i++)
        polls[i] = (struct pollfd){.fd = probes[i].wanted && !probes[i].done ? probes[i].fd : -1,
                                   .events = POLLIN};
    if (poll(polls, ITEMS, tccl_left_ms(until)) <= 0)
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
static void show(const struct check_options *options, const struct probe *probes, int *shown,
                 int end)
{
    for (; *shown < end; ++*shown) {
        const struct probe *probe = &probes[*shown];
        if (!options->json && probe->wanted && !(options->quiet && probe->result.level == CHECK_OK))
            check_print(stdout, items[*shown].name, &probe->result, tccl_term_colour());
    }
    fflush(stdout);
}

static void clear_waiting(bool *said)
{
    if (*said)
        fputs("\r\033[K", stderr);
    *said = false;
}

static void wait_all(const struct check_options *options, struct probe *probes, int64_t began)
{
    int64_t deadline = began + options->seconds * 1000;
    int64_t patient = began + PATIENT_MS;
    int shown = 0, open;
    bool terminal = isatty(STDERR_FILENO), said = false;
    while ((open = first_open(probes)) < ITEMS && tccl_now_ms() < deadline) {
        if (open > shown) {
            clear_waiting(&said);
            show(options, probes, &shown, open);
        }
        if (terminal && !said && tccl_now_ms() >= patient) {
            /* A status line on the terminal, overwritten by the next output. */
            fputs("\r\033[Ktccl: waiting for", stderr);
            for (int i = 0; i < ITEMS; i++)
                if (probes[i].wanted && !probes[i].done)
                    fprintf(stderr, " %s", items[i].name);
            said = true;
        }
        wait_some(probes, terminal && !said && patient < deadline ? patient : deadline);
    }
    clear_waiting(&said);
    for (int i = 0; i < ITEMS; i++)
        if (probes[i].wanted && !probes[i].done) {
            close(probes[i].fd);
            probes[i].fd = -1;
            probes[i].done = true;
            check_say(&probes[i].result, CHECK_FAIL,
                      "not finished within %d s. Probable cause: %s hangs. Allow more time with "
                      "--timeout",
                      options->seconds, items[i].hanging);
        }
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

static int check_all(const struct check_options *options)
{
    static struct probe probes[ITEMS];
    enum check_level worst = CHECK_OK;
    int64_t began = tccl_now_ms();
    check_site_share();
    for (int i = 0; i < ITEMS; i++) {
        probes[i].wanted = (!options->only || tccl_slurm_lists(options->only, items[i].name)) &&
                           !(options->no_peers && items[i].run == check_item_peers);
        if (probes[i].wanted)
            start(&probes[i], i, options, began + options->seconds * 1000 - LAST_MS);
    }
    wait_all(options, probes, began);
    /* Kills items that still run, and their children. */
    for (int i = 0; i < ITEMS; i++)
        if (probes[i].pid > 0)
            kill(-probes[i].pid, SIGKILL);
    while (waitpid(-1, NULL, WNOHANG) > 0)
        continue;
    for (int i = 0; i < ITEMS; i++)
        if (probes[i].wanted && probes[i].result.level > worst)
            worst = probes[i].result.level;
    if (options->json && print_json(probes, options->quiet, worst) != 0)
        return 1;
    return worst == CHECK_FAIL;
}

int main(int argc, char **argv)
{
    struct check_options given = {.seconds = 10, .mode = POLICY_NOT_GIVEN};
    struct tccl_error err = {""};
    int command = tccl_command_of(&program, argc, argv), operands = command == STEP;
    int rc = tccl_options_read(&program, command, argc, argv, &given, &err);
    if (rc == 0 && argc - optind > operands)
        rc = tccl_usage_fail(&program, command, &err, "%.60s: not an option", argv[argc - 1]);
    if (rc == 0 && command == STEP && check_step_named(argv[optind], &given) != 0)
        rc = tccl_usage_fail(&program, command, &err, "give one step, as 4711.0, and --node");
    if (rc < 0)
        fprintf(stderr, "tccl: %s\n", err.text);
    if (rc != 0)
        return rc < 0 ? 2 : tccl_end_output(0);
    signal(SIGPIPE, SIG_IGN);
    return tccl_end_output(command == POLICY    ? check_policy(&given)
                           : command == STEP    ? check_step(&given)
                           : command == MACHINE ? check_machine(&given)
                           : given.bundle       ? check_bundle(&given)
                                                : check_all(&given));
}
