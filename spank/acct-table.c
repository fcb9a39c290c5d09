/* acct-table.c: records as a table, or as text for other programs. */
#include "acct-table.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "cleanup.h"

/* Reads one character of a UTF-8 text and moves behind it. A wrong byte stands for itself. */
static uint32_t next_character(const char **at)
{
    const unsigned char *text = (const unsigned char *)*at;
    int more = text[0] >= 0xf0 ? 3 : text[0] >= 0xe0 ? 2 : text[0] >= 0xc0 ? 1 : 0;
    uint32_t character = more ? text[0] & (0x3fu >> more) : text[0];
    for (int i = 1; i <= more; i++) {
        if ((text[i] & 0xc0) != 0x80) {
            ++*at;
            return text[0];
        }
        character = character << 6 | (text[i] & 0x3fu);
    }
    *at += more + 1;
    return character;
}

/* Could it move the cursor, hide something or turn the direction of writing? */
static bool is_unsafe(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0xad || c == 0x61c || c == 0xfeff ||
           (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
           (c >= 0x2060 && c <= 0x206f) || (c >= 0xe0000 && c <= 0xe007f);
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
        if (wrong || is_unsafe(c) || c == '\\' || (delimiter && c == (unsigned char)*delimiter))
            escape_character(out, c);
        else
            fwrite(begin, 1, (size_t)(text - begin), out);
    }
    if (fclose(out) == 0)
        return escaped;
    free(escaped);
    return NULL;
}

/* Columns that a character takes on the terminal. */
static int columns_of(uint32_t c)
{
    int width = wcwidth((wchar_t)c);
    return width < 0 ? 1 : width;
}

static int columns_in(const char *text)
{
    int columns = 0;
    while (*text)
        columns += columns_of(next_character(&text));
    return columns;
}

/* How many bytes of text fit into columns; *used: the columns they take. */
static int bytes_within(const char *text, int columns, int *used)
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

/* One cell of the aligned style, with a '+' where it is cut. */
static void print_cell(FILE *out, const char *text, int width, bool last)
{
    int columns = abs(width), used = columns_in(text);
    if (used > columns) {
        int bytes = bytes_within(text, columns - 1, &used);
        fprintf(out, "%.*s+%*s", bytes, text, last ? 0 : columns - 1 - used, "");
    } else if (width > 0) {
        fprintf(out, "%*s%s", columns - used, "", text);
    } else {
        fprintf(out, "%s%*s", text, last ? 0 : columns - used, "");
    }
}

static void print_field(FILE *out, const struct acct_layout *layout, int i, const char *text)
{
    bool last = i == layout->n_columns - 1;
    if (layout->style != ACCT_ALIGNED) {
        fputs(text, out);
        fputs(!last                                   ? layout->delimiter
              : layout->style == ACCT_PARSABLE_ENDING ? layout->delimiter
                                                      : "",
              out);
    } else if (last && layout->columns[i].width < 0 && !layout->columns[i].given) {
        fputs(text, out);
    } else {
        print_cell(out, text, layout->columns[i].width, last);
        fputs(last ? "" : " ", out);
    }
    if (last)
        fputc('\n', out);
}

void acct_print_header(FILE *out, const struct acct_layout *layout)
{
    char dashes[1001];
    for (int i = 0; i < layout->n_columns; i++)
        print_field(out, layout, i, layout->columns[i].field->name);
    for (int i = 0; i < layout->n_columns && layout->style == ACCT_ALIGNED; i++) {
        int width = abs(layout->columns[i].width);
        memset(dashes, '-', (size_t)width);
        dashes[width] = '\0';
        print_field(out, layout, i, dashes);
    }
}

int acct_print_row(FILE *out, const struct acct_layout *layout, const json_t *record,
                   const struct acct_clock *clock)
{
    for (int i = 0; i < layout->n_columns; i++) {
        const struct acct_field *field = layout->columns[i].field;
        cleanup_free char *text = field->text(field, record, clock);
        cleanup_free char *escaped =
            text ? acct_escape(text, layout->style == ACCT_ALIGNED ? NULL : layout->delimiter)
                 : NULL;
        if (!escaped)
            return -1;
        print_field(out, layout, i, escaped);
    }
    return 0;
}

static int refuse_field(const char *name, struct tccl_error *err)
{
    char known[400] = "";
    size_t used = 0;
    for (int i = 0; i < ACCT_FIELDS; i++)
        used += (size_t)snprintf(known + used, sizeof known - used, " %s", acct_fields[i].name);
    return tccl_fail(err, "there is no field '%.40s'; there are:%s", name, known);
}

static int add_column(struct acct_layout *layout, const struct acct_field *field, int width,
                      bool given, struct tccl_error *err)
{
    if (layout->n_columns == ACCT_COLUMNS)
        return tccl_fail(err, "more than %d fields", ACCT_COLUMNS);
    layout->columns[layout->n_columns].field = field;
    layout->columns[layout->n_columns].width = width;
    layout->columns[layout->n_columns++].given = given;
    return 0;
}

static int add_all(struct acct_layout *layout, struct tccl_error *err)
{
    for (int i = 0; i < ACCT_FIELDS; i++)
        if (add_column(layout, &acct_fields[i], acct_fields[i].width, false, err) != 0)
            return -1;
    return 0;
}

/* NAME, NAME%WIDTH or NAME%-WIDTH; a width without '-' aligns to the right, as in sacct. */
static int read_column(struct acct_layout *layout, char *entry, struct tccl_error *err)
{
    char *mark = strchr(entry, '%'), *end = NULL;
    long width = 0;
    if (mark) {
        *mark = '\0';
        width = strtol(mark + 1, &end, 10);
        if (!mark[1] || *end || width == 0 || width > 1000 || width < -1000)
            return tccl_fail(err, "'%.40s%%%.40s': give a width from 1 to 1000 or -1 to -1000",
                             entry, mark + 1);
    }
    if (!strcasecmp(entry, "all"))
        return add_all(layout, err);
    const struct acct_field *field = acct_field_find(entry);
    if (!field)
        return refuse_field(entry, err);
    return add_column(layout, field, mark ? (int)width : field->width, mark != NULL, err);
}

int acct_layout_columns(struct acct_layout *layout, const char *text, struct tccl_error *err)
{
    cleanup_free char *copy = strdup(text);
    char *rest = copy;
    if (!copy)
        return tccl_fail(err, "no memory");
    layout->n_columns = 0;
    for (char *entry; (entry = strsep(&rest, ","));)
        if (*entry && read_column(layout, entry, err) != 0)
            return -1;
    return layout->n_columns ? 0 : refuse_field(text, err);
}
