/* json.h: reads JSON in a text in memory, without allocation. A text is checked as a whole first;
 * values are then parts of it. */
#ifndef SHIM_JSON_H
#define SHIM_JSON_H

#include "base/base.h"

enum {
    SHIM_JSON_SIZE = 1 << 20, /* longest text */
    SHIM_JSON_DEPTH = 8,      /* objects and lists in each other */
    SHIM_JSON_MEMBERS = 64    /* of one object */
};

/* A value: borrows the text. NULL, 0: none, which every function below takes for a wrong value. */
struct shim_json {
    const char *text;
    size_t size;
};

/* Checks a text: one value with nothing but white space around, within the bounds above, no member
 * twice. Returns 0, or -1 with why. */
int shim_json_parse(const char *text, size_t size, struct shim_json *value, struct shim_why *why);

/* A member of an object; none if it has none of that name, or is no object. Names that are written
 * with escapes are not found. */
struct shim_json shim_json_member(struct shim_json object, const char *name);

bool shim_json_is_object(struct shim_json value);
bool shim_json_is_list(struct shim_json value);
/* The first item of a list (previous: none), or the one after previous; none at its end. */
struct shim_json shim_json_next(struct shim_json list, struct shim_json previous);

/* Copies a string. Returns its length, or -1: it is no string, has a zero byte, or is longer than
 * size - 1 bytes (text is empty then). */
long shim_json_text(struct shim_json value, char *text, size_t size);
/* Each returns 0, or -1: it is something else, or out of bounds. Numbers are plain digits, without
 * exponent. */
int shim_json_integer(struct shim_json value, int64_t min, int64_t max, int64_t *number);
int shim_json_number(struct shim_json value, double min, double max, double *number);
int shim_json_bool(struct shim_json value, bool *truth);

#endif
