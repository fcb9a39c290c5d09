/* check-policy.c: "tccl-check policy": which site policy applies to a job step, and why. */
#include "check/check-policy.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/cleanup.h"
#include "base/fields.h"
#include "client/hostlist.h"
#include "client/policy.h"

enum { EXIT_USAGE = 2, NODES_MAX = 65536, GPUS_MAX = 1048576 };

static const char help[] =
    "Usage: tccl-check policy [--explain] [OPTION]...\n"
    "Show which policy of tccl.conf applies to a job step, and its settings.\n"
    "\n"
    "  --explain         for each other policy, also the first condition that fails\n"
    "  --config FILE     tccl.conf; default: $TCCL_CONF, or the one in /etc/slurm\n"
    "  --json            print one JSON object\n"
    "\n"
    "The step. A condition on something that is not given does not match:\n"
    "  --partition NAME, --account NAME, --qos NAME, --user NAME, --job-name NAME\n"
    "  --nodes LIST      nodes, such as n[1-4]\n"
    "  --gpus N          total number of GPUs\n"
    "  --gpu-type MODEL  GPU model: \"NVIDIA A100-SXM4-40GB\", or a part of it\n"
    "  --mode MODE       mode requested by the user (with TCCL=, or on the command\n"
    "                    line): off, auto, on or require\n"
    "\n"
    "Arguments of the plugin in plugstack.conf are not considered.\n"
    "Exit status: 0 success; 1 tccl.conf cannot be read; 2 wrong usage.\n";

struct question {
    const char *config;
    struct policy_facts facts;
    struct tccl_hosts hosts;
    const char *model;
    int mode; /* asked for, or POLICY_NOT_GIVEN */
    bool explain, json, help;
};

struct answer {
    const struct policy_facts *facts;
    struct policy_rule rule;
    struct policy_choice choice;
    bool ring;
    char why[POLICY_WHY]; /* why there is no ring; or, if unknown, what the step must have */
};

/* ---- what is asked --------------------------------------------------------------------------- */

static int take_nodes(struct question *question, const char *text, struct tccl_error *err)
{
    tccl_hosts_clear(&question->hosts);
    if (tccl_hosts_expand(text, NODES_MAX, &question->hosts, err) != 0)
        return tccl_fail_in(err, "--nodes");
    question->facts.nodes = (const char *const *)question->hosts.names;
    question->facts.n_nodes = (int)question->hosts.count;
    return question->hosts.count ? 0 : tccl_fail(err, "--nodes: give node names, such as n[1-4]");
}

static int take_gpus(struct question *question, const char *text, struct tccl_error *err)
{
    char *end;
    errno = 0;
    long gpus = strtol(text, &end, 10);
    if (errno || *end || text[0] < '0' || text[0] > '9' || gpus < 1 || gpus > GPUS_MAX)
        return tccl_fail(err, "--gpus %.40s: give a number from 1 to %d", text, GPUS_MAX);
    question->facts.gpus = (int)gpus;
    return 0;
}

static int take_mode(struct question *question, const char *text, struct tccl_error *err)
{
    question->mode = tccl_mode_parse(text, err);
    return question->mode < 0 ? tccl_fail_in(err, "--mode") : 0;
}

static int take_option(struct question *question, int option, struct tccl_error *err)
{
    struct policy_facts *facts = &question->facts;
    const char **const texts[] = {
        ['c'] = &question->config, ['p'] = &facts->partition, ['a'] = &facts->account,
        ['q'] = &facts->qos,       ['u'] = &facts->user,      ['j'] = &facts->job_name,
        ['t'] = &question->model};
    switch (option) {
    case 'x':
        question->explain = true;
        return 0;
    case 'J':
        question->json = true;
        return 0;
    case 'h':
        question->help = true;
        return 0;
    case 'n':
        return take_nodes(question, optarg, err);
    case 'g':
        return take_gpus(question, optarg, err);
    case 'm':
        return take_mode(question, optarg, err);
    default:
        *texts[option] = optarg;
        return 0;
    }
}

