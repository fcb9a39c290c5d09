/* path-options.c: the command line options of tccl-path. */
#include "command/path-options.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "chain/chain-text.h"

/* The letters are also short options, where they are lower case. */
static const struct option long_options[] = {
    {"model", required_argument, NULL, 'm'},
    {"profile", required_argument, NULL, 'p'},
    {"node", required_argument, NULL, 'n'},
    {"gpus", required_argument, NULL, 'g'},
    {"ring", required_argument, NULL, 'r'},
    {"set", required_argument, NULL, 's'},
    {"output", required_argument, NULL, 'o'},
    {"json", no_argument, NULL, 'j'},
    {"any", no_argument, NULL, 'a'},
    {"gap", required_argument, NULL, 'G'},
    {"noise", required_argument, NULL, 'N'},
    {"budget", required_argument, NULL, 'B'},
    {"pairs", required_argument, NULL, 'P'},
    {"rings", required_argument, NULL, 'R'},
    {"busy", required_argument, NULL, 'b'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static const char *option_name(int letter)
{
    for (const struct option *option = long_options; option->name; option++)
        if (option->val == letter)
            return option->name;
    return "?";
}

/* A ratio from 0 to below 1: "0.03" or "3%". */
static int parse_ratio(const char *text, int letter, double *value, struct tccl_error *err)
{
    char *end;
    errno = 0;
    *value = strtod(text, &end);
    if (strcmp(end, "%") == 0 && end > text) {
        *value /= 100;
        end++;
    }
    if (errno || end == text || *end || !(*value >= 0 && *value < 1))
        return tccl_fail(err, "--%s: \"%.40s\" is not a ratio from 0 to below 1, such as 0.03",
                         option_name(letter), text);
    return 0;
}

static int parse_count(const char *text, int letter, long *value, struct tccl_error *err)
{
    char *end;
    errno = 0;
    *value = strtol(text, &end, 10);
    if (errno || end == text || *end || *value < 0)
        return tccl_fail(err, "--%s: \"%.40s\" is not a number (0: no limit)", option_name(letter),
                         text);
    return 0;
}

/* "auto" is 0: whatever is best. */
static int parse_rings(const char *text, long *value, struct tccl_error *err)
{
    *value = 0;
    if (strcmp(text, "auto") == 0)
        return 0;
    if (text[0] < '1' || text[0] > '0' + TCCL_CHAIN_RINGS || text[1])
        return tccl_fail(err, "--rings: \"%.40s\" is neither a number from 1 to %d nor \"auto\"",
                         text, TCCL_CHAIN_RINGS);
    *value = text[0] - '0';
    return 0;
}

static int add_node(struct options *options, const char *text, struct tccl_error *err)
{
    if (options->n_nodes == MAX_NODE_OPTIONS)
        return tccl_fail(err, "--node: more than %d of them; put equal nodes together with =COUNT",
                         MAX_NODE_OPTIONS);
    options->nodes[options->n_nodes++] = text;
    return 0;
}

static int take_text(struct options *options, int letter, const char *text, struct tccl_error *err)
{
    const char **const places[] = {
        ['m'] = &options->model, ['p'] = &options->profile, ['g'] = &options->gpus,
        ['r'] = &options->ring,  ['s'] = &options->set,     ['o'] = &options->output,
        ['b'] = &options->busy,
    };
    if (*places[letter])
        return tccl_fail(err, "--%s is given twice", option_name(letter));
    *places[letter] = text;
    return 0;
}

static int take(struct options *options, int letter, const char *text, struct tccl_error *err)
{
    switch (letter) {
    case 'j':
        options->json = true;
        return 0;
    case 'a':
        options->any = true;
        return 0;
    case 'h':
        options->help = true;
        return 0;
    case 'n':
        return add_node(options, text, err);
    case 'G':
        return parse_ratio(text, letter, &options->gap, err);
    case 'N':
        return parse_ratio(text, letter, &options->noise, err);
    case 'B':
        return parse_count(text, letter, &options->budget, err);
    case 'P':
        return parse_count(text, letter, &options->pairs, err);
    case 'R':
        return parse_rings(text, &options->rings, err);
    default:
        return take_text(options, letter, text, err);
    }
}

int options_parse(int argc, char **argv, const char *accepted, struct options *options,
                  struct tccl_error *err)
{
    *options = (struct options){.gap = -1, .noise = -1, .budget = -1, .pairs = -1, .rings = -1};
    int letter;
    opterr = 0;
    optind = 1;
    while ((letter = getopt_long(argc, argv, ":m:p:n:g:r:s:o:b:jah", long_options, NULL)) != -1) {
        if (letter == ':')
            return tccl_fail(err, "%s: a value is missing", argv[optind - 1]);
        if (letter == '?')
            return tccl_fail(err, "%s: no such option", argv[optind - 1]);
        if (letter != 'h' && !strchr(accepted, letter))
            return tccl_fail(err, "--%s is not an option of this command", option_name(letter));
        if (take(options, letter, optarg, err) < 0)
            return -1;
    }
    if (optind < argc)
        return tccl_fail(err, "%s: not an option", argv[optind]);
    return 0;
}
