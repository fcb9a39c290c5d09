/* sql.c: SQL about columns that the table of a step's members names. */
#include "records/sql.h"

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

static void write_value(FILE *out, const struct tccl_field *field, int place)
{
    (void)field;
    fprintf(out, "%s?%d", place ? ", " : "", place + 1);
}

static void write_renewed(FILE *out, const struct tccl_field *field, int place)
{
    fprintf(out, "%s%s = excluded.%s", place ? ", " : "", field->name, field->name);
}

/* With a value of their own, so that one can be added to a store that has records. */
void tccl_sql_column(FILE *out, const struct tccl_field *field)
{
    bool text = tccl_field_is_text(field), real = field->type == TCCL_FIELD_REAL;
    fprintf(out, "%s %s NOT NULL DEFAULT %s", field->name,
            text   ? "TEXT"
            : real ? "REAL"
                   : "INTEGER",
            text ? "''" : "0");
}

static void write_column(FILE *out, const struct tccl_field *field, int place)
{
    fputs(place ? ", " : "", out);
    tccl_sql_column(out, field);
}

static void write_is_key(FILE *out, const struct tccl_field *field, int place)
{
    fprintf(out, "%s%s = ?%d", place ? " AND " : "", field->name, place + 1);
}

static void write_key_text(FILE *out, const struct tccl_field *field, int place)
{
    (void)place;
    fprintf(out, "records.%s || '/' || ", field->name);
}

static void write_filter(FILE *out, const struct tccl_field *field, int place)
{
    (void)place;
    if (field->filter)
        fprintf(out, ", %s", field->name);
}

static const struct mark {
    const char *name;
    unsigned use;
    write_field *write;
    const char *rest; /* behind the fields */
} marks[] = {
    {"$names", TCCL_IN_RECORD, write_name, ""},
    {"$all", TCCL_IN_RECORD | TCCL_IN_CONFIRMATION, write_name, ""},
    {"$values", TCCL_IN_RECORD, write_value, ""},
    {"$renewed", TCCL_IN_RECORD, write_renewed, ""},
    {"$columns", TCCL_IN_RECORD, write_column, ""},
    {"$key", TCCL_IN_KEY, write_name, ""},
    {"$is_key", TCCL_IN_KEY, write_is_key, ""},
    {"$step_start", TCCL_IN_KEY, write_key_text, "records.start"},
    {"$filters", TCCL_IN_RECORD, write_filter, ""},
};

static const char facts[] =
    "tccl_facts(uid, state, reason, nodes, n_nodes, gpus, gbps, ratio, solve_us,"
    " coalesce((SELECT built FROM builds WHERE step_start = $step_start), ''),"
    " coalesce((SELECT built_reason FROM builds WHERE step_start = $step_start), ''),"
    " alone_gbps, placed_gbps, baseline_gbps, neighbours, step, reason_class)";

static void expand(FILE *out, const char *text);

/* Writes what the mark at text stands for. Returns what is behind it. */
static const char *expand_mark(FILE *out, const char *text)
{
    size_t length = 1 + strspn(text + 1, "abcdefghijklmnopqrstuvwxyz_");
    int place = 0;
    if (length == strlen("$facts") && strncmp(text, "$facts", length) == 0)
        expand(out, facts);
    for (size_t m = 0; m < sizeof(marks) / sizeof(*marks); m++) {
        if (strlen(marks[m].name) != length || strncmp(text, marks[m].name, length) != 0)
            continue;
        for (int i = 0; i < tccl_n_step_fields; i++)
            if (tccl_step_fields[i].use & marks[m].use)
                marks[m].write(out, &tccl_step_fields[i], place++);
        fputs(marks[m].rest, out);
    }
    return text + length;
}

static void expand(FILE *out, const char *text)
{
    while (*text) {
        size_t plain = strcspn(text, "$");
        fwrite(text, 1, plain, out);
        text += plain;
        if (*text)
            text = expand_mark(out, text);
    }
}

char *tccl_sql(const char *text, struct tccl_error *err)
{
    char *sql = NULL;
    size_t size;
    FILE *out = open_memstream(&sql, &size);
    if (out)
        expand(out, text);
    if (out && fclose(out) == 0)
        return sql;
    free(sql);
    tccl_fail(err, "out of memory");
    return NULL;
}
