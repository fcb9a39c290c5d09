/* conf-value.h: keys of tccl.conf, and the setters that keys of several sections share. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct tccl_conf;
struct tccl_key;

/* Sets a field to a value; conf: for paths, may be NULL. Returns 0; 1: it is not what the key's
 * give says; -1 with err. Then the field is as it was. */
#define TCCL_SETTER(name)                                                                          \
    int name(const struct tccl_key *key UNUSED, void *field, const struct tccl_conf *conf UNUSED,  \
             const char *value, struct tccl_error *err UNUSED)
typedef TCCL_SETTER(tccl_setter);

/* A key, what holds without it, as it would be written, how its value is set, and what may be
 * given. field: offset bytes into the struct of the key's table. */
struct tccl_key {
    const char *name, *normal; /* normal: NULL: nothing is set */
    tccl_setter *set;
    int min, max;     /* of numbers (durations: ms); of paths: bytes */
    const char *give; /* for "KEY=VALUE: give GIVE"; NULL: the setter says it */
    size_t offset;
};
/* KEY lines of the tables in conf.h and policy-conf.h (type, member, dimension of the member, then
 * name to give of struct tccl_key), as members of a struct, and as rows of its table. */
#define TCCL_KEY_MEMBER(type, member, dimension, ...) type member dimension;
#define TCCL_KEY_ROW(type, member, dimension, ...) {__VA_ARGS__, FIELD(member)},

/* The key of that name (case-insensitive) in a table; NULL: none. */
const struct tccl_key *tccl_key_find(const struct tccl_key *keys, int count, const char *name);
/* Sets the key's field of the struct at base. Returns 0, or -1 with err, which says what is
 * allowed. */
int tccl_key_set(const struct tccl_key *key, void *base, const struct tccl_conf *conf,
                 const char *value, struct tccl_error *err);

/* A whole number without sign, of at most 9 digits; moves *text behind it. -1: there is none. */
long tccl_value_number(const char **text);

/* A name that stands alone in a list: letters, digits and . _ - @ + $ \, no '-' in front. */
bool tccl_value_word(const char *text, size_t length);

/* Setters. Fields: char * (names with commas between them, allocated; NULL for an empty value),
 * int, int (milliseconds), int (an enum tccl_mode), int (yes: 1, no: 0). */
tccl_setter tccl_set_list, tccl_set_count, tccl_set_duration, tccl_set_mode, tccl_set_yes;
