/* fields.c: members of JSON objects, checked and bounded. */
#include "base/fields.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int tccl_fields_known(const json_t *json, const char *const *names, struct tccl_error *err)
{
    const char *name;
    json_t *value;
    if (!json_is_object(json))
        return tccl_fail(err, "an object was expected");
    json_object_foreach((json_t *)json, name, value)
    {
        const char *const *known = names;
        while (*known && strcmp(*known, name) != 0)
            known++;
        if (!*known)
            return tccl_fail(err, "unknown member \"%.40s\"", name);
    }
    return 0;
}

int tccl_fields_format(const json_t *json, const char *format, int version, struct tccl_error *err)
{
    const char *found = json_string_value(json_object_get(json, "format"));
    const json_t *number = json_object_get(json, "version");
    if (!found || strcmp(found, format) != 0)
        return tccl_fail(err, "the format is \"%.40s\", not \"%s\"", found ? found : "", format);
    if (!json_is_integer(number) || json_integer_value(number) != version)
        return tccl_fail(err, "the version of the format is not %d", version);
    return 0;
}

/* Finds a member. Returns 0, 1 or -1 as the functions of fields.h. */
static int find(const json_t *json, const char *name, int needed, json_t **value,
                struct tccl_error *err)
{
    *value = json_object_get(json, name);
    if (*value && !json_is_null(*value))
        return 0;
    return needed ? tccl_fail(err, "\"%s\" is missing", name) : 1;
}

int tccl_field_text(const json_t *json, const char *name, int needed, char *text, size_t size,
                    struct tccl_error *err)
{
    json_t *value;
    int found = find(json, name, needed, &value, err);
    if (found != 0)
        return found;
    if (!json_is_string(value))
        return tccl_fail(err, "\"%s\" is not a text", name);
    size_t length = json_string_length(value);
    if (length >= size)
        return tccl_fail(err, "\"%s\" has more than %zu characters", name, size - 1);
    if (needed && length == 0)
        return tccl_fail(err, "\"%s\" is empty", name);
    const char *from = json_string_value(value);
    for (size_t i = 0; i < length; i++)
        if (from[i] < ' ' || from[i] > '~')
            return tccl_fail(err, "\"%s\" has characters that are not printable ASCII", name);
    memcpy(text, from, length + 1);
    return 0;
}

int tccl_field_int(const json_t *json, const char *name, int needed, int min, int max, int *value,
                   struct tccl_error *err)
{
    json_t *number;
    int found = find(json, name, needed, &number, err);
    if (found != 0)
        return found;
    if (!json_is_integer(number) || json_integer_value(number) < min ||
        json_integer_value(number) > max)
        return tccl_fail(err, "\"%s\" is not a whole number from %d to %d", name, min, max);
    *value = (int)json_integer_value(number);
    return 0;
}

int tccl_field_number(const json_t *json, const char *name, int needed, double min, double max,
                      double *value, struct tccl_error *err)
{
    json_t *number;
    int found = find(json, name, needed, &number, err);
    if (found != 0)
        return found;
    double read = json_number_value(number);
    if (!json_is_number(number) || !(read >= min && read <= max))
        return tccl_fail(err, "\"%s\" is not a number from %g to %g", name, min, max);
    *value = read;
    return 0;
}

int tccl_field_list(const json_t *json, const char *name, int needed, size_t max, json_t **list,
                    struct tccl_error *err)
{
    json_t *value;
    int found = find(json, name, needed, &value, err);
    if (found != 0)
        return found;
    if (!json_is_array(value) || json_array_size(value) > max)
        return tccl_fail(err, "\"%s\" is not a list of at most %zu", name, max);
    *list = value;
    return 0;
}

int tccl_digits(double value)
{
    char text[32];
    for (int digits = 12; digits < 17; digits++) {
        snprintf(text, sizeof(text), "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            return digits;
    }
    return 17;
}

const char *tccl_text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "";
}

json_int_t tccl_number_of(const json_t *object, const char *name)
{
    return json_integer_value(json_object_get(object, name));
}

double tccl_real_of(const json_t *object, const char *name)
{
    return json_number_value(json_object_get(object, name));
}
