/* Lines on standard error, for journald or a log file. Texts from outside may be in them, so
 * control characters are replaced, those that hide text, and what is no UTF-8: journald shows no
 * line with such bytes. */
#include "tccld/main/daemon.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/utf8.h"

enum { LINE = 2048 };

static void write_line(const char *fmt, va_list args, unsigned left_out)
{
    char text[LINE], more[64] = "";
    vsnprintf(text, sizeof(text), fmt, args);
    tccl_utf8_clean(text);
    if (left_out)
        snprintf(more, sizeof(more), " (and %u more such lines left out)", left_out);
    fprintf(stderr, "tccl: %s%s\n", text, more);
}

void log_line(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    write_line(fmt, args, 0);
    va_end(args);
}

void log_limited(struct log_limit *limit, const char *fmt, ...)
{
    int64_t now = tccl_now_ms();
    if (now < limit->next_ms) {
        limit->left_out++;
        return;
    }
    va_list args;
    va_start(args, fmt);
    write_line(fmt, args, limit->left_out);
    va_end(args);
    limit->next_ms = now + LOG_LIMIT_MS;
    limit->left_out = 0;
}
