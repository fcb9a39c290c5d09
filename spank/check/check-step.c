/* check-step.c: asks a node's tccld whether the plugin has spoken for a step. srun runs this at the
 * end of a step that requires a ring (spank-local.c): where no node has the plugin, Slurm drops
 * --tccl in silence, and nobody else could say so. */
#include "check/check-step.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "check/check-peers.h"
#include "client/client.h"
#include "client/hostlist.h"
#include "client/message.h"

enum { ABSENT = 1, USAGE = 2, UNKNOWN = 3, ASK_MS = 2500, SINCE_MOST = 2000000 };

struct options {
    const char *config, *node;
    unsigned long job, step;
    long since; /* seconds */
};

static void usage(FILE *out)
{
    fputs("Usage: tccl-check step JOB.STEP --node NODE [OPTION]...\n"
          "Ask the tccld of a node whether the plugin has spoken for a job step of yours there. If "
          "it\n"
          "has not, Slurm has dropped --tccl in silence, require too.\n\n"
          "  -N, --node NODE       the first node of the step\n"
          "      --since SECONDS   how long ago the step began, default 0\n"
          "  -f, --config FILE     read FILE instead of " TCCL_SYSCONFDIR "/slurm/tccl.conf\n"
          "  -h, --help            show this help and exit\n\n"
          "Exit status: 0 it has, 1 it has not, 2 wrong usage, 3 that is not known.\n",
          out);
}

static bool read_step(const char *text, struct options *options)
{
    char *end;
    options->job = strtoul(text, &end, 10);
    if (end == text || *end != '.')
        return false;
    text = end + 1;
    options->step = strtoul(text, &end, 10);
    return end != text && !*end && options->job > 0 && options->job < UINT32_MAX &&
           options->step < UINT32_MAX;
}

static int fail_usage(const char *what)
{
    fprintf(stderr, "tccl: %s: see tccl-check step --help\n", what);
    return USAGE;
}

/* Returns -1 to go on, else the exit status. */
static int read_options(int argc, char **argv, struct options *options)
{
    enum { SINCE = 256 };
    static const struct option longs[] = {{"config", required_argument, NULL, 'f'},
                                          {"node", required_argument, NULL, 'N'},
                                          {"since", required_argument, NULL, SINCE},
                                          {"help", no_argument, NULL, 'h'},
                                          {0}};
    int option;
    while ((option = getopt_long(argc, argv, "f:N:h", longs, NULL)) != -1) {
        if (option == 'f')
            options->config = optarg;
        else if (option == 'N')
            options->node = optarg;
        else if (option == SINCE)
            options->since = strtol(optarg, NULL, 10);
        else if (option == 'h')
            return usage(stdout), 0;
        else
            return fail_usage("wrong option");
    }
    if (optind + 1 != argc || !read_step(argv[optind], options))
        return fail_usage("give one step, as 4711.0");
    if (!options->node || !tccl_host_valid(options->node))
        return fail_usage("--node: give the name of one node");
    if (options->since < 0 || options->since > SINCE_MOST)
        return fail_usage("--since: give seconds");
    return -1;
}

/* What the node's tccld says. Returns the exit status. */
static int tell(const struct options *options, const json_t *answer)
{
    const char *plugin = "", *text = "";
    const json_t *joined = json_object_get(answer, "joined");
    tccl_get_text(answer, "plugin", 16, &plugin, NULL);
    tccl_get_text(answer, "text", 600, &text, NULL);
    if (json_is_true(joined)) {
        printf("tccl: %s: the plugin has spoken for step %lu.%lu\n", options->node, options->job,
               options->step);
        return 0;
    }
    if (!json_is_false(joined)) {
        fprintf(stderr,
                "tccl: %s: whether the plugin has spoken for step %lu.%lu is not known%s%s\n",
                options->node, options->job, options->step, *text ? ": " : "", text);
        return UNKNOWN;
    }
    if (strcmp(plugin, "missing") != 0)
        text = "run tccl-check on that node";
    fprintf(stderr, "tccl: %s: no plugin has spoken for step %lu.%lu, so it had no ring: %s\n",
            options->node, options->job, options->step, text);
    return ABSENT;
}

/* Where no tccld runs, a plugin would have ended a step that requires a ring. */
static int tell_failure(const struct options *options, const char *why)
{
    bool absent = strstr(why, "refused") != NULL;
    fprintf(stderr, "tccl: %s: %s step %lu.%lu%s: %.300s: %s\n", options->node,
            absent ? "no node has answered for"
                   : "it is not known whether the plugin has spoken for",
            options->job, options->step, absent ? ", so it had no ring" : "", why,
            check_peer_advice(why));
    return absent ? ABSENT : UNKNOWN;
}

int check_step(int argc, char **argv)
{
    struct options options = {.since = 0};
    struct tccl_error err = {""};
    struct tccl_conf conf;
    int status = read_options(argc, argv, &options);
    if (status >= 0)
        return status;
    if (tccl_conf_read(tccl_conf_tool_path(options.config), NULL, &conf, &err) != 0) {
        fprintf(stderr, "tccl: %s\n", err.text);
        return UNKNOWN;
    }
    cleanup_json json_t *answer =
        tccl_client_node(&conf, options.node, (uint32_t)options.job, (uint32_t)options.step,
                         options.since * 1000, ASK_MS, &err);
    tccl_conf_clear(&conf);
    if (answer)
        return tell(&options, answer);
    return tell_failure(&options, err.text);
}
