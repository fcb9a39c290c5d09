/* policy.c: matches a step against the policies of tccl.conf, and settles its mode. */
#include "client/policy.h"

#include <ctype.h>
#include <fnmatch.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "client/hostlist.h"

enum { ITEM = 256 };

/* ---- conditions ------------------------------------------------------------------------------ */

/* The next item of a list with commas; false at its end. */
static bool next_item(const char **list, char item[static ITEM])
{
    size_t length = strcspn(*list, ",");
    if (length == 0)
        return false;
    snprintf(item, ITEM, "%.*s", (int)length, *list);
    *list += length + ((*list)[length] == ',');
    return true;
}

static bool lists(const char *patterns, const char *name)
{
    char item[ITEM];
    while (next_item(&patterns, item))
        if (fnmatch(item, name, FNM_NOESCAPE) == 0)
            return true;
    return false;
}

__attribute__((format(printf, 2, 3))) static bool miss(char *why, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(why, POLICY_WHY, format, arguments);
    va_end(arguments);
    return false;
}

static bool name_matches(const char *key, const char *patterns, const char *what, const char *name,
                         char *why)
{
    if (!patterns || (name && *name && lists(patterns, name)))
        return true;
    if (!name || !*name)
        return miss(why, "%s=%.120s: the %s is not known", key, patterns, what);
    return miss(why, "%s=%.120s: the %s is %.200s", key, patterns, what, name);
}

static bool nodes_match(const char *list, const struct policy_facts *facts, char *why)
{
    if (list && facts->n_nodes == 0)
        return miss(why, "NodeList=%.120s: the nodes are not known", list);
    for (int i = 0; list && i < facts->n_nodes; i++)
        if (!tccl_hosts_contain(list, facts->nodes[i]))
            return miss(why, "NodeList=%.120s: node %.200s is not in it", list, facts->nodes[i]);
    return true;
}

static bool range_matches(const char *key, const struct tccl_range *range, const char *what,
                          int number, char *why)
{
    char text[32];
    if (range->max == 0 || (number >= range->min && number <= range->max && number > 0))
        return true;
    if (range->max == range->min)
        snprintf(text, 32, "%d", range->min);
    else if (range->max == INT_MAX)
        snprintf(text, 32, "%d-", range->min);
    else
        snprintf(text, 32, "%d-%d", range->min, range->max);
    if (number <= 0)
        return miss(why, "%s=%s: the number of %s is not known", key, text, what);
    return miss(why, "%s=%s: the step has %d %s", key, text, number, what);
}

/* As Slurm does it: in lower case, with '_' for blanks, the type is part of the model's name. */
static bool is_of_type(const char *types, const char *model)
{
    char name[ITEM], item[ITEM];
    snprintf(name, sizeof(name), "%s", model);
    for (char *at = name; *at; at++)
        *at = *at == ' ' ? '_' : (char)tolower((unsigned char)*at);
    while (next_item(&types, item))
        if (strstr(name, item))
            return true;
    return false;
}

static bool models_match(const char *types, const struct policy_facts *facts, char *why)
{
    if (types && facts->n_gpu_models == 0)
        return miss(why, "GpuTypes=%.120s: the model of the GPUs is not known", types);
    for (int i = 0; types && i < facts->n_gpu_models; i++)
        if (!is_of_type(types, facts->gpu_models[i]))
            return miss(why, "GpuTypes=%.120s: a GPU is %.100s", types, facts->gpu_models[i]);
    return true;
}

/* The same on all nodes of a step. */
static bool step_matches(const struct tccl_policy *policy, const struct policy_facts *facts,
                         char *why)
{
    if (policy->never)
        return miss(why, "it has an unknown key");
    return name_matches("Partitions", policy->partitions, "partition", facts->partition, why) &&
           name_matches("Accounts", policy->accounts, "account", facts->account, why) &&
           name_matches("Qos", policy->qos, "QOS", facts->qos, why) &&
           name_matches("Users", policy->users, "user", facts->user, why) &&
           name_matches("JobNames", policy->job_names, "job's name", facts->job_name, why) &&
           nodes_match(policy->node_list, facts, why) &&
           range_matches("Nodes", &policy->nodes, "nodes", facts->n_nodes, why);
}

bool policy_matches(const struct tccl_policy *policy, const struct policy_facts *facts,
                    char why[static POLICY_WHY])
{
    return step_matches(policy, facts, why) &&
           range_matches("Gpus", &policy->gpus, "GPUs", facts->gpus, why) &&
           models_match(policy->gpu_types, facts, why);
}

bool policy_asks(const struct tccl_conf *conf, enum policy_question question)
{
    bool asks = false;
    for (int i = 0; i < conf->n_policies && !asks; i++) {
        const struct tccl_policy *policy = &conf->policies[i];
        asks = question == POLICY_OF_USER
                   ? policy->users != NULL
                   : policy->gpu_types || (question == POLICY_OF_GPUS && policy->gpus.max);
    }
    return asks;
}

/* ---- what holds ------------------------------------------------------------------------------ */

static bool sets(const struct policy_rule *rule, const char *assignment)
{
    size_t length = (size_t)tccl_policy_variable(assignment) + 1;
    for (int i = 0; i < rule->n_environment; i++)
        if (strncmp(rule->environment[i], assignment, length) == 0)
            return true;
    return false;
}

static void add_environment(struct policy_rule *rule, const struct tccl_policy *policy)
{
    for (int i = 0; i < policy->n_environment; i++)
        if (!sets(rule, policy->environment[i]))
            rule->environment[rule->n_environment++] = policy->environment[i];
}

