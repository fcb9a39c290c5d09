/* append.h: texts put together word by word: a JOIN makes hundreds, and formats cost ten times as
 * much. Of libc only: the runtime shim has this too. */
#pragma once

#include <stddef.h>

/* A text in size bytes, at least 1, of which its NUL takes one. What has no room is cut. */
struct tccl_append {
    char *text;
    size_t size, length;
};

static inline void tccl_append(struct tccl_append *to, const char *text)
{
    while (*text && to->length + 1 < to->size)
        to->text[to->length++] = *text++;
    to->text[to->length] = '\0';
}

/* With so many digits at least, to the base 10 or 16. */
static inline void tccl_append_number(struct tccl_append *to, unsigned long number, int digits,
                                      unsigned base)
{
    char text[24];
    int at = sizeof(text) - 1;
    text[at] = '\0';
    for (; digits > 0 || number > 0; digits--, number /= base)
        text[--at] = "0123456789abcdef"[number % base];
    tccl_append(to, text + at);
}
