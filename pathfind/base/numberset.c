/* numberset.c: small sets of numbers as a bit mask and as text such as "0-3,6". */
#include "base/numberset.h"

#include <ctype.h>
#include <stdio.h>

/* Reads one number below limit and moves *text behind it. Returns it, or -1. */
static int read_number(const char **text, int limit)
{
    int number = 0;
    const char *at = *text;
    if (!isdigit((unsigned char)*at))
        return -1;
    for (; isdigit((unsigned char)*at); at++) {
        number = number * 10 + (*at - '0');
        if (number >= limit)
            return -1;
    }
    *text = at;
    return number;
}

int tccl_numberset_parse(const char *text, int limit, uint32_t *mask, struct tccl_error *err)
{
    const char *at = text;
    uint32_t found = 0;
    for (;;) {
        int column = (int)(at - text) + 1;
        int first = read_number(&at, limit), last = first;
        if (first >= 0 && *at == '-') {
            at++;
            last = read_number(&at, limit);
        }
        if (first < 0 || last < first)
            return tccl_fail(err, "\"%.80s\": column %d: no number or range below %d", text, column,
                             limit);
        for (int i = first; i <= last; i++) {
            if (found & UINT32_C(1) << i)
                return tccl_fail(err, "\"%.80s\": %d is listed twice", text, i);
            found |= UINT32_C(1) << i;
        }
        if (*at == '\0')
            break;
        if (*at++ != ',')
            return tccl_fail(err, "\"%.80s\": column %d: a comma was expected", text,
                             (int)(at - text));
    }
    *mask = found;
    return 0;
}

int tccl_numberset_format(uint32_t mask, char *text, size_t size)
{
    size_t length = 0;
    if (size == 0)
        return -1;
    text[0] = '\0';
    for (int first = 0; first < 32; first++) {
        if (!(mask & UINT32_C(1) << first))
            continue;
        int last = first;
        while (last < 31 && mask & UINT32_C(1) << (last + 1))
            last++;
        const char *comma = length ? "," : "";
        int more = last == first
                       ? snprintf(text + length, size - length, "%s%d", comma, first)
                       : snprintf(text + length, size - length, "%s%d-%d", comma, first, last);
        if (more < 0 || (size_t)more >= size - length)
            return -1;
        length += (size_t)more;
        first = last;
    }
    return (int)length;
}
