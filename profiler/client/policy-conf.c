/* policy-conf.c: the keys of [policy] and [policy NAME]. */
#include "client/conf.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "client/hostlist.h"

enum {
    LIST_MAX = 4096,
    ITEM_MAX = 255,
    VARIABLE_MAX = 64,
    NODES_MAX = 65536,
    GPUS_MAX = 1048576,
    SERVICE_LEVEL_MAX = 15
};

/* Appends to a list. Takes ownership of text. */
static int append(char **field, char *text, const struct tccl_key *key, struct tccl_error *err)
{
    cleanup_free char *piece = text, *whole = NULL;
    if (!text || (*field && asprintf(&whole, "%s,%s", *field, text) < 0))
        return tccl_fail(err, "out of memory for %s", key->name);
    if (strlen(whole ? whole : piece) > LIST_MAX)
        return tccl_fail(err, "%s: a list has at most %d bytes", key->name, LIST_MAX);
    free(*field);
    *field = whole ? tccl_steal(whole) : tccl_steal(piece);
    return 0;
}

/* A shell pattern without blanks or quotes at its ends, with its brackets closed. */
static bool valid_pattern(const char *text, size_t length)
{
    int open = 0;
    if (length == 0 || length > ITEM_MAX || text[0] == ' ' || text[length - 1] == ' ')
        return false;
    if (strchr("\"'", text[0]) || strchr("\"'", text[length - 1]))
        return false;
    for (size_t i = 0; i < length; i++) {
        if (iscntrl((unsigned char)text[i]) || (text[i] == '[' && open))
            return false;
        open = text[i] == '[' ? 1 : text[i] == ']' ? 0 : open;
    }
    return !open;
}

/* min 1: blanks may stand inside the items. */
static TCCL_SETTER(set_patterns)
{
    size_t length;
    const char *at = value;
    do {
        length = strcspn(at, ",");
        if (!valid_pattern(at, length) || (!key->min && memchr(at, ' ', length)))
            return 1;
        at += length;
    } while (*at++);
    return append(field, strdup(value), key, err);
}

static TCCL_SETTER(set_gpu_types)
{
    char *text = NULL;
    if (strpbrk(value, "*?[]"))
        return tccl_fail(err, "%s=%.80s: give parts of GPU names, such as a100: no patterns",
                         key->name, value);
    int rc = set_patterns(key, &text, conf, value, err);
    if (rc != 0)
        return rc;
    for (char *at = text; *at; at++)
        *at = *at == ' ' ? '_' : (char)tolower((unsigned char)*at);
    return append(field, text, key, err);
}

static TCCL_SETTER(set_node_list)
{
    size_t count;
    if (tccl_hosts_count(value, NODES_MAX, &count, err) != 0)
        return tccl_fail_in(err, "%s", key->name);
    if (count == 0)
        return 1;
    return append(field, strdup(value), key, err);
}

/* "2", "2-8", "4-" */
static TCCL_SETTER(set_range)
{
    const char *rest = value;
    long min = tccl_value_number(&rest), max = min;
    if (*rest == '-') {
        rest++;
        max = *rest ? tccl_value_number(&rest) : INT_MAX;
    }
    if (*rest || min < key->min || max < min || (max != INT_MAX && max > key->max))
        return tccl_fail(err,
                         "%s=%.80s: give a number, or a range such as 2-8 or 4-, from %d to %d",
                         key->name, value, key->min, key->max);
    *(struct tccl_range *)field = (struct tccl_range){(int)min, (int)max};
    return 0;
}

/* "1.1x" with the unit "x", in thousandths; -1: it is not that. */
static long read_thousandths(const char *text, const char *unit)
{
    long whole = tccl_value_number(&text), part = 0;
    if (whole > 1000)
        return -1;
    if (*text == '.') {
        int scale = 1000;
        size_t digits = strspn(++text, "0123456789");
        if (digits < 1 || digits > 3)
            return -1;
        for (; digits > 0; digits--)
            part += (*text++ - '0') * (scale /= 10);
    }
    return whole < 0 || strcmp(text, unit) != 0 ? -1 : whole * 1000 + part;
}

static int set_thousandths(const struct tccl_key *key, void *field, const char *value,
                           const char *unit)
{
    long number = read_thousandths(value, unit);
    if (number < key->min || number > key->max)
        return 1;
    *(int *)field = (int)number;
    return 0;
}

static TCCL_SETTER(set_gain)
{
    return set_thousandths(key, field, value, "x");
}

static TCCL_SETTER(set_trial)
{
    return set_thousandths(key, field, value, "%");
}

/* A number from 0 to max at *text; TCCL_NOT_SET where there is none. Returns 0, or -1. */
static int read_class(const char **text, int max, int *number)
{
    if (!isdigit((unsigned char)**text)) {
        *number = TCCL_NOT_SET;
        return 0;
    }
    long value = tccl_value_number(text);
    *number = (int)value;
    return value >= 0 && value <= max ? 0 : -1;
}

/* "106", "106/3", "/3", or "" for none */
static TCCL_SETTER(set_traffic_class)
{
    struct tccl_traffic_class class = {TCCL_NOT_SET, TCCL_NOT_SET};
    const char *rest = value;
    bool right = read_class(&rest, key->max, &class.tc) == 0;
    if (*rest == '/') {
        rest++;
        right = right && read_class(&rest, SERVICE_LEVEL_MAX, &class.sl) == 0 &&
                class.sl != TCCL_NOT_SET;
    }
    if (!right || *rest)
        return 1;
    *(struct tccl_traffic_class *)field = class;
    return 0;
}

int tccl_policy_variable(const char *assignment)
{
    return (int)strcspn(assignment, "=");
}

