/* tccl-profile: fills and looks after the profile cache. See tccl-profile.8. */
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "conf.h"
#include "profile-command.h"

enum { EXIT_USAGE = 2 };

static const char help[] =
    "Usage: tccl-profile COMMAND [OPTION]... [PROFILE]\n"
    "Fill and look after the profiles of this site's machines.\n"
    "\n"
    "  run --model FILE      measure, and search the best chains of each set of GPUs;\n"
    "                        goes on where an earlier run was interrupted\n"
    "  init --model FILE     write machine.json, by which tccld knows this node\n"
    "  show [PROFILE]        the machine, its sets and chains (default: this node's)\n"
    "  list                  all profiles in the cache\n"
    "  export --gpus SET     the chains of a set of GPUs as JSON\n"
    "  verify [PROFILE]      read every file (default: of all); 1 if one is bad\n"
    "\n"
    "      --cache DIR       cache folder (default: CacheDir of tccl.conf)\n"
    "      --config FILE     tccl.conf (default: " TCCL_SYSCONFDIR "/slurm/tccl.conf)\n"
    "      --node NAME       this node's Slurm name, where it isn't the host's\n"
    "      --gpus SETS       run: sets such as \"0-3 4-7\" (default: all)\n"
    "      --gap RATIO       run: prove each chain within this (default: 0.03)\n"
    "      --budget N        run: measure at most N per GPU set (5000; 0: no limit)\n"
    "      --pairs N         run: port pairs to search to the end (16; 0: all)\n"
    "      --machine FILE    init: file to write (default: Machine of tccl.conf)\n"
    "      --json  -q, --quiet  -h, --help  -V, --version\n"
    "PROFILE is a folder, a machine id (or its beginning), or a machine's name.\n";

enum {
    OPT_CACHE = 256,
    OPT_CONFIG,
    OPT_NODE,
    OPT_MODEL,
    OPT_MACHINE,
    OPT_GPUS,
    OPT_GAP,
    OPT_BUDGET,
    OPT_PAIRS,
    OPT_JSON
};

static const struct option long_options[] = {{"cache", required_argument, NULL, OPT_CACHE},
                                             {"config", required_argument, NULL, OPT_CONFIG},
                                             {"node", required_argument, NULL, OPT_NODE},
                                             {"model", required_argument, NULL, OPT_MODEL},
                                             {"machine", required_argument, NULL, OPT_MACHINE},
                                             {"gpus", required_argument, NULL, OPT_GPUS},
                                             {"gap", required_argument, NULL, OPT_GAP},
                                             {"budget", required_argument, NULL, OPT_BUDGET},
                                             {"pairs", required_argument, NULL, OPT_PAIRS},
                                             {"json", no_argument, NULL, OPT_JSON},
                                             {"quiet", no_argument, NULL, 'q'},
                                             {"help", no_argument, NULL, 'h'},
                                             {"version", no_argument, NULL, 'V'},
                                             {0}};

static const struct command {
    const char *name;
    int (*run)(const struct profile_options *options);
    bool model, gpus, operand; /* needs --model, needs --gpus, may have an operand */
} commands[] = {
    {"run", profile_run, true, false, false},      {"init", profile_init, true, false, false},
    {"show", profile_show, false, false, true},    {"list", profile_list, false, false, false},
    {"export", profile_export, false, true, true}, {"verify", profile_verify, false, false, true},
};

/* Where the defaults come from. */
struct setting {
    const char *config, *node;
};

static int usage(const char *what, const char *text)
{
    fprintf(stderr, "tccl: %s%s: see tccl-profile --help\n", what, text);
    return -1;
}

static int parse_count(const char *name, const char *text, long max, long *value)
{
    char *end;

    errno = 0;
    *value = strtol(text, &end, 10);
    if (errno == 0 && end != text && !*end && *value >= 0 && *value <= max)
        return 0;
    fprintf(stderr, "tccl: --%s %s: is not a number from 0 to %ld\n", name, text, max);
    return -1;
}

