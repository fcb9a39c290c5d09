/* sql.c: SQL about columns that the table of a step's members names. */
#include "records/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/step-fields.h"

/* Writes one field; place: of those written, from 0. */
typedef void write_field(FILE *out, const struct tccl_field *field, int place);

static void write_name(FILE *out, const struct tccl_field *field, int place)
{
    fprintf(out, "%s%s", place ? ", " : "", field->name);
}

static void write_value(FILE *out, const struct tccl_field *field UNUSED, int place)
{
    fprintf(out, "%s?%d", place ? ", " : "", place + 1);
}

static void write_renewed(FILE *out, const struct tccl_field *field, int place)
{
    fprintf(out, "%s%s = excluded.%s", place ? ", " : "", field->name, field->name);
}

/* What was built is that of the highest word; that others began beside it, and slowed it down,
 * stays. */
static void write_built_renewed(FILE *out, const struct tccl_field *field, int place)
{
    const char *name = field->name;
    bool own = strcmp(name, "slowed") == 0 || strcmp(name, "later") == 0;
    char more[64];
    snprintf(more, sizeof(more), "excluded.%s > builds.%s", own ? name : "built_rank",
             own ? name : "built_rank");
    fprintf(out, "%s%s = CASE WHEN %s THEN excluded.%s ELSE builds.%s END", place ? ", " : "", name,
            field->use & TCCL_MEASURED ? TCCL_SQL_MORE : more, name, name);
}

/* With a value of their own, so that one can be added to a store that has records. */
void tccl_sql_column(char *text, size_t size, const struct tccl_field *field)
{
    bool is_text = tccl_field_is_text(field), real = field->type == TCCL_FIELD_REAL;
    snprintf(text, size, "%s %s NOT NULL DEFAULT %s", field->name,
             is_text ? "TEXT"
             : real  ? "REAL"
                     : "INTEGER",
             is_text ? "''" : "0");
}

static void write_column(FILE *out, const struct tccl_field *field, int place)
{
    char text[128];
    tccl_sql_column(text, sizeof(text), field);
    fprintf(out, "%s%s", place ? ", " : "", text);
}

static void write_is_key(FILE *out, const struct tccl_field *field, int place)
{
    fprintf(out, "%s%s = ?%d", place ? " AND " : "", field->name, place + 1);
}

static void write_key_text(FILE *out, const struct tccl_field *field, int place UNUSED)
{
    fprintf(out, "records.%s || '/' || ", field->name);
}

static void write_filter(FILE *out, const struct tccl_field *field, int place UNUSED)
{
    if (field->filter)
        fprintf(out, ", %s", field->name);
}

bool tccl_sql_of_builds(const struct tccl_field *field)
{
    return field->use & TCCL_IN_CONFIRMATION && !(field->use & TCCL_IN_RECORD);
}

enum { ALL = TCCL_IN_RECORD | TCCL_IN_CONFIRMATION };
static const struct mark {
    const char *name;
    unsigned use, none_of;
    write_field *write;
    const char *rest; /* behind the fields */
} marks[] = {
    {"$names", TCCL_IN_RECORD, 0, write_name, ""},
    {"$all", ALL, 0, write_name, ""},
    {"$values", TCCL_IN_RECORD, 0, write_value, ""},
    {"$renewed", ALL, 0, write_renewed, ""},
    {"$columns", ALL, 0, write_column, ""},
    {"$key", TCCL_IN_KEY, 0, write_name, ""},
    {"$is_key", TCCL_IN_KEY, 0, write_is_key, ""},
    {"$step_start", TCCL_IN_KEY, 0, write_key_text, "records.start"},
    {"$built", TCCL_IN_CONFIRMATION, TCCL_IN_RECORD, write_name, ""},
    {"$built_columns", TCCL_IN_CONFIRMATION, TCCL_IN_RECORD, write_column, ""},
    {"$built_values", TCCL_IN_CONFIRMATION, TCCL_IN_RECORD, write_value, ""},
    {"$built_renewed", TCCL_IN_CONFIRMATION, TCCL_IN_RECORD, write_built_renewed, ""},
    {"$filters", TCCL_IN_RECORD, 0, write_filter, ""},
};

/* Writes what the mark at text stands for. Returns what is behind it. */
static const char *expand_mark(FILE *out, const char *text)
{
    size_t length = 1 + strspn(text + 1, "abcdefghijklmnopqrstuvwxyz_");
    int place = 0;
    for (size_t m = 0; m < sizeof(marks) / sizeof(*marks); m++) {
        const struct mark *mark = &marks[m];
        if (strlen(mark->name) != length || strncmp(text, mark->name, length) != 0)
            continue;
        for (int i = 0; i < tccl_n_step_fields; i++)
            if (tccl_step_fields[i].use & mark->use && !(tccl_step_fields[i].use & mark->none_of))
                mark->write(out, &tccl_step_fields[i], place++);
        fputs(mark->rest, out);
    }
    return text + length;
}

char *tccl_sql(const char *text, struct tccl_error *err)
{
    char *sql = NULL;
    size_t size;
    FILE *out = open_memstream(&sql, &size);
    while (out && *text) {
        size_t plain = strcspn(text, "$");
        fwrite(text, 1, plain, out);
        text += plain;
        if (*text)
            text = expand_mark(out, text);
    }
    if (out && fclose(out) == 0)
        return sql;
    free(sql);
    return tccl_fail_null(err, "out of memory");
}
