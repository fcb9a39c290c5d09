/* acct-fields.c: the fields that tcclacct shows of a record. Most are members of it, as the table
 * of a step's members has them (client/step-fields.h). */
#include "acct/acct-fields.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "acct/acct-filter.h"
#include "acct/acct-time.h"
#include "base/fields.h"
#include "client/step-fields.h"

static char *print(const char *format, ...) __attribute__((format(printf, 1, 2)));

static char *print(const char *format, ...)
{
    char *text;
    va_list list;
    va_start(list, format);
    int length = vasprintf(&text, format, list);
    va_end(list);
    return length < 0 ? NULL : text;
}

static char *show_text(const struct acct_field *field, const json_t *record,
                       const struct acct_clock *clock)
{
    (void)clock;
    const char *text = json_string_value(json_object_get(record, field->source));
    return strdup(text ? text : "");
}

static char *show_number(const struct acct_field *field, const json_t *record,
                         const struct acct_clock *clock)
{
    (void)clock;
    return print("%" JSON_INTEGER_FORMAT, tccl_number_of(record, field->source));
}

/* Bandwidths and ratios: 0 is unknown. */
static char *show_real(const struct acct_field *field, const json_t *record,
                       const struct acct_clock *clock)
{
    (void)clock;
    double value = json_number_value(json_object_get(record, field->source));
    return value > 0 ? print("%.2f", value) : strdup("");
}

/* "12.3"; of a whole job, which has no step, "12". */
static char *print_step(const json_t *record, const char *job)
{
    json_int_t step = tccl_number_of(record, "step");
    const char *name = acct_step_name(step);
    if (!json_object_get(record, "step"))
        return strdup(job);
    return name ? print("%s.%s", job, name) : print("%s.%" JSON_INTEGER_FORMAT, job, step);
}

static char *show_job(const struct acct_field *field, const json_t *record,
                      const struct acct_clock *clock)
{
    (void)field;
    (void)clock;
    json_int_t het = tccl_number_of(record, "het_job");
    json_int_t array = tccl_number_of(record, "array_job_id");
    char job[64];
    if (array && !het)
        snprintf(job, sizeof(job), "%" JSON_INTEGER_FORMAT "_%" JSON_INTEGER_FORMAT, array,
                 tccl_number_of(record, "array_task_id"));
    else if (het)
        snprintf(job, sizeof(job), "%" JSON_INTEGER_FORMAT "+%" JSON_INTEGER_FORMAT, het,
                 tccl_number_of(record, "het_offset"));
    else
        snprintf(job, sizeof(job), "%" JSON_INTEGER_FORMAT, tccl_number_of(record, "job"));
    return print_step(record, job);
}

/* The job's own id, also for array tasks and het components. */
static char *show_raw_job(const struct acct_field *field, const json_t *record,
                          const struct acct_clock *clock)
{
    (void)field;
    (void)clock;
    char job[32];
    snprintf(job, sizeof(job), "%" JSON_INTEGER_FORMAT, tccl_number_of(record, "job"));
    return print_step(record, job);
}

/* Number of steps of a whole job; 1 for a single step. */
static char *show_steps(const struct acct_field *field, const json_t *record,
                        const struct acct_clock *clock)
{
    return json_object_get(record, field->source) ? show_number(field, record, clock) : strdup("1");
}

/* The uid where the user's name is unknown. */
static char *show_user(const struct acct_field *field, const json_t *record,
                       const struct acct_clock *clock)
{
    const char *name = json_string_value(json_object_get(record, "user"));
    return name && *name ? show_text(field, record, clock)
                         : print("%" JSON_INTEGER_FORMAT, tccl_number_of(record, "uid"));
}

/* 0 is unknown: the step was off, or fell back before all nodes had joined. */
static char *show_count(const struct acct_field *field, const json_t *record,
                        const struct acct_clock *clock)
{
    return tccl_number_of(record, field->source) ? show_number(field, record, clock) : strdup("");
}

static char *show_solve_time(const struct acct_field *field, const json_t *record,
                             const struct acct_clock *clock)
{
    (void)clock;
    double us = (double)tccl_number_of(record, field->source);
    return us <= 0 ? strdup("") : us < 1e6 ? print("%.2fms", us / 1e3) : print("%.2fs", us / 1e6);
}

static char *show_time(const struct acct_field *field, const json_t *record,
                       const struct acct_clock *clock)
{
    char text[128];
    if (!json_object_get(record, field->source))
        return strdup("");
    acct_time_print((time_t)tccl_number_of(record, field->source), clock->now, clock->format, text,
                    sizeof(text));
    return strdup(text);
}

/* Derived fields, before and after the members of the record. */
static const struct acct_field first = {"JobID", -12, show_job, NULL};
static const struct acct_field last[] = {
    {"JobIDRaw", -12, show_raw_job, NULL},
    {"Steps", 5, show_steps, "steps"},
};

/* Members of the key that are shown among the others. */
static const struct {
    const char *column, *before;
} moved[] = {{"Cluster", "NNodes"}, {"Restarts", "Reporter"}, {"User", "UID"}};

static struct {
    struct acct_field list[TCCL_MOST_FIELDS + 4];
    int count;
} all;

static void add_field(const struct tccl_field *field)
{
    static char *(*const by_type[])(const struct acct_field *, const json_t *,
                                    const struct acct_clock *) = {
        [TCCL_FIELD_TEXT] = show_text,  [TCCL_FIELD_WORD] = show_text,
        [TCCL_FIELD_NODES] = show_text, [TCCL_FIELD_LONG] = show_text,
        [TCCL_FIELD_INT] = show_number, [TCCL_FIELD_COUNT] = show_count,
        [TCCL_FIELD_TIME] = show_time,  [TCCL_FIELD_MICROSECONDS] = show_solve_time,
        [TCCL_FIELD_REAL] = show_real,
    };
    bool user = strcmp(field->name, "user") == 0;
    all.list[all.count++] = (struct acct_field){
        field->column, field->width, user ? show_user : by_type[field->type], field->name};
}

static const struct tccl_field *find_column(const char *name)
{
    const struct tccl_field *field = tccl_step_fields;
    while (!field->column || strcmp(field->column, name) != 0)
        field++;
    return field;
}

static void add_columns(void)
{
    for (int i = 0; i < tccl_n_step_fields; i++) {
        const struct tccl_field *field = &tccl_step_fields[i];
        bool elsewhere = !field->column;
        for (size_t m = 0; m < sizeof(moved) / sizeof(*moved) && !elsewhere; m++) {
            elsewhere = strcmp(field->column, moved[m].column) == 0;
            if (strcmp(field->column, moved[m].before) == 0)
                add_field(find_column(moved[m].column));
        }
        if (!elsewhere)
            add_field(field);
    }
}

int acct_field_count(void)
{
    if (all.count)
        return all.count;
    all.list[all.count++] = first;
    add_columns();
    for (size_t i = 0; i < sizeof(last) / sizeof(*last); i++)
        all.list[all.count++] = last[i];
    return all.count;
}

const struct acct_field *acct_field_at(int i)
{
    return i < acct_field_count() ? &all.list[i] : NULL;
}

const struct acct_field *acct_field_find(const char *name)
{
    const struct acct_field *field;
    for (int i = 0; (field = acct_field_at(i)); i++)
        if (!strcasecmp(name, field->name))
            return field;
    for (int i = 0; *name && (field = acct_field_at(i)); i++)
        if (!strncasecmp(name, field->name, strlen(name)))
            return field;
    return NULL;
}
