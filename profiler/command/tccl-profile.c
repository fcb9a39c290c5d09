/* tccl-profile.c: tccl-profile: fills and looks after the profile cache. See tccl-profile.8. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/options.h"
#include "client/conf.h"
#include "client/users.h"
#include "command/profile-command.h"
#include "machine/model.h"

enum { EXIT_USAGE = 2 };

/* The command line. */
struct line {
    struct profile_options options;
    const char *config, *node; /* where the defaults come from */
};

static TCCL_OPTION_SETTER(set_budget)
{
    struct profile_options *options = field;
    size_t digits = strspn(text, "0123456789");
    int unit = text[digits] == 's' ? 1 : text[digits] == 'm' ? 60 : text[digits] == 'h' ? 3600 : 0;
    long number = digits > 0 && digits < 10 ? strtol(text, NULL, 10) : -1;
    bool time = unit && number > 0 && digits < 8 && !text[digits + 1];
    if (time)
        options->seconds = (double)number * unit;
    else if (number >= 0 && !text[digits])
        options->budget = number;
    else
        return tccl_fail(err,
                         "--%s %.60s: give a time such as 90s, 30m or 2h, or a number of loads",
                         option->name, text);
    return 0;
}

static TCCL_OPTION_SETTER(set_copy)
{
    bool engine = strcmp(text, "engine") == 0;
    *(bool *)field = engine;
    return engine || strcmp(text, "kernel") == 0
               ? 0
               : tccl_fail(err, "--%s %.60s: is not kernel or engine", option->name, text);
}

/* The value may be what stands there in its place. */
static TCCL_OPTION_SETTER(set_html)
{
    bool is_option = text[0] == '-' && text[1];
    *(const char **)field = text;
    return *text && !is_option
               ? 0
               : tccl_fail(err, "--%s: give a file, or - for standard output", option->name);
}

static TCCL_OPTION_SETTER(set_seed)
{
    char *end;
    errno = 0;
    *(unsigned long *)field = strtoul(text, &end, 10);
    return *text >= '0' && *text <= '9' && !*end && !errno
               ? 0
               : tccl_fail(err, "--%s %.60s: give a whole number", option->name, text);
}

enum { ALL, RUN, INIT, SHOW, REPORT, GRES, LIST, VERIFY, PEER, COMMANDS };
#define IN(command) (1u << (command))

static const char head[] =
    "Usage: tccl-profile COMMAND [OPTION]... [PROFILE]\n"
    "Measure this node, and look after the profiles of a site's machines.\n"
    "  run                   measure, and search the best chains of each set of GPUs;\n"
    "                        goes on where it was stopped; --check: still true?\n"
    "  init                  write machine.json, by which tccld knows this node\n"
    "  show [PROFILE]        the machine, drawn, and its chains (default: this node)\n"
    "  report [PROFILE]      bandwidths, congested loads; --html FILE: as a page\n"
    "  gres [PROFILE]        lines for gres.conf; --slurm VERSION: not that of slurmd\n"
    "  list                  all profiles in the cache\n"
    "  verify [PROFILE]      read every file (default: of all); 1 if one is bad;\n"
    "                        --quick: this node's, and measure: does it hold here?\n"
    "  peer [--listen ADDR]  be the other end of another node's network transfers\n";

static const struct tccl_command commands[COMMANDS] = {
    {"", head, "PROFILE is a folder, a machine id (or its beginning), or a machine's name.\n"},
    {.name = "run"},
    {.name = "init"},
    {.name = "show"},
    {.name = "report"},
    {.name = "gres"},
    {.name = "list"},
    {.name = "verify"},
    {.name = "peer"},
};

static const struct {
    int operands; /* at most */
    int (*run)(const struct profile_options *options, struct tccl_error *err);
    profile_act *act; /* in its place, of a profile */
} runs[COMMANDS] = {
    [RUN] = {0, profile_run},   [INIT] = {0, profile_init},
    [SHOW] = {1, profile_show}, [REPORT] = {1, .act = profile_report},
    [LIST] = {0, profile_list}, [VERIFY] = {1, profile_verify},
    [PEER] = {0, profile_peer}, [GRES] = {1, .act = profile_gres},
};

