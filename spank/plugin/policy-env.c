/* policy-env.c: computes the changes that Environment= and TrafficClass= of a policy make to a
 * step, and what is said of it where the user's environment goes before the policy. */
#include "plugin/plugin.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

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

enum { CLASS_VARIABLES = 2, CLASS_ITEM = 32 };
static const char *const class_variables[CLASS_VARIABLES] = {"NCCL_IB_TC", "NCCL_IB_SL"};

static int class_value(const struct policy_rule *rule, int i)
{
    return i == 0 ? rule->traffic_class.tc : rule->traffic_class.sl;
}

/* Appends the assignment unless its variable is in env. Returns 0, or -1 if out of memory. */
static int choose(char *const *env, const char *item, char **list)
{
    return find(env, item, strcspn(item, "=")) ? 0 : append(list, item, strlen(item));
}

int policy_env_choose(char *const *env, const struct policy_rule *rule, bool network, bool ring,
                      char **list)
{
    cleanup_free char *chosen = NULL;
    for (int i = 0; network && i < CLASS_VARIABLES; i++) {
        char item[CLASS_ITEM];
        size_t length = (size_t)snprintf(item, sizeof(item), "%s=", class_variables[i]);
        /* Environment= may say the same, and then holds. */
        bool said = false;
        for (int k = 0; ring && k < rule->n_environment; k++)
            said = said || strncmp(rule->environment[k], item, length) == 0;
        snprintf(item + length, sizeof(item) - length, "%d", class_value(rule, i));
        if (class_value(rule, i) != TCCL_NOT_SET && !said && choose(env, item, &chosen) != 0)
            return -1;
    }
    for (int i = 0; ring && i < rule->n_environment; i++)
        if (choose(env, rule->environment[i], &chosen) != 0)
            return -1;
    *list = tccl_steal(chosen);
    return 0;
}

/* As NCCL reads them: decimal, 0x68 or 0150. "" if it is no class of a network. */
static void class_text(char *const *env, const struct policy_rule *rule, int i, char text[static 4])
{
    static const long most[CLASS_VARIABLES] = {255, 15};
    const char *own = job_env_get(env, class_variables[i]);
    char *end = NULL;
    long value = own ? strtol(own, &end, 0) : rule ? class_value(rule, i) : TCCL_NOT_SET;
    text[0] = '\0';
    if (value >= 0 && value <= most[i] && (!own || (end > own && *end == '\0')))
        snprintf(text, 4, "%u", (unsigned)value & 255);
}

void policy_env_class(char *const *env, const struct policy_rule *rule,
                      char text[static TCCL_TRAFFIC_CLASS + 1])
{
    char tc[4], sl[4];
    class_text(env, rule, 0, tc);
    class_text(env, rule, 1, sl);
    snprintf(text, TCCL_TRAFFIC_CLASS + 1, "%s%s%s", tc, *sl ? "/" : "", sl);
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
