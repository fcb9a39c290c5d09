/* stores.h: a store of records at a path of the test's. */
#pragma once

#include <sqlite3.h>

#include "check.h"
#include "records/records.h"

OWNED(records, struct tccl_records, tccl_records_close)

static inline struct tccl_records *open_store_at(const char *path)
{
    struct tccl_records *records;
    CHECK_OK(tccl_records_open(path, NULL, &records, ERR));
    return records;
}

static inline void remove_store_at(const char *path)
{
    static const char *const ends[] = {"", "-wal", "-shm"};
    char name[PATH_MAX];
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof(name), "%s%s", path, ends[i]);
        unlink(name);
    }
}

/* A new one, in place of what was there. */
static inline struct tccl_records *new_store_at(const char *path)
{
    remove_store_at(path);
    return open_store_at(path);
}

/* Takes the reference, as the next one does. */
static inline void put_record(struct tccl_records *records, json_t *json)
{
    CHECK_OK(tccl_records_put(records, json, ERR));
    json_decref(json);
}

/* The records that a filter finds, all pages of at most max_bytes, in their order. */
static inline json_t *find_records(struct tccl_records *records, json_t *filter, int64_t uid,
                                   size_t max_bytes)
{
    json_t *all = json_array();
    CHECK(filter != NULL);
    while (filter) {
        json_t *next = NULL;
        cleanup_json json_t *page = tccl_records_query(records, filter, uid, max_bytes, &next, ERR);
        CHECK(page != NULL);
        CHECK_STR(check_err.text, "");
        cleanup_free char *dump = json_dumps(page, JSON_COMPACT);
        CHECK(json_array_size(page) <= 1 || strlen(dump) <= max_bytes);
        json_int_t limit = json_integer_value(json_object_get(filter, "limit"));
        CHECK(limit <= 0 || (json_int_t)json_array_size(page) <= limit);
        json_array_extend(all, page);
        json_decref(filter);
        filter = next;
    }
    return all;
}

/* Records of one step each, and what was built. */
static inline json_t *step_record(int job, const char *state, int start)
{
    return json_pack("{s:s, s:i, s:i, s:i, s:s, s:i, s:i, s:s}", "cluster", "c", "job", job, "step",
                     0, "uid", 1000, "state", state, "start", start, "reporter", 0, "nodes",
                     "n[1-2]");
}

static inline json_t *built_record(int job, const char *built, const char *reason, int start)
{
    return json_pack("{s:s, s:i, s:i, s:s, s:s, s:i}", "cluster", "c", "job", job, "step", 0,
                     "built", built, "built_reason", reason, "start", start);
}

/* The first number that these commands give; 0 where they give none, -1 where they fail. */
static inline int64_t store_sql(const char *path, const char *sql)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *statement = NULL;
    int64_t number = -1;
    if (sqlite3_open(path, &db) == SQLITE_OK && sqlite3_busy_timeout(db, 10000) == SQLITE_OK)
        number = 0;
    while (number >= 0 && *sql) {
        if (sqlite3_prepare_v2(db, sql, -1, &statement, &sql) != SQLITE_OK)
            number = -1;
        else if (sqlite3_step(statement) == SQLITE_ROW)
            number = sqlite3_column_int64(statement, 0);
        sqlite3_finalize(statement);
    }
    CHECK_STR(sqlite3_errcode(db) ? sqlite3_errmsg(db) : "", "");
    sqlite3_close(db);
    return number;
}

/* The summary by a reader that is opened for it. A new reference, or NULL with err. */
static inline json_t *summary_of(const char *path, const json_t *filter, int64_t uid,
                                 struct tccl_error *err)
{
    owned(records) struct tccl_records *reader = NULL;
    if (tccl_records_open_reader(path, &reader, err) != 0)
        return NULL;
    return tccl_records_summary(reader, filter, uid, err);
}
