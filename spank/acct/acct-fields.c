/* acct-fields.c: the fields that tcclacct shows of a record. */
#include "acct/acct-fields.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "acct/acct-filter.h"
#include "acct/acct-time.h"
#include "base/fields.h"
#include "records/reason.h"

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
        snprintf(job, sizeof job, "%" JSON_INTEGER_FORMAT "_%" JSON_INTEGER_FORMAT, array,
                 tccl_number_of(record, "array_task_id"));
    else if (het)
        snprintf(job, sizeof job, "%" JSON_INTEGER_FORMAT "+%" JSON_INTEGER_FORMAT, het,
                 tccl_number_of(record, "het_offset"));
    else
        snprintf(job, sizeof job, "%" JSON_INTEGER_FORMAT, tccl_number_of(record, "job"));
    return print_step(record, job);
}

/* With the job's own id, also in arrays and heterogeneous jobs. */
static char *show_raw_job(const struct acct_field *field, const json_t *record,
                          const struct acct_clock *clock)
{
    (void)field;
    (void)clock;
    char job[32];
    snprintf(job, sizeof job, "%" JSON_INTEGER_FORMAT, tccl_number_of(record, "job"));
    return print_step(record, job);
}

static char *show_class(const struct acct_field *field, const json_t *record,
                        const struct acct_clock *clock)
{
    (void)clock;
    return strdup(tccl_reason_class(json_string_value(json_object_get(record, field->source))));
}

/* Steps of a whole job; a step is one. */
static char *show_steps(const struct acct_field *field, const json_t *record,
                        const struct acct_clock *clock)
{
    return json_object_get(record, field->source) ? show_number(field, record, clock) : strdup("1");
}

/* The user's number where the name is not known. */
static char *show_user(const struct acct_field *field, const json_t *record,
                       const struct acct_clock *clock)
{
    const char *name = json_string_value(json_object_get(record, "user"));
    return name && *name ? show_text(field, record, clock)
                         : print("%" JSON_INTEGER_FORMAT, tccl_number_of(record, "uid"));
}

/* Of a step that was off, or fell back before all nodes had joined, the GPUs are not known. */
static char *show_gpus(const struct acct_field *field, const json_t *record,
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
    acct_time_print((time_t)tccl_number_of(record, field->source), clock->now, clock->format, text,
                    sizeof text);
    return strdup(text);
}

const struct acct_field acct_fields[ACCT_FIELDS] = {
    {"JobID", -12, show_job, NULL},
    {"JobName", 10, show_text, "job_name"},
    {"User", 9, show_user, "user"},
    {"UID", 6, show_number, "uid"},
    {"Account", 10, show_text, "account"},
    {"Partition", 10, show_text, "partition"},
    {"Cluster", 10, show_text, "cluster"},
    {"NNodes", 6, show_number, "n_nodes"},
    {"NodeList", 15, show_text, "nodes"},
    {"FirstNode", 10, show_text, "first_node"},
    {"GPUs", 5, show_gpus, "gpus"},
    {"Mode", 7, show_text, "mode"},
    {"State", 13, show_text, "state"},
    {"Reason", -40, show_text, "reason"},
    {"Built", 8, show_text, "built"},
    {"BuiltReason", -40, show_text, "built_reason"},
    {"GBps", 8, show_real, "gbps"},
    {"BaselineGBps", 12, show_real, "baseline_gbps"},
    {"Ratio", 6, show_real, "ratio"},
    {"BoundGBps", 9, show_real, "bound_gbps"},
    {"SolveTime", 9, show_solve_time, "solve_us"},
    {"Start", 19, show_time, "start"},
    {"Source", 6, show_text, "source"},
    {"Ring", -60, show_text, "ring"},
    {"Restarts", 8, show_number, "restart"},
    {"Reporter", 8, show_number, "reporter"},
    {"Policy", 10, show_text, "policy"},
    {"Class", 17, show_class, "reason"},
    {"JobIDRaw", -12, show_raw_job, NULL},
    {"Steps", 5, show_steps, "steps"},
};

const struct acct_field *acct_field_find(const char *name)
{
    for (int i = 0; i < ACCT_FIELDS; i++)
        if (!strcasecmp(name, acct_fields[i].name))
            return &acct_fields[i];
    for (int i = 0; i < ACCT_FIELDS && *name; i++)
        if (!strncasecmp(name, acct_fields[i].name, strlen(name)))
            return &acct_fields[i];
    return NULL;
}
