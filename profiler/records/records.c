/* records.c: the store of step records in SQLite. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "cleanup.h"
#include "hostlist.h"
#include "records.h"

enum {
    APPLICATION = 0x7463636c, /* "tccl", in the file's header */
    BUSY_MS = 250,
    ROWS_LOOKED_AT = 20000, /* per page: so that no query holds the daemon up */
    MAX_VALUES = 8 + TCCL_FILTER_USERS + 6 * TCCL_FILTER_JOBS,
};

struct tccl_records {
    sqlite3 *db;
    sqlite3_stmt *put, *put_build;
    char *path;
};

/* Step i leads from version i to i + 1 of the schema. Steps that were released are never changed.
 */
static const char *const migrations[] = {
    "CREATE TABLE records ("
    " id INTEGER PRIMARY KEY,"
    " cluster TEXT NOT NULL, job INTEGER NOT NULL, het_job INTEGER NOT NULL,"
    " het_offset INTEGER NOT NULL, step INTEGER NOT NULL, restart INTEGER NOT NULL,"
    " run INTEGER NOT NULL,"
    " uid INTEGER NOT NULL, user TEXT NOT NULL, account TEXT NOT NULL, partition TEXT NOT NULL,"
    " job_name TEXT NOT NULL,"
    " nodes TEXT NOT NULL, first_node TEXT NOT NULL, n_nodes INTEGER NOT NULL,"
    " gpus INTEGER NOT NULL,"
    " mode TEXT NOT NULL, state TEXT NOT NULL, reason TEXT NOT NULL,"
    " gbps REAL NOT NULL, baseline_gbps REAL NOT NULL, ratio REAL NOT NULL,"
    " bound_gbps REAL NOT NULL, solve_us INTEGER NOT NULL, ring TEXT NOT NULL,"
    " source TEXT NOT NULL, start INTEGER NOT NULL, reporter INTEGER NOT NULL,"
    " UNIQUE (job, step, het_job, het_offset, restart, run, cluster));"
    "CREATE INDEX records_by_start ON records (start);"
    "CREATE INDEX records_by_user ON records (uid, start);"
    "CREATE INDEX records_by_het_job ON records (het_job, step);",
    "CREATE TABLE builds (step_start TEXT PRIMARY KEY, built TEXT NOT NULL,"
    " built_reason TEXT NOT NULL, built_rank INTEGER NOT NULL) WITHOUT ROWID;",
};
enum { VERSION = sizeof migrations / sizeof migrations[0] };

static int fail_store(const struct tccl_records *records, struct tccl_error *err)
{
    int code = records->db ? sqlite3_errcode(records->db) : SQLITE_NOMEM;
    if (code == SQLITE_NOTADB || code == SQLITE_CORRUPT)
        return tccl_fail(err, "%s: %s; move it away, and a new one is made", records->path,
                         sqlite3_errstr(code));
    return tccl_fail(err, "%s: %s", records->path,
                     records->db ? sqlite3_errmsg(records->db) : sqlite3_errstr(code));
}

static int execute(struct tccl_records *records, const char *sql, struct tccl_error *err)
{
    return sqlite3_exec(records->db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0
                                                                         : fail_store(records, err);
}

static void cleanup_statement(sqlite3_stmt **statement)
{
    sqlite3_finalize(*statement);
}
#define cleanup_stmt __attribute__((cleanup(cleanup_statement)))

/* The one number that a statement gives. Returns 0, or -1 with err. */
static int ask_number(struct tccl_records *records, const char *sql, int *number,
                      struct tccl_error *err)
{
    cleanup_stmt sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(records->db, sql, -1, &statement, NULL) != SQLITE_OK ||
        sqlite3_step(statement) != SQLITE_ROW)
        return fail_store(records, err);
    *number = sqlite3_column_int(statement, 0);
    return 0;
}

/* Is the file a store of ours, or empty? Sets its version, 0 if empty. */
static int recognise(struct tccl_records *records, int *version, struct tccl_error *err)
{
    int application, tables;
    if (ask_number(records, "PRAGMA application_id", &application, err) != 0 ||
        ask_number(records, "PRAGMA user_version", version, err) != 0 ||
        ask_number(records, "SELECT count(*) FROM sqlite_master", &tables, err) != 0)
        return -1;
    if (application != APPLICATION && (tables > 0 || *version != 0))
        return tccl_fail(err, "%s: a database, but not one of tccl's records", records->path);
    if (*version > VERSION)
        return tccl_fail(err,
                         "%s: made by a newer version (schema %d, this one knows %d); update tccld",
                         records->path, *version, VERSION);
    return 0;
}

