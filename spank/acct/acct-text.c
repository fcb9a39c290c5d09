/* acct-text.c: texts of records that are safe to print, and how wide they are. */
#include "acct/acct-text.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <wchar.h>

#include "base/utf8.h"

/* Reads one UTF-8 character and moves past it. An invalid byte counts as a character. */
static uint32_t next_character(const char **at)
{
    uint32_t code;
    int size = tccl_utf8(*at, &code);
    *at += size ? size : 1;
    return code;
}

static void escape_character(FILE *out, uint32_t c)
{
    if (c == '\\')
        fputs("\\\\", out);
    else if (c == '\n')
        fputs("\\n", out);
    else if (c == '\t')
        fputs("\\t", out);
    else
        fprintf(out, c < 0x100 ? "\\x%02x" : c < 0x10000 ? "\\u%04x" : "\\U%08x", c);
}

char *acct_escape(const char *text, const char *delimiter)
{
    char *escaped = NULL;
    size_t size;
    FILE *out = open_memstream(&escaped, &size);
    if (!out)
        return NULL;
    while (*text) {
        const char *begin = text;
        uint32_t c = next_character(&text);
        bool wrong = c >= 0x80 && text == begin + 1;
        if (wrong || tccl_utf8_unsafe(c) || c == '\\' ||
            (delimiter && c == (unsigned char)*delimiter))
            escape_character(out, c);
        else
            fwrite(begin, 1, (size_t)(text - begin), out);
    }
    if (fclose(out) == 0)
        return escaped;
    free(escaped);
    return NULL;
}

/* Width of a character in terminal columns. */
static int columns_of(uint32_t c)
{
    int width = wcwidth((wchar_t)c);
    return width < 0 ? 1 : width;
}

int acct_columns(const char *text)
{
    int columns = 0;
    while (*text)
        columns += columns_of(next_character(&text));
    return columns;
}

int acct_bytes_within(const char *text, int columns, int *used)
{
    const char *at = text;
    *used = 0;
    while (*at) {
        const char *next = at;
        int width = columns_of(next_character(&next));
        if (*used + width > columns)
            break;
        *used += width;
        at = next;
    }
    return (int)(at - text);
}
