/* outbox.c: undelivered records, a row each. */
#include "records/outbox.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/folder.h"
#include "base/hash.h"
#include "records/store.h"

struct tccl_outbox {
    struct tccl_records *db;
    int64_t count;
};

enum {
    VERSION = 1,         /* of the tables */
    JOURNAL = 256 << 10, /* bytes that its journal has from the start */
    PART = 16,           /* rows that can be deleted with as much */
};

static const char schema[] =
    "BEGIN IMMEDIATE;"
    "CREATE TABLE IF NOT EXISTS waiting (id INTEGER PRIMARY KEY, record TEXT NOT NULL,"
    " sum INTEGER NOT NULL);"
    "CREATE TABLE IF NOT EXISTS aside (id INTEGER PRIMARY KEY, record TEXT NOT NULL,"
    " reason TEXT NOT NULL);"
    "PRAGMA user_version = 1; COMMIT";

/* What was delivered can be removed also where the disk is full. */
static void grow_journal(const char *path)
{
    char journal[4200];
    snprintf(journal, sizeof(journal), "%s-journal", path);
    cleanup_close int fd = tccl_open_own(journal, O_RDWR | O_CREAT, 0600, NULL);
    if (fd >= 0 && lseek(fd, 0, SEEK_END) < JOURNAL)
        posix_fallocate(fd, 0, JOURNAL);
}

static int open_once(const char *path, struct tccl_outbox *outbox, struct tccl_error *err)
{
    char bound[96];
    int64_t version;
    /* Without a file in shared memory, and with a journal that is not made anew each time. */
    snprintf(bound, sizeof(bound), "PRAGMA journal_mode = PERSIST; PRAGMA max_page_count = %d",
             TCCL_OUTBOX_BYTES / 4096);
    if (tccl_store_open_plain(path, bound, &outbox->db, err) != 0 ||
        tccl_store_number(outbox->db, "PRAGMA user_version", &version, err) != 0)
        return -1;
    if (version > VERSION)
        return tccl_fail(err, "%s: of another version; move it away, and a new one is made", path);
    if ((version == 0 && tccl_store_execute(outbox->db, schema, err) != 0) ||
        tccl_store_number(outbox->db, "SELECT count(*) FROM waiting", &outbox->count, err) != 0)
        return -1;
    grow_journal(path);
    return 0;
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
        int64_t moved = tccl_outbox_close(new);
        *lost += moved;
        if (!moved)
            break;
    }
    return -1;
}

bool tccl_outbox_damaged(const struct tccl_outbox *outbox)
{
    return outbox->db->damaged;
}

bool tccl_outbox_broken(const struct tccl_outbox *outbox)
{
    return outbox->db->broken;
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
        if (rename(from, to) == 0 && i == 0)
            lost = outbox->count > 0 ? outbox->count : 1;
        else if (i == 0)
            break;
    }
    free(outbox);
    return lost;
}

/* Runs a statement with a number as parameter, and what it has of two texts (or NULL). */
static int run(struct tccl_outbox *outbox, sqlite3_stmt *statement, int64_t number, const char *one,
               const char *two, struct tccl_error *err)
{
    sqlite3_reset(statement);
    int n = sqlite3_bind_parameter_count(statement), rc = sqlite3_bind_int64(statement, 1, number);
    if (rc == SQLITE_OK && n > 1)
        rc = sqlite3_bind_text(statement, 2, one, -1, SQLITE_STATIC);
    if (rc == SQLITE_OK && n > 2)
        rc = sqlite3_bind_text(statement, 3, two, -1, SQLITE_STATIC);
    if (rc != SQLITE_OK || sqlite3_step(statement) != SQLITE_DONE)
        return tccl_store_fail(outbox->db, err);
    sqlite3_reset(statement);
    return 0;
}

/* Ends a transaction: well, if rc is 0. */
static int end(struct tccl_outbox *outbox, int rc, struct tccl_error *err)
{
    if (rc == 0)
        return tccl_records_commit(outbox->db, err) == 0 ? 0 : -1;
    tccl_records_give_up(outbox->db);
    return -1;
}

int tccl_outbox_put(struct tccl_outbox *outbox, const json_t *records, int *lost,
                    struct tccl_error *err)
{
    cleanup_stmt sqlite3_stmt *put = NULL;
    int rc = 0, too_long = 0;
    size_t count = json_array_size(records);
    if (tccl_store_prepare(outbox->db, "INSERT INTO waiting (record, sum) VALUES (?2, ?1)", &put,
                           err) != 0 ||
        tccl_records_begin(outbox->db, err) != 0)
        return -1;
    for (size_t i = 0; rc == 0 && i < count; i++) {
        cleanup_free char *text = json_dumps(json_array_get(records, i), JSON_COMPACT);
        size_t size = text ? strlen(text) : 0;
        if (size > TCCL_OUTBOX_RECORD)
            too_long++;
        else
            rc = text ? run(outbox, put, (int64_t)tccl_hash64(text, size), text, NULL, err)
                      : tccl_fail(err, "out of memory");
    }
    sqlite3_reset(put);
    if (end(outbox, rc, err) != 0)
        return -1;
    *lost += too_long;
    outbox->count += (int64_t)count - too_long;
    return 0;
}