static int read_options(int argc, char **argv, struct question *question, struct tccl_error *err)
{
    static const struct option options[] = {
        {"explain", no_argument, NULL, 'x'},        {"config", required_argument, NULL, 'c'},
        {"json", no_argument, NULL, 'J'},           {"partition", required_argument, NULL, 'p'},
        {"account", required_argument, NULL, 'a'},  {"qos", required_argument, NULL, 'q'},
        {"user", required_argument, NULL, 'u'},     {"job-name", required_argument, NULL, 'j'},
        {"nodes", required_argument, NULL, 'n'},    {"gpus", required_argument, NULL, 'g'},
        {"gpu-type", required_argument, NULL, 't'}, {"mode", required_argument, NULL, 'm'},
        {"help", no_argument, NULL, 'h'},           {NULL, 0, NULL, 0}};
    int option;
    opterr = 0;
    while ((option = getopt_long(argc, argv, "+:h", options, NULL)) != -1) {
        if (option == ':')
            return tccl_fail(err, "%.60s: a value is missing", argv[optind - 1]);
        if (option == '?' && optopt && strncmp(argv[optind - 1], "--", 2) == 0) /* "--json=x" */
            return tccl_fail(err, "%.60s: this option takes no value", argv[optind - 1]);
        if (option == '?')
            return tccl_fail(err, "%.60s: unknown option", argv[optind - 1]);
        if (take_option(question, option, err) != 0)
            return -1;
    }
    if (optind < argc)
        return tccl_fail(err, "%.60s: not an option", argv[optind]);
    question->facts.gpu_models = &question->model;
    question->facts.n_gpu_models = question->model ? 1 : 0;
    return 0;
}

/* ---- the answer ------------------------------------------------------------------------------ */

/* The section of a policy. */
static const char *title(const char *name, char text[static 64])
{
    snprintf(text, 64, name[0] ? "[policy %s]" : "[policy]", name);
    return text;
}

/* The minimums of mode auto. Returns false with why if the step is below one; true, with what the
 * step must have in why if that is unknown. */
static bool judge_size(struct answer *answer)
{
    const struct policy_facts *facts = answer->facts;
    const struct policy_rule *rule = &answer->rule;
    if (facts->n_nodes && facts->n_nodes < rule->min_nodes) {
        snprintf(answer->why, POLICY_WHY, "MinNodes is %d", rule->min_nodes);
        return false;
    }
    if (facts->gpus && facts->gpus < rule->min_gpus) {
        snprintf(answer->why, POLICY_WHY, "MinGpus is %d", rule->min_gpus);
        return false;
    }
    bool nodes = !facts->n_nodes && rule->min_nodes > 1, gpus = !facts->gpus;
    if (nodes && gpus)
        snprintf(answer->why, POLICY_WHY, "it has %d nodes and %d GPUs, or more", rule->min_nodes,
                 rule->min_gpus);
    else if (nodes)
        snprintf(answer->why, POLICY_WHY, "it has %d nodes or more", rule->min_nodes);
    else if (gpus)
        snprintf(answer->why, POLICY_WHY, "it has %d GPUs or more", rule->min_gpus);
    return true;
}

/* Would the step get a ring, as far as policies decide? */
static bool judge(struct answer *answer)
{
    const struct policy_rule *rule = &answer->rule;
    char name[64];
    answer->why[0] = '\0';
    if (answer->choice.forbidden || (rule->forbid && !answer->choice.asked))
        snprintf(answer->why, POLICY_WHY, "%s forbids rings", title(rule->name, name));
    else if (answer->choice.mode == TCCL_MODE_OFF)
        snprintf(answer->why, POLICY_WHY, "mode off");
    else if (answer->facts->gpus == 1)
        snprintf(answer->why, POLICY_WHY, "a single GPU needs none");
    else
        return answer->choice.mode != TCCL_MODE_AUTO || judge_size(answer);
    return false;
}

