/* check-result.h: what one item of tccl-check found out, and how that is shown. */
#ifndef TCCL_CHECK_RESULT_H
#define TCCL_CHECK_RESULT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

enum check_level { CHECK_OK, CHECK_WARN, CHECK_FAIL, CHECK_LEVELS };
enum { CHECK_TEXT = 1200 };

/* Zero-initialise. What counts is the worst level that something was said at: the texts of the
 * others are not shown. */
struct check_result {
    enum check_level level;
    char text[CHECK_LEVELS][CHECK_TEXT];
};

/* Adds a remark, "what is so: what to do", behind those of the same level. Names in it may hold
 * anything: what is not printable becomes '?'. A remark that has no room is cut. */
void check_say(struct check_result *result, enum check_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

const char *check_level_name(enum check_level level); /* "ok" "warn" "fail" */
/* The remarks that count. */
const char *check_text(const struct check_result *result);

/* One line "LEVEL  ITEM  TEXT". */
void check_print(FILE *out, const char *item, const struct check_result *result, bool colour);
/* {"item","level","text"}; NULL only without memory. */
json_t *check_to_json(const char *item, const struct check_result *result);

/* The end of a wait (tccl_now_ms) that normally takes ms at most. If the overall deadline is later
 * than by default, the wait is longer in proportion; it never ends after deadline. */
int64_t check_run_until(int64_t deadline, int ms);

#endif
