/* Environment= and TrafficClass= of policies: what is set, what a step inherits and
 * forgets. */
#include "plugin/plugin.h"

#include "check.h"

static void check_chosen(char *const *env, const char *expected)
{
    struct policy_rule rule = {.environment = {"NCCL_A=1", "NCCL_B=two words", "EMPTY="},
                               .n_environment = 3};
    cleanup_free char *list = NULL;
    rule.traffic_class = (struct tccl_traffic_class){TCCL_NOT_SET, TCCL_NOT_SET};
    CHECK_INT(policy_env_choose(env, &rule, true, true, &list), 0);
    CHECK_STR(list ? list : "(none)", expected);
}

/* TrafficClass= with Environment=NCCL_IB_SL=9: what is set with a network and a ring, without a
 * ring; what the record says. */
static void check_class(char *const *env, int tc, int sl, const char *both, const char *network,
                        const char *said)
{
    struct policy_rule rule = {
        .traffic_class = {tc, sl}, .environment = {"NCCL_IB_SL=9"}, .n_environment = 1};
    char text[TCCL_TRAFFIC_CLASS + 1];
    for (int ring = 0; ring < 2; ring++) {
        cleanup_free char *list = NULL;
        CHECK_INT(policy_env_choose(env, &rule, true, ring, &list), 0);
        CHECK_STR(list ? list : "(none)", ring ? both : network);
    }
    cleanup_free char *list = NULL;
    CHECK_INT(policy_env_choose(env, &rule, false, false, &list), 0);
    CHECK(list == NULL);
    policy_env_class(env, &rule, text);
    CHECK_STR(text, said);
}

TEST(classes)
{
    char *own[] = {"NCCL_IB_TC=41", NULL}, *both[] = {"NCCL_IB_SL=2", "NCCL_IB_TC=0", NULL};
    char *odd[] = {"NCCL_IB_TC=1;2", "NCCL_IB_SL=12345", NULL},
         *long_one[] = {"NCCL_IB_TC=1000", NULL};
    char *hex[] = {"NCCL_IB_TC=0x68", "NCCL_IB_SL=017", NULL},
         *none[] = {"NCCL_IB_TC=", "NCCL_IB_SL=16", NULL};
    char text[TCCL_TRAFFIC_CLASS + 1];
    check_class(NULL, 106, 3, "NCCL_IB_TC=106;NCCL_IB_SL=9", "NCCL_IB_TC=106;NCCL_IB_SL=3",
                "106/3");
    check_class(NULL, 255, TCCL_NOT_SET, "NCCL_IB_TC=255;NCCL_IB_SL=9", "NCCL_IB_TC=255", "255");
    check_class(NULL, TCCL_NOT_SET, 0, "NCCL_IB_SL=9", "NCCL_IB_SL=0", "/0");
    check_class(NULL, TCCL_NOT_SET, TCCL_NOT_SET, "NCCL_IB_SL=9", "(none)", "");
    check_class(own, 106, 3, "NCCL_IB_SL=9", "NCCL_IB_SL=3", "41/3");
    check_class(both, 106, 3, "(none)", "(none)", "0/2");
    check_class(odd, 106, 3, "(none)", "(none)", "");
    check_class(long_one, 106, TCCL_NOT_SET, "NCCL_IB_SL=9", "(none)", "");
    check_class(hex, 106, 3, "(none)", "(none)", "104/15"); /* as NCCL reads them */
    check_class(none, 106, 3, "(none)", "(none)", "");
    policy_env_class(both, NULL, text);
    CHECK_STR(text, "0/2");
    policy_env_class(NULL, NULL, text);
    CHECK_STR(text, "");
}

static void check_inherited(char *const *env, const char *expected)
{
    cleanup_free char *names = NULL;
    CHECK_INT(policy_env_inherited(env, &names), 0);
    CHECK_STR(names ? names : "(none)", expected);
}

/* No policy sets more than 2 * TCCL_POLICY_ENVIRONMENT variables. */
TEST(long_list)
{
    cleanup_free char *names = NULL;
    char list[sizeof(POLICY_ENV_LIST) + 8000] = POLICY_ENV_LIST "=A=1";
    char *env[] = {list, "A=1", NULL};
    for (int i = 0; i < 1000; i++)
        strcat(list, ";A=1");
    CHECK_INT(policy_env_inherited(env, &names), 0);
    CHECK_INT(names ? strlen(names) : 0, 2 * 2 * TCCL_POLICY_ENVIRONMENT - 1);
}

TEST(lists)
{
    char list[] = POLICY_ENV_LIST "=NCCL_A=1;NCCL_B=two words;EMPTY=;X=a=b";
    char *none[] = {"NCCL_AA=1", NULL}, *some[] = {"EMPTY=x", "NCCL_A=", NULL};
    char *all[] = {"NCCL_A=user", "NCCL_B=", "EMPTY=", NULL};
    check_chosen(none, "NCCL_A=1;NCCL_B=two words;EMPTY=");
    check_chosen(some, "NCCL_B=two words");
    check_chosen(all, "(none)");
    check_chosen(NULL, "NCCL_A=1;NCCL_B=two words;EMPTY=");
    char *same[] = {list, "NCCL_A=1", "NCCL_B=two words", "EMPTY=", "X=a=b", NULL};
    char *changed[] = {"NCCL_A=11", "NCCL_B=two", "EMPTY=1", "X=a", list, NULL};
    char *odd[] = {POLICY_ENV_LIST "=;;=;A;;B=1;", "A=", "B=1", NULL};
    check_inherited(same, "NCCL_A;NCCL_B;EMPTY;X");
    check_inherited(changed, "(none)");
    check_inherited(none, "(none)");
    check_inherited(NULL, "(none)");
    check_inherited(odd, "B");
}
