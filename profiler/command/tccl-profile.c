/* tccl-profile.c: tccl-profile: fills and looks after the profile cache. See tccl-profile.8. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "client/conf.h"
#include "command/profile-command.h"
#include "machine/model-file.h"

enum { EXIT_USAGE = 2 };

static const char help[] =
    "Usage: tccl-profile COMMAND [OPTION]... [PROFILE]\n"
    "Measure this node, and look after the profiles of a site's machines.\n"
    "  run                   measure, and search the best chains of each set of GPUs;\n"
    "                        goes on where it was stopped; --check: still true?\n"
    "  init                  write machine.json, by which tccld knows this node\n"
    "  show [PROFILE]        the machine, drawn, and its chains (default: this node)\n"
    "  report [PROFILE]      bandwidth matrix, congested sets; --html FILE: as a page\n"
    "  gres [PROFILE]        lines for gres.conf; --slurm VERSION: not that of slurmd\n"
    "  list                  all profiles in the cache\n"
    "  verify [PROFILE]      read every file (default: of all); 1 if one is bad\n"
    "  peer [--listen ADDR]  be the other end of another node's network transfers\n"
    "      --cache DIR  --config FILE  --node NAME  --machine FILE   see tccl.conf(5)\n"
    "      --backend NAME    cuda (default where there are GPUs), host, or model\n"
    "      --model FILE|amd-4gpu  in place of hardware; --noise RATIO  --seed N\n"
    "      --background offload  the profile beside jobs that offload to memory\n"
    "      --topology FILE   init, show, gres: a machine recorded by lstopo\n"
    "      --peer HOST       run: measure NICs against a tccl-profile peer\n"
    "      --gpus SETS       run: sets such as \"0-3 4-7\" (default: all)\n"
    "      --neighbours      run: jobs side by side; --splits 0-1/2-3: on these GPUs\n"
    "      --budget 30m|N    run: stop after that time, or N sets per GPU set\n"
    "      --gap RATIO  --pairs N  --repeats N  --window MS  --copy kernel|engine\n"
    "      --devices N  --force  --no-munge  --json  -q, --quiet  --help  --version\n"
    "PROFILE is a folder, a machine id (or its beginning), or a machine's name.\n";

enum {
    OPT_CACHE = 256,
    OPT_CONFIG,
    OPT_NODE,
    OPT_MODEL,
    OPT_MACHINE,
    OPT_BACKEND,
    OPT_BACKGROUND,
    OPT_TOPOLOGY,
    OPT_PEER,
    OPT_LISTEN,
    OPT_NO_MUNGE,
    OPT_COPY,
    OPT_DEVICES,
    OPT_FORCE,
    OPT_CHECK,
    OPT_HTML,
    OPT_SLURM,
    OPT_WINDOW,
    OPT_REPEATS,
    OPT_GPUS,
    OPT_NEIGHBOURS,
    OPT_SPLITS,
    OPT_GAP,
    OPT_NOISE,
    OPT_SEED,
    OPT_BUDGET,
    OPT_PAIRS,
    OPT_JSON
};

static const struct option long_options[] = {
    {"cache", required_argument, NULL, OPT_CACHE},
    {"config", required_argument, NULL, OPT_CONFIG},
    {"node", required_argument, NULL, OPT_NODE},
    {"model", required_argument, NULL, OPT_MODEL},
    {"machine", required_argument, NULL, OPT_MACHINE},
    {"backend", required_argument, NULL, OPT_BACKEND},
    {"background", required_argument, NULL, OPT_BACKGROUND},
    {"topology", required_argument, NULL, OPT_TOPOLOGY},
    {"peer", required_argument, NULL, OPT_PEER},
    {"listen", required_argument, NULL, OPT_LISTEN},
    {"no-munge", no_argument, NULL, OPT_NO_MUNGE},
    {"copy", required_argument, NULL, OPT_COPY},
    {"devices", required_argument, NULL, OPT_DEVICES},
    {"force", no_argument, NULL, OPT_FORCE},
    {"check", no_argument, NULL, OPT_CHECK},
    {"html", required_argument, NULL, OPT_HTML},
    {"slurm", required_argument, NULL, OPT_SLURM},
    {"window", required_argument, NULL, OPT_WINDOW},
    {"repeats", required_argument, NULL, OPT_REPEATS},
    {"gpus", required_argument, NULL, OPT_GPUS},
    {"neighbours", no_argument, NULL, OPT_NEIGHBOURS},
    {"splits", required_argument, NULL, OPT_SPLITS},
    {"gap", required_argument, NULL, OPT_GAP},
    {"noise", required_argument, NULL, OPT_NOISE},
    {"seed", required_argument, NULL, OPT_SEED},
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
    int most; /* operands */
} commands[] = {
    {"run", profile_run, 0},       {"init", profile_init, 0}, {"show", profile_show, 1},
    {"report", profile_report, 1}, {"list", profile_list, 0}, {"verify", profile_verify, 1},
    {"peer", profile_peer, 0},     {"gres", profile_gres, 1},
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

static int parse_ratio(const char *name, const char *text, double *ratio)
{
    char *end;

    *ratio = strtod(text, &end);
    if (end != text && !*end && *ratio >= 0 && *ratio <= 1)
        return 0;
    fprintf(stderr, "tccl: --%s %s: is not a number from 0 to 1\n", name, text);
    return -1;
}

/* "30m", "90s", "2h": a time; a bare number: transfer sets. */
static int parse_budget(const char *text, struct profile_options *options)
{
    size_t digits = strspn(text, "0123456789");
    int unit = text[digits] == 's' ? 1 : text[digits] == 'm' ? 60 : text[digits] == 'h' ? 3600 : 0;

    if (digits > 0 && digits < 8 && unit && !text[digits + 1] && strtol(text, NULL, 10) > 0) {
        options->seconds = (double)strtol(text, NULL, 10) * unit;
        return 0;
    }
    if (digits > 0 && !text[digits])
        return parse_count("budget", text, 1000000000, &options->budget);
    fprintf(stderr, "tccl: --budget %s: is no time such as 90s, 30m or 2h, nor a number of sets\n",
            text);
    return -1;
}

static int parse_copy(const char *text, bool *engine)
{
    *engine = strcmp(text, "engine") == 0;
    if (*engine || strcmp(text, "kernel") == 0)
        return 0;
    fprintf(stderr, "tccl: --copy %s: is not kernel or engine\n", text);
    return -1;
}

static int parse_background(const char *text, enum tccl_background *background)
{
    int value = tccl_background_parse(text);

    if (value >= 0) {
        *background = (enum tccl_background)value;
        return 0;
    }
    fprintf(stderr, "tccl: --background %s: is not offload or none\n", text);
    return -1;
}

/* A set is measured to its end before a signal or the budget stops a run: these bounds keep that
 * short. */
static int take_number(struct profile_options *options, int option, const char *text)
{
    long value;
    int rc = option == OPT_WINDOW    ? parse_count("window", text, 1000, &value)
             : option == OPT_REPEATS ? parse_count("repeats", text, 101, &value)
             : option == OPT_DEVICES ? parse_count("devices", text, TCCL_MAX_GPUS, &value)
             : option == OPT_SEED    ? parse_count("seed", text, LONG_MAX, &value)
                                     : parse_count("pairs", text, 1000000, &value);

    if (rc < 0)
        return -1;
    if (option == OPT_SEED)
        options->seed = (unsigned long)value;
    else if (option == OPT_WINDOW)
        options->window = (double)value / 1e3;
    else
        *(option == OPT_REPEATS   ? &options->repeats
          : option == OPT_DEVICES ? &options->devices
                                  : &options->pairs) = (int)value;
    return 0;
}

/* What has a form of its own. */
static int take_value(struct profile_options *options, int option, const char *text)
{
    switch (option) {
    case OPT_GAP:
        return parse_ratio("gap", text, &options->gap);
    case OPT_NOISE:
        return parse_ratio("noise", text, &options->noise);
    case OPT_BUDGET:
        return parse_budget(text, options);
    case OPT_COPY:
        return parse_copy(text, &options->engine);
    case OPT_BACKGROUND:
        return parse_background(text, &options->background);
    default:
        return take_number(options, option, text);
    }
}

/* Options that are kept as they are: where. */
static const char **text_option(struct profile_options *options, struct setting *setting,
                                int option)
{
    switch (option) {
    case OPT_CACHE:
        return &options->cache;
    case OPT_CONFIG:
        return &setting->config;
    case OPT_NODE:
        return &setting->node;
    case OPT_MODEL:
        return &options->model;
    case OPT_MACHINE:
        return &options->machine;
    case OPT_GPUS:
        return &options->gpus;
    case OPT_SPLITS:
        return &options->splits;
    case OPT_BACKEND:
        return &options->backend;
    case OPT_TOPOLOGY:
        return &options->topology;
    case OPT_PEER:
        return &options->peer;
    case OPT_LISTEN:
        return &options->listen;
    case OPT_HTML:
        return &options->html;
    case OPT_SLURM:
        return &options->slurm;
    default:
        return NULL;
    }
}

static bool *flag_option(struct profile_options *options, int option)
{
    return option == OPT_JSON         ? &options->json
           : option == OPT_FORCE      ? &options->force
           : option == OPT_NO_MUNGE   ? &options->no_munge
           : option == OPT_CHECK      ? &options->check
           : option == OPT_NEIGHBOURS ? &options->neighbours
           : option == 'q'            ? &options->quiet
                                      : NULL;
}

/* The value of --html, or what stands there in its place; "": nothing does. */
static int refuse_html(const char *value)
{
    bool is_option = value[0] == '-' && value[1];
    return *value && !is_option ? 0 : usage("--html: give a file, or - for standard output", "");
}

static int refuse_missing(const char *word)
{
    return strcmp(word, "--html") == 0 ? refuse_html("") : usage("a value is missing: ", word);
}

/* 0, or -1 with a message; 1: all is done. */
static int take_option(struct profile_options *options, struct setting *setting, int option)
{
    const char **text = text_option(options, setting, option);
    bool *flag = flag_option(options, option);

    if (option == OPT_HTML && refuse_html(optarg) != 0)
        return -1;
    if (text)
        *text = optarg;
    else if (flag)
        *flag = true;
    else if (option == 'h')
        fputs(help, stdout);
    else if (option == 'V')
        puts("tccl-profile (slurm-tccl) " TCCL_RELEASE);
    else
        return take_value(options, option, optarg);
    return option == 'h' || option == 'V';
}

static const struct command *look_up(const char *name)
{
    for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}

static const struct command *find_command(const char *name)
{
    const struct command *command = look_up(name);

    if (!command)
        usage("no command ", name);
    return command;
}

/* getopt has moved past it, but not if it is a letter among others. */
static int refuse_option(char **argv)
{
    const char letter[] = {'-', (char)optopt, '\0'};
    bool is_letter = optopt > 0 && optopt < 128;

    return usage("no such option, or not with a value: ", is_letter ? letter : argv[optind - 1]);
}

/* The command and its operands. */
static const struct command *take_command(int count, char **words, struct profile_options *options)
{
    bool alone = options->check && (count == 0 || !look_up(words[0])); /* --check [PROFILE] */
    const struct command *command = alone       ? find_command("run")
                                    : count > 0 ? find_command(words[0])
                                                : NULL;

    if (count == 0 && !command)
        return usage("no command", ""), NULL;
    if (!command)
        return NULL;
    if (alone) {
        words--;
        count++;
    }
    if (count - 1 > (alone || (options->check && command->run == profile_run) ? 1 : command->most))
        return usage("too many operands: ", words[count - 1]), NULL;
    options->profile = count > 1 ? words[1] : NULL;
    return command;
}

static const struct command *parse(int argc, char **argv, struct profile_options *options,
                                   struct setting *setting, int *done)
{
    int option;

    opterr = 0; /* getopt's own messages would be a line more */
    while ((option = getopt_long(argc, argv, ":qhV", long_options, NULL)) != -1) {
        int rc = option == ':'   ? refuse_missing(argv[optind - 1])
                 : option == '?' ? refuse_option(argv)
                                 : take_option(options, setting, option);
        *done = rc > 0;
        if (rc != 0)
            return NULL;
    }
    return take_command(argc - optind, argv + optind, options);
}

/* What was printed must have arrived: a full disk is a failure. Returns the exit status. */
static int end_output(int status)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    fprintf(stderr, "tccl: standard output: %s\n", strerror(errno));
    return status ? status : EXIT_FAILURE;
}