static int migrate(struct tccl_records *records, struct tccl_error *err)
{
    char mark[96];
    int version;
    if (recognise(records, &version, err) != 0)
        return -1;
    for (; version < VERSION; version++)
        if (execute(records, migrations[version], err) != 0)
            return -1;
    snprintf(mark, sizeof mark, "PRAGMA application_id = %d; PRAGMA user_version = %d", APPLICATION,
             VERSION);
    return execute(records, mark, err);
}

/* The version is looked at again inside the transaction, which only one process at a time is in. */
static int bring_up_to_date(struct tccl_records *records, struct tccl_error *err)
{
    int version;
    if (recognise(records, &version, err) != 0)
        return -1;
    if (version < VERSION) {
        if (execute(records, "BEGIN IMMEDIATE", err) != 0)
            return -1;
        if (migrate(records, err) != 0 || execute(records, "COMMIT", err) != 0) {
            execute(records, "ROLLBACK", NULL);
            return -1;
        }
    }
    return execute(records,
                   "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
                   "PRAGMA journal_size_limit = 16777216",
                   err);
}

/* INSERT … (names) VALUES (?1 …) ON CONFLICT (key) DO UPDATE SET name = excluded.name, … */
static char *put_sql(void)
{
    char *sql = NULL;
    size_t size;
    FILE *out = open_memstream(&sql, &size);
    if (!out)
        return NULL;
    fputs("INSERT INTO records (", out);
    for (int i = 0; i < TCCL_RECORD_OWN; i++)
        fprintf(out, "%s%s", i ? ", " : "", tccl_record_fields[i].name);
    fputs(") VALUES (", out);
    for (int i = 0; i < TCCL_RECORD_OWN; i++)
        fprintf(out, "%s?%d", i ? ", " : "", i + 1);
    fputs(") ON CONFLICT (job, step, het_job, het_offset, restart, run, cluster) DO UPDATE SET ",
          out);
    for (int i = 0; i < TCCL_RECORD_OWN; i++)
        fprintf(out, "%s%s = excluded.%s", i ? ", " : "", tccl_record_fields[i].name,
                tccl_record_fields[i].name);
    /* What was found out after a ring was given out stays, in whatever order the two arrive. */
    fputs(" WHERE excluded.reporter < records.reporter OR (excluded.reporter = records.reporter"
          " AND NOT (records.state IN ('partial', 'differs') AND excluded.state = 'applied'"
          " AND excluded.start = records.start))",
          out);
    if (fclose(out) == 0)
        return sql;
    free(sql);
    return NULL;
}

static const char put_build_sql[] =
    "INSERT INTO builds (step_start, built, built_reason, built_rank) VALUES (?1, ?2, ?3, ?4)"
    " ON CONFLICT (step_start) DO UPDATE SET built = excluded.built,"
    " built_reason = excluded.built_reason, built_rank = excluded.built_rank"
    " WHERE excluded.built_rank > builds.built_rank";

/* SQLite would make the file readable for all. Returns 0, or -1 with err. */
static int make_file(const char *path, struct tccl_error *err)
{
    cleanup_close int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    return fd >= 0 ? 0 : tccl_fail(err, "%s: can't be opened: %s", path, strerror(errno));
}

static int open_store(struct tccl_records *records, struct tccl_error *err)
{
    if (make_file(records->path, err) != 0)
        return -1;
    if (sqlite3_open_v2(records->path, &records->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX,
                        NULL) != SQLITE_OK)
        return fail_store(records, err);
    sqlite3_busy_timeout(records->db, BUSY_MS);
    if (bring_up_to_date(records, err) != 0)
        return -1;
    cleanup_free char *sql = put_sql();
    if (!sql)
        return tccl_fail(err, "no memory for %s", records->path);
    if (sqlite3_prepare_v3(records->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &records->put, NULL) !=
            SQLITE_OK ||
        sqlite3_prepare_v3(records->db, put_build_sql, -1, SQLITE_PREPARE_PERSISTENT,
                           &records->put_build, NULL) != SQLITE_OK)
        return fail_store(records, err);
    return 0;
}