static int keep_aside(struct tccl_outbox *outbox, const json_t *refused, struct tccl_error *err)
{
    static const char sql[] =
        "INSERT OR IGNORE INTO aside (record, reason) SELECT"
        " substr(coalesce(?2, (SELECT record FROM waiting WHERE id = ?1)), 1, %d), ?3"
        " WHERE (SELECT count(*) FROM aside) < %d";
    cleanup_stmt sqlite3_stmt *put = NULL;
    char text[sizeof(sql) + 16];
    snprintf(text, sizeof(text), sql, TCCL_OUTBOX_ASIDE_TEXT, TCCL_OUTBOX_ASIDE);
    int rc = tccl_store_prepare(outbox->db, text, &put, err);
    for (size_t i = 0; rc == 0 && i < json_array_size(refused); i++) {
        const json_t *each = json_array_get(refused, i), *what = json_array_get(each, 0);
        cleanup_free char *record =
            json_is_integer(what) ? NULL : json_dumps(what, JSON_COMPACT | JSON_ENCODE_ANY);
        rc = run(outbox, put, json_integer_value(what), record,
                 json_string_value(json_array_get(each, 1)), err);
    }
    return rc;
}

/* Those of ids from a first one on; with the checksum, because another file may have its number. */
static int remove_part(struct tccl_outbox *outbox, const json_t *ids, size_t first, size_t most,
                       const json_t *refused, struct tccl_error *err)
{
    cleanup_stmt sqlite3_stmt *delete = NULL;
    int64_t gone = 0;
    if (tccl_store_prepare(outbox->db,
                           "DELETE FROM waiting WHERE id = ?1 AND (?2 IS NULL OR sum = ?2)",
                           &delete, err) != 0 ||
        tccl_records_begin(outbox->db, err) != 0)
        return -1;
    int rc = keep_aside(outbox, refused, err);
    for (size_t i = first; rc == 0 && i < json_array_size(ids) && i - first < most; i++) {
        const json_t *each = json_array_get(ids, i);
        char sum[32];
        snprintf(sum, sizeof(sum), "%" JSON_INTEGER_FORMAT,
                 json_integer_value(json_array_get(each, 1)));
        rc = run(outbox, delete, json_integer_value(json_array_get(each, 0)),
                 json_array_size(each) > 1 ? sum : NULL, NULL, err);
        gone += sqlite3_changes(outbox->db->db);
    }
    sqlite3_reset(delete);
    if (end(outbox, rc, err) != 0)
        return -1;
    outbox->count -= gone;
    return 0;
}

int tccl_outbox_remove(struct tccl_outbox *outbox, const json_t *ids, const json_t *refused,
                       struct tccl_error *err)
{
    size_t count = json_array_size(ids);
    if (count + json_array_size(refused) == 0 ||
        remove_part(outbox, ids, 0, count, refused, NULL) == 0)
        return 0;
    /* Where the disk is full: nothing is kept aside, and no more at a time than there is room for
     * in the journal. */
    for (size_t at = 0; at < count; at += PART)
        if (remove_part(outbox, ids, at, PART, NULL, err) != 0)
            return -1;
    return 0;
}

json_t *tccl_outbox_take(struct tccl_outbox *outbox, int64_t behind, int most, size_t bytes,
                         json_t **ids, int *lost, struct tccl_error *err)
{
    cleanup_stmt sqlite3_stmt *rows = NULL;
    cleanup_json json_t *records = json_array(), *numbers = json_array(), *bad = json_array(),
                        *refused = json_array();
    size_t used = 0;
    int rc = SQLITE_DONE;
    if (tccl_store_prepare(outbox->db,
                           "SELECT id, record, sum FROM waiting WHERE id > ?1 ORDER BY id LIMIT ?2",
                           &rows, err) != 0 ||
        sqlite3_bind_int64(rows, 1, behind) != SQLITE_OK ||
        sqlite3_bind_int(rows, 2, most) != SQLITE_OK)
        return NULL;
    while ((rc = sqlite3_step(rows)) == SQLITE_ROW) {
        const char *text = (const char *)sqlite3_column_text(rows, 1);
        size_t size = (size_t)sqlite3_column_bytes(rows, 1);
        json_int_t id = sqlite3_column_int64(rows, 0), sum = sqlite3_column_int64(rows, 2);
        bool sound = text && sum == (json_int_t)tccl_hash64(text, size);
        bool fits = size <= TCCL_OUTBOX_RECORD;
        cleanup_json json_t *record =
            sound && fits ? json_loadb(text, size, JSON_REJECT_DUPLICATES, NULL) : NULL;
        if (used > 0 && used + size > bytes) {
            rc = SQLITE_DONE;
            break;
        }
        bool good = json_is_object(record);
        if (good) {
            json_array_append_new(numbers, json_pack("[I, I]", id, sum));
            json_array_append(records, record);
        } else {
            json_array_append_new(bad, json_pack("[I]", id));
            json_array_append_new(
                refused, json_pack("[I, s]", id, fits ? "it is damaged" : "it is too long"));
        }
        used += size;
    }
    if (rc != SQLITE_DONE) {
        tccl_store_fail(outbox->db, err);
        return NULL;
    }
    sqlite3_reset(rows);
    if (tccl_outbox_remove(outbox, bad, refused, err) != 0)
        return NULL;
    if (behind == 0 && json_array_size(numbers) + json_array_size(bad) == 0)
        outbox->count = 0;
    *lost += (int)json_array_size(bad);
    *ids = tccl_steal(numbers);
    return tccl_steal(records);
}

int64_t tccl_outbox_count(const struct tccl_outbox *outbox)
{
    return outbox->count;
}
