/* job-facts.c: reads what squeue prints of a job, compares it with what a step claims, and corrects
 * records by it. */
#include "tccld/jobs/job-facts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/message.h"

enum { COLUMNS = 6 };

/* A number that ends in one of these characters, or with the text. Returns what is behind it, NULL:
 * it is none. */
static const char *read_number(const char *text, const char *ends, uint32_t *number)
{
    char *end;
    unsigned long value = strtoul(text, &end, 10);
    if (*text < '0' || *text > '9' || value > UINT32_MAX || !strchr(ends, *end))
        return NULL;
    *number = (uint32_t)value;
    return end;
}

/* "12", "12_3" of an array, "12+1" of a heterogeneous job. */
static int read_id(const char *text, struct job_facts *facts)
{
    uint32_t first, second;
    const char *rest = read_number(text, "_+", &first);
    if (!rest)
        return -1;
    if (*rest == '\0')
        return first == facts->job ? 0 : -1;
    if (!read_number(rest + 1, "", &second))
        return -1;
    if (*rest == '_') {
        facts->array_job = first;
        facts->array_task = second;
    } else {
        facts->het_job = first;
        facts->het_offset = second;
    }
    return 0;
}

/* Slurm prints "(null)" for what a job hasn't. */
static void read_text(const char *value, char text[static TCCL_STEP_TEXT + 1])
{
    snprintf(text, TCCL_STEP_TEXT + 1, "%s", strcmp(value, "(null)") == 0 ? "" : value);
}

static int read_line(const char *line, size_t length, struct job_facts *facts)
{
    char copy[4 * TCCL_STEP_TEXT], *rest = copy, *columns[COLUMNS];
    if (length >= sizeof(copy))
        return -1;
    memcpy(copy, line, length);
    copy[length] = '\0';
    for (int i = 0; i < COLUMNS; i++)
        if (!(columns[i] = i < COLUMNS - 1 ? strsep(&rest, "|") : rest))
            return -1;
    *facts = (struct job_facts){.job = 0};
    if (!read_number(columns[0], "", &facts->job) || !read_number(columns[1], "", &facts->uid) ||
        read_id(columns[2], facts) != 0)
        return -1;
    read_text(columns[3], facts->partition);
    read_text(columns[4], facts->qos);
    read_text(columns[5], facts->account);
    return 0;
}

int job_facts_read(const char *output, uint32_t job, struct job_facts *facts,
                   struct tccl_error *err)
{
    char begin[16];
    const char *found = NULL;
    size_t found_length = 0, size = (size_t)snprintf(begin, sizeof(begin), "%u|", job);
    for (const char *line = output; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        size_t length = strcspn(line, "\n");
        if (strncmp(line, begin, size) != 0)
            continue;
        if (found && (length != found_length || strncmp(line, found, length) != 0))
            return tccl_fail(err, "squeue prints two different lines of job %u", job);
        found = line;
        found_length = length;
    }
    if (!found)
        return tccl_fail(err, "slurmctld does not know it");
    return read_line(found, found_length, facts) == 0
               ? 0
               : tccl_fail(err, "squeue prints \"%.*s\"",
                           found_length < 200 ? (int)found_length : 200, found);
}

static void put_claims(const char *partition, const char *account, const char *qos,
                       char text[static JOB_CLAIMS + 1])
{
    snprintf(text, JOB_CLAIMS + 1, "%s\n%s\n%s", partition, account, qos);
}

void job_claims(const struct tccl_step *step, char text[static JOB_CLAIMS + 1])
{
    put_claims(step->partition, step->account, step->qos, text);
}

void job_facts_as_claims(const struct job_facts *facts, char text[static JOB_CLAIMS + 1])
{
    put_claims(facts->partition, facts->account, facts->qos, text);
}

static int compare(const char *what, const char *claim, const char *fact, struct tccl_error *err)
{
    if (strcmp(claim, fact) == 0)
        return 0;
    return tccl_fail(err, "the step's environment says %s %.80s, the job's is %.80s", what,
                     *claim ? claim : "(none)", *fact ? fact : "(none)");
}

int job_facts_check(const struct job_facts *facts, const struct tccl_step *step,
                    struct tccl_error *err)
{
    return compare("partition", step->partition, facts->partition, err) != 0 ||
                   compare("account", step->account, facts->account, err) != 0 ||
                   compare("QOS", step->qos, facts->qos, err) != 0
               ? -1
               : 0;
}

/* Records */

static int put_number(json_t *record, const char *name, uint32_t number)
{
    return json_object_set_new(record, name, json_integer(number));
}

static int put_text(json_t *record, const char *name, const char *text)
{
    return tccl_put_text(record, name, text, TCCL_STEP_TEXT);
}

int job_facts_put_key(const struct job_facts *facts, json_t *record)
{
    return put_number(record, "het_job", facts->het_job) != 0 ||
                   put_number(record, "het_offset", facts->het_offset) != 0
               ? -1
               : 0;
}

int job_facts_put(const struct job_facts *facts, json_t *record)
{
    return job_facts_put_key(facts, record) != 0 ||
                   put_number(record, "array_job_id", facts->array_job) != 0 ||
                   put_number(record, "array_task_id", facts->array_task) != 0 ||
                   put_text(record, "partition", facts->partition) != 0 ||
                   put_text(record, "account", facts->account) != 0 ||
                   put_text(record, "qos", facts->qos) != 0 || put_text(record, "claimed", "") != 0
               ? -1
               : 0;
}

static bool has_member(const json_t *record, const char *name)
{
    const json_t *value = json_object_get(record, name);
    return json_string_length(value) > 0 || json_integer_value(value) != 0;
}

int job_claims_mark(json_t *record)
{
    static const struct {
        const char *member, *name;
    } claims[] = {{"partition", "partition"},
                  {"account", "account"},
                  {"qos", "qos"},
                  {"array_job_id", "array"},
                  {"het_job", "het"}};
    char list[64] = "";
    for (size_t i = 0; i < sizeof(claims) / sizeof(*claims); i++)
        if (has_member(record, claims[i].member)) {
            size_t used = strlen(list);
            snprintf(list + used, sizeof(list) - used, "%s%s", used ? "," : "", claims[i].name);
        }
    return put_text(record, "claimed", list);
}
