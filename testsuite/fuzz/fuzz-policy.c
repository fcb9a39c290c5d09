/* [policy] sections of a tccl.conf, and the policy that holds for steps whose facts are words of
 * the same file. */
#include "client/policy.h"
#include "fuzz.h"

enum { WORDS = 64, STEPS = 8, NODES = 3 };

/* What facts are drawn from. */
struct words {
    char *list[WORDS];
    unsigned count;
    uint32_t state;
};

static unsigned draw(struct words *words, unsigned limit)
{
    words->state = words->state * 1664525 + 1013904223;
    return (words->state >> 8) % limit;
}

static const char *word(struct words *words)
{
    unsigned i = draw(words, words->count + 2);
    return i < words->count ? words->list[i] : i == words->count ? "" : NULL;
}

static struct words split(char *text)
{
    struct words words = {.state = 1};
    char *state;
    for (const char *at = text; *at; at++)
        words.state = words.state * 31 + (unsigned char)*at;
    for (char *at = strtok_r(text, "=,\n[]* ", &state); at && words.count < WORDS;
         at = strtok_r(NULL, "=,\n[]* ", &state))
        words.list[words.count++] = at;
    return words;
}

/* In a list without patterns: what the policy must make of it. */
static void check_names(const char *list, const char *name, bool matches)
{
    if (!list || !matches)
        return;
    FUZZ_CHECK(name && *name);
    if (strpbrk(list, "*?[\\"))
        return;
    size_t length = strlen(name);
    const char *at = list;
    while (at && !(strncmp(at, name, length) == 0 && (!at[length] || at[length] == ',')))
        at = (at = strchr(at, ',')) ? at + 1 : NULL;
    FUZZ_CHECK(at);
}

static void check_match(const struct tccl_policy *policy, const struct policy_facts *facts)
{
    char why[POLICY_WHY] = "";
    bool matches = policy_matches(policy, facts, why);
    FUZZ_CHECK(matches != (*why != '\0') && memchr(why, '\0', sizeof(why)));
    check_names(policy->partitions, facts->partition, matches);
    check_names(policy->accounts, facts->account, matches);
    check_names(policy->qos, facts->qos, matches);
    check_names(policy->users, facts->user, matches);
    check_names(policy->job_names, facts->job_name, matches);
    if (matches && policy->nodes.max)
        FUZZ_CHECK(facts->n_nodes >= policy->nodes.min && facts->n_nodes <= policy->nodes.max);
    if (matches && policy->gpus.max)
        FUZZ_CHECK(facts->gpus >= policy->gpus.min && facts->gpus <= policy->gpus.max);
    FUZZ_CHECK(!matches || !policy->gpu_types || facts->n_gpu_models > 0);
}

static void check_rule(const struct policy_rule *rule)
{
    FUZZ_CHECK(rule->mode >= TCCL_MODE_OFF && rule->mode <= TCCL_MODE_REQUIRE);
    FUZZ_CHECK(rule->min_gain >= 1000 && rule->min_nodes >= 1 && rule->min_gpus >= 1);
    FUZZ_CHECK(rule->max_rings >= 1 && rule->max_rings <= 8);
    FUZZ_CHECK(rule->timeout_ms >= 10 && rule->require_timeout_ms >= 10);
    FUZZ_CHECK(rule->n_environment <= 2 * TCCL_POLICY_ENVIRONMENT);
    for (int i = 0; i < rule->n_environment; i++)
        FUZZ_CHECK(tccl_policy_variable(rule->environment[i]) > 0 &&
                   strchr(rule->environment[i], '='));
}

