/* lines.c: facts as lines of text. Of libc only, without allocation. */
#include "base/lines.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/append.h"

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_word(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || c == '_' || c == '-';
}

/* Reading */

static const char *line_end(const char *at, const char *end)
{
    return memchr(at, '\n', (size_t)(end - at));
}

static size_t word_length(const char *at, const char *end)
{
    size_t length = 0;
    while (at + length < end && is_word(at[length]))
        length++;
    return length;
}

/* A whole number, all of the text. Returns 0 or -1. */
static int parse_integer(const char *text, size_t length, int64_t *number)
{
    bool negative = length > 0 && *text == '-';
    int64_t read = 0;
    if (length <= (size_t)negative)
        return -1;
    for (size_t i = negative; i < length; i++) {
        if (!is_digit(text[i]) || read > (INT64_MAX - 9) / 10)
            return -1;
        read = read * 10 + (text[i] - '0');
    }
    *number = negative ? -read : read;
    return 0;
}

/* "NAME VERSION". Returns 0 or -1. */
static int read_head(const char *at, const char *end, struct tccl_lines *lines)
{
    size_t length = word_length(at, end);
    int64_t version;
    if (length == 0 || length >= sizeof(lines->name) || at + length == end || at[length] != ' ' ||
        parse_integer(at + length + 1, (size_t)(end - at) - length - 1, &version) != 0 ||
        version < 0 || version > INT32_MAX)
        return -1;
    memcpy(lines->name, at, length);
    lines->name[length] = '\0';
    lines->version = (int)version;
    return 0;
}

/* "KEY VALUE". */
static bool is_fact(const char *at, const char *end)
{
    size_t length = word_length(at, end);
    if (length == 0 || at + length == end || at[length] != ' ')
        return false;
    for (at += length; at < end; at++)
        if ((unsigned char)*at < ' ' || *at == 127)
            return false;
    return true;
}

int tccl_lines_open(const char *text, size_t size, struct tccl_lines *lines, struct tccl_error *err)
{
    static const char last[] = "end\n";
    const char *end = text + size, *line;
    memset(lines, 0, sizeof(*lines));
    if (size > TCCL_LINES_SIZE)
        return tccl_fail(err, "it is longer than %d bytes", TCCL_LINES_SIZE);
    const char *stop = size > 0 ? line_end(text, end) : NULL;
    if (!stop || read_head(text, stop, lines) != 0)
        return tccl_fail(err, "it does not begin with a name and a version");
    lines->facts = stop + 1;
    for (line = lines->facts; (stop = line < end ? line_end(line, end) : NULL); line = stop + 1) {
        if ((size_t)(end - line) == sizeof(last) - 1 && memcmp(line, last, sizeof(last) - 1) == 0) {
            lines->size = (size_t)(line - lines->facts);
            return 0;
        }
        if (!is_fact(line, stop))
            return tccl_fail(err, "a line is not a key with a value: \"%.*s\"",
                             stop - line > 40 ? 40 : (int)(stop - line), line);
    }
    return tccl_fail(err, "it is truncated: its last line is not \"end\"");
}

size_t tccl_lines_length(const char *file, size_t size)
{
    const char *end = file + size, *stop;
    for (const char *line = file; line < end && (stop = line_end(line, end)); line = stop + 1)
        if (stop - line == 3 && memcmp(line, "end", 3) == 0)
            return (size_t)(stop + 1 - file);
    return 0;
}

bool tccl_lines_are(const struct tccl_lines *lines, const char *name, int version)
{
    return strcmp(lines->name, name) == 0 && lines->version == version;
}

/* Finds the next line with the key from *at on, and moves *at behind it. */
static const char *find(const struct tccl_lines *lines, const char *key, const char **at,
                        size_t *length)
{
    const char *end = lines->facts + lines->size;
    size_t size = strlen(key);
    while (*at < end) {
        const char *line = *at, *stop = line_end(line, end);
        *at = stop + 1;
        if ((size_t)(stop - line) > size && memcmp(line, key, size) == 0 && line[size] == ' ') {
            *length = (size_t)(stop - line) - size - 1;
            return line + size + 1;
        }
    }
    return NULL;
}

long tccl_line_next(const struct tccl_lines *lines, const char *key, const char **at, char *text,
                    size_t size)
{
    size_t length;
    if (!*at)
        *at = lines->facts;
    const char *value = find(lines, key, at, &length);
    *text = '\0';
    if (!value || length >= size)
        return -1;
    memcpy(text, value, length);
    text[length] = '\0';
    return (long)length;
}