/* A caller may have closed some of the three: then the profile's log would be the next file to get
 * the number, and progress would be written into it. */
static int hold_standard_streams(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) != fd)
            return -1;
    return 0;
}

int main(int argc, char **argv)
{
    struct profile_options options = {.gap = 0.03, .budget = -1, .pairs = 16};
    struct tccl_conf conf = {0};
    struct tccl_error err = {0};
    struct setting setting = {0};
    char model[PATH_MAX];
    int done = 0;

    if (hold_standard_streams() != 0)
        return EXIT_FAILURE;
    signal(SIGXFSZ, SIG_IGN); /* past ulimit -f a write fails, as on a full disk */
    const struct command *command = parse(argc, argv, &options, &setting, &done);
    if (!command)
        return done ? end_output(0) : EXIT_USAGE;
    if (tccl_conf_read(tccl_conf_tool_path(setting.config), setting.node, &conf, &err) != 0)
        return profile_complain(&err);
    if (!options.cache)
        options.cache = conf.cache_dir;
    options.node = conf.machine;
    options.munge = conf.munge_socket;
    options.munge_user = conf.munge_user;
    if (options.model && tccl_model_file(options.model, model, &err) != 0)
        return profile_complain(&err);
    if (options.model)
        options.model = model;
    int rc = command->run(&options);
    tccl_conf_clear(&conf);
    return end_output(rc);
}
