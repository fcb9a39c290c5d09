/* Which mode a step has, and what its user is told. */
#include "policy.h"

#include "check.h"
#include "notice.h"
#include "plugin-conf.h"

static void test_precedence(void)
{
    struct tccl_policy policy = {.mode = TCCL_MODE_AUTO};
    struct policy_choice choice;

    choice = policy_choose(&policy, POLICY_NOT_GIVEN, POLICY_NOT_GIVEN, "p");
    CHECK_INT(choice.mode, TCCL_MODE_AUTO);
    CHECK(!choice.asked);
    choice = policy_choose(&policy, POLICY_NOT_GIVEN, TCCL_MODE_OFF, "p");
    CHECK_INT(choice.mode, TCCL_MODE_OFF);
    CHECK(choice.asked);
    choice = policy_choose(&policy, TCCL_MODE_REQUIRE, TCCL_MODE_OFF, "p");
    CHECK_INT(choice.mode, TCCL_MODE_REQUIRE);
    CHECK(choice.asked);
    choice = policy_choose(NULL, POLICY_NOT_GIVEN, POLICY_NOT_GIVEN, "p");
    CHECK_INT(choice.mode, TCCL_MODE_OFF);
    choice = policy_choose(NULL, TCCL_MODE_ON, POLICY_NOT_GIVEN, NULL);
    CHECK_INT(choice.mode, TCCL_MODE_ON);
}

static int mode_in(const char *partitions, const char *partition)
{
    struct tccl_policy policy = {.mode = TCCL_MODE_ON, .partitions = (char *)partitions};
    return (int)policy_choose(&policy, POLICY_NOT_GIVEN, POLICY_NOT_GIVEN, partition).mode;
}

static void test_partitions(void)
{
    CHECK_INT(mode_in(NULL, NULL), TCCL_MODE_ON);
    CHECK_INT(mode_in("gpu,train", "train"), TCCL_MODE_ON);
    CHECK_INT(mode_in("gpu, train", "train"), TCCL_MODE_ON);
    CHECK_INT(mode_in("gpu,train", "tra"), TCCL_MODE_OFF);
    CHECK_INT(mode_in("gpu,train", "trains"), TCCL_MODE_OFF);
    CHECK_INT(mode_in("gpu", ""), TCCL_MODE_OFF);
    CHECK_INT(mode_in("", ""), TCCL_MODE_OFF);
    CHECK_INT(mode_in("gpu", NULL), TCCL_MODE_OFF);
}

static void test_minimums(void)
{
    struct tccl_policy policy = {.min_nodes = 1, .min_gpus = 8};
    CHECK(!policy_wants(&policy, TCCL_MODE_OFF, 4, 32));
    CHECK(!policy_wants(&policy, TCCL_MODE_AUTO, 1, 7));
    CHECK(policy_wants(&policy, TCCL_MODE_AUTO, 1, 8));
    CHECK(policy_wants(&policy, TCCL_MODE_AUTO, 2, 1)); /* other nodes may have the rest */
    CHECK(policy_wants(&policy, TCCL_MODE_ON, 1, 2));
    CHECK(policy_wants(&policy, TCCL_MODE_REQUIRE, 1, 2));
    policy.min_nodes = 3;
    CHECK(!policy_wants(&policy, TCCL_MODE_AUTO, 2, 16));
    CHECK(policy_wants(&policy, TCCL_MODE_AUTO, 3, 16));
}

static void test_notice_applied(void)
{
    char line[NOTICE_SIZE];
    struct tccl_plan plan = {.state = TCCL_STATE_APPLIED, .gbps = 11.2, .baseline_gbps = 6.1};
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
    CHECK(!notice_of_plan(TCCL_MODE_AUTO, &plan, 1, line));
}

static void test_notice_fallback(void)
{
    char line[NOTICE_SIZE];
    struct tccl_plan plan = {.state = TCCL_STATE_FALLBACK};
    strcpy(plan.reason, "n3: no\nprofile\033[31m");
    CHECK(notice_of_plan(TCCL_MODE_ON, &plan, 2, line));
    CHECK_STR(line, "tccl: no ring: n3: no profile [31m (NCCL's own choice is used)");
    CHECK(notice_of_plan(TCCL_MODE_REQUIRE, &plan, 2, line));
    CHECK_STR(line,
              "tccl: no ring: n3: no profile [31m (the step ends, because a ring is required)");
    CHECK(!notice_of_plan(TCCL_MODE_AUTO, &plan, 2, line));
    CHECK(!notice_of_plan(TCCL_MODE_OFF, &plan, 2, line));
    plan.state = TCCL_STATE_NOTHING;
    strcpy(plan.reason, "NCCL's own ring is as fast (9.1 GB/s)");
    CHECK(notice_of_plan(TCCL_MODE_REQUIRE, &plan, 2, line));
    CHECK_STR(line, "tccl: no ring: NCCL's own ring is as fast (9.1 GB/s)");
    CHECK(!notice_of_plan(TCCL_MODE_AUTO, &plan, 2, line));
    plan.reason[0] = '\0';
    CHECK(!notice_of_plan(TCCL_MODE_ON, &plan, 1, line));
}

static void write_conf(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    CHECK(file != NULL);
    fputs(text, file);
    fclose(file);
}

static void test_arguments(void)
{
    char path[] = "/tmp/tccl-test-conf-XXXXXX", config[64];
    struct tccl_conf conf;
    struct tccl_error err = {""};
    close(mkstemp(path));
    snprintf(config, sizeof(config), "config=%s", path);

    write_conf(path, "[tccl]\nTimeout=300ms\n[policy]\nDefault=auto\n");
    CHECK_INT(plugin_conf_read(2, (char *[]){"Timeout=2s", config}, "n1", &conf, &err), 0);
    CHECK_INT(conf.timeout_ms, 2000);
    CHECK_INT(conf.policy.mode, TCCL_MODE_AUTO);
    tccl_conf_clear(&conf);

    CHECK_INT(plugin_conf_read(2, (char *[]){config, "Nonsense=1"}, "n1", &conf, &err), -1);
    CHECK(strstr(err.text, "plugstack.conf") && strstr(err.text, "Nonsense"));
    err.text[0] = '\0';
    write_conf(path, "[policy]\nDefault=maybe\n");
    CHECK_INT(plugin_conf_read(1, (char *[]){config}, "n1", &conf, &err), -1);
    CHECK(strstr(err.text, path) && strstr(err.text, "2") && strstr(err.text, "maybe"));
    err.text[0] = '\0';
    unlink(path);
    CHECK_INT(plugin_conf_read(1, (char *[]){config}, "n1", &conf, &err), -1);
    CHECK(strstr(err.text, path) != NULL);
}

int main(void)
{
    test_precedence();
    test_partitions();
    test_minimums();
    test_notice_applied();
    test_notice_fallback();
    test_arguments();
    return check_result();
}
