/* Lines on standard error, for journald or a log file. Texts from outside may be in them, so
 * control characters are replaced, and what is no UTF-8: journald shows no line with such bytes. */
#include "tccld/main/log.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"

enum { LINE = 2048 };

/* Bytes of the printable character at text; 0: there is none. */
static int character(const char *text)
{
    const unsigned char *c = (const unsigned char *)text;
    if (*c < 0x80)
        return !iscntrl(*c);
    int size = *c >= 0xf0 ? 4 : *c >= 0xe0 ? 3 : 2;
    uint32_t code = *c & (0x7fU >> size);
    for (int i = 1; i < size; i++) {
        if ((c[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (c[i] & 0x3f);
    }
    static const uint32_t least[] = {0, 0, 0xa0, 0x800, 0x10000};
    bool bad = *c < 0xc2 || *c > 0xf4 || code < least[size] || code > 0x10ffff ||
               (code >= 0xd800 && code <= 0xdfff);
    return bad ? 0 : size;
}

static void write_line(const char *fmt, va_list args, unsigned left_out)
{
    char text[LINE], more[64] = "";
    vsnprintf(text, sizeof(text), fmt, args);
    for (char *c = text; *c;) {
        int size = character(c);
        if (!size)
            *c = '?';
        c += size ? size : 1;
    }
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
