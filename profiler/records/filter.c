/* filter.c: reads a filter, writes the SQL that finds candidate rows, and checks each row. */
#include "records/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "client/hostlist.h"

enum {
    MAX_VALUES = 10 + 6 * TCCL_FILTER_JOBS,
    MANY = 8,                            /* nodes; then each name of a row is looked up */
    MOST_VALUES = 32 + TCCL_MOST_FIELDS, /* of a row */
    LOOK_ROWS = 16,                      /* rows between two looks at the clock */
};

/* Members of a filter */

/* A whole number that can't be negative; fallback where it is absent or null. */
static int whole(const json_t *filter, const char *name, json_int_t fallback, json_int_t *value,
                 struct tccl_error *err)
{
    const json_t *json = json_object_get(filter, name);
    *value = json_is_integer(json) ? json_integer_value(json) : fallback;
    if (json && !json_is_null(json) && (!json_is_integer(json) || *value < 0))
        return tccl_fail(err, "filter: %s must be a whole number, not negative", name);
    return 0;
}

/* NULL in *list where it is absent or null; else an array of 0 to max of that type (of: what these
 * are; NULL: of any). */
static int list(const json_t *filter, const char *name, size_t max, json_type type, const char *of,
                json_t **list, struct tccl_error *err)
{
    *list = json_object_get(filter, name);
    if (json_is_null(*list))
        *list = NULL;
    if (*list && (!json_is_array(*list) || json_array_size(*list) > max))
        return tccl_fail(err, "filter: %s must be a list of at most %zu", name, max);
    for (size_t i = 0; of && i < json_array_size(*list); i++)
        if (json_typeof(json_array_get(*list, i)) != type)
            return tccl_fail(err, "filter: %s must be a list of %s", name, of);
    return 0;
}

static int list_texts(const json_t *filter, const char *name, size_t max, json_t **texts,
                      struct tccl_error *err)
{
    return list(filter, name, max, JSON_STRING, "names", texts, err);
}

static int read_job(const json_t *json, struct tccl_wanted_job *job, struct tccl_error *err)
{
    if (whole(json, "job", -1, &job->job, err) != 0 ||
        whole(json, "step", -1, &job->step, err) != 0 ||
        whole(json, "het_offset", -1, &job->het_offset, err) != 0 ||
        whole(json, "array_job", -1, &job->array_job, err) != 0 ||
        whole(json, "first", 0, &job->first, err) != 0 ||
        whole(json, "last", INT64_MAX, &job->last, err) != 0)
        return -1;
    job->raw = json_is_true(json_object_get(json, "raw"));
    return (job->job >= 1 && job->array_job < 0) || (job->job < 0 && job->array_job >= 1)
               ? 0
               : tccl_fail(err, "filter: each of jobs must be an object with a job");
}