static struct answer find_answer(const struct tccl_conf *conf, const struct question *question)
{
    struct answer answer = {.facts = &question->facts, .rule = policy_find(conf, &question->facts)};
    answer.choice = policy_choose(&answer.rule, question->mode, POLICY_NOT_GIVEN);
    answer.ring = judge(&answer);
    return answer;
}

/* Why a policy does not apply; NULL if it does. before: an earlier one applies. */
static const char *why_not(const struct tccl_policy *policy, const struct policy_facts *facts,
                           bool before, char text[static POLICY_WHY])
{
    if (!policy_matches(policy, facts, text))
        return text;
    return before ? "it would hold, but one before it does" : NULL;
}

static void print_rules(const struct tccl_conf *conf, const struct answer *answer)
{
    char text[POLICY_WHY], name[64];
    bool found = false;
    for (int i = 0; i < conf->n_policies; i++) {
        const char *why = why_not(&conf->policies[i], answer->facts, found, text);
        printf("%-24s %s%s\n", title(conf->policies[i].name, name), why ? "no: " : "holds",
               why ? why : "");
        found = found || !why;
    }
    if (found)
        printf("%-24s gives what that one does not set\n", "[policy]");
    else if (policy_matches(&conf->policy, answer->facts, text))
        printf("%-24s holds, as no other one does\n", "[policy]");
    else
        printf("%-24s holds, as no other one does, but not its Default: %s\n", "[policy]", text);
    putchar('\n');
}

static void print_time(const char *what, int ms)
{
    if (ms % 1000)
        printf("%-16s %d ms\n", what, ms);
    else
        printf("%-16s %d s\n", what, ms / 1000);
}

/* As in tccl.conf. Returns whether it is given. */
static bool format_class(const struct tccl_traffic_class *class,
                         char text[static TCCL_TRAFFIC_CLASS + 1])
{
    char *at = text;
    *at = '\0';
    if (class->tc != TCCL_NOT_SET)
        at += snprintf(at, 4, "%u", (uint8_t) class->tc);
    if (class->sl != TCCL_NOT_SET)
        snprintf(at, 4, "/%u", (uint8_t) class->sl & 15);
    return *text;
}

static void print_answer(const struct answer *answer)
{
    const struct policy_rule *rule = &answer->rule;
    const struct policy_choice *choice = &answer->choice;
    char text[TCCL_TRAFFIC_CLASS + 1];
    printf("%-16s %s\n", "policy", rule->name[0] ? rule->name : "none but [policy]");
    printf("%-16s %s%s\n", "mode", tccl_mode_name(choice->mode),
           choice->forbidden ? ", asked for, but forbidden"
           : choice->asked   ? ", as the user asked"
           : rule->forbid    ? ", whatever the user asks"
                             : ", by default");
    printf("%-16s %s%s\n", "ring",
           !answer->ring    ? "no: "
           : answer->why[0] ? "yes, if "
                            : "yes",
           answer->why);
    print_time("Timeout", rule->timeout_ms);
    print_time("AutoTimeout", rule->auto_timeout_ms);
    print_time("RequireTimeout", rule->require_timeout_ms);
    printf("%-16s %.4gx\n%-16s %d\n%-16s %d\n%-16s %d\n", "MinGain", rule->min_gain, "MaxRings",
           rule->max_rings, "MinNodes", rule->min_nodes, "MinGpus", rule->min_gpus);
    if (format_class(&rule->traffic_class, text))
        printf("%-16s %s\n", "TrafficClass", text);
    if (rule->background != TCCL_BACKGROUND_NONE)
        printf("%-16s %s\n", "Background", tccl_background_name(rule->background));
    for (int i = 0; i < rule->n_environment; i++)
        printf("%-16s %s\n", "Environment", rule->environment[i]);
}

