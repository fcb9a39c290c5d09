/* tccl-path.c: the rings of a cluster, offline, from models and profiles. The command line, by one
 * table. */
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/options.h"
#include "command/path.h"

enum { EXIT_USAGE = 2 };

enum { NONE, SOLVE, EVAL, EXPLAIN, DRAW, MEASURE, PLACE, COMMANDS };
#define IN(command) (1u << (command))
#define SEARCH (IN(SOLVE) | IN(EXPLAIN) | IN(DRAW))
#define NODES (SEARCH | IN(EVAL))
#define ONE (IN(MEASURE) | IN(PLACE))

static const char help[] =
    "Usage: tccl-path COMMAND [--model FILE | --profile DIR] [OPTION]...\n"
    "Which ring over these GPUs is the fastest, from a model or a measured profile?\n"
    "\n"
    "  solve     find the best rings\n"
    "  eval      bandwidth of a ring that you give (--ring), and of the baseline\n"
    "  explain   why this ring: what limits it, what comes next to it\n"
    "  draw      picture of the nodes and the ring, as SVG\n"
    "  measure   bandwidth of one load\n"
    "  place     which GPUs of a node a job should get (--gpus: how many)\n"
    "\n"
    "  --model FILE, --profile DIR  machine model, or profile folder: one node.\n"
    "                   Default: the profile of this machine\n"
    "  --node FILE[=COUNT[:GPUS]]   COUNT more nodes of this model or profile, in\n"
    "                   this place of the order; repeat as needed. If FILE is the\n"
    "                   one of --model, that adds no node, and may be left out\n"
    "  --gpus LIST      GPUs of each node, such as 0-3 or 0,2; default: all\n"
    "  --busy LIST      for place, explain: GPUs that another job has\n"
    "  --json           for scripts\n"
    "  -h, --help       with a command: its options\n"
    "  -V, --version\n"
    "\n"
    "Exit status: 0 done; 1 bad input, or no ring; 2 wrong usage. See tccl-path(1).\n";

static const struct tccl_command commands[COMMANDS] = {
    {"", help, ""},
    {"solve",
     "Usage: tccl-path solve [--model FILE | --profile DIR] [OPTION]...\n"
     "Finds the rings over the nodes that are best together: orders of GPUs, edges and\n"
     "ports.\n\n",
     ""},
    {"eval",
     "Usage: tccl-path eval [--model FILE | --profile DIR] [--ring RING] [OPTION]...\n"
     "Bandwidth of a ring, and of the baseline for the same nodes and GPUs.\n\n",
     ""},
    {"explain",
     "Usage: tccl-path explain [--model FILE | --profile DIR] [--ring RING]\n"
     "                         [--busy LIST] [OPTION]...\n"
     "Why this ring: what limits it, the same for the baseline, and the runners-up.\n\n",
     ""},
    {"draw",
     "Usage: tccl-path draw [--model FILE | --profile DIR] [--ring RING] [OPTION]...\n"
     "Draws the nodes and the ring through them; like nodes share a picture.\n\n",
     ""},
    {"measure",
     "Usage: tccl-path measure [--model FILE | --profile DIR] --load LOAD [--json]\n"
     "Bandwidth of transfers that run at the same time: that of the slowest one, and\n"
     "with a model the rate of each and what holds it.\n\n",
     ""},
    {"place",
     "Usage: tccl-path place [--model FILE | --profile DIR] --gpus K [--busy LIST]\n"
     "                       [--noise RATIO] [--json]\n"
     "Which K GPUs of a node a job should get: all sets of free ones, best first.\n\n",
     ""},
};

static int (*const runs[COMMANDS])(const struct options *options, struct tccl_error *err) = {
    [SOLVE] = command_solve, [EVAL] = command_eval,       [EXPLAIN] = command_explain,
    [DRAW] = command_draw,   [MEASURE] = command_measure, [PLACE] = command_place,
};

static TCCL_OPTION_SETTER(set_once)
{
    const char **value = field;
    if (*value)
        return tccl_fail(err, "--%s is given twice", option->name);
    *value = text;
    return 0;
}

