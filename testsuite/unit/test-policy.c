/* Which mode a step has, and what its user is told. */
#include "client/policy.h"

#include "check.h"
#include "plugin/plugin.h"

static char conf_path[PATH_MAX];

static void write_conf(const char *path, const char *text)
{
    cleanup_file FILE *file = fopen(path, "w");
    CHECK(file != NULL);
    fputs(text, file);
}

static struct tccl_conf read_conf(const char *text)
{
    struct tccl_conf conf;
    write_conf(conf_path, text);
    CHECK_OK(tccl_conf_read(conf_path, "n1", &conf, ERR));
    return conf;
}

static void check_choice(const struct policy_rule *rule, int option, int environment, int mode,
                         bool asked, bool forbidden)
{
    struct policy_choice choice = policy_choose(rule, option, environment);
    CHECK_INT(choice.mode, mode);
    CHECK_INT(choice.asked, asked);
    CHECK_INT(choice.forbidden, forbidden);
}

TEST(precedence)
{
    struct policy_rule rule = {.name = "", .mode = TCCL_MODE_AUTO};
    const int none = POLICY_NOT_GIVEN;
    check_choice(&rule, none, none, TCCL_MODE_AUTO, false, false);
    check_choice(&rule, none, TCCL_MODE_OFF, TCCL_MODE_OFF, true, false);
    check_choice(&rule, TCCL_MODE_REQUIRE, TCCL_MODE_OFF, TCCL_MODE_REQUIRE, true, false);
    check_choice(NULL, none, none, TCCL_MODE_OFF, false, false);
    check_choice(NULL, TCCL_MODE_ON, none, TCCL_MODE_ON, true, false);
    rule.forbid = true;
    check_choice(&rule, none, none, TCCL_MODE_OFF, false, false);
    check_choice(&rule, none, TCCL_MODE_OFF, TCCL_MODE_OFF, true, false);
    check_choice(&rule, none, TCCL_MODE_ON, TCCL_MODE_ON, true, true);
    check_choice(&rule, TCCL_MODE_REQUIRE, none, TCCL_MODE_REQUIRE, true, true);
}

static int mode_in(const char *partitions, const char *partition)
{
    struct tccl_conf conf = {.policy = tccl_policy_new("")};
    conf.policy.mode = TCCL_MODE_ON;
    conf.policy.partitions = (char *)partitions;
    return (int)policy_find(&conf, &(struct policy_facts){.partition = partition}).mode;
}

TEST(partitions)
{
    CHECK_INT(mode_in(NULL, NULL), TCCL_MODE_ON);
    CHECK_INT(mode_in("gpu,train", "train"), TCCL_MODE_ON);
    CHECK_INT(mode_in("gpu,t*", "train"), TCCL_MODE_ON);
    CHECK_INT(mode_in("gpu,train", "tra"), TCCL_MODE_OFF);
    CHECK_INT(mode_in("gpu,train", "trains"), TCCL_MODE_OFF);
    CHECK_INT(mode_in("gpu", ""), TCCL_MODE_OFF);
    CHECK_INT(mode_in("gpu", NULL), TCCL_MODE_OFF);
}

static bool wants(const struct policy_rule *rule, enum tccl_mode mode, int n_nodes, int n_gpus)
{
    struct policy_choice choice = {.mode = mode};
    return policy_wants(rule, &choice, n_nodes, n_gpus);
}

TEST(minimums)
{
    struct policy_rule rule = {.min_nodes = 1, .min_gpus = 8};
    CHECK(!wants(&rule, TCCL_MODE_OFF, 4, 32) && !wants(&rule, TCCL_MODE_AUTO, 1, 7));
    CHECK(wants(&rule, TCCL_MODE_AUTO, 1, 8));
    CHECK(wants(&rule, TCCL_MODE_AUTO, 2, 1)); /* other nodes may have the rest */
    CHECK(wants(&rule, TCCL_MODE_ON, 1, 2) && wants(&rule, TCCL_MODE_REQUIRE, 1, 2));
    rule.min_nodes = 3;
    CHECK(!wants(&rule, TCCL_MODE_AUTO, 2, 16) && wants(&rule, TCCL_MODE_AUTO, 3, 16));
    CHECK(!policy_wants(&rule, &(struct policy_choice){.mode = TCCL_MODE_ON, .forbidden = true}, 4,
                        32));
}