int tccl_records_open(const char *path, struct tccl_records **records, struct tccl_error *err)
{
    struct tccl_records *new = calloc(1, sizeof *new);
    *records = NULL;
    if (!new || !(new->path = strdup(path))) {
        free(new);
        return tccl_fail(err, "no memory for %s", path);
    }
    if (open_store(new, err) != 0) {
        tccl_records_close(new);
        return -1;
    }
    *records = new;
    return 0;
}

void tccl_records_close(struct tccl_records *records)
{
    if (!records)
        return;
    sqlite3_finalize(records->put);
    sqlite3_finalize(records->put_build);
    sqlite3_close(records->db);
    free(records->path);
    free(records);
}

/* Binds field i of a normal record, which outlives the statement's run. */
static int bind_field(sqlite3_stmt *statement, int i, const json_t *record)
{
    const struct tccl_record_field *field = &tccl_record_fields[i];
    const json_t *value = json_object_get(record, field->name);
    switch (field->type) {
    case TCCL_RECORD_TEXT:
        return sqlite3_bind_text(statement, i + 1, json_string_value(value),
                                 (int)json_string_length(value), SQLITE_STATIC);
    case TCCL_RECORD_INT:
        return sqlite3_bind_int64(statement, i + 1, json_integer_value(value));
    default:
        return sqlite3_bind_double(statement, i + 1, json_real_value(value));
    }
}

/* Runs a statement once that has its values (rc: of binding them). */
static int run_once(struct tccl_records *records, sqlite3_stmt *statement, int rc,
                    struct tccl_error *err)
{
    if (rc == SQLITE_OK)
        rc = sqlite3_step(statement);
    int answer = rc == SQLITE_DONE ? 0 : fail_store(records, err);
    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
    return answer;
}

static int put_record(struct tccl_records *records, const json_t *record, struct tccl_error *err)
{
    cleanup_json json_t *normal = tccl_record_normal(record, err);
    if (!normal)
        return 1;
    int rc = SQLITE_OK;
    for (int i = 0; i < TCCL_RECORD_OWN && rc == SQLITE_OK; i++)
        rc = bind_field(records->put, i, normal);
    return run_once(records, records->put, rc, err);
}

/* As STEP_START_SQL has it. */
static int build_key(const json_t *normal, char *text, size_t size)
{
    char key[TCCL_RECORD_KEY];
    if (tccl_record_key(normal, key, NULL) != 0)
        return -1;
    snprintf(text, size, "%s/%" JSON_INTEGER_FORMAT, key,
             json_integer_value(json_object_get(normal, "start")));
    return 0;
}

static int put_build(struct tccl_records *records, const json_t *record, struct tccl_error *err)
{
    char key[TCCL_RECORD_KEY + 24];
    sqlite3_stmt *put = records->put_build;
    cleanup_json json_t *normal = tccl_confirmation_normal(record, err);
    if (!normal || build_key(normal, key, sizeof key) != 0)
        return 1;
    const char *built = json_string_value(json_object_get(normal, "built"));
    const char *reason = json_string_value(json_object_get(normal, "built_reason"));
    int rc = sqlite3_bind_text(put, 1, key, -1, SQLITE_STATIC);
    if (rc == SQLITE_OK)
        rc = sqlite3_bind_text(put, 2, built, -1, SQLITE_STATIC);
    if (rc == SQLITE_OK)
        rc = sqlite3_bind_text(put, 3, reason, -1, SQLITE_STATIC);
    if (rc == SQLITE_OK)
        rc = sqlite3_bind_int(put, 4, tccl_built_rank(built));
    return run_once(records, put, rc, err);
}

int tccl_records_put(struct tccl_records *records, const json_t *record, struct tccl_error *err)
{
    return tccl_record_confirms(record) ? put_build(records, record, err)
                                        : put_record(records, record, err);
}

/* A query under construction: text, and the numbers for its '?' in order. */
struct query {
    FILE *sql;
    sqlite3_int64 values[MAX_VALUES];
    int n_values;
};

static void add_value(struct query *query, const char *sql, json_int_t value)
{
    fputs(sql, query->sql);
    query->values[query->n_values++] = value;
}

