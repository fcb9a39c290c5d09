/* store.c: the store's file, its schema and how that came about, and what is removed of old age. */
#include "records/store.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "records/facts.h"

enum {
    APPLICATION = 0x7463636c, /* "tccl", in the file's header */
    BUSY_MS = 250,
    READER_BUSY_MS = 2000,
    VACUUM_PAGES = 256, /* given back to the file system at a time */
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
    /* record_start: the end of step_start. records_facts holds all that summaries and filters look
     * at (facts.h), in the order in which pages go. */
    "ALTER TABLE records ADD COLUMN policy TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE records ADD COLUMN facts BLOB NOT NULL DEFAULT x'';"
    "ALTER TABLE builds ADD COLUMN record_start INTEGER NOT NULL DEFAULT 0;"
    "UPDATE builds SET record_start ="
    " CAST(substr(step_start, length(rtrim(step_start, '0123456789')) + 1) AS INTEGER);"
    "CREATE INDEX builds_by_start ON builds (record_start);"
    "UPDATE records SET facts = " TCCL_FACTS_SQL ";"
    "CREATE INDEX records_facts ON records (start, id, facts, partition, account, policy);"
    "DROP INDEX records_by_start;",
    "ALTER TABLE records ADD COLUMN array_job_id INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE records ADD COLUMN array_task_id INTEGER NOT NULL DEFAULT 0;"
    "CREATE INDEX records_by_array ON records (array_job_id, array_task_id, step)"
    " WHERE array_job_id > 0;",
};
enum { VERSION = sizeof migrations / sizeof migrations[0] };

int tccl_store_fail(const struct tccl_records *records, struct tccl_error *err)
{
    int code = records->db ? sqlite3_errcode(records->db) : SQLITE_NOMEM;
    if (code == SQLITE_NOTADB || code == SQLITE_CORRUPT)
        return tccl_fail(err, "%s: %s; move it away, and a new one is made", records->path,
                         sqlite3_errstr(code));
    return tccl_fail(err, "%s: %s", records->path,
                     records->db ? sqlite3_errmsg(records->db) : sqlite3_errstr(code));
}

int tccl_store_execute(struct tccl_records *records, const char *sql, struct tccl_error *err)
{
    return sqlite3_exec(records->db, sql, NULL, NULL, NULL) == SQLITE_OK
               ? 0
               : tccl_store_fail(records, err);
}

int tccl_store_number(struct tccl_records *records, const char *sql, int64_t *number,
                      struct tccl_error *err)
{
    cleanup_stmt sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(records->db, sql, -1, &statement, NULL) != SQLITE_OK ||
        sqlite3_step(statement) != SQLITE_ROW)
        return tccl_store_fail(records, err);
    *number = sqlite3_column_int64(statement, 0);
    return 0;
}

int tccl_store_prepare(struct tccl_records *records, const char *sql, sqlite3_stmt **statement,
                       struct tccl_error *err)
{
    int rc = sqlite3_prepare_v3(records->db, sql, -1, SQLITE_PREPARE_PERSISTENT, statement, NULL);
    return rc == SQLITE_OK ? 0 : tccl_store_fail(records, err);
}

/* Is the file a store of ours, or empty? Sets its version, 0 if empty. */
static int recognise(struct tccl_records *records, int64_t *version, struct tccl_error *err)
{
    int64_t application, tables;
    if (tccl_store_number(records, "PRAGMA application_id", &application, err) != 0 ||
        tccl_store_number(records, "PRAGMA user_version", version, err) != 0 ||
        tccl_store_number(records, "SELECT count(*) FROM sqlite_master", &tables, err) != 0)
        return -1;
    if (application != APPLICATION && (tables > 0 || *version != 0))
        return tccl_fail(err, "%s: a database, but not one of tccl's records", records->path);
    if (*version > VERSION)
        return tccl_fail(err,
                         "%s: made by a newer version (schema %" PRId64
                         ", this one knows %d); update tccld",
                         records->path, *version, VERSION);
    return 0;
}

static int migrate(struct tccl_records *records, struct tccl_error *err)
{
    char mark[96];
    int64_t version;
    if (recognise(records, &version, err) != 0)
        return -1;
    for (; version < VERSION; version++)
        if (tccl_store_execute(records, migrations[version], err) != 0)
            return -1;
    snprintf(mark, sizeof mark, "PRAGMA application_id = %d; PRAGMA user_version = %d", APPLICATION,
             VERSION);
    return tccl_store_execute(records, mark, err);
}

/* The version is looked at again inside the transaction, which only one process at a time is in. */
static int bring_up_to_date(struct tccl_records *records, struct tccl_error *err)
{
    int64_t version;
    if (recognise(records, &version, err) != 0)
        return -1;
    if (version == 0 && tccl_store_execute(records, "PRAGMA auto_vacuum = INCREMENTAL", err) != 0)
        return -1; /* can only be chosen for an empty file */
    if (version < VERSION) {
        if (tccl_store_execute(records, "BEGIN IMMEDIATE", err) != 0)
            return -1;
        if (migrate(records, err) != 0 || tccl_store_execute(records, "COMMIT", err) != 0) {
            tccl_store_execute(records, "ROLLBACK", NULL);
            return -1;
        }
    }
    return tccl_store_execute(records,
                              "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
                              "PRAGMA journal_size_limit = 16777216",
                              err);
}

