/* log.h: tccld's lines on standard error, "tccl: what, where, what now". */
#pragma once

#include <stdint.h>

/* Writes one line. Control characters in it become '?'. */
void log_line(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* For lines that a stranger can cause: at most one in LOG_LIMIT_MS from each place; the next line
 * says how many were left out. */
enum { LOG_LIMIT_MS = 10000 };
struct log_limit {
    int64_t next_ms;
    unsigned left_out;
};
void log_limited(struct log_limit *limit, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
