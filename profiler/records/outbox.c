/* outbox.c: undelivered records, a row each. */
#include "records/outbox.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "records/store.h"

struct tccl_outbox {
    struct tccl_records *db;
    int64_t count;
};

static const char schema[] =
    "CREATE TABLE IF NOT EXISTS waiting (id INTEGER PRIMARY KEY, record TEXT NOT NULL,"
    " sum INTEGER NOT NULL);"
    "CREATE TABLE IF NOT EXISTS aside (id INTEGER PRIMARY KEY, record TEXT NOT NULL,"
    " reason TEXT NOT NULL)";

static int open_once(const char *path, struct tccl_outbox *outbox, struct tccl_error *err)
{
    char bound[96];
    /* Without a file in shared memory, and with a journal that is not made anew each time: what was
     * delivered can be removed also where the disk is full. */
    snprintf(bound, sizeof(bound), "PRAGMA journal_mode = PERSIST; PRAGMA max_page_count = %d",
             TCCL_OUTBOX_BYTES / 4096);
    return tccl_store_open_plain(path, schema, &outbox->db, err) != 0 ||
                   tccl_store_execute(outbox->db, bound, err) != 0
               ? -1
               : tccl_store_number(outbox->db, "SELECT count(*) FROM waiting", &outbox->count, err);
}

int tccl_outbox_open(const char *path, struct tccl_outbox **outbox, int64_t *lost,
                     struct tccl_error *err)
{
    *outbox = NULL;
    *lost = 0;
    for (int tries = 0; tries < 2; tries++) {
        struct tccl_outbox *new = calloc(1, sizeof(*new));
        if (!new)
            return tccl_fail(err, "out of memory for %s", path);
        if (open_once(path, new, err) == 0) {
            *outbox = new;
            return 0;
        }
        *lost = tccl_outbox_close(new);
        if (!*lost)
            break;
    }
    return -1;
}

bool tccl_outbox_damaged(const struct tccl_outbox *outbox)
{
    return outbox->db->damaged;
}

int64_t tccl_outbox_close(struct tccl_outbox *outbox)
{
    static const char *const files[] = {"", "-journal"};
    int64_t lost = 0;
    if (!outbox)
        return 0;
    cleanup_free char *path = outbox->db ? strdup(outbox->db->path) : NULL;
    bool damaged = outbox->db && outbox->db->damaged;
    tccl_records_close(outbox->db);
    for (size_t i = 0; path && damaged && i < sizeof(files) / sizeof(*files); i++) {
        char from[4200], to[4200];
        snprintf(from, sizeof(from), "%s%s", path, files[i]);
        snprintf(to, sizeof(to), "%s.bad%s", path, files[i]);
        unlink(to);
        rename(from, to);
        lost = outbox->count > 0 ? outbox->count : 1;
    }
    free(outbox);
    return lost;
}

/* Runs a statement with a number as parameter, and texts where they are not NULL. */
static int run(struct tccl_outbox *outbox, sqlite3_stmt *statement, int64_t number, const char *one,
               const char *two, struct tccl_error *err)
{
    sqlite3_reset(statement);
    int rc = sqlite3_bind_int64(statement, 1, number);
    if (rc == SQLITE_OK && one)
        rc = sqlite3_bind_text(statement, 2, one, -1, SQLITE_STATIC);
    if (rc == SQLITE_OK && two)
        rc = sqlite3_bind_text(statement, 3, two, -1, SQLITE_STATIC);
    return rc == SQLITE_OK && sqlite3_step(statement) == SQLITE_DONE
               ? 0
               : tccl_store_fail(outbox->db, err);
}

static int put_one(struct tccl_outbox *outbox, sqlite3_stmt *put, const json_t *record,
                   struct tccl_error *err)
{
    cleanup_free char *text = json_dumps(record, JSON_COMPACT);
    if (!text || strlen(text) > TCCL_OUTBOX_RECORD)
        return tccl_fail(err, text ? "a record of more than 1 MiB" : "out of memory");
    return run(outbox, put, (int64_t)tccl_hash64(text, strlen(text)), text, NULL, err);
}

static int run_id(struct tccl_outbox *outbox, sqlite3_stmt *statement, const json_t *id,
                  struct tccl_error *err)
{
    return run(outbox, statement, json_integer_value(id), NULL, NULL, err);
}

