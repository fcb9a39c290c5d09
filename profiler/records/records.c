/* records.c: records and confirmations on their way into the store. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "records/facts.h"
#include "records/records.h"
#include "records/store.h"

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
    /* What was found out after a ring was given out stays, in whatever order the two arrive, and
     * so does the later run of a step that was run twice under one key. */
    fputs(" WHERE excluded.reporter < records.reporter OR (excluded.reporter = records.reporter"
          " AND excluded.start >= records.start"
          " AND NOT (records.state IN ('partial', 'differs') AND excluded.state = 'applied'"
          " AND excluded.start = records.start))",
          out);
    if (fclose(out) == 0)
        return sql;
    free(sql);
    return NULL;
}

static const char put_build_sql[] =
    "INSERT INTO builds (step_start, built, built_reason, built_rank, record_start)"
    " VALUES (?1, ?2, ?3, ?4, ?5)"
    " ON CONFLICT (step_start) DO UPDATE SET built = excluded.built,"
    " built_reason = excluded.built_reason, built_rank = excluded.built_rank"
    " WHERE excluded.built_rank > builds.built_rank";

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
    int answer = rc == SQLITE_DONE ? 0 : tccl_store_fail(records, err);
    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
    return answer;
}

/* The facts of the record with this key and start, if there is one, as they are now. */
static const char renew_sql[] =
    "UPDATE records SET facts = " TCCL_FACTS_SQL
    " WHERE cluster = ?1 AND job = ?2 AND het_job = ?3 AND het_offset = ?4 AND step = ?5"
    " AND restart = ?6 AND run = ?7 AND start = ?8";

static int renew(struct tccl_records *records, const json_t *normal, struct tccl_error *err)
{
    int rc = SQLITE_OK;
    for (int i = 0; i < TCCL_RECORD_KEY_FIELDS && rc == SQLITE_OK; i++)
        rc = bind_field(records->renew, i, normal);
    if (rc == SQLITE_OK)
        rc = sqlite3_bind_int64(records->renew, 8,
                                json_integer_value(json_object_get(normal, "start")));
    return run_once(records, records->renew, rc, err);
}

static int prepare(struct tccl_records *records, struct tccl_error *err)
{
    if (records->renew)
        return 0;
    cleanup_free char *sql = put_sql();
    if (!sql)
        return tccl_fail(err, "no memory for %s", records->path);
    if (!records->put && tccl_store_prepare(records, sql, &records->put, err) != 0)
        return -1;
    if (!records->put_build &&
        tccl_store_prepare(records, put_build_sql, &records->put_build, err) != 0)
        return -1;
    return tccl_store_prepare(records, renew_sql, &records->renew, err);
}

/* Runs what stores something new, and what follows from it, or none of both. */
static int write_both(struct tccl_records *records, sqlite3_stmt *statement, int rc,
                      const json_t *normal, struct tccl_error *err)
{
    bool given_up = records->together && sqlite3_get_autocommit(records->db);
    if (given_up || tccl_store_execute(records, "SAVEPOINT put", err) != 0) {
        sqlite3_clear_bindings(statement);
        return tccl_fail(err, "%s: what came before it could not be stored", records->path);
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
    int rc = SQLITE_OK;
    for (int i = 0; i < TCCL_RECORD_OWN && rc == SQLITE_OK; i++)
        rc = bind_field(records->put, i, normal);
    return write_both(records, records->put, rc, normal, err);
}

/* As TCCL_STEP_START_SQL has it. */
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
    if (!normal || build_key(normal, key, sizeof key) != 0)
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
    return write_both(records, put, rc, normal, err);
}

int tccl_records_put(struct tccl_records *records, const json_t *record, struct tccl_error *err)
{
    return tccl_record_confirms(record) ? put_build(records, record, err)
                                        : put_record(records, record, err);
}