/* A whole number of a filter that can't be negative; fallback where it is absent or null. */
static int whole(const json_t *filter, const char *name, json_int_t fallback, json_int_t *value,
                 struct tccl_error *err)
{
    const json_t *json = json_object_get(filter, name);
    *value = json_is_integer(json) ? json_integer_value(json) : fallback;
    if (json && !json_is_null(json) && (!json_is_integer(json) || *value < 0))
        return tccl_fail(err, "filter: %s must be a whole number, not negative", name);
    return 0;
}

/* A list of a filter: NULL in *list where it is absent or null; else an array of 0 to max. */
static int list(const json_t *filter, const char *name, size_t max, json_t **list,
                struct tccl_error *err)
{
    *list = json_object_get(filter, name);
    if (json_is_null(*list))
        *list = NULL;
    if (*list && (!json_is_array(*list) || json_array_size(*list) > max))
        return tccl_fail(err, "filter: %s must be a list of at most %zu", name, max);
    return 0;
}

/* "column = job AND step = … AND het_offset = …" */
static void add_job(struct query *query, const char *column, const json_int_t number[static 3])
{
    add_value(query, column, number[0]);
    if (number[1] >= 0)
        add_value(query, " AND step = ?", number[1]);
    if (number[2] >= 0)
        add_value(query, " AND het_offset = ?", number[2]);
    fputc(')', query->sql);
}

static int add_jobs(struct query *query, const json_t *filter, struct tccl_error *err)
{
    json_t *jobs;
    if (list(filter, "jobs", TCCL_FILTER_JOBS, &jobs, err) != 0)
        return -1;
    if (!jobs)
        return 0;
    fputs(json_array_size(jobs) ? " AND (" : " AND (0", query->sql);
    for (size_t i = 0; i < json_array_size(jobs); i++) {
        const json_t *job = json_array_get(jobs, i);
        json_int_t number[3];
        if (whole(job, "job", -1, &number[0], err) != 0 ||
            whole(job, "step", -1, &number[1], err) != 0 ||
            whole(job, "het_offset", -1, &number[2], err) != 0)
            return -1;
        if (number[0] < 1)
            return tccl_fail(err, "filter: each of jobs must be an object with a job");
        add_job(query, i ? " OR (job = ?" : "(job = ?", number);
        add_job(query, " OR (het_job = ?", number);
    }
    fputc(')', query->sql);
    return 0;
}

static int add_users(struct query *query, const json_t *filter, const char *column,
                     struct tccl_error *err)
{
    json_t *users;
    if (list(filter, "users", TCCL_FILTER_USERS, &users, err) != 0)
        return -1;
    if (!users)
        return 0;
    fprintf(query->sql, "%s IN (-1", column);
    for (size_t i = 0; i < json_array_size(users); i++) {
        const json_t *user = json_array_get(users, i);
        if (!json_is_integer(user))
            return tccl_fail(err, "filter: users must be a list of uids");
        add_value(query, ", ?", json_integer_value(user));
    }
    fputc(')', query->sql);
    return 0;
}

/* "after": [start, id] of the last row of the page before. */
static int add_after(struct query *query, const json_t *filter, struct tccl_error *err)
{
    json_t *after;
    if (list(filter, "after", 2, &after, err) != 0)
        return -1;
    if (!after)
        return 0;
    const json_t *start = json_array_get(after, 0), *id = json_array_get(after, 1);
    if (!json_is_integer(start) || !json_is_integer(id))
        return tccl_fail(err, "filter: after must be as the page before gave it");
    add_value(query, " AND (start, id) > (?", json_integer_value(start));
    add_value(query, ", ?)", json_integer_value(id));
    return 0;
}

/* A '+' keeps SQLite from using an index: where jobs are given, theirs is the one to use. */
static int add_conditions(struct query *query, const json_t *filter, int64_t uid,
                          struct tccl_error *err)
{
    json_int_t start, end;
    bool jobs = json_is_array(json_object_get(filter, "jobs"));
    if (whole(filter, "start", 0, &start, err) != 0 || whole(filter, "end", INT64_MAX, &end, err))
        return -1;
    add_value(query, jobs ? " WHERE +start >= ?" : " WHERE start >= ?", start);
    add_value(query, jobs ? " AND +start <= ?" : " AND start <= ?", end);
    if (uid >= 0)
        add_value(query, jobs ? " AND +uid = ?" : " AND uid = ?", uid);
    if (add_users(query, filter, jobs ? " AND +uid" : " AND uid", err) != 0 ||
        add_jobs(query, filter, err) != 0)
        return -1;
    return add_after(query, filter, err);
}

