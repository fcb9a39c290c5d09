/* fields.h: members of JSON objects, checked and bounded. Errors name the member. */
#pragma once

#include <stddef.h>

#include <jansson.h>

#include "base/error.h"

/* Is it an object with no other members than those of the list (ends with NULL)? Returns 0, or -1
 * with err. */
int tccl_fields_known(const json_t *json, const char *const *names, struct tccl_error *err);

/* "format" and "version" must have these values. Returns 0, or -1 with err. */
int tccl_fields_format(const json_t *json, const char *format, int version, struct tccl_error *err);

/* Each returns 0; 1 if there is no such member, or it is null, and needed is false (the value is
 * then left as it is); -1 with err. */
/* A text of printable ASCII characters that fits into size bytes with its NUL. Not empty, where it
 * is needed. */
int tccl_field_text(const json_t *json, const char *name, int needed, char *text, size_t size,
                    struct tccl_error *err);
/* A whole number from min to max. */
int tccl_field_int(const json_t *json, const char *name, int needed, int min, int max, int *value,
                   struct tccl_error *err);
/* A number from min to max. */
int tccl_field_number(const json_t *json, const char *name, int needed, double min, double max,
                      double *value, struct tccl_error *err);
/* A list of at most max entries; borrowed. */
int tccl_field_list(const json_t *json, const char *name, int needed, size_t max, json_t **list,
                    struct tccl_error *err);

/* The fewest digits, 12 at least, with which a number reads back as the same. */
int tccl_digits(double value);

/* For json_dumps and the like: numbers with 12 digits, "9.8" and not "9.8000000000000007". No
 * bandwidth is known so well. */
#define TCCL_JSON_DIGITS JSON_REAL_PRECISION(12)
/* The same for what only people and their scripts read: "9.801" and not "9.80100059509", which a
 * single-precision number of a chain table becomes. */
#define TCCL_JSON_SHOWN JSON_REAL_PRECISION(6)

/* Members of an object that is known to be sound, such as a stored record: "" and 0 where there is
 * none, or one of another type. Texts are borrowed. */
const char *tccl_text_of(const json_t *object, const char *name);
json_int_t tccl_number_of(const json_t *object, const char *name);
double tccl_real_of(const json_t *object, const char *name); /* of a whole number, too */
