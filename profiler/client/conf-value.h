/* conf-value.h: keys of tccl.conf, and the setters that keys of several sections share. */
#ifndef TCCL_CONF_VALUE_H
#define TCCL_CONF_VALUE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct tccl_conf;

/* A key, how its value is set, and what holds without it, as it would be written. field: offset
 * bytes into the struct of the key's table. A setter returns 0, or -1 with err, which says what is
 * allowed; then the field is as it was. */
struct tccl_key {
    const char *name, *normal; /* normal: NULL: nothing is set */
    int (*set)(const struct tccl_key *key, void *field, const struct tccl_conf *conf,
               const char *value, struct tccl_error *err);
    size_t offset;
    int min, max; /* of numbers (durations: ms); of paths: bytes */
};

/* The key of that name (case-insensitive) in a table; NULL: none. */
const struct tccl_key *tccl_key_find(const struct tccl_key *keys, int count, const char *name);

/* Fails with "KEY=VALUE: give ALLOWED". Returns -1. */
int tccl_value_refuse(const struct tccl_key *key, const char *value, const char *allowed,
                      struct tccl_error *err);

/* A whole number without sign, of at most 9 digits; moves *text behind it. -1: there is none. */
long tccl_value_number(const char **text);

/* A name that stands alone in a list: letters, digits and . _ - @ + $ \, no '-' in front. */
bool tccl_value_word(const char *text, size_t length);

/* Setters. Fields: char * (names with commas between them, allocated; NULL for an empty value),
 * int, int (milliseconds), int (an enum tccl_mode), int (yes: 1, no: 0). conf may be NULL. */
int tccl_set_list(const struct tccl_key *key, void *field, const struct tccl_conf *conf,
                  const char *value, struct tccl_error *err);
int tccl_set_count(const struct tccl_key *key, void *field, const struct tccl_conf *conf,
                   const char *value, struct tccl_error *err);
int tccl_set_duration(const struct tccl_key *key, void *field, const struct tccl_conf *conf,
                      const char *value, struct tccl_error *err);
int tccl_set_mode(const struct tccl_key *key, void *field, const struct tccl_conf *conf,
                  const char *value, struct tccl_error *err);
int tccl_set_yes(const struct tccl_key *key, void *field, const struct tccl_conf *conf,
                 const char *value, struct tccl_error *err);

#endif
