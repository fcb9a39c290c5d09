/* term.c: texts for a terminal. */
#include "draw/term.h"

#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

#include "base/cleanup.h"
#include "base/utf8.h"

/* Reads one UTF-8 character and moves past it. An invalid byte counts as a character. */
static uint32_t next_character(const char **at)
{
    uint32_t code;
    int size = tccl_utf8(*at, &code);
    *at += size ? size : 1;
    return code;
}

char *tccl_term_escape(const char *text, const char *delimiter)
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
        if (c == '\\')
            fputs("\\\\", out);
        else if (c == '\n' || c == '\t')
            fputs(c == '\n' ? "\\n" : "\\t", out);
        else if (wrong || tccl_utf8_unsafe(c) || (delimiter && c == (unsigned char)*delimiter))
            fprintf(out, c < 0x100 ? "\\x%02x" : c < 0x10000 ? "\\u%04x" : "\\U%08x", c);
        else
            fwrite(begin, 1, (size_t)(text - begin), out);
    }
    if (fclose(out) == 0)
        return escaped;
    free(escaped);
    return NULL;
}

char *tccl_term_cut(const char *text, int columns, const char *dots)
{
    char *escaped = tccl_term_escape(text, NULL), *cut;
    int used;
    if (!escaped || tccl_term_width(escaped) <= columns)
        return escaped;
    int room = columns - tccl_term_width(dots);
    int bytes = tccl_term_fit(escaped, room > 0 ? room : 0, &used);
    if (asprintf(&cut, "%.*s%s", bytes, escaped, dots) < 0)
        cut = NULL;
    free(escaped);
    return cut;
}

static int width_of(uint32_t c)
{
    int width = wcwidth((wchar_t)c);
    return width < 0 ? 1 : width;
}

int tccl_term_width(const char *text)
{
    int columns = 0;
    while (*text)
        columns += width_of(next_character(&text));
    return columns;
}

int tccl_term_fit(const char *text, int columns, int *used)
{
    const char *at = text;
    *used = 0;
    while (*at) {
        const char *next = at;
        int width = width_of(next_character(&next));
        if (*used + width > columns)
            break;
        *used += width;
        at = next;
    }
    return (int)(at - text);
}

int tccl_term_columns(void)
{
    struct winsize size;
    const char *text = getenv("COLUMNS");
    int columns = text ? atoi(text) : 0;
    if (columns > 0 && columns < 10000)
        return columns;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

bool tccl_term_colour(void)
{
    const char *term = getenv("TERM"), *none = getenv("NO_COLOR");
    return isatty(STDOUT_FILENO) && term && *term && strcmp(term, "dumb") != 0 && !(none && *none);
}

bool tccl_term_utf8(void)
{
    static const char *const variables[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < sizeof(variables) / sizeof(*variables); i++) {
        const char *value = getenv(variables[i]);
        if (value && *value)
            return strcasestr(value, "UTF-8") || strcasestr(value, "UTF8");
    }
    return false;
}

void tccl_pen_put(struct tccl_pen *pen, const char *text)
{
    pen->used += tccl_term_width(text);
    for (; *text; text++)
        if (pen->utf8 || (unsigned char)*text < 0x80)
            fputc(*text, pen->out);
        else if (((unsigned char)*text & 0xc0) == 0xc0)
            fputc('?', pen->out);
}

void tccl_pen_print(struct tccl_pen *pen, const char *format, ...)
{
    char text[256];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    tccl_pen_put(pen, text);
}

void tccl_pen_colour(struct tccl_pen *pen, const char *code)
{
    if (pen->colour)
        fprintf(pen->out, "\033[%sm", code);
}

void tccl_pen_end(struct tccl_pen *pen)
{
    fputc('\n', pen->out);
    pen->used = 0;
}

static void wrap(struct tccl_pen *pen, const char *left, const char *indent)
{
    tccl_pen_end(pen);
    tccl_pen_put(pen, left);
    tccl_pen_put(pen, indent);
}

void tccl_pen_words(struct tccl_pen *pen, const char *text, const char *left, const char *indent)
{
    int begin = pen->used;
    while (*text) {
        size_t length = strcspn(text, " ");
        cleanup_free char *word = strndup(text, length);
        if (!word)
            return;
        if (pen->used > begin && pen->used + 1 + tccl_term_width(word) > pen->columns)
            wrap(pen, left, indent);
        else if (pen->used > begin)
            tccl_pen_put(pen, " ");
        const char *rest = word;
        while (tccl_term_width(rest) > pen->columns - pen->used) {
            int used, bytes = tccl_term_fit(rest, pen->columns - pen->used, &used);
            cleanup_free char *part = strndup(rest, bytes ? (size_t)bytes : strlen(rest));
            tccl_pen_put(pen, part ? part : "");
            rest += bytes ? (size_t)bytes : strlen(rest);
            wrap(pen, left, indent);
        }
        tccl_pen_put(pen, rest);
        text += length + (text[length] == ' ');
    }
}

void tccl_pen_cut(struct tccl_pen *pen, const char *text, int columns)
{
    cleanup_free char *cut = tccl_term_cut(text, columns, pen->utf8 ? "…" : "...");
    tccl_pen_put(pen, cut ? cut : "");
}

void tccl_pen_bar(struct tccl_pen *pen, double part, int columns)
{
    static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    int steps = pen->utf8 ? 8 : 1; /* of a block */
    int length = (int)(fmax(0, fmin(1, part)) * columns * steps + 0.5);
    if (part > 0 && length == 0)
        length = 1;
    for (int i = 0; i < length / steps; i++)
        tccl_pen_put(pen, pen->utf8 ? "█" : "#");
    tccl_pen_put(pen, eighths[length % steps]);
}
