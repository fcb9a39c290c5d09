/* acct-fields.c: the fields that tcclacct shows of a record. Most are members of it, as the table
 * of a step's members has them (client/step-fields.h). */
#include "acct/acct.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/fields.h"
#include "client/step-fields.h"

/* Fields that are no members of a record; others have their type (client/step-fields.h). */
enum { JOB = 64, RAW_JOB, STEPS, USER };

char *acct_field_print(const char *format, ...)
{
    char *text;
    va_list list;
    va_start(list, format);
    int length = vasprintf(&text, format, list);
    va_end(list);
    return length < 0 ? NULL : text;
}

/* "12.3"; of a whole job, which has no step, "12". raw: the job's own id, also for array tasks and
 * het components. */
static char *show_job(const json_t *record, bool raw)
{
    long long het = tccl_number_of(record, "het_job"),
              array = tccl_number_of(record, "array_job_id"), step = tccl_number_of(record, "step");
    const char *name = acct_step_name(step);
    char job[64], number[32];
    if (het && !raw)
        snprintf(job, sizeof(job), "%lld+%lld", het,
                 (long long)tccl_number_of(record, "het_offset"));
    else if (array && !raw)
        snprintf(job, sizeof(job), "%lld_%lld", array,
                 (long long)tccl_number_of(record, "array_task_id"));
    else
        snprintf(job, sizeof(job), "%lld", (long long)tccl_number_of(record, "job"));
    if (!json_object_get(record, "step"))
        return strdup(job);
    snprintf(number, sizeof(number), "%lld", step);
    return acct_field_print("%s.%s", job, name ? name : number);
}

/* Of counts, bandwidths and ratios 0 is unknown: the step was off, or fell back before all nodes
 * had joined. */
char *acct_field_text(const struct acct_field *field, const json_t *record,
                      const struct acct_clock *clock)
{
    const json_t *member = json_object_get(record, field->source);
    const char *text = json_string_value(member);
    double real = json_number_value(member);
    long long number = json_integer_value(member);
    char time[128] = "";
    switch (field->type) {
    case JOB:
    case RAW_JOB:
        return show_job(record, field->type == RAW_JOB);
    case STEPS: /* of a whole job */
        return acct_field_print("%lld", member ? number : 1);
    case USER: /* the uid where the name is unknown */
        return text && *text ? strdup(text)
                             : acct_field_print("%lld", (long long)tccl_number_of(record, "uid"));
    case TCCL_FIELD_INT:
        return acct_field_print("%lld", number);
    case TCCL_FIELD_COUNT:
        return number ? acct_field_print("%lld", number) : strdup("");
    case TCCL_FIELD_TIME:
        if (member)
            acct_time_print((time_t)number, clock->now, clock->format, time, sizeof(time));
        return strdup(time);
    case TCCL_FIELD_MICROSECONDS:
        return number <= 0    ? strdup("")
               : number < 1e6 ? acct_field_print("%.2fms", (double)number / 1e3)
                              : acct_field_print("%.2fs", (double)number / 1e6);
    case TCCL_FIELD_REAL:
        return real > 0 ? acct_field_print("%.2f", real) : strdup("");
    default:
        return strdup(text ? text : "");
    }
}

/* Derived fields, before and after the members of the record. */
static const struct acct_field first = {"JobID", -12, JOB, "job"};
static const struct acct_field last[] = {{"JobIDRaw", -12, RAW_JOB, "job"},
                                         {"Steps", 5, STEPS, "steps"}};

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
    int type = strcmp(field->name, "user") == 0 ? USER : (int)field->type;
    all.list[all.count++] = (struct acct_field){field->column, field->width, type, field->name};
}

static const struct tccl_field *find_column(const char *name)
{
    const struct tccl_field *field = tccl_step_fields;
    while (!field->column || strcmp(field->column, name) != 0)
        field++;
    return field;
}

int acct_field_count(void)
{
    if (all.count)
        return all.count;
    all.list[all.count++] = first;
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
