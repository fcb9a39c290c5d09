/* policy-env.c: computes the changes that Environment= of a policy makes to a step. */
#include "plugin/policy-env.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "plugin/job-env.h"

/* The value in env of the variable of an assignment, or NULL. */
static const char *find(char *const *env, const char *assignment, size_t name)
{
    cleanup_free char *variable = strndup(assignment, name);
    return variable ? job_env_get(env, variable) : NULL;
}

/* Appends an item to a list. Returns 0, or -1 if out of memory. */
static int append(char **list, const char *item, size_t length)
{
    char *whole;
    if (asprintf(&whole, "%s%s%.*s", *list ? *list : "", *list ? ";" : "", (int)length, item) < 0)
        return -1;
    free(*list);
    *list = whole;
    return 0;
}

int policy_env_choose(char *const *env, const struct policy_rule *rule, char **list)
{
    cleanup_free char *chosen = NULL;
    for (int i = 0; i < rule->n_environment; i++) {
        const char *item = rule->environment[i];
        if (!find(env, item, strcspn(item, "=")) && append(&chosen, item, strlen(item)) != 0)
            return -1;
    }
    *list = tccl_steal(chosen);
    return 0;
}

int policy_env_inherited(char *const *env, char **names)
{
    cleanup_free char *found = NULL;
    const char *item = job_env_get(env, POLICY_ENV_LIST);
    size_t length;
    /* Bounded, because the list may have been written by the user. */
    for (int i = 0; item && *item && i < 2 * TCCL_POLICY_ENVIRONMENT; i++) {
        length = strcspn(item, ";");
        size_t name = strcspn(item, "=;");
        const char *value = name < length ? find(env, item, name) : NULL;
        if (value && strlen(value) == length - name - 1 &&
            memcmp(value, item + name + 1, length - name - 1) == 0 &&
            append(&found, item, name) != 0)
            return -1;
        item += length + (item[length] == ';');
    }
    *names = tccl_steal(found);
    return 0;
}