#define AT(member) offsetof(struct line, options.member)
#define TEXT(name, commands, at, values, help)                                                     \
    {                                                                                              \
        name, 0, commands, TCCL_OPTION_TEXT, at, values, help                                      \
    }
#define FLAG(name, letter, commands, member, help)                                                 \
    {                                                                                              \
        name, letter, commands, TCCL_OPTION_FLAG, AT(member), NULL, help                           \
    }
/* A set is measured to its end before a signal or the budget stops a run: these bounds keep that
 * short. */
#define COUNT(name, commands, member, max, help)                                                   \
    {                                                                                              \
        name, 0, commands, TCCL_OPTION_COUNT, AT(member), NULL, help, 0, max, NULL                 \
    }
#define RATIO(name, member, help)                                                                  \
    {                                                                                              \
        name, 0, IN(RUN), TCCL_OPTION_RATIO, AT(member), NULL, help, 0, 1, NULL                    \
    }
#define OWN(name, commands, member, values, help, set)                                             \
    {                                                                                              \
        name, 0, commands, TCCL_OPTION_OWN, AT(member), values, help, 0, 0, set                    \
    }

static const struct tccl_option options[] = {
    TEXT("cache", 0, AT(cache), "@folder",
         "      --cache DIR  --config FILE  --node NAME  --machine FILE   see tccl.conf(5)\n"),
    TEXT("config", 0, offsetof(struct line, config), "@file", NULL),
    TEXT("node", 0, offsetof(struct line, node), NULL, NULL),
    TEXT("machine", IN(INIT) | IN(PEER), AT(machine), "@file", NULL),
    TEXT("backend", IN(RUN) | IN(INIT), AT(backend), "cuda|host|model",
         "      --backend NAME    cuda (default where there are GPUs), host, or model\n"),
    TEXT("model", IN(RUN) | IN(INIT), AT(model), "@file",
         "      --model FILE|amd-4gpu  in place of hardware; --noise RATIO  --seed N\n"),
    RATIO("noise", noise, NULL),
    OWN("seed", IN(RUN), seed, NULL, NULL, set_seed),
    TEXT("topology", IN(INIT) | IN(SHOW) | IN(GRES), AT(topology), "@file",
         "      --topology FILE   init, show, gres: recorded by lstopo, or by NCCL\n"),
    TEXT("peer", IN(RUN), AT(peer), "@host",
         "      --peer HOST       run: measure NICs against a tccl-profile peer\n"),
    TEXT("gpus", IN(RUN), AT(gpus), "all",
         "      --gpus SETS       run: sets such as \"0-3 4-7\" (default: all)\n"),
    FLAG("neighbours", 0, IN(RUN), neighbours,
         "      --neighbours      run: jobs side by side; --splits 0-1/2-3: on these GPUs\n"),
    TEXT("splits", IN(RUN), AT(splits), NULL, NULL),
    {"budget", 0, IN(RUN), TCCL_OPTION_OWN, offsetof(struct line, options), NULL,
     "      --budget 30m|N    run: stop after that time, or N loads per GPU set\n", 0, 0,
     set_budget},
    RATIO("gap", gap,
          "      --gap RATIO  --pairs N  --repeats N  --window MS  --copy kernel|engine\n"),
    COUNT("pairs", IN(RUN), pairs, 1000000, NULL),
    COUNT("repeats", IN(RUN), repeats, 101, NULL),
    COUNT("window", IN(RUN), window_ms, 1000, NULL),
    OWN("copy", IN(RUN), engine, "kernel|engine", NULL, set_copy),
    COUNT("devices", IN(RUN) | IN(INIT), devices, TCCL_MAX_GPUS,
          "      --devices N  --force  --no-munge  --json  -q, --quiet  --help  --version\n"),
    FLAG("force", 0, IN(RUN), force, NULL),
    FLAG("no-munge", 0, IN(RUN) | IN(PEER), no_munge, NULL),
    FLAG("json", 0, 0, json, NULL),
    FLAG("quiet", 'q', 0, quiet, NULL),
    FLAG("check", 0, IN(RUN), check, NULL),
    FLAG("quick", 0, IN(VERIFY), quick, NULL),
    OWN("html", IN(REPORT), html, "@file", NULL, set_html),
    TEXT("slurm", IN(GRES), AT(slurm), NULL, NULL),
    TEXT("listen", IN(PEER), AT(listen), NULL, NULL),
    {"help", 'h', 0, TCCL_OPTION_HELP, 0, NULL, NULL},
    {"version", 'V', 0, TCCL_OPTION_VERSION, 0, NULL, NULL},
};