static json_t *rules_to_json(const struct tccl_conf *conf, const struct answer *answer)
{
    char text[POLICY_WHY];
    bool found = false;
    json_t *rules = json_array();
    for (int i = 0; i < conf->n_policies; i++) {
        const char *why = why_not(&conf->policies[i], answer->facts, found, text);
        json_array_append_new(rules, json_pack("{s:s,s:b,s:s}", "name", conf->policies[i].name,
                                               "holds", !why, "why", why ? why : ""));
        found = found || !why;
    }
    return rules;
}

static json_t *environment_to_json(const struct policy_rule *rule)
{
    json_t *object = json_object();
    for (int i = 0; i < rule->n_environment; i++) {
        const char *item = rule->environment[i];
        cleanup_free char *name = strndup(item, strcspn(item, "="));
        if (name)
            json_object_set_new(object, name, json_string(strchr(item, '=') + 1));
    }
    return object;
}

static int print_json(const struct tccl_conf *conf, const struct question *question,
                      const struct answer *answer)
{
    const struct policy_rule *rule = &answer->rule;
    char class[TCCL_TRAFFIC_CLASS + 1];
    format_class(&rule->traffic_class, class);
    cleanup_json json_t *json = json_pack(
        "{s:s,s:s,s:b,s:b,s:b,s:s,s:i,s:i,s:i,s:f,s:i,s:i,s:i,s:s,s:s,s:o}", "policy", rule->name,
        "mode", tccl_mode_name(answer->choice.mode), "asked", answer->choice.asked, "forbid",
        rule->forbid, "ring", answer->ring, "why", answer->why, "timeout_ms", rule->timeout_ms,
        "auto_timeout_ms", rule->auto_timeout_ms, "require_timeout_ms", rule->require_timeout_ms,
        "min_gain", rule->min_gain, "max_rings", rule->max_rings, "min_nodes", rule->min_nodes,
        "min_gpus", rule->min_gpus, "traffic_class", class, "background",
        tccl_background_name(rule->background), "environment", environment_to_json(rule));
    if (!json ||
        (question->explain && json_object_set_new(json, "rules", rules_to_json(conf, answer)) != 0))
        return -1;
    json_dumpf(json, stdout, JSON_INDENT(2) | TCCL_JSON_DIGITS);
    putchar('\n');
    return 0;
}

/* ---------------------------------------------------------------------------------------------- */

/* Output that was lost (a full disk) is a failure. Returns the exit status. */
static int end_output(void)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return EXIT_SUCCESS;
    fprintf(stderr, "tccl: standard output: %s\n", strerror(errno));
    return EXIT_FAILURE;
}

static int answer(const struct question *question)
{
    __attribute__((cleanup(tccl_conf_clear))) struct tccl_conf conf = {0};
    struct tccl_error err = {""};
    if (tccl_conf_read(tccl_conf_tool_path(question->config), NULL, &conf, &err) != 0) {
        fprintf(stderr, "tccl: %s\n", err.text);
        return EXIT_FAILURE;
    }
    struct answer found = find_answer(&conf, question);
    if (question->json) {
        if (print_json(&conf, question, &found) != 0) {
            fprintf(stderr, "tccl: out of memory, or a text in %s is not UTF-8\n", conf.path);
            return EXIT_FAILURE;
        }
        return end_output();
    }
    if (question->explain)
        print_rules(&conf, &found);
    print_answer(&found);
    return end_output();
}

int check_policy(int argc, char **argv)
{
    struct question question = {.mode = POLICY_NOT_GIVEN};
    struct tccl_error err = {""};
    int status;
    if (read_options(argc, argv, &question, &err) != 0) {
        fprintf(stderr, "tccl: %s; see tccl-check policy --help\n", err.text);
        status = EXIT_USAGE;
    } else if (question.help) {
        fputs(help, stdout);
        status = end_output();
    } else {
        status = answer(&question);
    }
    tccl_hosts_clear(&question.hosts);
    return status;
}