static int list_jobs(const json_t *json, struct tccl_filter *filter, struct tccl_error *err)
{
    struct tccl_wanted_job job;
    json_t *jobs;
    if (list(json, "jobs", TCCL_FILTER_JOBS, JSON_OBJECT, NULL, &jobs, err) != 0)
        return -1;
    if (jobs && !(filter->jobs = calloc(json_array_size(jobs) + 1, sizeof(*filter->jobs))))
        return tccl_fail(err, "out of memory for a query");
    for (size_t i = 0; i < json_array_size(jobs); i++) {
        if (read_job(json_array_get(jobs, i), &job, err) != 0)
            return -1;
        /* None twice. Its members are all numbers, without gaps. */
        int known = 0;
        while (known < filter->n_jobs && memcmp(&filter->jobs[known], &job, sizeof(job)) != 0)
            known++;
        filter->jobs[known] = job;
        filter->n_jobs += known == filter->n_jobs;
    }
    return 0;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Returns 0, or -1 if out of memory. */
static int sort_nodes(struct tccl_filter *filter)
{
    size_t count = json_array_size(filter->nodes);
    if (count < MANY)
        return 0;
    if (!(filter->sorted = calloc(count, sizeof(*filter->sorted))))
        return -1;
    for (size_t i = 0; i < count; i++)
        filter->sorted[i] = json_string_value(json_array_get(filter->nodes, i));
    qsort(filter->sorted, count, sizeof(*filter->sorted), compare_names);
    for (size_t i = 0; i < count; i++)
        if (i == 0 || strcmp(filter->sorted[i], filter->sorted[filter->n_sorted - 1]) != 0)
            filter->sorted[filter->n_sorted++] = filter->sorted[i];
    return 0;
}

int tccl_filter_read(const json_t *json, int64_t uid, struct tccl_filter *filter,
                     struct tccl_error *err)
{
    const json_t *order = json_object_get(json, "order");
    const char *word = order && !json_is_null(order) ? json_string_value(order) : "oldest";
    json_t *after;
    *filter = (struct tccl_filter){.uid = uid, .newest = word && strcmp(word, "newest") == 0};
    if (json && !json_is_object(json))
        return tccl_fail(err, "filter: must be an object");
    if (list_jobs(json, filter, err) != 0 ||
        list(json, "users", TCCL_FILTER_USERS, JSON_INTEGER, "uids", &filter->users, err) != 0 ||
        whole(json, "start", 0, &filter->start, err) != 0 ||
        whole(json, "end", INT64_MAX, &filter->end, err) != 0 ||
        whole(json, "limit", INT64_MAX, &filter->limit, err) != 0 ||
        whole(json, "min_nodes", 0, &filter->min_nodes, err) != 0 ||
        whole(json, "max_nodes", INT64_MAX, &filter->max_nodes, err) != 0 ||
        list_texts(json, "states", TCCL_FILTER_STATES, &filter->states, err) != 0 ||
        list_texts(json, "nodes", TCCL_FILTER_NODES, &filter->nodes, err) != 0 ||
        list_texts(json, "classes", TCCL_FILTER_NAMES, &filter->classes, err) != 0 ||
        list(json, "after", 2, JSON_INTEGER, NULL, &after, err) != 0)
        return -1;
    for (int i = 0; i < tccl_n_step_fields; i++) {
        const char *name = tccl_step_fields[i].filter;
        if (name && list_texts(json, name, TCCL_FILTER_NAMES, &filter->texts[i], err) != 0)
            return -1;
        filter->has_texts = filter->has_texts || filter->texts[i];
    }
    filter->after = after;
    if (after &&
        (!json_is_integer(json_array_get(after, 0)) || !json_is_integer(json_array_get(after, 1))))
        return tccl_fail(err, "filter: after must be that of the previous page");
    if (!word || (!filter->newest && strcmp(word, "oldest") != 0))
        return tccl_fail(err, "filter: order must be \"oldest\" or \"newest\"");
    if (filter->limit == 0)
        return tccl_fail(err, "filter: limit must be at least 1");
    filter->looks =
        (filter->users ? TCCL_LOOK(uid) : 0) | (filter->nodes ? TCCL_LOOK(nodes) : 0) |
        (filter->states || filter->classes ? TCCL_LOOK_SHOWN : 0) |
        (filter->min_nodes > 0 || filter->max_nodes < INT64_MAX ? TCCL_LOOK(n_nodes) : 0);
    return sort_nodes(filter) == 0 ? 0 : tccl_fail(err, "out of memory for a query");
}

void tccl_filter_clear(struct tccl_filter *filter)
{
    free(filter->sorted);
    free(filter->jobs);
    filter->jobs = NULL;
    filter->sorted = NULL;
}

/* SQL */

/* A query under construction: its text, and the numbers for its '?' in order. */
struct query {
    FILE *sql;
    sqlite3_int64 values[MAX_VALUES];
    int n_values;
    bool listing; /* jobs: not the first one */
};

static void add_value(struct query *query, const char *sql, json_int_t value)
{
    fputs(sql, query->sql);
    query->values[query->n_values++] = value;
}

static void add_step(struct query *query, const struct tccl_wanted_job *job)
{
    if (job->step >= 0)
        add_value(query, " AND step = ?", job->step);
    fputc(')', query->sql);
}

/* No leading constant: it would keep older SQLite from using indexes. */
static void begin_job(struct query *query)
{
    fputs(query->listing ? " OR (" : "(", query->sql);
    query->listing = true;
}

#define NOT_ANOTHERS(column) " AND NOT tccl_anothers(" column ", cluster, uid, start)"

/* which: the condition on the job's number, by its own id or by that of its het leader. */
static void add_job(struct query *query, const char *which, const struct tccl_wanted_job *job)
{
    begin_job(query);
    add_value(query, which, job->job);
    if (job->het_offset >= 0)
        add_value(query, " AND het_offset = ?", job->het_offset);
    add_step(query, job);
}

/* The index is partial (array tasks only): SQLite uses it only with the same condition. */
static void add_tasks(struct query *query, const struct tccl_wanted_job *job, json_int_t array)
{
    begin_job(query);
    add_value(query, "array_job_id = ? AND array_job_id > 0" NOT_ANOTHERS("array_job_id"), array);
    if (job->array_job >= 0) {
        add_value(query, " AND array_task_id >= ?", job->first);
        add_value(query, " AND array_task_id <= ?", job->last);
    }
    add_step(query, job);
}

/* The facts that are looked at, and, of a filter, what its lists of texts ask for. */
static void write_columns(FILE *sql, unsigned looks, const struct tccl_filter *filter)
{
    fputs("start", sql);
#define WRITE_NAME(member)                                                                         \
    if (looks & TCCL_LOOK(member))                                                                 \
        fputs(", " #member, sql);
    TCCL_FACTS(WRITE_NAME, WRITE_NAME, WRITE_NAME)
    TCCL_FIGURES(WRITE_NAME, WRITE_NAME, WRITE_NAME, WRITE_NAME)
    for (int i = 0; filter && i < tccl_n_step_fields; i++)
        if (filter->texts[i])
            fprintf(sql, ", %s", tccl_step_fields[i].name);
}

/* '+' keeps SQLite from using an index on that column: with jobs, theirs is the better one. */
static void write_from(struct query *query, const struct tccl_filter *filter, int most)
{
    json_int_t start = filter->start, end = filter->end,
               user = filter->uid; /* the only one whose records can match; -1: several */
    if (user < 0 && json_array_size(filter->users) == 1)
        user = json_integer_value(json_array_get(filter->users, 0));
    /* "after" bounds the times, too: SQLite seeks by a bound, but not by the comparison of pairs,
     * so that the last page costs no more than the first. */
    json_int_t at = json_integer_value(json_array_get(filter->after, 0));
    if (filter->after && filter->newest && at < end)
        end = at;
    if (filter->after && !filter->newest && at > start)
        start = at;
    const char *by = user >= 0 ? " INDEXED BY records_by_user" : " INDEXED BY records_facts";
    fprintf(query->sql, " FROM records%s", filter->jobs ? "" : by);
    add_value(query, filter->jobs ? " WHERE +start >= ?" : " WHERE start >= ?", start);
    add_value(query, filter->jobs ? " AND +start <= ?" : " AND start <= ?", end);
    if (user >= 0)
        add_value(query, filter->jobs ? " AND +uid = ?" : " AND uid = ?", user);
    if (filter->jobs) {
        fputs(filter->n_jobs ? " AND (" : " AND (0", query->sql);
        for (int i = 0; i < filter->n_jobs; i++) {
            const struct tccl_wanted_job *job = &filter->jobs[i];
            if (job->array_job >= 0) {
                add_tasks(query, job, job->array_job);
                continue;
            }
            add_job(query, "job = ?", job);
            if (!job->raw)
                add_job(query, "het_job = ?" NOT_ANOTHERS("het_job"), job);
            if (!job->raw && job->het_offset < 0)
                add_tasks(query, job, job->job);
        }
        fputc(')', query->sql);
    }
    if (filter->after) {
        const char *beyond = filter->newest ? " AND (start, id) < (?" : " AND (start, id) > (?";
        add_value(query, beyond, json_integer_value(json_array_get(filter->after, 0)));
        add_value(query, ", ?)", json_integer_value(json_array_get(filter->after, 1)));
    }
    if (!most && (filter->looks || filter->has_texts)) {
        fputs(" AND tccl_matches(", query->sql);
        write_columns(query->sql, filter->looks, filter);
        fputc(')', query->sql);
    }
    fputs(filter->newest ? " ORDER BY start DESC, id DESC" : " ORDER BY start, id", query->sql);
    if (most)
        add_value(query, " LIMIT ?", most);
}

/* By one of those two indexes SQLite reads rows in order; by others it sorts them first. */
sqlite3_stmt *tccl_filter_prepare(struct tccl_records *records, const struct tccl_filter *filter,
                                  unsigned looks, int most, struct tccl_error *err)
{
    cleanup_free char *sql = NULL;
    size_t size;
    cleanup_free struct query *query = calloc(1, sizeof(*query));
    if (!query || !(query->sql = open_memstream(&sql, &size)))
        return tccl_fail_null(err, "out of memory for a query");
    fputs("SELECT ", query->sql);
    if (looks) { /* a row without figures costs little more than if nobody asked for them */
        fputs("sum(CASE WHEN achieved_gbps > 0 THEN tccl_each(", query->sql);
        write_columns(query->sql, looks, NULL);
        fputs(") ELSE tccl_each(", query->sql);
        write_columns(query->sql, looks & ~TCCL_LOOK_FIGURES, NULL);
        fputs(") END)", query->sql);
    } else {
        write_columns(query->sql, filter->looks, filter);
    }
    if (looks && filter->jobs) {
        fputs(" FROM (SELECT ", query->sql);
        write_columns(query->sql, looks, NULL);
    }
    write_from(query, filter, most);
    fputs(looks && filter->jobs ? ")" : "", query->sql);
    if (fclose(query->sql) != 0)
        return tccl_fail_null(err, "out of memory for a query");
    cleanup_stmt sqlite3_stmt *statement = NULL;
    int rc = sqlite3_prepare_v2(records->db, sql, -1, &statement, NULL);
    for (int i = 0; i < query->n_values && rc == SQLITE_OK; i++)
        rc = sqlite3_bind_int64(statement, i + 1, query->values[i]);
    if (rc != SQLITE_OK) {
        tccl_store_fail(records, err);
        return NULL;
    }
    return tccl_steal(statement);
}

/* Rows */

static bool has_text(const json_t *list, const char *text)
{
    for (size_t i = 0; text && i < json_array_size(list); i++)
        if (strcmp(text, json_string_value(json_array_get(list, i))) == 0)
            return true;
    return false;
}

static bool on_nodes(const struct tccl_filter *filter, const char *ran_on)
{
    __attribute__((cleanup(tccl_hosts_clear))) struct tccl_hosts hosts = {0};
    if (filter->sorted && tccl_hosts_expand(ran_on, TCCL_MAX_NODE_LIST, &hosts, NULL) == 0) {
        size_t i = 0;
        while (i < hosts.count && !bsearch(&hosts.names[i], filter->sorted, filter->n_sorted,
                                           sizeof(*filter->sorted), compare_names))
            i++;
        return i < hosts.count;
    }
    for (size_t i = 0; i < json_array_size(filter->nodes); i++)
        if (tccl_hosts_contain(ran_on, json_string_value(json_array_get(filter->nodes, i))))
            return true;
    return false;
}

static bool matches(const struct tccl_filter *filter, sqlite3_value **values,
                    struct tccl_facts *facts)
{
    values += tccl_facts_read(values, filter->looks, facts);
    size_t user = 0, users = json_array_size(filter->users);
    while (user < users && json_integer_value(json_array_get(filter->users, user)) != facts->uid)
        user++;
    if ((filter->users && user == users) ||
        (filter->states && !has_text(filter->states, facts->shown.state) &&
         !has_text(filter->states, facts->shown.built)) ||
        (filter->classes && !has_text(filter->classes, tccl_reason_words[facts->shown.cause])) ||
        (filter->looks & TCCL_LOOK(n_nodes) &&
         (facts->n_nodes < filter->min_nodes || facts->n_nodes > filter->max_nodes)))
        return false;
    for (int i = 0; filter->has_texts && i < tccl_n_step_fields; i++)
        if (filter->texts[i] &&
            !has_text(filter->texts[i], (const char *)sqlite3_value_text(*values++)))
            return false;
    return !filter->nodes || on_nodes(filter, facts->nodes);
}

bool tccl_filter_row(const struct tccl_filter *filter, sqlite3_stmt *statement,
                     struct tccl_facts *facts)
{
    sqlite3_value *values[MOST_VALUES];
    for (int i = 0; i < sqlite3_column_count(statement); i++)
        values[i] = sqlite3_column_value(statement, i);
    return matches(filter, values, facts);
}

/* All rows */

struct tccl_pass {
    const struct tccl_filter *filter;
    unsigned looks; /* of whoever visits */
    tccl_filter_visit *visit;
    void *argument;
    struct tccl_error *err;
    int64_t rows;
    bool failed; /* err says why */
};

/* Looks at the clock. SQLite ends the statement where that fails. Returns 0 or -1. */
static int look(sqlite3_context *context, struct tccl_records *records)
{
    struct tccl_pass *pass = records->pass;
    if (++pass->rows % LOOK_ROWS != 0 || tccl_store_look(records, pass->err) == 0)
        return 0;
    pass->failed = true;
    sqlite3_result_error_code(context, SQLITE_ABORT);
    return -1;
}

static void each_row(sqlite3_context *context, int count, sqlite3_value **values)
{
    struct tccl_records *records = sqlite3_user_data(context);
    struct tccl_pass *pass = records->pass;
    struct tccl_facts facts = {0};
    bool all = count == 1 + __builtin_popcount(pass->looks);
    tccl_facts_read(values, all ? pass->looks : pass->looks & ~TCCL_LOOK_FIGURES, &facts);
    if (look(context, records) == 0 && pass->visit(pass->argument, &facts, pass->err) != 0) {
        pass->failed = true;
        sqlite3_result_error_code(context, SQLITE_ABORT);
    }
}

static void is_match(sqlite3_context *context, int count UNUSED, sqlite3_value **values)
{
    struct tccl_records *records = sqlite3_user_data(context);
    struct tccl_facts facts;
    if (look(context, records) == 0)
        sqlite3_result_int(context, matches(records->pass->filter, values, &facts));
}

int tccl_filter_functions(struct tccl_records *records)
{
    int rc = sqlite3_create_function(records->db, "tccl_matches", -1, SQLITE_UTF8, records,
                                     is_match, NULL, NULL);
    return rc != SQLITE_OK ? rc
                           : sqlite3_create_function(records->db, "tccl_each", -1, SQLITE_UTF8,
                                                     records, each_row, NULL, NULL);
}

int tccl_filter_each(struct tccl_records *records, const struct tccl_filter *filter, unsigned looks,
                     tccl_filter_visit *visit, void *argument, struct tccl_error *err)
{
    struct tccl_pass pass = {filter, looks, visit, argument, err};
    cleanup_stmt sqlite3_stmt *statement = tccl_filter_prepare(records, filter, looks, 0, err);
    if (!statement)
        return -1;
    records->pass = &pass;
    int rc = sqlite3_step(statement);
    if (pass.failed)
        return -1;
    return rc == SQLITE_ROW ? 0 : tccl_store_fail(records, err);
}
