/* tccl-path.c: the rings of a cluster, offline, from models and profiles. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "command/path-commands.h"

enum { EXIT_USAGE = 2 };

static const char help[] =
    "Usage: tccl-path COMMAND [--model FILE | --profile DIR] [OPTION]...\n"
    "Which ring over these GPUs is the fastest, from a model or a measured profile?\n"
    "\n"
    "  solve     find the best rings\n"
    "  eval      bandwidth of a ring that you give (--ring), and of the baseline\n"
    "  explain   why this ring: what limits it, what comes next to it\n"
    "  draw      picture of the nodes and the ring, as SVG\n"
    "  measure   bandwidth of one transfer set\n"
    "  place     which GPUs of a node a job should get (--gpus: how many)\n"
    "\n"
    "  --model FILE, --profile DIR  machine model, or profile folder: one node.\n"
    "                   Default: the profile of this machine\n"
    "  --node FILE[=COUNT[:GPUS]]   COUNT more nodes of this model or profile, in this\n"
    "                   place of the order; repeat as needed. If FILE is the one of\n"
    "                   --model, --model adds no node, and may then be left out\n"
    "  --gpus LIST      GPUs of each node, such as 0-3 or 0,2; default: all\n"
    "  --busy LIST      for place: GPUs that another job has\n"
    "  --json           for scripts\n"
    "  -h, --help       with a command: its options\n"
    "  -V, --version\n"
    "\n"
    "Exit status: 0 done; 1 bad input, or no ring; 2 wrong usage. See tccl-path(1).\n";

static const char nodes_help[] =
    "  --model FILE     machine model: one node (see also --node)\n"
    "  --profile DIR    profile folder: one node (default: this machine's)\n"
    "  --node FILE[=COUNT[:GPUS]]\n"
    "                   COUNT (1 to 4096, default 1) more nodes of this model or\n"
    "                   profile, in this place of the order, named n1, n2, ... If FILE\n"
    "                   is the one of --model, --model adds no node itself\n"
    "  --gpus LIST      GPUs of each node, such as 0-3 or 0,2,5; default: all\n";

static const char search_help[] =
    "  --rings N        N rings at once, 1 to 8; auto, the default: the best\n"
    "  --any            also rings that a stock NCCL can't be made to build\n"
    "  --gap RATIO      stop when the rings are proven to be this close to the best\n"
    "  --noise RATIO    bandwidths closer than this count as equal (default 0)\n"
    "  --budget N       sets to measure at most per node class\n"
    "  --pairs N        port pairs to search to the end, 0: all\n";

struct command {
    const char *name;
    int (*run)(const struct options *options, struct tccl_error *err);
    const char *accepted; /* letters of options, see path-options.c */
    bool nodes, search;   /* which of the texts above belong to it */
    const char *usage, *more;
};

static const struct command commands[] = {
    {"solve", command_solve, "mpngjaGNBPR", true, true,
     "Usage: tccl-path solve [--model FILE | --profile DIR] [OPTION]...\n"
     "Finds the best rings over the nodes, those that are best together: orders of GPUs,\n"
     "edges and ports.\n",
     "  --json           print JSON\n"},
    {"eval", command_eval, "mpngrj", true, false,
     "Usage: tccl-path eval [--model FILE | --profile DIR] [--ring RING] [OPTION]...\n"
     "Bandwidth of a ring, and of the baseline for the same nodes and GPUs.\n",
     "  --ring RING      the ring: \"0 -w> 1 -m0> 0\" for one node, for several\n"
     "                   \"n1[nic -g> 0 -w> 1 -m0> nic] n2[...]\", or one chain without\n"
     "                   brackets for all of them; several rings that run at once:\n"
     "                   \"chain | chain\"; -: from standard input.\n"
     "                   Default: the baseline\n"
     "  --json           print JSON\n"},
    {"explain", command_explain, "mpngrjaGNBPR", true, true,
     "Usage: tccl-path explain [--model FILE | --profile DIR] [--ring RING]\n"
     "                         [OPTION]...\n"
     "Why this ring: what limits it, the same for the baseline, and the runners-up.\n",
     "  --ring RING      explain this ring (see eval) in place of the best one\n"
     "  --json           print JSON\n"},
    {"draw", command_draw, "mpngroaGNBPR", true, true,
     "Usage: tccl-path draw [--model FILE | --profile DIR] [--ring RING] [OPTION]...\n"
     "Draws the nodes and the ring through them; like nodes share a picture.\n",
     "  --ring RING      draw this ring (see eval) in place of the best one\n"
     "  -o, --output FILE   write to FILE in place of standard output\n"},
    {"measure", command_measure, "mpsj", false, false,
     "Usage: tccl-path measure [--model FILE | --profile DIR] --set SET [--json]\n"
     "Bandwidth of transfers that run at the same time: that of the slowest one, and\n"
     "with a model the rate of each and what holds it.\n",
     "  --model FILE     ask a machine model\n"
     "  --profile DIR    look up in a profile (and its model.json where it has one);\n"
     "                   default: this machine's\n"
     "  --set SET        transfers, who starts them first: \"g0>g1\" GPU 0 writes to\n"
     "                   GPU 1, \"g1<m0\" GPU 1 reads from memory 0, \"n0>g0\" NIC 0\n"
     "                   writes to GPU 0\n"
     "  --json           print JSON\n"},
    {"place", command_place, "mpgbNj", false, false,
     "Usage: tccl-path place [--model FILE | --profile DIR] --gpus K [--busy LIST]\n"
     "                       [--noise RATIO] [--json]\n"
     "Which K GPUs of a node a job should get: all sets of free ones, best first.\n",
     "  --model FILE     ask a machine model\n"
     "  --profile DIR    a profile (default: this machine's); without a model.json it\n"
     "                   does not say what jobs do to each other, only what each\n"
     "                   reaches alone\n"
     "  --gpus K         how many GPUs the job gets\n"
     "  --busy LIST      GPUs that are taken, such as 0-3 or 0,2: one job, with its best\n"
     "                   ring\n"
     "  --noise RATIO    bandwidths closer than this count as equal (default 0.03)\n"
     "  --json           print JSON, all sets; without it the first ten are shown\n"},
};