/* Why a policy must not set this variable; NULL: it may. */
static const char *refuse_variable(const char *text, size_t length)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
    static const char *const ours[] = {"LD_PRELOAD", "ASAN_OPTIONS", "TCCL"};
    static const char *const starts[] = {"TCCL_", "SLURM_"};
    if (length == 0 || length > VARIABLE_MAX || !memchr(letters, text[0], sizeof(letters) - 1))
        return "give NAME=value";
    for (size_t i = 0; i < length; i++)
        if (!memchr(letters, text[i], sizeof(letters) - 1) && !isdigit((unsigned char)text[i]))
            return "give NAME=value";
    for (size_t i = 0; i < sizeof(ours) / sizeof(*ours); i++)
        if (strlen(ours[i]) == length && !memcmp(ours[i], text, length))
            return "a policy can't set this variable";
    for (size_t i = 0; i < sizeof(starts) / sizeof(*starts); i++)
        if (!strncmp(text, starts[i], strlen(starts[i])))
            return "a policy can't set TCCL_ and SLURM_ variables";
    return NULL;
}

static int add_variable(struct tccl_policy *policy, const char *value, struct tccl_error *err)
{
    int length = tccl_policy_variable(value), i = 0;
    const char *why =
        value[length] == '=' ? refuse_variable(value, (size_t)length) : "give NAME=value";
    for (const char *at = value; !why && *at; at++)
        if (iscntrl((unsigned char)*at) || *at == ';')
            why = "its value has a ';' or a control character";
    if (why)
        return tccl_fail(err, "Environment=%.80s: %s", value, why);
    while (i < policy->n_environment && strncmp(policy->environment[i], value, (size_t)length + 1))
        i++;
    if (i == TCCL_POLICY_ENVIRONMENT)
        return tccl_fail(err, "Environment: a policy sets at most %d variables",
                         TCCL_POLICY_ENVIRONMENT);
    char **all = policy->environment
                     ? policy->environment
                     : calloc(TCCL_POLICY_ENVIRONMENT, sizeof(*policy->environment));
    char *copy = all ? strdup(value) : NULL;
    policy->environment = all;
    if (!copy)
        return tccl_fail(err, "out of memory for Environment");
    free(all[i]);
    all[i] = copy;
    policy->n_environment += i == policy->n_environment;
    return 0;
}

/* The field is the policy itself. */
static TCCL_SETTER(set_environment)
{
    return *value ? add_variable(field, value, err) : 0;
}

#define FIELD(name) offsetof(struct tccl_policy, name)
#define GAIN                                                                                       \
    "how many times as fast as NCCL's own choice, from 1x to 100x, such as 1.1x for 10 % faster"
#define SHARE "a share of the steps, from 0% to 50%, such as 5% or 0.5%"
#define CLASS                                                                                      \
    "a traffic class from 0 to 255, a service level from 0 to 15 behind a '/', or both, such as "  \
    "106 or 106/3"
#define PATTERNS                                                                                   \
    "names or shell patterns (*, ?, [a-z]) with commas between them, no spaces or quotes around "  \
    "them"

/* First those that [policy] has too. */
static const struct tccl_key keys[] = {
    TCCL_POLICY_SETTINGS(TCCL_KEY_ROW){"Environment", NULL, set_environment, 0, 0, NULL, 0},
    TCCL_POLICY_CONDITIONS(TCCL_KEY_ROW)};
#define ONE(...) +1
enum {
    KEYS = sizeof(keys) / sizeof(*keys),
    UNNAMED_KEYS = 0 TCCL_POLICY_SETTINGS(ONE) + 2, /* Environment, Partitions */
};

const char *tccl_policy_key(bool named, int i)
{
    return i < (named ? KEYS : UNNAMED_KEYS) ? keys[i].name : NULL;
}

int tccl_policy_set(struct tccl_policy *policy, const char *name, const char *value,
                    struct tccl_error *err)
{
    bool named = policy->name[0];
    const struct tccl_key *key = tccl_key_find(keys, named ? KEYS : UNNAMED_KEYS, name);
    if (!key)
        return 1;
    if (!named && key->set == set_patterns) {
        /* [policy] has one list, and there the last value holds, also an empty one. */
        char **field = &policy->partitions;
        char *before = *field;
        *field = NULL;
        int rc = *value ? tccl_key_set(key, policy, NULL, value, err) : 0;
        free(rc == 0 ? before : NULL);
        *field = rc == 0 ? *field : before;
        return rc;
    }
    return tccl_key_set(key, policy, NULL, value, err);
}

bool tccl_policy_name_valid(const char *name)
{
    size_t length = strlen(name);
    return length >= 1 && length <= TCCL_POLICY_NAME &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") ==
               length;
}

struct tccl_policy tccl_policy_new(const char *name)
{
    struct tccl_policy policy = {.never = false};
    for (int i = 0; i < TCCL_SETTINGS; i++)
        policy.settings[i] = TCCL_NOT_SET;
    for (int i = 0; i < KEYS && !*name; i++)
        if (keys[i].normal)
            tccl_key_set(&keys[i], &policy, NULL, keys[i].normal, NULL);
    snprintf(policy.name, sizeof(policy.name), "%s", name);
    return policy;
}

void tccl_policy_clear(struct tccl_policy *policy)
{
    for (int i = 0; i < KEYS; i++) /* the lists */
        if (keys[i].set == set_patterns || keys[i].set == set_node_list ||
            keys[i].set == set_gpu_types)
            free(*(char **)((char *)policy + keys[i].offset));
    for (int i = 0; i < policy->n_environment; i++)
        free(policy->environment[i]);
    free(policy->environment);
    *policy = (struct tccl_policy){.name = ""};
}
