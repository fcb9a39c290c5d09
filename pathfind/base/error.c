/* error.c: the error text that library functions fill in: one line, and nothing that moves a
 * terminal's cursor, whatever a name or argument in it holds. */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

static void write_error(struct tccl_error *err, enum tccl_reason reason, const char *fmt,
                        va_list args)
{
    if (!err || err->text[0])
        return;
    err->reason = reason;
    vsnprintf(err->text, sizeof(err->text), fmt, args);
    tccl_utf8_clean(err->text);
}

int tccl_fail(struct tccl_error *err, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    write_error(err, TCCL_REASON_NONE, fmt, args);
    va_end(args);
    return -1;
}

int tccl_fail_as(struct tccl_error *err, enum tccl_reason reason, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    write_error(err, reason, fmt, args);
    va_end(args);
    return -1;
}

int tccl_fail_with(struct tccl_error *err, const struct tccl_error *why)
{
    return tccl_fail_as(err, why->reason, "%s", why->text);
}

int tccl_fail_because(struct tccl_error *err, enum tccl_reason reason)
{
    if (err && err->reason == TCCL_REASON_NONE)
        err->reason = reason;
    return -1;
}

int tccl_fail_in(struct tccl_error *err, const char *fmt, ...)
{
    if (!err)
        return -1;
    char old[sizeof(err->text)];
    memcpy(old, err->text, sizeof(old));
    old[sizeof(old) - 1] = '\0';
    va_list args;
    va_start(args, fmt);
    int length = vsnprintf(err->text, sizeof(err->text), fmt, args);
    va_end(args);
    tccl_utf8_clean(err->text);
    if (length < 0 || (size_t)length >= sizeof(err->text))
        return -1;
    size_t left = sizeof(err->text) - (size_t)length;
    snprintf(err->text + length, left, ": %.*s", (int)left, old);
    return -1;
}
