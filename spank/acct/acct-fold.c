/* acct-fold.c: one record for each job in place of its steps' (-X). */
#include "acct/acct.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fields.h"

static int weight_of(const json_t *record)
{
    static const char *const states[] = {"off", "nothing-to-do", "fallback"};
    const char *state = tccl_text_of(record, "state");
    for (int i = 0; i < 3; i++)
        if (!strcmp(state, states[i]))
            return i;
    return 3;
}

bool acct_fold_prefers(const json_t *a, const json_t *b)
{
    int more = weight_of(a) - weight_of(b);
    json_int_t nodes = tccl_number_of(a, "n_nodes") - tccl_number_of(b, "n_nodes");
    if (more || nodes)
        return more ? more > 0 : nodes > 0;
    return tccl_number_of(a, "start") >= tccl_number_of(b, "start");
}

/* A step and its position among the records. */
struct entry {
    const json_t *record;
    size_t place;
};

static int compare_jobs(const json_t *a, const json_t *b)
{
    int order = strcmp(tccl_text_of(a, "cluster"), tccl_text_of(b, "cluster"));
    json_int_t job = tccl_number_of(a, "job") - tccl_number_of(b, "job");
    return order ? order : (job > 0) - (job < 0);
}

static int by_job(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    int order = compare_jobs(x->record, y->record);
    return order ? order : (x->place > y->place) - (x->place < y->place);
}

static int by_place(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    return (x->place > y->place) - (x->place < y->place);
}

/* Folds the first entries, which are of one job, into one record: a new reference in *job, NULL if
 * out of memory. Returns how many entries belong to the job. */
static size_t fold_job(const struct entry *entries, size_t count, json_t **job)
{
    const json_t *best = entries[0].record;
    size_t n = 1;
    for (; n < count && compare_jobs(entries[0].record, entries[n].record) == 0; n++)
        if (acct_fold_prefers(entries[n].record, best))
            best = entries[n].record;
    *job = json_copy((json_t *)best);
    if (*job && json_object_set_new(*job, "steps", json_integer((json_int_t)n)) == 0)
        json_object_del(*job, "step");
    return n;
}

static struct entry *list_entries(const json_t *records, size_t count)
{
    struct entry *entries = calloc(count + 1, sizeof(*entries));
    for (size_t i = 0; entries && i < count; i++)
        entries[i] = (struct entry){.record = json_array_get(records, i), .place = i};
    return entries;
}

json_t *acct_fold(const json_t *records)
{
    size_t count = json_array_size(records), n_jobs = 0;
    cleanup_free struct entry *entries = list_entries(records, count);
    cleanup_free struct entry *jobs = calloc(count + 1, sizeof(*jobs));
    cleanup_json json_t *folded = json_array();
    if (!entries || !jobs || !folded)
        return NULL;
    qsort(entries, count, sizeof(*entries), by_job);
    for (size_t i = 0; i < count;) {
        json_t *job;
        jobs[n_jobs].place = entries[i].place;
        i += fold_job(entries + i, count - i, &job);
        jobs[n_jobs++].record = job;
    }
    qsort(jobs, n_jobs, sizeof(*jobs), by_place);
    int failed = 0;
    for (size_t i = 0; i < n_jobs; i++)
        failed |= json_array_append_new(folded, (json_t *)jobs[i].record);
    return failed ? NULL : tccl_steal(folded);
}