/* SQLite would make the file readable for all. Returns 0, or -1 with err. */
static int make_file(const char *path, struct tccl_error *err)
{
    cleanup_close int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    return fd >= 0 ? 0 : tccl_fail(err, "%s: can't be opened: %s", path, strerror(errno));
}

static int open_file(struct tccl_records *records, int flags, int busy_ms, struct tccl_error *err)
{
    if (sqlite3_open_v2(records->path, &records->db, flags | SQLITE_OPEN_NOMUTEX, NULL) !=
            SQLITE_OK ||
        tccl_facts_function(records->db) != SQLITE_OK)
        return tccl_store_fail(records, err);
    sqlite3_busy_timeout(records->db, busy_ms);
    return 0;
}

static struct tccl_records *new_records(const char *path, struct tccl_error *err)
{
    struct tccl_records *new = calloc(1, sizeof *new);
    if (new && (new->path = strdup(path)))
        return new;
    free(new);
    tccl_fail(err, "no memory for %s", path);
    return NULL;
}

int tccl_records_open(const char *path, struct tccl_records **records, struct tccl_error *err)
{
    *records = NULL;
    struct tccl_records *new = new_records(path, err);
    if (!new)
        return -1;
    if (make_file(path, err) != 0 || open_file(new, SQLITE_OPEN_READWRITE, BUSY_MS, err) != 0 ||
        bring_up_to_date(new, err) != 0) {
        tccl_records_close(new);
        return -1;
    }
    *records = new;
    return 0;
}

/* As tccl_records_older, of one that was opened. */
static int is_older(struct tccl_records *records, int64_t *count, struct tccl_error *err)
{
    int64_t version;
    if (recognise(records, &version, err) != 0)
        return -1;
    if (version == 0 || version == VERSION)
        return 0;
    return tccl_store_number(records, "SELECT coalesce(max(id), 0) FROM records", count, err) == 0
               ? 1
               : -1;
}

int tccl_records_older(const char *path, int64_t *count, struct tccl_error *err)
{
    *count = 0;
    if (access(path, F_OK) != 0)
        return 0;
    struct tccl_records *records = new_records(path, err);
    if (!records)
        return -1;
    int older = open_file(records, SQLITE_OPEN_READWRITE, BUSY_MS, err) == 0
                    ? is_older(records, count, err)
                    : -1;
    tccl_records_close(records);
    return older;
}

int tccl_store_open_reader(const char *path, struct tccl_records **records, struct tccl_error *err)
{
    int64_t version;
    *records = NULL;
    struct tccl_records *new = new_records(path, err);
    if (!new)
        return -1;
    int failed = open_file(new, SQLITE_OPEN_READONLY, READER_BUSY_MS, err) != 0 ||
                 recognise(new, &version, err) != 0;
    if (!failed && version < VERSION)
        failed = tccl_fail(err, "%s: made by an older version; start tccld there again", path);
    if (failed) {
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
    sqlite3_finalize(records->renew);
    sqlite3_close(records->db);
    free(records->path);
    free(records);
}

/* Of one of the two tables. Returns how many were removed, or -1 with err. */
static int purge_table(struct tccl_records *records, const char *sql, int64_t before, int most,
                       struct tccl_error *err)
{
    cleanup_stmt sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(records->db, sql, -1, &statement, NULL) != SQLITE_OK ||
        sqlite3_bind_int64(statement, 1, before) != SQLITE_OK ||
        sqlite3_bind_int(statement, 2, most) != SQLITE_OK || sqlite3_step(statement) != SQLITE_DONE)
        return tccl_store_fail(records, err);
    return sqlite3_changes(records->db);
}

/* Gives pages back that are free, but for a quarter of the file, which new records will need. */
static int shrink(struct tccl_records *records, struct tccl_error *err)
{
    char sql[64];
    int64_t pages, unused;
    if (tccl_store_number(records, "PRAGMA page_count", &pages, err) != 0 ||
        tccl_store_number(records, "PRAGMA freelist_count", &unused, err) != 0)
        return -1;
    snprintf(sql, sizeof sql, "PRAGMA incremental_vacuum(%d)", VACUUM_PAGES);
    return unused > VACUUM_PAGES && unused > pages / 4 ? tccl_store_execute(records, sql, err) : 0;
}

/* What was built goes after the record that it is shown with. */
static int purge_both(struct tccl_records *records, int64_t before, int most,
                      struct tccl_error *err)
{
    int64_t first;
    int removed = purge_table(records,
                              "DELETE FROM records WHERE id IN (SELECT id FROM records INDEXED BY"
                              " records_facts WHERE start < ?1 ORDER BY start, id LIMIT ?2)",
                              before, most, err);
    if (removed < 0 ||
        tccl_store_number(records, "SELECT coalesce(min(start), 9223372036854775807) FROM records",
                          &first, err) != 0)
        return -1;
    int builds = purge_table(records,
                             "DELETE FROM builds WHERE step_start IN (SELECT step_start FROM"
                             " builds INDEXED BY builds_by_start WHERE record_start < ?1"
                             " ORDER BY record_start LIMIT ?2)",
                             first < before ? first : before, most, err);
    return builds < 0 || builds > removed ? builds : removed;
}

int tccl_records_purge(struct tccl_records *records, int64_t before, int most,
                       struct tccl_error *err)
{
    if (tccl_records_begin(records, err) != 0)
        return -1;
    int removed = purge_both(records, before, most, err);
    if (removed < 0) {
        tccl_records_give_up(records);
        return -1;
    }
    return tccl_records_commit(records, err) == 0 && shrink(records, err) == 0 ? removed : -1;
}