/* tccl_record_key, and the start. */
#define STEP_START_SQL                                                                             \
    "cluster || '/' || job || '/' || het_job || '/' || het_offset || '/' || step || '/' || "       \
    "restart || '/' || run || '/' || start"

/* Writes the SELECT into the query. Returns 0, or -1 with err. */
static int write_select(struct query *query, const json_t *filter, int64_t uid,
                        struct tccl_error *err)
{
    fputs("SELECT id", query->sql);
    for (int i = 0; i < TCCL_RECORD_FIELDS; i++)
        fprintf(query->sql, ", %s", tccl_record_fields[i].name);
    fputs(" FROM records LEFT JOIN builds ON step_start = " STEP_START_SQL, query->sql);
    if (add_conditions(query, filter, uid, err) != 0)
        return -1;
    fputs(" ORDER BY start, id", query->sql);
    return 0;
}

static sqlite3_stmt *prepare(struct tccl_records *records, const json_t *filter, int64_t uid,
                             struct tccl_error *err)
{
    cleanup_free char *sql = NULL;
    size_t size;
    cleanup_free struct query *query = calloc(1, sizeof *query);
    if (!query || !(query->sql = open_memstream(&sql, &size))) {
        tccl_fail(err, "no memory for a query");
        return NULL;
    }
    int rc = write_select(query, filter, uid, err);
    if (fclose(query->sql) != 0 || rc != 0) {
        tccl_fail(err, "no memory for a query");
        return NULL;
    }
    cleanup_stmt sqlite3_stmt *statement = NULL;
    rc = sqlite3_prepare_v2(records->db, sql, -1, &statement, NULL);
    for (int i = 0; i < query->n_values && rc == SQLITE_OK; i++)
        rc = sqlite3_bind_int64(statement, i + 1, query->values[i]);
    if (rc != SQLITE_OK) {
        fail_store(records, err);
        return NULL;
    }
    return tccl_steal(statement);
}

/* A text that is no UTF-8 (a damaged file) must not hide the other records. */
static json_t *column_text(const char *text)
{
    json_t *json = json_string(text ? text : "");
    return json ? json : json_string("");
}

static json_t *column(sqlite3_stmt *row, int i)
{
    switch (tccl_record_fields[i].type) {
    case TCCL_RECORD_TEXT:
        return column_text((const char *)sqlite3_column_text(row, i + 1));
    case TCCL_RECORD_INT:
        return json_integer(sqlite3_column_int64(row, i + 1));
    default:
        return json_real(sqlite3_column_double(row, i + 1));
    }
}

/* What was built tells more of an applied ring than that it was given out. */
static int show_built(json_t *record)
{
    const char *state = json_string_value(json_object_get(record, "state"));
    const char *built = json_string_value(json_object_get(record, "built"));
    if (strcmp(state, "applied") != 0 || strcmp(built, "differs") != 0)
        return 0;
    int failed = json_object_set(record, "state", json_object_get(record, "built"));
    return failed ? -1 : json_object_set(record, "reason", json_object_get(record, "built_reason"));
}

static json_t *read_row(sqlite3_stmt *row)
{
    cleanup_json json_t *record = json_object();
    for (int i = 0; i < TCCL_RECORD_FIELDS; i++)
        if (json_object_set_new(record, tccl_record_fields[i].name, column(row, i)) != 0)
            return NULL;
    return show_built(record) == 0 ? tccl_steal(record) : NULL;
}

/* What a page may hold, and holds. */
struct page {
    json_t *nodes, *states; /* of the filter, NULL: any */
    json_int_t limit;
    size_t max_bytes, bytes;
    int rows, max_rows;
    json_t *records;
    json_int_t last_start, last_id;
};

/* A list of texts of a filter, or NULL in *texts. */
static int list_texts(const json_t *filter, const char *name, size_t max, json_t **texts,
                      struct tccl_error *err)
{
    if (list(filter, name, max, texts, err) != 0)
        return -1;
    for (size_t i = 0; i < json_array_size(*texts); i++)
        if (!json_is_string(json_array_get(*texts, i)))
            return tccl_fail(err, "filter: %s must be a list of names", name);
    return 0;
}