static void check_modes(const struct tccl_conf *conf, const struct policy_facts *facts,
                        const struct policy_rule *rule)
{
    for (int option = POLICY_NOT_GIVEN; option <= TCCL_MODE_REQUIRE; option++)
        for (int variable = POLICY_NOT_GIVEN; variable <= TCCL_MODE_REQUIRE; variable++) {
            struct policy_rule others;
            struct policy_choice choice = policy_choose(rule, option, variable);
            bool wants = policy_wants(rule, &choice, facts->n_nodes, facts->gpus);
            FUZZ_CHECK(!wants || (!rule->forbid && choice.mode != TCCL_MODE_OFF));
            FUZZ_CHECK(choice.asked ==
                       (option != POLICY_NOT_GIVEN || variable != POLICY_NOT_GIVEN));
            if (!policy_others_want(conf, facts, option, variable, TCCL_MODE_AUTO, &others,
                                    &choice))
                continue;
            check_rule(&others);
            FUZZ_CHECK(facts->n_nodes > 1 && choice.mode != TCCL_MODE_OFF && !choice.forbidden);
        }
}

/* The first that matches holds. */
static void check_step(const struct tccl_conf *conf, const struct policy_facts *facts)
{
    char why[POLICY_WHY];
    struct policy_rule rule = policy_find(conf, facts);
    const struct tccl_policy *first = NULL;
    for (int i = 0; i < conf->n_policies; i++) {
        check_match(&conf->policies[i], facts);
        if (!first && policy_matches(&conf->policies[i], facts, why))
            first = &conf->policies[i];
    }
    FUZZ_CHECK(strcmp(rule.name, first ? first->name : "") == 0);
    FUZZ_CHECK(!first || policy_named(conf, rule.name) == first);
    if (first && first->mode != TCCL_NOT_SET)
        FUZZ_CHECK((int)rule.mode == first->mode);
    check_rule(&rule);
    check_modes(conf, facts, &rule);
}

static void check_steps(const struct tccl_conf *conf, struct words *words)
{
    for (int step = 0; step < STEPS && words->count > 0; step++) {
        const char *nodes[NODES], *models[NODES];
        struct policy_facts facts = {.partition = word(words),
                                     .account = word(words),
                                     .qos = word(words),
                                     .user = word(words),
                                     .job_name = word(words),
                                     .nodes = nodes,
                                     .n_nodes = (int)draw(words, NODES + 1),
                                     .gpus = (int)draw(words, 17),
                                     .gpu_models = models,
                                     .n_gpu_models = (int)draw(words, NODES + 1)};
        for (int i = 0; i < NODES; i++) {
            nodes[i] = words->list[draw(words, words->count)];
            models[i] = words->list[draw(words, words->count)];
        }
        check_step(conf, &facts);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cleared_by(tccl_conf_clear) struct tccl_conf conf = {0};
    char path[FUZZ_PATH];
    cleanup_free char *text = fuzz_text(data, size);
    int fd = fuzz_file(data, size, path);
    if (tccl_conf_read(path, "n1", &conf, ERR) == 0) {
        struct words words = split(text);
        check_steps(&conf, &words);
    } else {
        FUZZ_CHECK(strstr(check_err.text, path));
    }
    close(fd);
    return 0;
}

FUZZ_SEEDS("[policy]\nDefault=auto\nMinNodes=2\nPartitions=gpu,dgx\n[policy a]\nPartitions=gpu,d*\n"
           "Default=on\n[policy b]\nUsers=gpu,auto\nForbid=yes\n",
           "[policy a]\nQos=x[1-3],y\nNodeList=n[1-4]\nNodes=1-8\nGpus=4-\nMinGain=1.05x\n"
           "Environment=NCCL_X=a=b\n[policy b]\nDefault=require\nTimeout=1s\nJobNames=n1,n2\n"
           "Environment=NCCL_Y=1\n[policy]\nEnvironment=NCCL_X=c\nDefault=on\n",
           "[policy t]\nGpuTypes=a100,H100 SXM\nGpus=2\nDefault=on\n[policy u]\nAccounts=a100\n"
           "RequireTimeout=2s\nTrafficClass=106/"
           "3\nMinGpus=4\nNodes=2\nDefault=auto\n",
           "[tccl]\nTimeout=250ms\n[policy x]\nNodeList=x,gpu\nNodes=1-3\nDefault=on\nMaxRings=2\n")
