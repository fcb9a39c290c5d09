/* records.c: puts records and confirmations into the store. */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "records/records.h"
#include "records/store.h"

/* A record that learned more after the ring was given out (that a node is without its plan) wins
 * over the earlier one, in whatever order they arrive; so does the later of two runs under one key.
 * Nobody replaces what is another user's. */
static const char put_sql[] =
    "INSERT INTO records ($names, arrived) VALUES ($values, :arrived)"
    " ON CONFLICT ($key, uid) DO UPDATE SET $renewed, arrived = excluded.arrived"
    " WHERE excluded.reporter < records.reporter OR (excluded.reporter = records.reporter"
    " AND excluded.start >= records.start"
    " AND NOT (records.reason <> '' AND excluded.state = 'planned' AND excluded.reason = ''"
    " AND excluded.start = records.start))";

static const char put_build_sql[] =
    "INSERT INTO builds ($built, step_start, built_rank, record_start)"
    " VALUES ($built_values, :step_start, :rank, :start)"
    " ON CONFLICT (step_start) DO UPDATE SET $built_renewed,"
    " built_rank = max(excluded.built_rank, builds.built_rank)"
    " WHERE excluded.built_rank > builds.built_rank OR " TCCL_SQL_MORE
    " OR excluded.slowed > builds.slowed OR excluded.later > builds.later";

/* Binds a value of a normal record, which must outlive the statement's run, to parameter i. */
static int bind_value(sqlite3_stmt *statement, int i, const json_t *value)
{
    if (json_is_string(value))
        return sqlite3_bind_text(statement, i, json_string_value(value),
                                 (int)json_string_length(value), SQLITE_STATIC);
    return json_is_integer(value) ? sqlite3_bind_int64(statement, i, json_integer_value(value))
                                  : sqlite3_bind_double(statement, i, json_real_value(value));
}

/* Binds all that are used there (0: all that builds have) to the first parameters. Returns SQLite's
 * code; *count: how many. */
static int bind_fields(sqlite3_stmt *statement, unsigned use, const json_t *record, int *count)
{
    int rc = SQLITE_OK;
    *count = 0;
    for (int i = 0; i < tccl_n_step_fields && rc == SQLITE_OK; i++)
        if (use ? (tccl_step_fields[i].use & use) != 0 : tccl_sql_of_builds(&tccl_step_fields[i]))
            rc = bind_value(statement, ++*count, json_object_get(record, tccl_step_fields[i].name));
    return rc;
}

/* Runs a statement whose values are bound (rc: of binding them). */
static int run_once(struct tccl_records *records, sqlite3_stmt *statement, int rc,
                    struct tccl_error *err)
{
    if (rc == SQLITE_OK)
        rc = sqlite3_step(statement);
    int answer = rc == SQLITE_DONE ? 0 : tccl_store_fail(records, err);
    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
    return answer;
}

/* What was built, for the record with this key and start, if both are there. */
static const char renew_sql[] =
    "UPDATE records SET ($built) = (SELECT $built FROM builds WHERE step_start = $step_start)"
    " WHERE $is_key AND start = ?"
    " AND EXISTS (SELECT 1 FROM builds WHERE step_start = $step_start)";

static int renew(struct tccl_records *records, const json_t *normal, struct tccl_error *err)
{
    int count, rc = bind_fields(records->renew, TCCL_IN_KEY, normal, &count);
    if (rc == SQLITE_OK)
        rc = bind_value(records->renew, count + 1, json_object_get(normal, "start"));
    return run_once(records, records->renew, rc, err);
}

static int prepare(struct tccl_records *records, struct tccl_error *err)
{
    if (records->renew)
        return 0;
    if (!records->put && tccl_store_prepare(records, put_sql, &records->put, err) != 0)
        return -1;
    if (!records->put_build &&
        tccl_store_prepare(records, put_build_sql, &records->put_build, err) != 0)
        return -1;
    return tccl_store_prepare(records, renew_sql, &records->renew, err);
}