static TCCL_OPTION_SETTER(set_node)
{
    struct options *options = field;
    if (options->n_nodes == MAX_NODE_OPTIONS)
        return tccl_fail(err, "--%s: more than %d of them; put equal nodes together with =COUNT",
                         option->name, MAX_NODE_OPTIONS);
    options->nodes[options->n_nodes++] = text;
    return 0;
}

/* "auto" is 0: whatever is best. */
static TCCL_OPTION_SETTER(set_rings)
{
    bool single = text[0] >= '1' && text[0] <= '0' + TCCL_CHAIN_RINGS && !text[1];
    *(int *)field = single ? text[0] - '0' : 0;
    return single || strcmp(text, "auto") == 0
               ? 0
               : tccl_fail(err, "--%s: \"%.40s\" is neither a number from 1 to %d nor \"auto\"",
                           option->name, text, TCCL_CHAIN_RINGS);
}

#define AT(member) offsetof(struct options, member)
#define ONCE(name, commands, member, values, help)                                                 \
    {                                                                                              \
        name, name[0], commands, TCCL_OPTION_OWN, AT(member), values, help, 0, 0, set_once         \
    }
#define FLAG(name, letter, commands, member, help)                                                 \
    {                                                                                              \
        name, letter, commands, TCCL_OPTION_FLAG, AT(member), NULL, help, 0, 0, NULL               \
    }
#define NUMBER(name, commands, kind, member, max, help)                                            \
    {                                                                                              \
        name, 0, commands, TCCL_OPTION_##kind, AT(member), NULL, help, 0, max, NULL                \
    }

static const struct tccl_option rows[] = {
    ONCE("model", NODES, model, "@file",
         "  --model FILE     machine model: one node (see also --node)\n"),
    ONCE("model", ONE, model, "@file", "  --model FILE     ask a machine model\n"),
    ONCE("profile", NODES, profile, "@folder",
         "  --profile DIR    profile folder: one node (default: this machine's)\n"),
    ONCE("profile", IN(MEASURE), profile, "@folder",
         "  --profile DIR    look up in a profile (and its model.json where it has one);\n"
         "                   default: this machine's\n"),
    ONCE("profile", IN(PLACE), profile, "@folder",
         "  --profile DIR    a profile (default: this machine's); without a model.json it\n"
         "                   does not say what jobs do to each other, only what each\n"
         "                   reaches alone\n"),
    {"node", 'n', NODES, TCCL_OPTION_OWN, 0, "@file",
     "  --node FILE[=COUNT[:GPUS]]\n"
     "                   COUNT (1 to 4096, default 1) more nodes of this model or\n"
     "                   profile, in this place of the order, named n1, n2, ... If\n"
     "                   FILE is the one of --model, --model adds no node itself\n",
     0, 0, set_node},
    ONCE("gpus", NODES, gpus, NULL,
         "  --gpus LIST      GPUs of each node, such as 0-3 or 0,2,5; default: all\n"),
    ONCE("gpus", IN(PLACE), gpus, NULL, "  --gpus K         how many GPUs the job gets\n"),
    ONCE("busy", IN(PLACE) | IN(EXPLAIN), busy, NULL,
         "  --busy LIST      GPUs that are taken, such as 0-3 or 0,2: one job, with its\n"
         "                   best ring\n"),
    ONCE("load", IN(MEASURE), load, NULL,
         "  --load LOAD      transfers, who starts them first: \"g0>g1\" GPU 0 writes to\n"
         "                   GPU 1, \"g1<m0\" GPU 1 reads from memory 0, \"n0>g0\" NIC 0\n"
         "                   writes to GPU 0\n"),
    {"rings", 0, SEARCH, TCCL_OPTION_OWN, AT(rings), "1|2|3|4|5|6|7|8|auto",
     "  --rings N        N rings at once, 1 to 8; auto, the default: the best\n", 0, 0, set_rings},
    FLAG("any", 'a', SEARCH, any,
         "  --any            also rings that a stock NCCL can't be made to build\n"),
    NUMBER("gap", SEARCH, RATIO, gap, 1,
           "  --gap RATIO      stop when the rings are proven to be this close to the best\n"),
    NUMBER("noise", SEARCH, RATIO, noise, 1,
           "  --noise RATIO    bandwidths closer than this count as equal (default 0)\n"),
    NUMBER("noise", IN(PLACE), RATIO, noise, 1,
           "  --noise RATIO    bandwidths closer than this count as equal (default 0.03)\n"),
    NUMBER("budget", SEARCH, COUNT, budget, INT_MAX,
           "  --budget N       loads to measure at most per node class\n"),
    NUMBER("pairs", SEARCH, COUNT, pairs, INT_MAX,
           "  --pairs N        port pairs to search to the end, 0: all\n"),
    ONCE("ring", IN(EVAL), ring, NULL,
         "  --ring RING      the ring: \"0 -w> 1 -m0> 0\" for one node, for several\n"
         "                   \"n1[nic -g> 0 -w> 1 -m0> nic] n2[...]\", or one chain without\n"
         "                   brackets for all of them; several rings that run at once:\n"
         "                   \"chain | chain\"; -: from standard input.\n"
         "                   Default: the baseline\n"),
    ONCE("ring", IN(EXPLAIN), ring, NULL,
         "  --ring RING      explain this ring (see eval) in place of the best one\n"),
    ONCE("ring", IN(DRAW), ring, NULL,
         "  --ring RING      draw this ring (see eval) in place of the best one\n"),
    ONCE("output", IN(DRAW), output, "@file",
         "  -o, --output FILE   write to FILE in place of standard output\n"),
    FLAG("json", 'j', IN(SOLVE) | IN(EVAL) | IN(EXPLAIN) | IN(MEASURE), json,
         "  --json           print JSON\n"),
    FLAG("json", 'j', IN(PLACE), json,
         "  --json           print JSON, all sets; without it the first ten are shown\n"),
    {"help", 'h', 0, TCCL_OPTION_HELP, 0, NULL, "", 0, 0, NULL},
    {"version", 'V', IN(NONE), TCCL_OPTION_VERSION, 0, NULL, NULL, 0, 0, NULL},
};