/* What each rule sets, [policy] completes, and what that does not say [tccl] does. */
TEST(inheritance)
{
    cleared_by(tccl_conf_clear) struct tccl_conf conf =
        read_conf("[tccl]\nTimeout=2s\nRequireTimeout=20s\nMaxRings=5\n"
                  "[policy]\nDefault=auto\nMinGpus=4\nMinGain=1.05x\nRequireTimeout=30s\n"
                  "Environment=NCCL_A=site\nEnvironment=NCCL_B=site\n"
                  "[policy big]\nNodes=8-\nDefault=on\nTimeout=5s\n"
                  "MaxRings=1\nEnvironment=NCCL_A=big\n"
                  "[policy rest]\nForbid=yes\n");
    const char *const nodes[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
    struct policy_rule big =
        policy_find(&conf, &(struct policy_facts){.nodes = nodes, .n_nodes = 8});
    CHECK_STR(big.name, "big");
    CHECK_INT(big.mode, TCCL_MODE_ON);
    CHECK_INT(big.min_gpus, 4);
    CHECK_INT(big.min_nodes, 1);
    CHECK(big.min_gain == 1050);
    CHECK_INT(big.max_rings, 1);
    CHECK_INT(big.timeout_ms, 5000);
    CHECK_INT(big.require_timeout_ms, 30000);
    CHECK_INT(big.n_environment, 2);
    CHECK_STR(big.environment[0], "NCCL_A=big");
    CHECK_STR(big.environment[1], "NCCL_B=site");
    CHECK(!big.forbid);
    struct policy_rule rest =
        policy_find(&conf, &(struct policy_facts){.nodes = nodes, .n_nodes = 7});
    CHECK_STR(rest.name, "rest");
    CHECK(rest.forbid);
    CHECK_INT(rest.max_rings, 5);
    CHECK_INT(rest.timeout_ms, 2000);
    CHECK(policy_named(&conf, "big") == &conf.policies[0] && !policy_named(&conf, "Big"));
}

/* Only what GPUs decide may differ between the nodes of a step. */
TEST(others)
{
    cleared_by(tccl_conf_clear) struct tccl_conf conf =
        read_conf("[policy a100]\nGpuTypes=a100\nNodes=2-\nDefault=on\n"
                  "[policy few]\nGpus=1-4\nForbid=yes\n"
                  "[policy p]\nPartitions=p\n[policy q]\nDefault=on\n");
    const char *const nodes[] = {"n1", "n2"}, *const models[] = {"NVIDIA T4"};
    struct policy_facts facts = {.partition = "p",
                                 .nodes = nodes,
                                 .n_nodes = 2,
                                 .gpus = 4,
                                 .gpu_models = models,
                                 .n_gpu_models = 1};
    const int none = POLICY_NOT_GIVEN;
    struct policy_rule rule = policy_find(&conf, &facts);
    struct policy_choice choice;
    CHECK_STR(rule.name, "few");
    CHECK(policy_others_want(&conf, &facts, none, none, TCCL_MODE_AUTO, &rule, &choice));
    CHECK_STR(rule.name, "a100");
    CHECK_INT(choice.mode, TCCL_MODE_ON);
    facts.n_nodes = 1; /* no others */
    CHECK(!policy_others_want(&conf, &facts, none, none, TCCL_MODE_AUTO, &rule, &choice));
    facts.n_nodes = 2;
    conf.policies[0].nodes.min = 3; /* not this step: [policy p] is the last that may hold */
    CHECK(!policy_others_want(&conf, &facts, none, none, TCCL_MODE_AUTO, &rule, &choice));
    CHECK(policy_others_want(&conf, &facts, TCCL_MODE_ON, none, TCCL_MODE_AUTO, &rule, &choice));
    CHECK_STR(rule.name, "p");
}

/* ---- an independent reader of rules ---------------------------------------------------------- */

/* A pattern with '*' and '?' only. */
static bool plain_match(const char *pattern, const char *text)
{
    if (*pattern == '*')
        return plain_match(pattern + 1, text) || (*text && plain_match(pattern, text + 1));
    return *pattern ? *text && (*pattern == '?' || *pattern == *text) &&
                          plain_match(pattern + 1, text + 1)
                    : !*text;
}

enum { ITEMS = 3, RULES = 6 };
struct plain_rule {
    const char *names[5][ITEMS]; /* partition, account, QOS, user, job's name; NULL ends */
    unsigned nodes;              /* bit i: node n<i>; 0: not given */
    int n_min, n_max, g_min, g_max;
    const char *type;
    int mode;
};
struct plain_facts {
    const char *names[5];
    unsigned nodes;
    int gpus;
    const char *model;
};

static const char *const words[] = {"gpu", "train", "t1", "ann", "bob", ""};
static const char *const patterns[] = {"gpu", "t*", "*n", "?nn", "b?b", "*"};
static const char *const types[] = {"a100", "nvidia_a", "t4"};
static const char *const models[] = {"NVIDIA A100-SXM4-40GB", "Tesla T4", "NVIDIA H100"};

static bool plain_matches(const struct plain_rule *rule, const struct plain_facts *facts)
{
    int n = __builtin_popcount(facts->nodes);
    for (int k = 0; k < 5; k++) {
        bool any = !rule->names[k][0];
        for (int i = 0; i < ITEMS && rule->names[k][i]; i++)
            any = any || (*facts->names[k] && plain_match(rule->names[k][i], facts->names[k]));
        if (!any)
            return false;
    }
    if (rule->nodes && (facts->nodes & ~rule->nodes))
        return false;
    if (rule->n_max && (n < rule->n_min || n > rule->n_max))
        return false;
    if (rule->g_max && (facts->gpus < rule->g_min || facts->gpus > rule->g_max))
        return false;
    if (!rule->type)
        return true;
    return (!strcmp(rule->type, "a100") && strstr(facts->model, "A100")) ||
           (!strcmp(rule->type, "nvidia_a") && strstr(facts->model, "NVIDIA A")) ||
           (!strcmp(rule->type, "t4") && strstr(facts->model, "T4"));
}

static int chance(int of)
{
    return (int)(random() % of);
}

static struct plain_rule random_rule(void)
{
    struct plain_rule rule = {.mode = chance(4)};
    for (int k = 0; k < 5; k++)
        for (int i = 0, n = chance(3) ? 0 : 1 + chance(ITEMS); i < n; i++)
            rule.names[k][i] = patterns[chance(6)];
    rule.nodes = chance(3) ? 0 : 1 + (unsigned)chance(15);
    if (!chance(3))
        rule.n_max = (rule.n_min = 1 + chance(3)) + chance(3);
    if (!chance(3))
        rule.g_max = (rule.g_min = 1 + chance(8)) + chance(8);
    rule.type = chance(3) ? NULL : types[chance(3)];
    return rule;
}

static void print_rule(FILE *out, int number, const struct plain_rule *rule)
{
    static const char *const keys[] = {"Partitions", "ACCOUNTS", "qos", "Users", "JobNames"};
    fprintf(out, "[policy r%d]\nDefault=%s\n", number, tccl_mode_name((enum tccl_mode)rule->mode));
    for (int k = 0; k < 5; k++)
        for (int i = 0; i < ITEMS && rule->names[k][i]; i++)
            fprintf(out, "%s=%s\n", keys[k], rule->names[k][i]); /* the list goes on */
    for (int i = 0; i < 4; i++)
        if (rule->nodes >> i & 1)
            fprintf(out, "NodeList=n%d\n", i);
    if (rule->n_max)
        fprintf(out, "Nodes=%d-%d\n", rule->n_min, rule->n_max);
    if (rule->g_max)
        fprintf(out, rule->g_max > 12 ? "Gpus=%d-\n" : "Gpus=%d-%d\n", rule->g_min, rule->g_max);
    if (rule->type)
        fprintf(out, "GpuTypes=%s\n", rule->type);
}

static int claims_free; /* steps of which it was said that their claims don't matter */

/* Where it is said that claims don't matter, no other claims take the ring away. */
static void check_claims(const struct tccl_conf *conf, const struct policy_facts *facts)
{
    struct policy_rule rule = policy_find(conf, facts);
    struct policy_choice choice = policy_choose(&rule, POLICY_NOT_GIVEN, POLICY_NOT_GIVEN);
    if (chance(4) || !policy_wants(&rule, &choice, facts->n_nodes, facts->gpus) ||
        policy_by_claims(conf, facts, POLICY_NOT_GIVEN, POLICY_NOT_GIVEN, facts->gpus))
        return;
    for (int i = 0; i < 6 * 6 * 6; i++) {
        struct policy_facts others = *facts;
        others.partition = words[i % 6];
        others.account = words[i / 6 % 6];
        others.qos = words[i / 36];
        rule = policy_find(conf, &others);
        choice = policy_choose(&rule, POLICY_NOT_GIVEN, POLICY_NOT_GIVEN);
        CHECK(policy_wants(&rule, &choice, facts->n_nodes, facts->gpus));
    }
    claims_free++;
}

static void check_facts(const struct tccl_conf *conf, const struct plain_rule *rules, int count)
{
    struct plain_facts plain = {
        .nodes = 1 + (unsigned)chance(15), .gpus = 1 + chance(12), .model = models[chance(3)]};
    for (int k = 0; k < 5; k++)
        plain.names[k] = words[chance(6)];
    static const char *const all[] = {"n0", "n1", "n2", "n3"};
    const char *nodes[4];
    struct policy_facts facts = {.partition = plain.names[0],
                                 .account = plain.names[1],
                                 .qos = plain.names[2],
                                 .user = plain.names[3],
                                 .job_name = plain.names[4],
                                 .nodes = nodes,
                                 .gpus = plain.gpus,
                                 .gpu_models = &plain.model,
                                 .n_gpu_models = 1};
    for (int i = 0; i < 4; i++)
        if (plain.nodes >> i & 1)
            nodes[facts.n_nodes++] = all[i];
    int first = 0;
    while (first < count && !plain_matches(&rules[first], &plain))
        first++;
    struct policy_rule rule = policy_find(conf, &facts);
    char name[16] = "";
    if (first < count)
        snprintf(name, sizeof(name), "r%d", first);
    CHECK_STR(rule.name, name);
    CHECK_INT(rule.mode, first < count ? rules[first].mode : TCCL_MODE_AUTO);
    check_claims(conf, &facts);
}

TEST(by_claims)
{
    static const struct {
        const char *text;
        int option;
        bool by_claims;
    } cases[] = {
        {"[policy]\nDefault=on\n", POLICY_NOT_GIVEN, false},
        {"[policy]\nDefault=on\nPartitions=gpu\n", POLICY_NOT_GIVEN, true},
        {"[policy]\nDefault=on\nPartitions=gpu\n", TCCL_MODE_ON, false},
        {"[policy]\nDefault=on\n[policy no]\nQos=debug\nForbid=yes\n", TCCL_MODE_ON, true},
        {"[policy]\nDefault=on\n[policy no]\nQos=debug\nUsers=eve\nForbid=yes\n", TCCL_MODE_ON,
         false},
        {"[policy]\nForbid=yes\n[policy us]\nAccounts=a\nForbid=no\n", TCCL_MODE_ON, true},
        {"[policy]\nForbid=yes\n[policy us]\nUsers=ann\nForbid=no\n[policy q]\nQos=q\n",
         TCCL_MODE_ON, false},
        {"[policy]\nDefault=on\n[policy p]\nPartitions=p\nMinGain=2x\n", POLICY_NOT_GIVEN, false},
    };
    struct policy_facts facts = {
        .partition = "gpu", .account = "a", .user = "ann", .n_nodes = 1, .gpus = 4};
    for (size_t i = 0; i < COUNT(cases); i++) {
        cleared_by(tccl_conf_clear) struct tccl_conf conf = read_conf(cases[i].text);
        CHECK_INT(policy_by_claims(&conf, &facts, cases[i].option, POLICY_NOT_GIVEN, 4),
                  cases[i].by_claims);
    }
}

TEST(random_rules)
{
    for (int round = 0; round < 150; round++) {
        struct plain_rule rules[RULES];
        int count = chance(RULES + 1);
        cleanup_free char *text = NULL;
        size_t size;
        FILE *out = open_memstream(&text, &size);
        fputs("[policy]\nDefault=auto\n", out);
        for (int i = 0; i < count; i++) {
            rules[i] = random_rule();
            print_rule(out, i, &rules[i]);
        }
        fclose(out);
        cleared_by(tccl_conf_clear) struct tccl_conf conf = read_conf(text);
        for (int i = 0; i < 100; i++)
            check_facts(&conf, rules, count);
    }
}

TEST(notice_applied)
{
    char line[NOTICE_SIZE];
    struct tccl_outcome plan = {.state = TCCL_STATE_PLANNED, .gbps = 11.2, .baseline_gbps = 6.1};
    plan.ring = "n1[a -g> 0 -w> 1 -m0> a] n2[a -m0> 0 -r> 1 -m1> 2 -g> a]";
    CHECK(notice_of_plan(TCCL_MODE_ON, &plan, 2, line));
    CHECK_STR(line, "tccl: ring of 2 nodes, 5 GPUs: 11.2 GB/s (NCCL's own choice: 6.1, 1.84x)");
    plan.ring = "a -g> 0 -w> 1 -m0> a …";
    CHECK(notice_of_plan(TCCL_MODE_REQUIRE, &plan, 40, line));
    CHECK_STR(line, "tccl: ring of 40 nodes: 11.2 GB/s (NCCL's own choice: 6.1, 1.84x)");
    plan.ring = "n1[0 -w> 1 -m0> 2 -m1> 0]";
    plan.baseline_gbps = 0;
    CHECK(notice_of_plan(TCCL_MODE_ON, &plan, 1, line));
    CHECK_STR(line, "tccl: ring of 3 GPUs: 11.2 GB/s");
    plan.rings = 2;
    plan.ring = "n1[0 -w> 1 -m0> 2 -m1> 0 | 2 -w> 1 -m0> 0 -m1> 2]";
    CHECK(notice_of_plan(TCCL_MODE_ON, &plan, 1, line));
    CHECK_STR(line, "tccl: 2 rings of 3 GPUs: 11.2 GB/s");
    plan.ring =
        "n1[a -g> 0 -m0> b | b -m0> 0 -g> a] n2[a -g> 0 -w> 1 -m0> b | b -m0> 1 -w> 0 -g> a]";
    CHECK(notice_of_plan(TCCL_MODE_ON, &plan, 2, line));
    CHECK_STR(line, "tccl: 2 rings of 2 nodes, 3 GPUs: 11.2 GB/s");
    plan.rings = 1;
    plan.ring = "n1[0 -w> 1 -m0> 2 -m1> 0]";
    strcpy(plan.source, "cuda");
    plan.baseline_gbps = 6.1;
    CHECK(notice_of_plan(TCCL_MODE_ON, &plan, 1, line));
    CHECK_STR(line, "tccl: ring of 3 GPUs: 11.2 GB/s (NCCL's own choice: 6.1, 1.84x)");
    plan.neighbours = 2;
    plan.alone_gbps = 12.5;
    strcpy(plan.neighbours_by, "bounds");
    CHECK(notice_of_plan(TCCL_MODE_ON, &plan, 1, line));
    CHECK_STR(line, "tccl: ring of 3 GPUs: at least 11.2 GB/s beside 2 other steps "
                    "(bounds), alone 12.5 (NCCL's own choice: 6.1, 1.84x)");
    CHECK(notice_of_plan(TCCL_MODE_ON, &plan, 2, line));
    CHECK_HOLDS(line, "at least 11.2 GB/s beside 2 other steps, counted on each node (bounds), "
                      "alone 12.5 (NCCL's");
    strcpy(plan.neighbours_by, "measured");
    plan.neighbours = 1;
    CHECK(notice_of_plan(TCCL_MODE_ON, &plan, 1, line));
    CHECK_STR(line, "tccl: ring of 3 GPUs: 11.2 GB/s beside 1 other step (measured), alone 12.5 "
                    "(NCCL's own choice: 6.1, 1.84x)");
    plan.gbps = 1.4;
    CHECK(notice_of_plan(TCCL_MODE_ON, &plan, 1, line));
    CHECK_HOLDS(
        line,
        "1.4 GB/s beside 1 other step (measured), alone 12.5: copies of both slow each "
        "other down by more than sharing: ask for other GPUs (tccl-path place --busy) (NCCL's");
    strcpy(plan.neighbours_by, "bounds"); /* it has so much at least */
    CHECK(notice_of_plan(TCCL_MODE_ON, &plan, 1, line) && !strstr(line, "slow each other down"));
    plan.gbps = 11.2;
    strcpy(plan.neighbours_by, "foretold");
    const double nccl = plan.baseline_gbps;
    plan.baseline_gbps = 1.4; /* so this is why it has another ring */
    CHECK(notice_of_plan(TCCL_MODE_ON, &plan, 1, line));
    CHECK_HOLDS(line, "11.2 GB/s beside 1 other step (foretold), alone 12.5: so chosen that copies "
                      "of both do not slow each other down (NCCL's own choice: 1.4");
    plan.baseline_gbps = nccl;
    plan.moved = true;
    CHECK(notice_of_plan(TCCL_MODE_ON, &plan, 1, line));
    CHECK_HOLDS(line, "x), as measured of other GPUs like these");
    plan.moved = false;
    plan.neighbours = 0;
    strcpy(plan.neighbours_by, "");
    CHECK(!notice_of_plan(TCCL_MODE_AUTO, &plan, 1, line));
    strcpy(plan.source, "model");
    CHECK(notice_of_plan(TCCL_MODE_ON, &plan, 1, line));
    CHECK_STR(line, "tccl: ring of 3 GPUs: 11.2 GB/s (NCCL's own choice: 6.1, 1.84x), by a model");
    strcpy(plan.reason, "the ring is not built: why");
    CHECK(notice_of_plan(TCCL_MODE_ON, &plan, 1, line));
    CHECK_STR(line, "tccl: the ring is not built: why");
}

TEST(notice_fallback)
{
    char line[NOTICE_SIZE];
    struct tccl_outcome plan = {.state = TCCL_STATE_FAILED};
    strcpy(plan.reason, "n3: no\nprofile\033[31m");
    CHECK(notice_of_plan(TCCL_MODE_ON, &plan, 2, line));
    CHECK_STR(line, "tccl: no ring: n3: no profile [31m (NCCL's own choice is used)");
    CHECK(notice_of_plan(TCCL_MODE_REQUIRE, &plan, 2, line));
    CHECK_STR(line,
              "tccl: no ring: n3: no profile [31m (the step ends, because a ring is required)");
    CHECK(!notice_of_plan(TCCL_MODE_AUTO, &plan, 2, line));
    CHECK(!notice_of_plan(TCCL_MODE_OFF, &plan, 2, line));
    plan.state = TCCL_STATE_LEFT;
    strcpy(plan.reason, "NCCL's own ring is as fast (9.1 GB/s)");
    CHECK(notice_of_plan(TCCL_MODE_REQUIRE, &plan, 2, line));
    CHECK_STR(line, "tccl: nothing to do: NCCL's own ring is as fast (9.1 GB/s)");
    CHECK(!notice_of_plan(TCCL_MODE_AUTO, &plan, 2, line));
}

TEST(arguments)
{
    const char *path = check_at("arguments.conf");
    char *config = (char *)check_printf("config=%s", path);
    struct tccl_conf conf;
    write_conf(path, "[tccl]\nTimeout=300ms\n[policy]\nDefault=auto\n");
    CHECK_INT(plugin_conf_read(2, (char *[]){"Timeout=2s", config}, "n1", &conf, ERR), 0);
    CHECK_INT(conf.timeout_ms, 2000);
    CHECK_INT(conf.policy.mode, TCCL_MODE_AUTO);
    tccl_conf_clear(&conf);
    CHECK_INT(plugin_conf_read(2, (char *[]){config, "Nonsense=1"}, "n1", &conf, ERR), -1);
    CHECK(strstr(check_err.text, "plugstack.conf") && strstr(check_err.text, "Nonsense"));
    write_conf(path, "[policy]\nDefault=maybe\n");
    CHECK_INT(plugin_conf_read(1, (char *[]){config}, "n1", &conf, ERR), -1);
    CHECK(strstr(check_err.text, path) && strstr(check_err.text, "2") &&
          strstr(check_err.text, "maybe"));
    unlink(path);
    CHECK_SAYS(plugin_conf_read(1, (char *[]){config}, "n1", &conf, ERR) == -1, path);
}

SETUP
{
    snprintf(conf_path, sizeof(conf_path), "%s", check_at("tccl.conf"));
}

TEARDOWN
{
    CHECK(claims_free > 0);
}