static const struct command *find_command(const char *name)
{
    for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}

static int usage_error(const struct command *command, const char *text)
{
    fprintf(stderr, "tccl: %s; see tccl-path %s%s--help\n", text, command ? command->name : "",
            command ? " " : "");
    return EXIT_USAGE;
}

/* What was printed must have arrived: a full disk is a failure. Returns the exit status. */
static int end_output(void)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return EXIT_SUCCESS;
    fprintf(stderr, "tccl: standard output: %s\n", strerror(errno));
    return EXIT_FAILURE;
}

static int print_help(const struct command *command)
{
    printf("%s\n%s%s%s", command->usage, command->nodes ? nodes_help : "",
           command->search ? search_help : "", command->more);
    return end_output();
}

/* What is missing, or does not go together; NULL if nothing. */
static const char *find_fault(const struct command *command, const struct options *options)
{
    if (options->model && options->profile)
        return "--model and --profile exclude each other; --node takes both";
    if (strchr(command->accepted, 's') && !options->set)
        return "--set is missing";
    if (strchr(command->accepted, 'b') && !options->gpus)
        return "--gpus is missing: how many GPUs the job gets";
    return NULL;
}

/* Without any node: this one. Returns 0, or -1 with err. */
static int choose_own(struct options *options, char path[static PATH_MAX], struct tccl_error *err)
{
    if (options->model || options->profile || options->n_nodes)
        return 0;
    options->profile = path;
    return source_of_machine(path, err);
}

static int run_command(const struct command *command, int argc, char **argv)
{
    static struct options options;
    char own[PATH_MAX];
    struct tccl_error err = {""};
    if (options_parse(argc, argv, command->accepted, &options, &err) != 0)
        return usage_error(command, err.text);
    if (options.help)
        return print_help(command);
    const char *fault = find_fault(command, &options);
    if (fault)
        return usage_error(command, fault);
    if (choose_own(&options, own, &err) != 0)
        return usage_error(command, err.text);
    if (command->run(&options, &err) < 0) {
        fprintf(stderr, "tccl: %s\n", err.text);
        return EXIT_FAILURE;
    }
    return end_output();
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : NULL;
    if (!name)
        return usage_error(NULL,
                           "a command is missing: solve, eval, explain, draw, measure or place");
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0) {
        fputs(help, stdout);
        return end_output();
    }
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) {
        puts("tccl-path " TCCL_RELEASE);
        return end_output();
    }
    const struct command *command = find_command(name);
    if (!command) {
        char text[200];
        bool moved = strcmp(name, "policy") == 0;
        snprintf(text, sizeof(text), "%.60s: no such command%s", name,
                 moved ? ": site policies are shown by tccl-check policy" : "");
        return usage_error(NULL, text);
    }
    return run_command(command, argc - 1, argv + 1);
}
