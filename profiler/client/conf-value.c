/* conf-value.c: parses and checks values of tccl.conf. */
#include "client/conf.h"

#include <stdlib.h>
#include <string.h>

enum {
    LIST_MAX = 4096, /* bytes of a list */
    USER_MAX = 64,
};

const char *const tccl_mode_names[] = {"off", "auto", "on", "require", NULL};

int tccl_mode_parse(const char *text, struct tccl_error *err)
{
    for (int i = 0; i < 4; i++)
        if (!strcasecmp(text, tccl_mode_names[i]))
            return i;
    return tccl_fail(err, "'%.40s' is not a mode: give off, auto, on or require", text);
}

const char *tccl_mode_name(enum tccl_mode mode)
{
    return tccl_mode_names[mode];
}

const struct tccl_key *tccl_key_find(const struct tccl_key *keys, int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (!strcasecmp(name, keys[i].name))
            return &keys[i];
    return NULL;
}

int tccl_key_set(const struct tccl_key *key, void *base, const struct tccl_conf *conf,
                 const char *value, struct tccl_error *err)
{
    int rc = key->set(key, (char *)base + key->offset, conf, value, err);
    return rc <= 0 ? rc : tccl_fail(err, "%s=%.80s: give %s", key->name, value, key->give);
}

bool tccl_value_word(const char *text, size_t length)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789._-@+$\\";
    return length > 0 && length <= USER_MAX && strspn(text, allowed) >= length && text[0] != '-';
}

TCCL_SETTER(tccl_set_list)
{
    for (const char *at = value; *value; at++) {
        size_t length = strcspn(at, ",");
        if (!tccl_value_word(at, length) || strlen(value) > LIST_MAX)
            return 1;
        at += length;
        if (!*at)
            break;
    }
    char *copy = *value ? strdup(value) : NULL;
    if (*value && !copy)
        return tccl_fail(err, "out of memory for %s", key->name);
    free(*(char **)field);
    *(char **)field = copy;
    return 0;
}

long tccl_value_number(const char **text)
{
    size_t length = strspn(*text, "0123456789");
    if (length == 0 || length > 9)
        return -1;
    long number = strtol(*text, NULL, 10);
    *text += length;
    return number;
}

TCCL_SETTER(tccl_set_count)
{
    const char *rest = value;
    long number = tccl_value_number(&rest);
    if (*rest || number < key->min || number > key->max)
        return tccl_fail(err, "%s=%.80s: give a whole number from %d to %d", key->name, value,
                         key->min, key->max);
    *(int *)field = (int)number;
    return 0;
}

TCCL_SETTER(tccl_set_duration)
{
    const char *unit = value;
    long long number = tccl_value_number(&unit);
    int factor = !strcmp(unit, "ms")    ? 1
                 : !strcmp(unit, "s")   ? 1000
                 : !strcmp(unit, "min") ? 60000
                                        : 0;
    if (number < 0 || !factor || number * factor < key->min || number * factor > key->max)
        return tccl_fail(err, "%s=%.80s: give a number with ms, s or min, from %dms to %ds",
                         key->name, value, key->min, key->max / 1000);
    *(int *)field = (int)(number * factor);
    return 0;
}

TCCL_SETTER(tccl_set_mode)
{
    int mode = tccl_mode_parse(value, NULL);
    if (mode < 0)
        return 1;
    *(int *)field = mode;
    return 0;
}

TCCL_SETTER(tccl_set_yes)
{
    bool yes = !strcasecmp(value, "yes");
    if (!yes && strcasecmp(value, "no") != 0)
        return 1;
    *(int *)field = yes;
    return 0;
}
