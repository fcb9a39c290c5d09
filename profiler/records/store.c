/* store.c: the SQLite file of the store: its schema, and the removal of old records. */
#include "records/store.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fileio.h"
#include "client/step-fields.h"

enum {
    APPLICATION = 0x7463636c, /* "tccl", in the file's header, */
    SCHEMA = 10, /* and which of its schemas, but for columns and facts: these are added */
    BUSY_MS = 250,
    REMOTE_BUSY_MS = 12000, /* longer than any question takes */
    READER_BUSY_MS = 2000,
    VACUUM_PAGES = 256,  /* returned to the file system at a time */
    LOOK_OPCODES = 1000, /* of SQLite's machine, between two looks at the clock: some 50 rows */
};

/* The key begins with the job, so its index serves queries by job. record_start: the end of
 * step_start. What confirmations say is in builds, by which it finds its record whichever comes
 * first, and in the record. */
static const char schema[] =
    "CREATE TABLE records (id INTEGER PRIMARY KEY, $columns,"
    " arrived INTEGER NOT NULL, UNIQUE ($key, uid));"
    "CREATE INDEX records_by_user ON records (uid, start);"
    "CREATE INDEX records_by_owner ON records (job, cluster, uid, start);"
    "CREATE INDEX records_by_het_job ON records (het_job, step);"
    "CREATE INDEX records_by_array ON records (array_job_id, array_task_id, step)"
    " WHERE array_job_id > 0;"
    "CREATE TABLE builds (step_start TEXT PRIMARY KEY, $built_columns,"
    " built_rank INTEGER NOT NULL, record_start INTEGER NOT NULL) WITHOUT ROWID;"
    "CREATE INDEX builds_by_start ON builds (record_start);"
    "CREATE INDEX records_by_time ON records (start) WHERE arrived = 0;"
    "CREATE INDEX records_misdated ON records (arrived) WHERE arrived > 0;"
    "CREATE TABLE clock (id INTEGER PRIMARY KEY CHECK (id = 0), now INTEGER NOT NULL);"
    "CREATE TABLE lost (node TEXT NOT NULL, ledger TEXT NOT NULL, records INTEGER NOT NULL,"
    " first INTEGER NOT NULL, last INTEGER NOT NULL, PRIMARY KEY (node, ledger)) WITHOUT ROWID;";

/* It covers all that summaries and filters look at (store.h). */
#define NAME(member) ", " #member
#define NOTHING(member)
static const char fact_index[] =
    "CREATE INDEX records_facts ON records (start" TCCL_FACTS(NAME, NAME, NAME)
        TCCL_FIGURES(NAME, NAME, NAME, NOTHING) "$filters)";

