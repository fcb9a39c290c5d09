/* acct-fields.h: the fields that tcclacct shows of a record. */
#pragma once

#include <time.h>

#include <jansson.h>

/* How times are shown. */
struct acct_clock {
    time_t now;
    const char *format; /* acct_time_print */
};

struct acct_field {
    const char *name;
    int width;          /* characters; negative: to the left */
    int type;           /* how it is shown */
    const char *source; /* the member of the record */
};

/* All fields, in the order of --long. */
int acct_field_count(void);
const struct acct_field *acct_field_at(int i); /* NULL past the last */

/* Its text, allocated; "" if it has no value; NULL if out of memory. */
char *acct_field_text(const struct acct_field *field, const json_t *record,
                      const struct acct_clock *clock);

/* As printf: the text, allocated; NULL if out of memory. */
__attribute__((format(printf, 1, 2))) char *acct_field_print(const char *format, ...);

/* The field of that name (case-insensitive), else the first that begins with it, else NULL. */
const struct acct_field *acct_field_find(const char *name);