static int parse_gap(const char *text, double *gap)
{
    char *end;

    *gap = strtod(text, &end);
    if (end != text && !*end && *gap >= 0 && *gap <= 1)
        return 0;
    fprintf(stderr, "tccl: --gap %s: is not a number from 0 to 1\n", text);
    return -1;
}

static int take_number(struct profile_options *options, int option, const char *text)
{
    long pairs;

    if (option == OPT_GAP)
        return parse_gap(text, &options->gap);
    if (option == OPT_BUDGET)
        return parse_count("budget", text, 1000000000, &options->budget);
    if (parse_count("pairs", text, 1000000, &pairs) < 0)
        return -1;
    options->pairs = (int)pairs;
    return 0;
}

/* 0, or -1 with a message; 1: all is done. */
static int take_option(struct profile_options *options, struct setting *setting, int option)
{
    switch (option) {
    case OPT_CACHE:
        options->cache = optarg;
        return 0;
    case OPT_CONFIG:
        setting->config = optarg;
        return 0;
    case OPT_NODE:
        setting->node = optarg;
        return 0;
    case OPT_MODEL:
        options->model = optarg;
        return 0;
    case OPT_MACHINE:
        options->machine = optarg;
        return 0;
    case OPT_GPUS:
        options->gpus = optarg;
        return 0;
    case OPT_JSON:
        options->json = true;
        return 0;
    case 'q':
        options->quiet = true;
        return 0;
    case 'h':
        fputs(help, stdout);
        return 1;
    case 'V':
        puts("tccl-profile (slurm-tccl) " TCCL_VERSION);
        return 1;
    default:
        return take_number(options, option, optarg);
    }
}

static const struct command *find_command(const char *name)
{
    for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    usage("no command ", name);
    return NULL;
}

/* getopt has moved past it, but not if it is a letter among others. */
static int refuse_option(char **argv)
{
    const char letter[] = {'-', (char)optopt, '\0'};
    bool is_letter = optopt > 0 && optopt < 128;

    return usage("no such option, or not with a value: ", is_letter ? letter : argv[optind - 1]);
}

static const struct command *parse(int argc, char **argv, struct profile_options *options,
                                   struct setting *setting, int *done)
{
    int option;

    opterr = 0; /* getopt's own messages would be a line more */
    while ((option = getopt_long(argc, argv, ":qhV", long_options, NULL)) != -1) {
        int rc = option == ':'   ? usage("a value is missing: ", argv[optind - 1])
                 : option == '?' ? refuse_option(argv)
                                 : take_option(options, setting, option);
        *done = rc > 0;
        if (rc != 0)
            return NULL;
    }
    if (optind == argc) {
        usage("no command", "");
        return NULL;
    }
    const struct command *command = find_command(argv[optind]);
    if (!command)
        return NULL;
    int operands = argc - optind - 1;
    if (operands > (command->operand ? 1 : 0))
        return usage("too many operands: ", argv[argc - 1]), NULL;
    if (command->model && !options->model)
        return usage(command->name, ": --model FILE is needed"), NULL;
    if (command->gpus && !options->gpus)
        return usage(command->name, ": --gpus SET is needed"), NULL;
    options->profile = operands ? argv[argc - 1] : NULL;
    return command;
}

/* What was printed must have arrived: a full disk is a failure. Returns the exit status. */
static int end_output(int status)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    fprintf(stderr, "tccl: standard output: %s\n", strerror(errno));
    return status ? status : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    struct profile_options options = {.gap = 0.03, .budget = 5000, .pairs = 16};
    struct tccl_conf conf = {0};
    struct tccl_error err = {0};
    struct setting setting = {0};
    int done = 0;

    const struct command *command = parse(argc, argv, &options, &setting, &done);
    if (!command)
        return done ? end_output(0) : EXIT_USAGE;
    if (tccl_conf_read(tccl_conf_tool_path(setting.config), setting.node, &conf, &err) < 0)
        return profile_complain(&err);
    if (!options.cache)
        options.cache = conf.cache_dir;
    options.node = conf.machine;
    int rc = command->run(&options);
    tccl_conf_clear(&conf);
    return end_output(rc);
}