static void complete_profiles(int command)
{
    if (command == SHOW || command == REPORT || command == GRES || command == VERIFY)
        puts("||@profile");
}

static const struct tccl_program program = {
    "tccl-profile", commands,          COMMANDS, options, sizeof(options) / sizeof(*options),
    true,           complete_profiles,
};

/* The command and its operands. Returns its index, or -1 with err. */
static int take_command(int count, char **words, struct profile_options *given,
                        struct tccl_error *err)
{
    int command = tccl_command_of(&program, count + 1, words - 1);
    bool alone = given->check && !command; /* --check [PROFILE] */
    if (!alone && !command)
        return count ? tccl_usage_fail(&program, ALL, err, "no command %.60s", words[0])
                     : tccl_usage_fail(&program, ALL, err, "no command");
    if (!alone) {
        words++;
        count--;
    }
    int most = alone || (given->check && command == RUN) ? 1 : runs[command].operands;
    if (count > most)
        return tccl_usage_fail(&program, ALL, err, "too many operands: %.60s", words[most]);
    given->profile = count > 0 ? words[0] : NULL;
    return alone ? RUN : command;
}

/* Where nobody has said where: who may not write the site's folders has profiles of his own, and
 * who only looks, if the site has none of this machine. machine: of the user's. Returns the folder,
 * or NULL: the site's. */
static const char *users_own(int command, const struct tccl_conf *conf, char cache[PATH_MAX],
                             char machine[PATH_MAX])
{
    bool writes = command == RUN || command == INIT;
    bool site = writes ? tccl_user_may_write(conf->cache_dir) && tccl_user_may_write(conf->machine)
                       : access(conf->machine, F_OK) == 0 || command == PEER;
    if (geteuid() == 0 || site || tccl_user_cache(cache) != 0 ||
        snprintf(machine, PATH_MAX, "%s/machine.json", cache) >= PATH_MAX ||
        (!writes && access(cache, F_OK) != 0))
        return NULL;
    return cache;
}

int main(int argc, char **argv)
{
    struct line line = {.options = {.gap = 0.03, .budget = -1, .pairs = 16}};
    struct profile_options *given = &line.options;
    struct tccl_conf conf = {0};
    struct tccl_error err = {0};
    char model[PATH_MAX], cache[PATH_MAX], machine[PATH_MAX];
    /* A caller may have closed some of the three: then the profile's log would be the next file to
     * get the number, and progress would be written into it. */
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) != fd)
            return EXIT_FAILURE;
    signal(SIGXFSZ, SIG_IGN); /* past ulimit -f a write fails, as on a full disk */
    int command = tccl_options_read(&program, ALL, argc, argv, &line, &err);
    if (command > 0)
        return tccl_end_output(0);
    if (command == 0)
        command = take_command(argc - optind, argv + optind, given, &err);
    if (command < 0) {
        fprintf(stderr, "tccl: %s\n", err.text);
        return EXIT_USAGE;
    }
    if (tccl_conf_read(tccl_conf_tool_path(line.config), line.node, &conf, &err) != 0)
        return profile_complain(&err);
    const char *own = given->cache ? NULL : users_own(command, &conf, cache, machine);
    if (!given->cache)
        given->cache = own ? own : conf.cache_dir;
    given->node = own ? machine : conf.machine;
    given->node_name = conf.node;
    given->munge = conf.munge_socket;
    given->munge_user = conf.munge_user;
    if (given->model && tccl_model_file(given->model, model, &err) != 0)
        return profile_complain(&err);
    if (given->model)
        given->model = model;
    int rc = runs[command].act ? profile_with(given, runs[command].act, &err)
                               : runs[command].run(given, &err);
    tccl_conf_clear(&conf);
    return tccl_end_output(rc < 0 ? profile_complain(&err) : rc);
}