/* Stores something and its consequences: both or neither. */
static int write_both(struct tccl_records *records, sqlite3_stmt *statement, int rc,
                      const json_t *normal, struct tccl_error *err)
{
    bool given_up = records->together && sqlite3_get_autocommit(records->db);
    if (given_up || tccl_store_execute(records, "SAVEPOINT put", err) != 0) {
        sqlite3_clear_bindings(statement);
        return tccl_fail(err, "%s: an earlier record could not be stored", records->path);
    }
    if (run_once(records, statement, rc, err) == 0 &&
        (sqlite3_changes(records->db) == 0 || renew(records, normal, err) == 0) &&
        tccl_store_execute(records, "RELEASE put", err) == 0)
        return 0;
    tccl_store_execute(records, "ROLLBACK TO put", NULL);
    tccl_store_execute(records, "RELEASE put", NULL);
    return -1;
}

int tccl_records_begin(struct tccl_records *records, struct tccl_error *err)
{
    int failed = tccl_store_execute(records, "BEGIN IMMEDIATE", err);
    records->together = !failed;
    return failed;
}

void tccl_records_give_up(struct tccl_records *records)
{
    records->together = false;
    tccl_store_execute(records, "ROLLBACK", NULL);
}

int tccl_records_commit(struct tccl_records *records, struct tccl_error *err)
{
    int failed = tccl_store_execute(records, "COMMIT", err);
    if (failed)
        tccl_records_give_up(records);
    records->together = false;
    return failed;
}

static int put_record(struct tccl_records *records, const json_t *record, struct tccl_error *err)
{
    cleanup_json json_t *normal = tccl_record_normal(record, err);
    if (!normal)
        return 1;
    if (prepare(records, err) != 0)
        return -1;
    int count, rc = bind_fields(records->put, TCCL_IN_RECORD, normal, &count);
    if (rc == SQLITE_OK)
        rc = sqlite3_bind_int64(records->put, count + 1, records->arrived);
    return write_both(records, records->put, rc, normal, err);
}

static int put_build(struct tccl_records *records, const json_t *record, struct tccl_error *err)
{
    char key[TCCL_RECORD_KEY + 24]; /* $step_start of store.h */
    cleanup_json json_t *normal = tccl_confirmation_normal(record, err);
    if (!normal || tccl_record_key(normal, key, NULL) != 0)
        return 1;
    snprintf(key + strlen(key), 24, "/%" JSON_INTEGER_FORMAT,
             json_integer_value(json_object_get(normal, "start")));
    if (prepare(records, err) != 0)
        return -1;
    sqlite3_stmt *put = records->put_build;
    int count, rc = bind_fields(put, 0, normal, &count);
    if (rc == SQLITE_OK)
        rc = sqlite3_bind_text(put, count + 1, key, -1, SQLITE_STATIC);
    if (rc == SQLITE_OK)
        rc = sqlite3_bind_int(put, count + 2,
                              tccl_built_rank(json_string_value(json_object_get(normal, "built"))));
    if (rc == SQLITE_OK)
        rc = bind_value(put, count + 3, json_object_get(normal, "start"));
    return write_both(records, put, rc, normal, err);
}

int tccl_records_put(struct tccl_records *records, const json_t *record, struct tccl_error *err)
{
    return tccl_record_confirms(record) ? put_build(records, record, err)
                                        : put_record(records, record, err);
}

int tccl_records_put_misdated(struct tccl_records *records, const json_t *record, int64_t arrived,
                              struct tccl_error *err)
{
    records->arrived = arrived;
    int rc = tccl_records_put(records, record, err);
    records->arrived = 0;
    return rc;
}

int tccl_records_copy(struct tccl_records *records, const char *path, struct tccl_error *err)
{
    cleanup_free char *copy =
        tccl_sql("BEGIN IMMEDIATE;"
                 " INSERT OR IGNORE INTO records ($all, arrived)"
                 " SELECT $all, arrived FROM other.records;"
                 " INSERT OR IGNORE INTO builds ($built, step_start, built_rank, record_start)"
                 " SELECT $built, step_start, built_rank, record_start FROM other.builds; COMMIT",
                 err);
    cleanup_stmt sqlite3_stmt *attach = NULL;
    if (!copy || tccl_store_prepare(records, "ATTACH ?1 AS other", &attach, err) != 0)
        return -1;
    if (sqlite3_bind_text(attach, 1, path, -1, SQLITE_STATIC) != SQLITE_OK ||
        sqlite3_step(attach) != SQLITE_DONE)
        return tccl_store_fail(records, err);
    int rc = tccl_store_execute(records, copy, err);
    if (rc != 0)
        tccl_store_execute(records, "ROLLBACK", NULL);
    tccl_store_execute(records, "DETACH other", NULL);
    return rc;
}