/* Runs a statement with each of a list: all or none. Returns 0, or -1 with err. */
static int run_all(struct tccl_outbox *outbox, const char *sql, const json_t *list,
                   int (*run_one)(struct tccl_outbox *, sqlite3_stmt *, const json_t *,
                                  struct tccl_error *),
                   struct tccl_error *err)
{
    cleanup_stmt sqlite3_stmt *statement = NULL;
    if (tccl_store_prepare(outbox->db, sql, &statement, err) != 0 ||
        tccl_records_begin(outbox->db, err) != 0)
        return -1;
    for (size_t i = 0; i < json_array_size(list); i++)
        if (run_one(outbox, statement, json_array_get(list, i), err) != 0) {
            sqlite3_reset(statement);
            tccl_records_give_up(outbox->db);
            return -1;
        }
    sqlite3_reset(statement);
    return tccl_records_commit(outbox->db, err) == 0 ? 0 : -1;
}

int tccl_outbox_put(struct tccl_outbox *outbox, const json_t *records, struct tccl_error *err)
{
    if (run_all(outbox, "INSERT INTO waiting (record, sum) VALUES (?2, ?1)", records, put_one,
                err) != 0)
        return -1;
    outbox->count += (int64_t)json_array_size(records);
    return 0;
}

int tccl_outbox_remove(struct tccl_outbox *outbox, const json_t *ids, struct tccl_error *err)
{
    if (run_all(outbox, "DELETE FROM waiting WHERE id = ?1", ids, run_id, err) != 0)
        return -1;
    outbox->count -= (int64_t)json_array_size(ids);
    return 0;
}

json_t *tccl_outbox_take(struct tccl_outbox *outbox, int most, size_t bytes, json_t **ids,
                         int *lost, struct tccl_error *err)
{
    cleanup_stmt sqlite3_stmt *rows = NULL;
    cleanup_json json_t *records = json_array(), *numbers = json_array(), *bad = json_array();
    size_t used = 0;
    int rc = SQLITE_DONE;
    if (tccl_store_prepare(outbox->db, "SELECT id, record, sum FROM waiting ORDER BY id LIMIT ?1",
                           &rows, err) != 0 ||
        sqlite3_bind_int(rows, 1, most) != SQLITE_OK)
        return NULL;
    while ((rc = sqlite3_step(rows)) == SQLITE_ROW) {
        const char *text = (const char *)sqlite3_column_text(rows, 1);
        size_t size = (size_t)sqlite3_column_bytes(rows, 1);
        bool sound = text && sqlite3_column_int64(rows, 2) == (int64_t)tccl_hash64(text, size);
        json_t *record = sound ? json_loadb(text, size, JSON_REJECT_DUPLICATES, NULL) : NULL;
        if (used > 0 && used + size > bytes) {
            json_decref(record);
            rc = SQLITE_DONE;
            break;
        }
        bool good = json_is_object(record);
        json_array_append_new(good ? numbers : bad, json_integer(sqlite3_column_int64(rows, 0)));
        if (good)
            json_array_append(records, record);
        json_decref(record);
        used += size;
    }
    if (rc != SQLITE_DONE) {
        tccl_store_fail(outbox->db, err);
        return NULL;
    }
    sqlite3_reset(rows);
    if (json_array_size(bad) > 0 &&
        (run_all(outbox,
                 "INSERT INTO aside (record, reason) SELECT record, 'it is damaged' FROM waiting"
                 " WHERE id = ?1",
                 bad, run_id, err) != 0 ||
         tccl_outbox_remove(outbox, bad, err) != 0))
        return NULL;
    *lost += (int)json_array_size(bad);
    *ids = tccl_steal(numbers);
    return tccl_steal(records);
}

int tccl_outbox_put_aside(struct tccl_outbox *outbox, const json_t *record, const char *reason,
                          struct tccl_error *err)
{
    static const char sql[] = "INSERT INTO aside (record, reason) SELECT ?2, ?3"
                              " WHERE (SELECT count(*) FROM aside) < ?1";
    cleanup_stmt sqlite3_stmt *put = NULL;
    cleanup_free char *text = json_dumps(record, JSON_COMPACT | JSON_ENCODE_ANY);
    if (!text)
        return tccl_fail(err, "out of memory");
    return tccl_store_prepare(outbox->db, sql, &put, err) == 0
               ? run(outbox, put, TCCL_OUTBOX_ASIDE, text, reason, err)
               : -1;
}

int64_t tccl_outbox_count(const struct tccl_outbox *outbox)
{
    return outbox->count;
}