int tccl_store_fail(struct tccl_records *records, struct tccl_error *err)
{
    int code = records->db ? sqlite3_errcode(records->db) & 0xff : SQLITE_NOMEM;
    if (code == SQLITE_INTERRUPT)
        return tccl_store_look(records, err);
    records->damaged = records->damaged || code == SQLITE_NOTADB || code == SQLITE_CORRUPT;
    records->broken = records->broken || records->damaged || code == SQLITE_IOERR ||
                      code == SQLITE_READONLY || code == SQLITE_CANTOPEN;
    bool reads = records->db && sqlite3_db_readonly(records->db, "main") == 1;
    if (code == SQLITE_NOTADB || code == SQLITE_CORRUPT)
        return tccl_fail(err, "%s: %s%s", records->path, sqlite3_errstr(code),
                         reads ? "" : "; move it away, and a new one is made");
    if (code == SQLITE_CANTOPEN && records->db && sqlite3_system_errno(records->db))
        return tccl_fail(err, "%s: can't be opened: %s", records->path,
                         strerror(sqlite3_system_errno(records->db)));
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

int tccl_store_prepare(struct tccl_records *records, const char *text, sqlite3_stmt **statement,
                       struct tccl_error *err)
{
    cleanup_free char *sql = tccl_sql(text, err);
    if (!sql)
        return -1;
    int rc = sqlite3_prepare_v3(records->db, sql, -1, SQLITE_PREPARE_PERSISTENT, statement, NULL);
    return rc == SQLITE_OK ? 0 : tccl_store_fail(records, err);
}

/* Is the file a store of ours, or empty? Returns 1, 0 if it is empty; -1 with err. */
static int recognise(struct tccl_records *records, struct tccl_error *err)
{
    int64_t application = 0, found = 0, tables = 0;
    if (tccl_store_number(records, "PRAGMA application_id", &application, err) != 0 ||
        tccl_store_number(records, "PRAGMA user_version", &found, err) != 0 ||
        tccl_store_number(records, "SELECT count(*) FROM sqlite_master", &tables, err) != 0)
        return -1;
    if (application == 0 && found == 0 && tables == 0)
        return 0;
    if (application != APPLICATION)
        return tccl_fail(err, "%s: a database, but not one of tccl's records", records->path);
    if (found != SCHEMA)
        return tccl_fail(err,
                         "%s: records of another version (schema %" PRId64
                         ", this one has %d); move it away, and a new one is made",
                         records->path, found, SCHEMA);
    return 1;
}

/* Columns of a newer version, which one of the tables lacks: records from before have 0 or ""
 * there. Adds them, unless only their number is wanted. Returns how many, or -1 with err. */
static int missing_columns(struct tccl_records *records, bool add, struct tccl_error *err)
{
    static const char *const tables[] = {"records", "builds"};
    int count = 0;
    for (int i = 0; i < 2 * tccl_n_step_fields; i++) {
        const struct tccl_field *field = &tccl_step_fields[i / 2];
        char sql[256];
        if ((!tccl_sql_of_builds(field) && (i % 2 || !(field->use & TCCL_IN_RECORD))) ||
            sqlite3_table_column_metadata(records->db, NULL, tables[i % 2], field->name, NULL, NULL,
                                          NULL, NULL, NULL) == SQLITE_OK)
            continue;
        count++;
        int length = snprintf(sql, sizeof(sql), "ALTER TABLE %s ADD COLUMN ", tables[i % 2]);
        tccl_sql_column(sql + length, sizeof(sql) - (size_t)length, field);
        if (add && tccl_store_execute(records, sql, err) != 0)
            return -1;
    }
    return count;
}

/* Makes what is missing of the tables, but the index of facts; in a transaction, in which all is
 * looked at again, as another process may have made the store meanwhile. */
static int make_tables(struct tccl_records *records, struct tccl_error *err)
{
    char mark[96];
    int made = recognise(records, err);
    cleanup_free char *sql = tccl_sql(schema, err);
    snprintf(mark, sizeof(mark), "PRAGMA application_id = %d; PRAGMA user_version = %d",
             APPLICATION, SCHEMA);
    if (made < 0 || !sql || (made == 0 && tccl_store_execute(records, sql, err) != 0) ||
        missing_columns(records, true, err) < 0)
        return -1;
    return tccl_store_execute(records, mark, err);
}

/* Is the index of facts there, as it is made now? 0 or 1; -1 with err. */
static int has_index(struct tccl_records *records, const char *sql, struct tccl_error *err)
{
    cleanup_stmt sqlite3_stmt *statement = NULL;
    if (tccl_store_prepare(records, "SELECT 1 FROM sqlite_master WHERE sql = ?", &statement, err) !=
            0 ||
        sqlite3_bind_text(statement, 1, sql, -1, SQLITE_STATIC) != SQLITE_OK)
        return -1;
    int rc = sqlite3_step(statement);
    return rc == SQLITE_ROW ? 1 : rc == SQLITE_DONE ? 0 : tccl_store_fail(records, err);
}

static int make_index(struct tccl_records *records, const char *sql, struct tccl_error *err)
{
    if (tccl_store_execute(records,
                           "BEGIN IMMEDIATE; DROP INDEX IF EXISTS records_facts;"
                           "DROP INDEX IF EXISTS records_measured",
                           err) == 0 &&
        tccl_store_execute(records, sql, err) == 0 &&
        tccl_store_execute(records, "COMMIT", err) == 0)
        return 0;
    tccl_store_execute(records, "ROLLBACK", NULL);
    return -1;
}

/* auto_vacuum can only be chosen for an empty file. */
static int begin_store(struct tccl_records *records, struct tccl_error *err)
{
    if (tccl_store_execute(records, "PRAGMA auto_vacuum = INCREMENTAL; BEGIN IMMEDIATE", err) != 0)
        return -1;
    if (make_tables(records, err) == 0 && tccl_store_execute(records, "COMMIT", err) == 0)
        return 0;
    tccl_store_execute(records, "ROLLBACK", NULL);
    return -1;
}

/* Linux's numbers of file systems that other machines may write to. A journal in shared memory
 * (WAL) is of this machine alone, and SQLite can't tell. */
bool tccl_store_is_remote(long file_system)
{
    static const unsigned remote[] = {
        0x6969,     /* NFS */
        0x517b,     /* SMB */
        0xff534d42, /* CIFS */
        0xfe534d42, /* SMB 2 */
        0x0bd00bd0, /* Lustre */
        0x47504653, /* GPFS */
        0x19830326, /* BeeGFS */
        0x00c36400, /* Ceph */
        0x5346414f, /* AFS */
        0x01021997, /* 9p */
        0x7461636f, /* OCFS2 */
        0x01161970, /* GFS2 */
        0x65735546, /* FUSE: it may be any of them */
    };
    for (size_t i = 0; i < sizeof(remote) / sizeof(*remote); i++)
        if ((unsigned)file_system == remote[i])
            return true;
    return false;
}

/* Readers and the writer wait for each other without WAL. */
static const char *journal_mode(struct tccl_records *records)
{
    struct statfs status;
    if (statfs(records->path, &status) != 0 || !tccl_store_is_remote((long)status.f_type))
        return "PRAGMA journal_mode = WAL";
    sqlite3_busy_timeout(records->db, REMOTE_BUSY_MS);
    return "PRAGMA journal_mode = TRUNCATE";
}

static int open_tables(struct tccl_records *records, struct tccl_error *err)
{
    int made = recognise(records, err);
    if (made < 0 ||
        ((made == 0 || missing_columns(records, false, err) > 0) && begin_store(records, err) != 0))
        return -1;
    if (tccl_store_execute(records, journal_mode(records), err) != 0 ||
        tccl_store_execute(records,
                           "PRAGMA synchronous = FULL;"
                           " PRAGMA journal_size_limit = 16777216",
                           err) != 0)
        return -1;
    /* Where the disk is full, what was written ahead may be all that there is room for. */
    tccl_store_execute(records, "PRAGMA wal_checkpoint(TRUNCATE)", NULL);
    /* With the index of facts the store is whole. */
    cleanup_free char *sql = tccl_sql(fact_index, err);
    int there = sql ? has_index(records, sql, err) : -1;
    return there == 0 ? make_index(records, sql, err) : there > 0 ? 0 : -1;
}

/* Creates the file before SQLite does, which would make it world-readable. Returns 0, or -1 with
 * err. */
static int make_file(const char *path, struct tccl_error *err)
{
    cleanup_close int fd = tccl_open_own(path, O_RDWR | O_CREAT, 0600, err);
    return fd >= 0 ? 0 : -1;
}

int tccl_store_look(const struct tccl_records *records, struct tccl_error *err)
{
    if (records->stop && atomic_load(records->stop))
        return tccl_fail(err, "the question was given up: nobody waits for its answer");
    if (records->most_ms && tccl_now_ms() > records->until_ms)
        return tccl_fail(err,
                         "the question took longer than %g s and was given up: ask for a shorter "
                         "time, fewer jobs or fewer nodes",
                         records->most_ms / 1e3);
    return 0;
}

bool tccl_records_gave_up(const struct tccl_records *records)
{
    return tccl_store_look(records, NULL) != 0;
}

/* SQLite's progress handler. Once it has said that a question ends, that stays so. */
static int is_over(void *records)
{
    return tccl_records_gave_up(records);
}

void tccl_records_bound(struct tccl_records *records, int most_ms, const atomic_bool *stop)
{
    records->most_ms = most_ms;
    records->stop = stop;
    sqlite3_progress_handler(records->db, LOOK_OPCODES, most_ms || stop ? is_over : NULL, records);
}

void tccl_store_ask(struct tccl_records *records)
{
    records->until_ms = tccl_now_ms() + records->most_ms;
    tccl_owners_forget(records->owners);
}

static int open_file(struct tccl_records *records, int flags, int busy_ms, struct tccl_error *err)
{
    if (sqlite3_open_v2(records->path, &records->db, flags | SQLITE_OPEN_NOMUTEX, NULL) !=
            SQLITE_OK ||
        tccl_filter_functions(records) != SQLITE_OK)
        return tccl_store_fail(records, err);
    if (!(records->owners = tccl_owners_new(records->db)))
        return tccl_fail(err, "out of memory for %s", records->path);
    if (tccl_owners_function(records->owners) != SQLITE_OK)
        return tccl_store_fail(records, err);
    sqlite3_busy_timeout(records->db, busy_ms);
    return 0;
}

static struct tccl_records *new_records(const char *path, struct tccl_error *err)
{
    struct tccl_records *new = calloc(1, sizeof(*new));
    if (new && (new->path = strdup(path)))
        return new;
    free(new);
    return tccl_fail_null(err, "out of memory for %s", path);
}

int tccl_records_open(const char *path, const atomic_bool *stop, struct tccl_records **records,
                      struct tccl_error *err)
{
    struct tccl_error why = {0};
    *records = NULL;
    struct tccl_records *new = new_records(path, err);
    if (!new)
        return -1;
    int rc = make_file(path, err) != 0 ? -1 : open_file(new, SQLITE_OPEN_READWRITE, BUSY_MS, err);
    if (rc == 0)
        tccl_records_bound(new, 0, stop);
    if (rc == 0 && (rc = open_tables(new, &why)) != 0 && tccl_records_gave_up(new))
        tccl_fail(err, "%s: records of an older version are taken over at the next start", path);
    if (rc != 0) {
        tccl_fail_with(err, &why);
        tccl_records_close(new);
        return -1;
    }
    tccl_records_bound(new, 0, NULL);
    *records = new;
    return 0;
}

int tccl_store_open_plain(const char *path, const char *sql, struct tccl_records **records,
                          struct tccl_error *err)
{
    struct tccl_records *new = *records = new_records(path, err);
    return !new || make_file(path, err) != 0 ||
                   open_file(new, SQLITE_OPEN_READWRITE, BUSY_MS, err) != 0
               ? -1
               : tccl_store_execute(new, sql, err);
}

/* SQLite would wait for ever to open a pipe, and follow a link. Not opened here: closing it would
 * take the writer's locks away. */
static int check_file(const char *path, struct tccl_error *err)
{
    struct stat status;
    if (lstat(path, &status) != 0)
        return 0; /* SQLite says so */
    if (!S_ISREG(status.st_mode))
        return tccl_fail(err, "%s: is not a regular file", path);
    if (geteuid() == 0 && status.st_nlink != 1)
        return tccl_fail(err, "%s: has another name (a hard link)", path);
    return 0;
}

int tccl_records_open_reader(const char *path, struct tccl_records **records,
                             struct tccl_error *err)
{
    *records = NULL;
    struct tccl_records *new = new_records(path, err);
    if (!new)
        return -1;
    int64_t whole = 0;
    int made =
        check_file(path, err) == 0 && open_file(new, SQLITE_OPEN_READONLY, READER_BUSY_MS, err) == 0
            ? recognise(new, err)
            : -1;
    if (made == 0)
        tccl_fail(err, "%s: it is empty", path);
    if (made == 1 && tccl_store_number(new,
                                       "SELECT count(*) FROM sqlite_master"
                                       " WHERE name = 'records_facts'",
                                       &whole, err) != 0)
        made = -1;
    if (made == 1 && missing_columns(new, false, err) > 0)
        made = tccl_fail(err, "%s: records of an older version: start this version's tccld once",
                         path);
    if (made == 1 && !whole)
        made = tccl_fail(
            err, "%s: records of an older version are taken over: ask again in a minute", path);
    if (made <= 0) {
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
    sqlite3_finalize(records->one);
    sqlite3_finalize(records->renew);
    tccl_owners_free(records->owners);
    sqlite3_close(records->db);
    free(records->path);
    free(records);
}

/* The newest record that is not misdated. */
#define BY_TIME "FROM records INDEXED BY records_by_time WHERE arrived = 0 ORDER BY start"

int tccl_records_time(struct tccl_records *records, int64_t *believed, int64_t *newest,
                      struct tccl_error *err)
{
    if (tccl_store_number(records, "SELECT coalesce((SELECT now FROM clock), 0)", believed, err) !=
        0)
        return -1;
    return tccl_store_number(records, "SELECT coalesce((SELECT start " BY_TIME " DESC LIMIT 1), 0)",
                             newest, err);
}

int tccl_records_set_time(struct tccl_records *records, int64_t believed, struct tccl_error *err)
{
    char sql[80];
    snprintf(sql, sizeof(sql), "INSERT OR REPLACE INTO clock VALUES (0, %" PRId64 ")", believed);
    return tccl_store_execute(records, sql, err);
}

/* Removes rows of one of the two tables. Returns how many, or -1 with err. */
static int purge_table(struct tccl_records *records, const char *sql, int64_t before, int most,
                       struct tccl_error *err)
{
    cleanup_stmt sqlite3_stmt *statement = NULL;
    if (tccl_store_prepare(records, sql, &statement, err) != 0)
        return -1;
    if (sqlite3_bind_int64(statement, 1, before) != SQLITE_OK ||
        sqlite3_bind_int(statement, 2, most) != SQLITE_OK || sqlite3_step(statement) != SQLITE_DONE)
        return tccl_store_fail(records, err);
    return sqlite3_changes(records->db);
}

/* Returns free pages beyond a quarter of the file, which new records will need. */
static int shrink(struct tccl_records *records, struct tccl_error *err)
{
    char sql[64];
    int64_t pages = 0, unused = 0;
    if (tccl_store_number(records, "PRAGMA page_count", &pages, err) != 0 ||
        tccl_store_number(records, "PRAGMA freelist_count", &unused, err) != 0)
        return -1;
    snprintf(sql, sizeof(sql), "PRAGMA incremental_vacuum(%d)", VACUUM_PAGES);
    return unused > VACUUM_PAGES && unused > pages / 4 ? tccl_store_execute(records, sql, err) : 0;
}

/* With what was built: by its time, nothing would find that. */
static int purge_misdated(struct tccl_records *records, int64_t before, int most,
                          struct tccl_error *err)
{
#define THESE                                                                                      \
    " FROM records INDEXED BY records_misdated WHERE arrived > 0 AND arrived < ?1"                 \
    " ORDER BY arrived, id LIMIT ?2)"
    int builds =
        purge_table(records, "DELETE FROM builds WHERE step_start IN (SELECT $step_start" THESE,
                    before, most, err);
    if (builds < 0)
        return -1;
    return purge_table(records, "DELETE FROM records WHERE id IN (SELECT id" THESE, before, most,
                       err);
#undef THESE
}

/* A confirmation is removed after the record that it belongs to. */
static int purge_both(struct tccl_records *records, int64_t before, int64_t arrived, int most,
                      struct tccl_error *err)
{
    int64_t first = 0;
    char lost[64]; /* so long ago that it is not missed any more */
    snprintf(lost, sizeof(lost), "DELETE FROM lost WHERE last < %" PRId64, before);
    int removed = purge_table(records,
                              "DELETE FROM records WHERE id IN (SELECT id FROM records INDEXED BY"
                              " records_by_time WHERE start < ?1 AND arrived = 0"
                              " ORDER BY start, id LIMIT ?2)",
                              before, most, err);
    if (removed == 0)
        removed = purge_misdated(records, arrived, most, err);
    if (removed < 0 || tccl_store_execute(records, lost, err) != 0 ||
        tccl_store_number(records,
                          "SELECT coalesce((SELECT start " BY_TIME " LIMIT 1),"
                          " 9223372036854775807)",
                          &first, err) != 0)
        return -1;
    int builds = purge_table(records,
                             "DELETE FROM builds WHERE step_start IN (SELECT step_start FROM"
                             " builds INDEXED BY builds_by_start WHERE record_start < ?1"
                             " AND record_start NOT IN"
                             " (SELECT start FROM records WHERE arrived > 0)"
                             " ORDER BY record_start LIMIT ?2)",
                             first < before ? first : before, most, err);
    return builds < 0 || builds > removed ? builds : removed;
}

int tccl_records_purge(struct tccl_records *records, int64_t before, int64_t arrived, int most,
                       struct tccl_error *err)
{
    if (tccl_records_begin(records, err) != 0)
        return -1;
    int removed = purge_both(records, before, arrived, most, err);
    if (removed < 0) {
        tccl_records_give_up(records);
        return -1;
    }
    return tccl_records_commit(records, err) == 0 && shrink(records, err) == 0 ? removed : -1;
}