static const struct tccl_program program = {
    "tccl-path", commands, COMMANDS, rows, sizeof(rows) / sizeof(*rows), false, NULL};

/* What is missing, or does not go together. Returns 0, or -1 with err. */
static int check(int command, int argc, char **argv, struct options *options,
                 char own[static PATH_MAX], struct tccl_error *err)
{
    struct tccl_error why = {""};
    if (optind < argc)
        return tccl_usage_fail(&program, command, err, "%.60s: not an option", argv[optind]);
    if (options->model && options->profile)
        return tccl_usage_fail(&program, command, err,
                               "--model and --profile exclude each other; --node takes both");
    if (command == MEASURE && !options->load)
        return tccl_usage_fail(&program, command, err, "--load is missing");
    if (command == PLACE && !options->gpus)
        return tccl_usage_fail(&program, command, err,
                               "--gpus is missing: how many GPUs the job gets");
    if (options->model || options->profile || options->n_nodes)
        return 0;
    options->profile = own; /* without any node: this one */
    return source_of_machine(own, &why) == 0
               ? 0
               : tccl_usage_fail(&program, command, err, "%s", why.text);
}

int main(int argc, char **argv)
{
    static struct options options = {
        .gap = -1, .noise = -1, .budget = -1, .pairs = -1, .rings = -1};
    char own[PATH_MAX];
    struct tccl_error err = {""};
    int command = tccl_command_of(&program, argc, argv);
    bool moved = argc > 1 && strcmp(argv[1], "policy") == 0;
    int rc = moved
                 ? tccl_fail(&err, "policy: no such command: site policies are shown by tccl-check "
                                   "policy")
                 : tccl_options_read(&program, command, argc, argv, &options, &err);
    if (rc > 0)
        return tccl_end_output(0);
    if (rc == 0 && command == NONE)
        rc = argc > 1 ? tccl_usage_fail(&program, NONE, &err, "%.60s: no such command", argv[1])
                      : tccl_usage_fail(&program, NONE, &err,
                                        "a command is missing: solve, eval, explain, draw, measure "
                                        "or place");
    if (rc == 0)
        rc = check(command, argc, argv, &options, own, &err);
    if (rc == 0 && runs[command](&options, &err) == 0)
        return tccl_end_output(0);
    fprintf(stderr, "tccl: %s\n", err.text);
    return rc == 0 ? EXIT_FAILURE : EXIT_USAGE;
}
