/* acct-table.c: records as a table or in parsable form. */
#include "acct/acct.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

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
        /* One cell of the aligned style, ending in '+' if cut. */
        int columns = abs(layout->columns[i].width), used = tccl_term_width(text);
        if (used > columns) {
            int bytes = tccl_term_fit(text, columns - 1, &used);
            fprintf(out, "%.*s+%*s", bytes, text, last ? 0 : columns - 1 - used, "");
        } else if (layout->columns[i].width > 0) {
            fprintf(out, "%*s%s", columns - used, "", text);
        } else {
            fprintf(out, "%s%*s", text, last ? 0 : columns - used, "");
        }
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

/* Escaped; in parsable output with nothing at its beginning that a spreadsheet would take for a
 * formula: a number is none. */
static char *make_cell(const char *text, const struct acct_layout *layout)
{
    bool parsable = layout->style != ACCT_ALIGNED;
    char *rest = tccl_term_escape(text, parsable ? layout->delimiter : NULL), *cell = NULL, *end;
    if (!rest || !parsable || !*rest || !strchr("=+-@", *rest) ||
        (strtod(rest, &end), end != rest && !*end))
        return rest;
    if (asprintf(&cell, "\\x%02x%s", *rest, rest + 1) < 0)
        cell = NULL;
    free(rest);
    return cell;
}

int acct_print_row(FILE *out, const struct acct_layout *layout, const json_t *record,
                   const struct acct_clock *clock)
{
    for (int i = 0; i < layout->n_columns; i++) {
        const struct acct_field *field = layout->columns[i].field;
        cleanup_free char *text = acct_field_text(field, record, clock);
        cleanup_free char *cell = text ? make_cell(text, layout) : NULL;
        if (!cell)
            return -1;
        print_field(out, layout, i, cell);
    }
    return 0;
}

static int refuse_field(const char *name, struct tccl_error *err)
{
    char known[400] = "";
    size_t used = 0;
    for (int i = 0; i < acct_field_count() && used < sizeof(known); i++)
        used += (size_t)snprintf(known + used, sizeof(known) - used, " %s", acct_field_at(i)->name);
    return tccl_fail(err, "unknown field '%.40s'; known:%s", name, known);
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
    bool all = !strcasecmp(entry, "all");
    for (int i = 0; all && i < acct_field_count(); i++)
        if (add_column(layout, acct_field_at(i), acct_field_at(i)->width, false, err) != 0)
            return -1;
    if (all)
        return 0;
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
        return tccl_fail(err, "out of memory");
    layout->n_columns = 0;
    for (char *entry; (entry = strsep(&rest, ", \t"));)
        if (*entry && read_column(layout, entry, err) != 0)
            return -1;
    return layout->n_columns ? 0 : refuse_field(text, err);
}