struct policy_rule policy_rule_of(const struct tccl_conf *conf, const struct tccl_policy *policy)
{
    const struct tccl_policy *site = &conf->policy;
    const struct tccl_policy below = {.max_rings = conf->max_rings,
                                      .timeout_ms = conf->timeout_ms,
                                      .auto_timeout_ms = conf->auto_timeout_ms,
                                      .require_timeout_ms = conf->require_timeout_ms};
    struct policy_rule rule = {.name = policy->name};
    for (int i = 0; i < TCCL_SETTINGS; i++)
        rule.settings[i] = policy->settings[i] != TCCL_NOT_SET ? policy->settings[i]
                           : site->settings[i] != TCCL_NOT_SET ? site->settings[i]
                                                               : below.settings[i];
    bool own = policy->traffic_class.tc != TCCL_NOT_SET || policy->traffic_class.sl != TCCL_NOT_SET;
    rule.traffic_class = own ? policy->traffic_class : site->traffic_class;
    add_environment(&rule, policy);
    if (policy != site)
        add_environment(&rule, site);
    return rule;
}

/* [policy]: outside its Partitions nobody is given a ring without asking. */
static struct policy_rule remaining_rule(const struct tccl_conf *conf,
                                         const struct policy_facts *facts)
{
    char why[POLICY_WHY];
    struct policy_rule rule = policy_rule_of(conf, &conf->policy);
    if (!policy_matches(&conf->policy, facts, why))
        rule.mode = TCCL_MODE_OFF;
    return rule;
}

struct policy_rule policy_find(const struct tccl_conf *conf, const struct policy_facts *facts)
{
    char why[POLICY_WHY];
    for (int i = 0; i < conf->n_policies; i++)
        if (policy_matches(&conf->policies[i], facts, why))
            return policy_rule_of(conf, &conf->policies[i]);
    return remaining_rule(conf, facts);
}

const struct tccl_policy *policy_named(const struct tccl_conf *conf, const char *name)
{
    for (int i = 0; i < conf->n_policies; i++)
        if (strcmp(conf->policies[i].name, name) == 0)
            return &conf->policies[i];
    return NULL;
}

struct policy_choice policy_choose(const struct policy_rule *rule, int option, int environment)
{
    int asked = option != POLICY_NOT_GIVEN ? option : environment;
    bool forbid = rule && rule->forbid;
    if (asked != POLICY_NOT_GIVEN)
        return (struct policy_choice){(enum tccl_mode)asked, true,
                                      forbid && asked != TCCL_MODE_OFF};
    return (struct policy_choice){rule && !forbid ? rule->mode : TCCL_MODE_OFF, false, false};
}

bool policy_wants(const struct policy_rule *rule, const struct policy_choice *choice, int n_nodes,
                  int n_gpus)
{
    if (choice->mode == TCCL_MODE_OFF || choice->forbidden)
        return false;
    return choice->mode != TCCL_MODE_AUTO ||
           (n_nodes >= rule->min_nodes && (n_nodes > 1 || n_gpus >= rule->min_gpus));
}

static bool is_claimed(const struct tccl_policy *policy)
{
    return policy->partitions || policy->accounts || policy->qos;
}

static bool rule_wants(const struct policy_rule *rule, const struct policy_facts *facts, int option,
                       int environment, int n_gpus)
{
    struct policy_choice choice = policy_choose(rule, option, environment);
    return policy_wants(rule, &choice, facts->n_nodes, n_gpus);
}

bool policy_by_claims(const struct tccl_conf *conf, const struct policy_facts *facts, int option,
                      int environment, int n_gpus)
{
    for (int i = 0; i < conf->n_policies; i++) {
        const struct tccl_policy *policy = &conf->policies[i];
        /* Does a policy match that has only the conditions that no user can forge? */
        char why[POLICY_WHY];
        struct tccl_policy rest = *policy;
        rest.partitions = rest.accounts = rest.qos = NULL;
        if (!policy_matches(&rest, facts, why))
            continue;
        struct policy_rule rule = policy_rule_of(conf, policy);
        if (!rule_wants(&rule, facts, option, environment, n_gpus))
            return true;
        if (!is_claimed(policy))
            return false;
    }
    struct policy_rule rule = policy_rule_of(conf, &conf->policy);
    if (is_claimed(&conf->policy))
        rule.mode = TCCL_MODE_OFF;
    return !rule_wants(&rule, facts, option, environment, n_gpus);
}

bool policy_others_want(const struct tccl_conf *conf, const struct policy_facts *facts, int option,
                        int environment, enum tccl_mode least, struct policy_rule *rule,
                        struct policy_choice *choice)
{
    char why[POLICY_WHY];
    bool found = false, last = facts->n_nodes < 2;
    for (int i = 0; i <= conf->n_policies && !found && !last; i++) {
        const struct tccl_policy *policy =
            i < conf->n_policies ? &conf->policies[i] : &conf->policy;
        if (i < conf->n_policies && !step_matches(policy, facts, why))
            continue;
        last = i == conf->n_policies || (policy->gpus.max == 0 && !policy->gpu_types);
        *rule = i < conf->n_policies ? policy_rule_of(conf, policy) : remaining_rule(conf, facts);
        *choice = policy_choose(rule, option, environment);
        found = choice->mode >= least && policy_wants(rule, choice, facts->n_nodes, facts->gpus);
    }
    return found;
}
