/* records.c: puts records and confirmations into the store. */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "records/facts.h"
#include "records/records.h"
#include "records/store.h"

/* A record that learned more after the ring was given out (partial, differs) wins over the earlier
 * one, in whatever order they arrive; so does the later of two runs under one key. Nobody replaces
 * what is another user's. */
static const char put_sql[] =
    "INSERT INTO records ($names, arrived) VALUES ($values, :arrived)"
    " ON CONFLICT ($key, uid) DO UPDATE SET $renewed, arrived = excluded.arrived"
    " WHERE excluded.reporter < records.reporter OR (excluded.reporter = records.reporter"
    " AND excluded.start >= records.start"
    " AND NOT (records.state IN ('partial', 'differs') AND excluded.state = 'applied'"
    " AND excluded.start = records.start))";

static const char put_build_sql[] =
    "INSERT INTO builds (step_start, built, built_reason, built_rank, record_start, nccl,"
    " nccl_gbps) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)"
    " ON CONFLICT (step_start) DO UPDATE SET built = excluded.built,"
    " built_reason = excluded.built_reason, built_rank = excluded.built_rank,"
    " nccl = excluded.nccl, nccl_gbps = excluded.nccl_gbps"
    " WHERE excluded.built_rank > builds.built_rank";

/* Binds a value of a normal record, which must outlive the statement's run, to parameter i. */
static int bind_value(sqlite3_stmt *statement, int i, const json_t *value)
{
    if (json_is_string(value))
        return sqlite3_bind_text(statement, i, json_string_value(value),
                                 (int)json_string_length(value), SQLITE_STATIC);
    return json_is_integer(value) ? sqlite3_bind_int64(statement, i, json_integer_value(value))
                                  : sqlite3_bind_double(statement, i, json_real_value(value));
}

/* Binds all that are used there to the first parameters. Returns SQLite's code; *count: how many.
 */
static int bind_fields(sqlite3_stmt *statement, unsigned use, const json_t *record, int *count)
{
    int rc = SQLITE_OK;
    *count = 0;
    for (int i = 0; i < tccl_n_step_fields && rc == SQLITE_OK; i++)
        if (tccl_step_fields[i].use & use)
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

/* Updates the facts of the record with this key and start, if there is one. */
static const char renew_sql[] = "UPDATE records SET facts = $facts WHERE $is_key AND start = ?";

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

/* The text $step_start of sql.h. */
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
    cleanup_json json_t *normal = tccl_confirmation_normal(record, err);
    if (!normal || build_key(normal, key, sizeof(key)) != 0)
        return 1;
    if (prepare(records, err) != 0)
        return -1;
    sqlite3_stmt *put = records->put_build;
    const char *built = json_string_value(json_object_get(normal, "built"));
    const char *reason = json_string_value(json_object_get(normal, "built_reason"));
    int rc = sqlite3_bind_text(put, 1, key, -1, SQLITE_STATIC);
    if (rc == SQLITE_OK)
        rc = sqlite3_bind_text(put, 2, built, -1, SQLITE_STATIC);
    if (rc == SQLITE_OK)
        rc = sqlite3_bind_text(put, 3, reason, -1, SQLITE_STATIC);
    if (rc == SQLITE_OK)
        rc = sqlite3_bind_int(put, 4, tccl_built_rank(built));
    if (rc == SQLITE_OK)
        rc = sqlite3_bind_int64(put, 5, json_integer_value(json_object_get(normal, "start")));
    if (rc == SQLITE_OK)
        rc = bind_value(put, 6, json_object_get(normal, "nccl"));
    if (rc == SQLITE_OK)
        rc = bind_value(put, 7, json_object_get(normal, "nccl_gbps"));
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
