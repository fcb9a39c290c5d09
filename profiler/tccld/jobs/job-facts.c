/* job-facts.c: reads what squeue prints of a job, compares it with what a step claims, and corrects
 * records by it. */
#include "tccld/jobs/jobs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fields.h"
#include "client/message.h"
#include "client/step-fields.h"

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
static int read_id(const char *text, struct tccl_step *facts)
{
    uint32_t first, second;
    const char *rest = read_number(text, "_+", &first);
    if (!rest)
        return -1;
    if (*rest == '\0')
        return first == facts->key.job ? 0 : -1;
    if (!read_number(rest + 1, "", &second))
        return -1;
    if (*rest == '_') {
        facts->array_job = first;
        facts->array_task = second;
    } else {
        facts->key.het_job = first;
        facts->key.het_offset = second;
    }
    return 0;
}

/* Slurm prints "(null)" for what a job hasn't. */
static void read_text(const char *value, char text[static TCCL_STEP_TEXT + 1])
{
    snprintf(text, TCCL_STEP_TEXT + 1, "%s", strcmp(value, "(null)") == 0 ? "" : value);
}

static int read_line(const char *line, size_t length, struct tccl_step *facts)
{
    char copy[4 * TCCL_STEP_TEXT], *rest = copy, *columns[COLUMNS];
    if (length >= sizeof(copy))
        return -1;
    memcpy(copy, line, length);
    copy[length] = '\0';
    for (int i = 0; i < COLUMNS; i++)
        if (!(columns[i] = i < COLUMNS - 1 ? strsep(&rest, "|") : rest))
            return -1;
    *facts = (struct tccl_step){.uid = 0};
    if (!read_number(columns[0], "", &facts->key.job) ||
        !read_number(columns[1], "", &facts->uid) || read_id(columns[2], facts) != 0)
        return -1;
    read_text(columns[3], facts->partition);
    read_text(columns[4], facts->qos);
    read_text(columns[5], facts->account);
    return 0;
}

int job_facts_read(const char *output, uint32_t job, struct tccl_step *facts,
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

void job_claims(const struct tccl_step *step, char text[static JOB_CLAIMS + 1])
{
    snprintf(text, JOB_CLAIMS + 1, "%s\n%s\n%s", step->partition, step->account, step->qos);
}

static int compare(const char *what, const char *claim, const char *fact, struct tccl_error *err)
{
    if (strcmp(claim, fact) == 0)
        return 0;
    return tccl_fail(err, "the step's environment says %s %.80s, the job's is %.80s", what,
                     *claim ? claim : "(none)", *fact ? fact : "(none)");
}

int job_facts_check(const struct tccl_step *facts, const struct tccl_step *step,
                    struct tccl_error *err)
{
    return compare("partition", step->partition, facts->partition, err) != 0 ||
                   compare("account", step->account, facts->account, err) != 0 ||
                   compare("QOS", step->qos, facts->qos, err) != 0
               ? -1
               : 0;
}

/* Records */

/* Members of a record, and what a user's word for them is called. Those of the key come last. */
static const struct {
    const char *name, *claim;
} members[] = {{"partition", "partition"}, {"account", "account"},  {"qos", "qos"},
               {"array_job_id", "array"},  {"array_task_id", NULL}, {"het_job", "het"},
               {"het_offset", NULL}};
enum { MEMBERS = sizeof(members) / sizeof(*members), OF_KEY = MEMBERS - 2 };

static int put(const struct tccl_step *facts, int first, json_t *record)
{
    for (int i = first; i < MEMBERS; i++)
        for (int k = 0; k < tccl_n_step_fields; k++) {
            const struct tccl_field *field = &tccl_step_fields[k];
            if (field->owner == TCCL_OF_STEP && strcmp(field->name, members[i].name) == 0 &&
                tccl_field_put(record, field, true, facts) != 0)
                return -1;
        }
    return 0;
}

static int put_claimed(json_t *record, const char *list)
{
    return tccl_put_text(record, "claimed", list, TCCL_STEP_TEXT);
}

int job_facts_put_key(const struct tccl_step *facts, json_t *record)
{
    return put(facts, OF_KEY, record);
}

int job_facts_put(const struct tccl_step *facts, json_t *record)
{
    return put(facts, 0, record) != 0 ? -1 : put_claimed(record, "");
}

int job_claims_mark(json_t *record)
{
    char list[64] = "";
    for (int i = 0; i < MEMBERS; i++) {
        size_t used = strlen(list);
        if (members[i].claim && (*tccl_text_of(record, members[i].name) ||
                                 tccl_number_of(record, members[i].name) != 0))
            snprintf(list + used, sizeof(list) - used, "%s%s", used ? "," : "", members[i].claim);
    }
    return put_claimed(record, list);
}