long tccl_line_text(const struct tccl_lines *lines, const char *key, char *text, size_t size)
{
    const char *at = NULL;
    size_t length;
    long found = tccl_line_next(lines, key, &at, text, size);
    if (found >= 0 && !find(lines, key, &at, &length))
        return found;
    *text = '\0';
    return -1;
}

int tccl_line_integer(const struct tccl_lines *lines, const char *key, int64_t min, int64_t max,
                      int64_t *number)
{
    char text[24];
    long length = tccl_line_text(lines, key, text, sizeof(text));
    if (length < 0 || parse_integer(text, (size_t)length, number) != 0)
        return -1;
    return *number >= min && *number <= max ? 0 : -1;
}

const char *tccl_word_decimal(const char *text, double *number, int *digits)
{
    bool fraction = false;
    double read = 0, scale = 1;
    *digits = 0;
    for (; is_digit(*text) || (*text == '.' && !fraction); text++) {
        if (*text == '.') {
            fraction = true;
            continue;
        }
        read = read * 10 + (*text - '0');
        scale *= fraction ? 10 : 1;
        ++*digits;
    }
    *number = read / scale;
    return text;
}

int tccl_word_number(const char *text, double min, double max, double *number)
{
    double read;
    int digits;
    const char *end = tccl_word_decimal(text, &read, &digits);
    if (*end || !is_digit(text[0]) || !is_digit(end[-1]))
        return -1;
    *number = read;
    return read >= min && read <= max ? 0 : -1;
}

int tccl_line_number(const struct tccl_lines *lines, const char *key, double min, double max,
                     double *number)
{
    char text[40];
    return tccl_line_text(lines, key, text, sizeof(text)) < 1
               ? -1
               : tccl_word_number(text, min, max, number);
}

int tccl_line_bool(const struct tccl_lines *lines, const char *key, bool *truth)
{
    char word[4];
    if (tccl_line_text(lines, key, word, sizeof(word)) < 0)
        return -1;
    *truth = strcmp(word, "yes") == 0;
    return *truth || strcmp(word, "no") == 0 ? 0 : -1;
}

/* Writing */

__attribute__((format(printf, 2, 0))) static void add(struct tccl_line_writer *writer,
                                                      const char *format, va_list list)
{
    size_t room = writer->size - writer->length;
    int n = vsnprintf(writer->text + writer->length, room, format, list);
    if (n < 0 || (size_t)n >= room) {
        writer->full = true;
        return;
    }
    for (char *at = writer->text + writer->length; *at; at++)
        if ((unsigned char)*at < ' ' || *at == 127)
            *at = '?';
    writer->length += (size_t)n;
}

static void put(struct tccl_line_writer *writer, const char *text)
{
    struct tccl_append to = {writer->text, writer->size, writer->length};
    tccl_append(&to, text);
    writer->full |= to.length - writer->length < strlen(text);
    writer->length = to.length;
}

static void end_line(struct tccl_line_writer *writer)
{
    writer->full = writer->full || writer->size - writer->length < 2;
    if (writer->full)
        return;
    writer->text[writer->length++] = '\n';
    writer->text[writer->length] = '\0';
}

void tccl_lines_begin(struct tccl_line_writer *writer, char *text, size_t size, const char *name,
                      int version)
{
    *writer = (struct tccl_line_writer){.text = text, .size = size};
    tccl_line_put(writer, name, "%d", version);
}

void tccl_line_put(struct tccl_line_writer *writer, const char *key, const char *format, ...)
{
    va_list list;
    if (writer->full)
        return;
    put(writer, key);
    put(writer, " ");
    va_start(list, format);
    add(writer, format, list);
    va_end(list);
    end_line(writer);
}

void tccl_line_put_number(struct tccl_line_writer *writer, const char *key, double number)
{
    long long parts = number > 0 && number <= 1e12 ? (long long)(number * 1e4 + 0.5) : 0;
    tccl_line_put(writer, key, "%lld.%04lld", parts / 10000, parts % 10000);
}

void tccl_line_put_bool(struct tccl_line_writer *writer, const char *key, bool truth)
{
    tccl_line_put(writer, key, "%s", truth ? "yes" : "no");
}

int tccl_lines_end(struct tccl_line_writer *writer)
{
    if (!writer->full)
        put(writer, "end");
    end_line(writer);
    return writer->full || writer->length > TCCL_LINES_SIZE ? -1 : 0;
}
