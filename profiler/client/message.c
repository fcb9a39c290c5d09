/* message.c: parsing messages, and their members with bounds. */
#include "client/message.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/cleanup.h"
#include "client/hostlist.h"

json_t *tccl_message_parse(const char *data, size_t size, struct tccl_error *err)
{
    json_error_t where;
    cleanup_json json_t *message = json_loadb(data, size, JSON_REJECT_DUPLICATES, &where);
    json_int_t version = 0;
    const char *type;
    if (!message)
        return tccl_fail_null(err, "not a message: byte %d: %s", where.position, where.text);
    if (!json_is_object(message))
        return tccl_fail_null(err, "not a message: an object is expected");
    if (tccl_get_int(message, "v", 0, INT32_MAX, &version, err) != 0)
        return NULL;
    if (version != TCCL_WIRE_VERSION) {
        tccl_fail_as(err, TCCL_REASON_VERSION,
                     "message of version %d, this is version %d: update the older side",
                     (int)version, TCCL_WIRE_VERSION);
        return NULL;
    }
    if (tccl_get_text(message, "type", 32, &type, err) != 0)
        return NULL;
    return tccl_steal(message);
}

char *tccl_message_text(const json_t *message)
{
    return json_dumps(message, JSON_COMPACT);
}

const char *tccl_message_type(const json_t *message)
{
    return json_string_value(json_object_get(message, "type"));
}

json_t *tccl_message_new(const char *type)
{
    return json_pack("{s:i,s:s}", "v", TCCL_WIRE_VERSION, "type", type);
}

enum tccl_reason tccl_message_reason(const json_t *message)
{
    const char *word = json_string_value(json_object_get(message, "reason_class"));
    return word ? tccl_reason_named(word) : TCCL_REASON_OTHER;
}

int tccl_message_put_reason(json_t *message, enum tccl_reason reason, const char *node)
{
    return json_object_set_new(message, "reason_class", json_string(tccl_reason_words[reason])) |
           tccl_put_text(message, "reason_node", node, TCCL_HOST_NAME);
}

int tccl_get_int(const json_t *object, const char *name, json_int_t min, json_int_t max,
                 json_int_t *value, struct tccl_error *err)
{
    const json_t *member = json_object_get(object, name);
    if (!json_is_integer(member))
        return tccl_fail(err, "%s: a whole number is expected", name);
    *value = json_integer_value(member);
    if (*value < min || *value > max)
        return tccl_fail(err, "%s: %lld is not within %lld to %lld", name, (long long)*value,
                         (long long)min, (long long)max);
    return 0;
}

int tccl_get_number(const json_t *object, const char *name, double *value, struct tccl_error *err)
{
    const json_t *member = json_object_get(object, name);
    *value = json_number_value(member);
    if (!json_is_number(member) || !isfinite(*value) || *value < 0)
        return tccl_fail(err, "%s: a number of at least 0 is expected", name);
    return 0;
}

int tccl_get_text(const json_t *object, const char *name, size_t max, const char **text,
                  struct tccl_error *err)
{
    if (!json_is_string(json_object_get(object, name)))
        return tccl_fail(err, "%s: a text is expected", name);
    return tccl_get_optional_text(object, name, max, text, err);
}

int tccl_get_optional_text(const json_t *object, const char *name, size_t max, const char **text,
                           struct tccl_error *err)
{
    const json_t *member = json_object_get(object, name);
    *text = NULL;
    if (!member || json_is_null(member))
        return 0;
    if (!json_is_string(member))
        return tccl_fail(err, "%s: a text is expected", name);
    if (json_string_length(member) > max)
        return tccl_fail(err, "%s: longer than %zu bytes", name, max);
    *text = json_string_value(member);
    return 0;
}

int tccl_put_text(json_t *object, const char *name, const char *text, size_t max)
{
    if (!text)
        return 0;
    size_t length = strnlen(text, max);
    while (length > 0 && (text[length] & 0xc0) == 0x80)
        length--; /* no half character at the cut */
    cleanup_free char *copy = strndup(text, length);
    if (!copy)
        return -1;
    json_t *value = json_string(copy);
    if (!value) {
        for (char *c = copy; *c; c++)
            if (*c & 0x80)
                *c = '?';
        value = json_string(copy);
    }
    return json_object_set_new(object, name, value);
}

/* ---- envelope ---- */

int tccl_nonce_make(char nonce[static TCCL_NONCE], struct tccl_error *err)
{
    unsigned char bytes[(TCCL_NONCE - 1) / 2];
    if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
        return tccl_fail(err, "getrandom: %s", strerror(errno));
    for (size_t i = 0; i < sizeof(bytes); i++)
        snprintf(nonce + 2 * i, 3, "%02x", bytes[i]);
    return 0;
}

int tccl_envelope_put(json_t *message, struct tccl_envelope *envelope, struct tccl_error *err)
{
    if (tccl_nonce_make(envelope->nonce, err) != 0)
        return -1;
    if (json_object_set_new(message, "to", json_string(envelope->to)) != 0 ||
        json_object_set_new(message, "from", json_string(envelope->from)) != 0 ||
        json_object_set_new(message, "epoch", json_integer(envelope->epoch)) != 0 ||
        json_object_set_new(message, "nonce", json_string(envelope->nonce)) != 0)
        return tccl_fail(err, "out of memory");
    return 0;
}

int tccl_envelope_get(const json_t *message, struct tccl_envelope *envelope, struct tccl_error *err)
{
    const char *nonce;
    if (tccl_get_text(message, "to", TCCL_HOST_NAME, &envelope->to, err) != 0 ||
        tccl_get_text(message, "from", TCCL_HOST_NAME, &envelope->from, err) != 0 ||
        tccl_get_int(message, "epoch", 0, INT64_MAX, &envelope->epoch, err) != 0 ||
        tccl_get_text(message, "nonce", TCCL_NONCE - 1, &nonce, err) != 0)
        return -1;
    if (strlen(nonce) != TCCL_NONCE - 1)
        return tccl_fail(err, "nonce: %d hexadecimal digits are expected", TCCL_NONCE - 1);
    memcpy(envelope->nonce, nonce, TCCL_NONCE);
    return 0;
}
