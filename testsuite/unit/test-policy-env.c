/* Environment= of policies: what is set, what a step inherits and forgets. */
#include "plugin/policy-env.h"

#include "base/cleanup.h"
#include "check.h"

static void check_chosen(char *const *env, const char *expected)
{
    struct policy_rule rule = {.environment = {"NCCL_A=1", "NCCL_B=two words", "EMPTY="},
                               .n_environment = 3};
    cleanup_free char *list = NULL;
    CHECK_INT(policy_env_choose(env, &rule, &list), 0);
    CHECK_STR(list ? list : "(none)", expected);
}

static void check_inherited(char *const *env, const char *expected)
{
    cleanup_free char *names = NULL;
    CHECK_INT(policy_env_inherited(env, &names), 0);
    CHECK_STR(names ? names : "(none)", expected);
}

/* No policy sets more than 2 * TCCL_POLICY_ENVIRONMENT variables. */
static void check_long_list(void)
{
    cleanup_free char *names = NULL;
    char list[sizeof(POLICY_ENV_LIST) + 8000] = POLICY_ENV_LIST "=A=1";
    char *env[] = {list, "A=1", NULL};
    for (int i = 0; i < 1000; i++)
        strcat(list, ";A=1");
    CHECK_INT(policy_env_inherited(env, &names), 0);
    CHECK_INT(names ? strlen(names) : 0, 2 * 2 * TCCL_POLICY_ENVIRONMENT - 1);
}

int main(void)
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
    check_long_list();
    return check_result();
}
