/* check-policy.c: "tccl-check policy": which site policy applies to a job step, and why. */
#include "check/check-items.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/cleanup.h"
#include "base/fields.h"
#include "client/client.h"
#include "client/hostlist.h"
#include "client/policy.h"

enum { EVIDENCE_MS = 1000 };

struct answer {
    const struct policy_facts *facts;
    struct policy_rule rule;
    struct policy_choice choice;
    bool ring;
    char why[POLICY_WHY]; /* why there is no ring; or, if unknown, what the step must have */
};

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
    printf("%-16s %.4gx\n%-16s %d\n%-16s %d\n%-16s %d\n", "MinGain", rule->min_gain / 1000.0,
           "MaxRings", rule->max_rings, "MinNodes", rule->min_nodes, "MinGpus", rule->min_gpus);
    if (rule->trial > 0)
        printf("%-16s %g%% of the jobs%s\n", "Trial", rule->trial / 1000.0,
               choice->asked ? ", none of those that ask for a ring" : "");
    if (format_class(&rule->traffic_class, text))
        printf("%-16s %s\n", "TrafficClass", text);
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

/* What this node's tccld knows of rings by their steps; NULL: there is none, or it does not answer.
 */
static json_t *ask_evidence(const struct tccl_conf *conf)
{
    cleanup_json json_t *question = json_pack("{s:b}", "evidence", 1);
    cleanup_json json_t *answer = tccl_client_node(conf, NULL, question, EVIDENCE_MS, NULL);
    return json_incref(json_object_get(answer, "evidence"));
}

static int print_json(const struct tccl_conf *conf, bool explain, const struct answer *answer)
{
    const struct policy_rule *rule = &answer->rule;
    char class[TCCL_TRAFFIC_CLASS + 1];
    format_class(&rule->traffic_class, class);
    cleanup_json json_t *json = json_pack(
        "{s:s,s:s,s:b,s:b,s:b,s:s,s:i,s:i,s:i,s:f,s:f,s:i,s:i,s:i,s:s,s:o}", "policy", rule->name,
        "mode", tccl_mode_name(answer->choice.mode), "asked", answer->choice.asked, "forbid",
        rule->forbid, "ring", answer->ring, "why", answer->why, "timeout_ms", rule->timeout_ms,
        "auto_timeout_ms", rule->auto_timeout_ms, "require_timeout_ms", rule->require_timeout_ms,
        "min_gain", rule->min_gain / 1000.0, "trial_percent", rule->trial / 1000.0, "max_rings",
        rule->max_rings, "min_nodes", rule->min_nodes, "min_gpus", rule->min_gpus, "traffic_class",
        class, "environment", environment_to_json(rule));
    if (!json || (explain && json_object_set_new(json, "rules", rules_to_json(conf, answer)) != 0))
        return -1;
    cleanup_json json_t *evidence = explain ? ask_evidence(conf) : NULL;
    if (evidence && json_object_set(json, "evidence", evidence) != 0)
        return -1;
    json_dumpf(json, stdout, JSON_INDENT(2) | TCCL_JSON_DIGITS);
    putchar('\n');
    return 0;
}

static void print_evidence(const json_t *evidence)
{
    size_t i;
    const json_t *each;
    json_array_foreach(evidence, i, each)
    {
        long nodes = (long)tccl_number_of(each, "n_nodes");
        char ratio[64] = "not compared yet";
        if (tccl_real_of(each, "ratio") > 0)
            snprintf(ratio, sizeof(ratio), "%.2fx NCCL's own choice", tccl_real_of(each, "ratio"));
        printf("%-16s GPUs %s of %ld node%s, %.1f GB/s promised: %s (%ld steps with it, %ld "
               "without); slower by the steps of %ld "
               "user%s, good by %ld: %s\n",
               "evidence", tccl_text_of(each, "what"), nodes, nodes == 1 ? "" : "s",
               tccl_real_of(each, "promised_gbps"), ratio, (long)tccl_number_of(each, "with_ring"),
               (long)tccl_number_of(each, "without"), (long)tccl_number_of(each, "slower"),
               tccl_number_of(each, "slower") == 1 ? "" : "s", (long)tccl_number_of(each, "good"),
               json_is_true(json_object_get(each, "off"))      ? "no longer given"
               : json_is_true(json_object_get(each, "untrue")) ? "given, but the profile is no "
                                                                 "longer true: measure again"
                                                               : "given");
    }
}

int check_policy(const struct check_options *options)
{
    __attribute__((cleanup(tccl_conf_clear))) struct tccl_conf conf = {0};
    __attribute__((cleanup(tccl_hosts_clear))) struct tccl_hosts hosts = {0};
    struct tccl_error err = {""};
    struct policy_facts facts = options->facts;
    if (tccl_conf_read(tccl_conf_tool_path(options->config), options->node, &conf, &err) != 0 ||
        tccl_hosts_expand(options->nodes ? options->nodes : "", CHECK_NODES_MAX, &hosts, &err) !=
            0) {
        fprintf(stderr, "tccl: %s\n", err.text);
        return EXIT_FAILURE;
    }
    facts.nodes = (const char *const *)hosts.names;
    facts.n_nodes = (int)hosts.count;
    facts.gpu_models = &options->model;
    facts.n_gpu_models = options->model != NULL;
    struct answer answer = {.facts = &facts, .rule = policy_find(&conf, &facts)};
    answer.choice = policy_choose(&answer.rule, options->mode, POLICY_NOT_GIVEN);
    answer.ring = judge(&answer);
    if (options->json) {
        if (print_json(&conf, options->explain, &answer) == 0)
            return EXIT_SUCCESS;
        fprintf(stderr, "tccl: out of memory, or a text in %s is not UTF-8\n", conf.path);
        return EXIT_FAILURE;
    }
    if (options->explain)
        print_rules(&conf, &answer);
    print_answer(&answer);
    if (options->explain) {
        cleanup_json json_t *evidence = ask_evidence(&conf);
        print_evidence(evidence);
    }
    return EXIT_SUCCESS;
}