static int begin_page(struct page *page, const json_t *filter, size_t max_bytes,
                      struct tccl_error *err)
{
    if (list_texts(filter, "nodes", TCCL_FILTER_NODES, &page->nodes, err) != 0 ||
        list_texts(filter, "states", TCCL_FILTER_STATES, &page->states, err) != 0 ||
        whole(filter, "limit", INT64_MAX, &page->limit, err) != 0)
        return -1;
    if (page->limit == 0)
        return tccl_fail(err, "filter: limit must be at least 1");
    page->max_bytes = max_bytes;
    page->bytes = 2; /* [] */
    page->max_rows = ROWS_LOOKED_AT / (1 + (int)json_array_size(page->nodes));
    page->records = json_array();
    return page->records ? 0 : tccl_fail(err, "no memory for a query");
}

static bool in_states(const json_t *states, const json_t *record)
{
    const char *state = json_string_value(json_object_get(record, "state"));
    for (size_t i = 0; i < json_array_size(states); i++)
        if (!strcmp(state, json_string_value(json_array_get(states, i))))
            return true;
    return states == NULL;
}

static bool on_nodes(const json_t *nodes, const json_t *record)
{
    const char *ran_on = json_string_value(json_object_get(record, "nodes"));
    for (size_t i = 0; i < json_array_size(nodes); i++)
        if (tccl_hosts_contain(ran_on, json_string_value(json_array_get(nodes, i))))
            return true;
    return nodes == NULL;
}

/* Takes the row into the page, or passes over it. Returns 1 when the page is full: the row is not
 * in it; else 0; -1 without memory. */
static int take_row(struct page *page, sqlite3_stmt *row)
{
    size_t count = json_array_size(page->records);
    if ((json_int_t)count >= page->limit || page->rows >= page->max_rows)
        return 1;
    cleanup_json json_t *record = read_row(row);
    if (!record)
        return -1;
    if (in_states(page->states, record) && on_nodes(page->nodes, record)) {
        size_t bytes = json_dumpb(record, NULL, 0, JSON_COMPACT) + 1;
        if (count > 0 && page->bytes + bytes > page->max_bytes)
            return 1;
        page->bytes += bytes;
        if (json_array_append(page->records, record) != 0)
            return -1;
    }
    page->rows++;
    page->last_id = sqlite3_column_int64(row, 0);
    page->last_start = json_integer_value(json_object_get(record, "start"));
    return 0;
}

/* The filter that goes on behind the page. */
static json_t *next_filter(const json_t *filter, const struct page *page)
{
    cleanup_json json_t *next = filter ? json_copy((json_t *)filter) : json_object();
    json_t *after = json_pack("[I, I]", page->last_start, page->last_id);
    return json_object_set_new(next, "after", after) == 0 ? tccl_steal(next) : NULL;
}

/* Fills the page. *more: there are rows behind it. Returns 0, or -1 with err. */
static int fill_page(struct tccl_records *records, sqlite3_stmt *statement, struct page *page,
                     bool *more, struct tccl_error *err)
{
    int rc = SQLITE_ROW, taken = 0;
    while (taken == 0 && (rc = sqlite3_step(statement)) == SQLITE_ROW)
        taken = take_row(page, statement);
    if (taken < 0)
        return tccl_fail(err, "no memory for a query");
    *more = taken == 1;
    return *more || rc == SQLITE_DONE ? 0 : fail_store(records, err);
}

json_t *tccl_records_query(struct tccl_records *records, const json_t *filter, int64_t uid,
                           size_t max_bytes, json_t **next, struct tccl_error *err)
{
    struct page page = {0};
    bool more = false;
    *next = NULL;
    if (filter && !json_is_object(filter)) {
        tccl_fail(err, "filter: must be an object");
        return NULL;
    }
    cleanup_stmt sqlite3_stmt *statement = prepare(records, filter, uid, err);
    if (!statement || begin_page(&page, filter, max_bytes, err) != 0)
        return NULL;
    cleanup_json json_t *found = page.records;
    if (fill_page(records, statement, &page, &more, err) != 0)
        return NULL;
    if (more && !(*next = next_filter(filter, &page))) {
        tccl_fail(err, "no memory for a query");
        return NULL;
    }
    return tccl_steal(found);
}
