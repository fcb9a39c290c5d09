/* outbox.c: undelivered records, a row each. */
#include "records/outbox.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fileio.h"
#include "base/hash.h"
#include "records/store.h"

struct tccl_outbox {
    struct tccl_records *db;
    int64_t count;
    json_int_t stuck[2]; /* id and checksum of a row that was to be removed, and was not found */
};

#define MOST_STEP (INT64_C(1) << 40) /* between numbers, over rows that can't be read */

enum {
    VERSION = 1,         /* of the tables */
    JOURNAL = 256 << 10, /* bytes that its journal has from the start */
    PART = 16,           /* rows that can be deleted with as much */
};

#define ROW "SELECT id, record, sum FROM waiting"
/* Under a number of its own, or a new one. */
#define PUT "INSERT OR IGNORE INTO waiting (record, sum, id) VALUES (?1, ?2, ?3)"

static const char schema[] =
    "BEGIN IMMEDIATE;"
    "CREATE TABLE IF NOT EXISTS waiting (id INTEGER PRIMARY KEY, record TEXT NOT NULL,"
    " sum INTEGER NOT NULL);"
    "CREATE TABLE IF NOT EXISTS aside (id INTEGER PRIMARY KEY, record TEXT NOT NULL,"
    " reason TEXT NOT NULL);"
    "PRAGMA user_version = 1; COMMIT";

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
    /* What was delivered can be removed also where the disk is full. */
    char journal[4200];
    snprintf(journal, sizeof(journal), "%s-journal", path);
    cleanup_close int fd = tccl_open_own(journal, O_RDWR | O_CREAT, 0600, NULL);
    if (fd >= 0 && lseek(fd, 0, SEEK_END) < JOURNAL)
        posix_fallocate(fd, 0, JOURNAL);
    return 0;
}

bool tccl_outbox_damaged(const struct tccl_outbox *outbox)
{
    return outbox->db->damaged;
}

bool tccl_outbox_broken(const struct tccl_outbox *outbox)
{
    return outbox->db->broken;
}

/* Runs a statement without results; bound: what binding its parameters returned. */
static int run(struct tccl_outbox *outbox, sqlite3_stmt *statement, int bound,
               struct tccl_error *err)
{
    if (bound != SQLITE_OK || sqlite3_step(statement) != SQLITE_DONE)
        return tccl_store_fail(outbox->db, err);
    sqlite3_reset(statement);
    return 0;
}

static int put_row(struct tccl_outbox *outbox, sqlite3_stmt *put, const char *text, size_t size,
                   struct tccl_error *err)
{
    return run(outbox, put,
               sqlite3_bind_text(put, 1, text, (int)size, SQLITE_STATIC) |
                   sqlite3_bind_int64(put, 2, (int64_t)tccl_hash64(text, size)),
               err);
}

/* Ends a transaction: well, if rc is 0. */
static int end(struct tccl_outbox *outbox, int rc, struct tccl_error *err)
{
    if (rc == 0)
        return tccl_records_commit(outbox->db, err) == 0 ? 0 : -1;
    tccl_records_give_up(outbox->db);
    return -1;
}

/* The first row behind an id (or, by the other statement, the last one before it) of a damaged file
 * goes into another one, under its number. Returns that; 0: there is none; -1: it can't be read;
 * -2: not kept. */
static int64_t save_row(sqlite3_stmt *row, int64_t id, bool behind, struct tccl_outbox *to,
                        sqlite3_stmt *put)
{
    sqlite3_reset(row);
    sqlite3_bind_int64(row, 1, id);
    int rc = sqlite3_step(row);
    const char *text = rc == SQLITE_ROW ? (const char *)sqlite3_column_text(row, 1) : NULL;
    size_t size = text ? (size_t)sqlite3_column_bytes(row, 1) : 0;
    if (!text || sqlite3_column_int64(row, 2) != (int64_t)tccl_hash64(text, size))
        return rc == SQLITE_DONE ? 0 : -1;
    int64_t found = sqlite3_column_int64(row, 0);
    if (behind ? found <= id : found >= id || found <= 0) /* a page whose rows are in no order */
        return -1;
    sqlite3_bind_int64(put, 3, found);
    if (put_row(to, put, text, size, NULL) != 0)
        return -2;
    to->count += sqlite3_changes(to->db->db);
    return found;
}

/* Saves what can be read: up to a row that can't; then from where one can be again, found by steps
 * that double, back to that row, and on. *missing: how many numbers that leaves out, if anybody
 * can tell. Returns 0, or -1: to has no room. */
static int save_rows(struct tccl_records *from, struct tccl_outbox *to, int64_t *missing)
{
    cleanup_stmt sqlite3_stmt *next = NULL, *before = NULL, *put = NULL;
    int64_t at = 0, step = 1, found, back;
    if (tccl_store_prepare(from, ROW " WHERE id > ?1 ORDER BY id LIMIT 1", &next, NULL) != 0 ||
        tccl_store_prepare(from, ROW " WHERE id < ?1 ORDER BY id DESC LIMIT 1", &before, NULL) != 0)
        return 0;
    if (tccl_store_prepare(to->db, PUT, &put, NULL) != 0)
        return -1;
    do {
        found = save_row(next, at + step - 1, true, to, put);
        if (found == -1 && (step *= 2) < MOST_STEP)
            continue;
        int64_t end = found > 0 ? found : at + step, lowest = end;
        back = found == -2 ? found : end;
        while (step > 1 && back > at + 1 && (back = save_row(before, back, false, to, put)) > at)
            lowest = back;
        if (back == -2)
            return -1;
        if (step > 1)
            *missing += at > 0 && (found > 0 || lowest < end) ? lowest - at - 1 : 1;
        at = end;
        step = 1;
    } while (found > 0 || step > 1);
    return 0;
}

/* A damaged file of so many records, as far as is known, becomes PATH.bad; what can be read of it
 * is in a new one in its place. Returns how many are lost, or -1: it stays where it is. */
static int64_t renew(const char *path, int64_t count)
{
    char fresh[4200], bad[4200], of_path[4210], of_bad[4210], of_fresh[4210];
    struct tccl_outbox to = {0};
    struct tccl_records *from = NULL;
    int64_t missing = 0;
    snprintf(fresh, sizeof(fresh), "%s.new", path);
    snprintf(bad, sizeof(bad), "%s.bad", path);
    snprintf(of_path, sizeof(of_path), "%s-journal", path);
    snprintf(of_bad, sizeof(of_bad), "%s-journal", bad);
    snprintf(of_fresh, sizeof(of_fresh), "%s-journal", fresh);
    unlink(of_fresh);
    unlink(fresh);
    int rc = open_once(fresh, &to, NULL) == 0 ? tccl_records_begin(to.db, NULL) : -1;
    if (rc == 0 && tccl_store_open_plain(path, "", &from, NULL) == 0)
        rc = save_rows(from, &to, &missing);
    rc = rc == 0 ? tccl_records_commit(to.db, NULL) : -1;
    tccl_records_close(from);
    tccl_records_close(to.db);
    unlink(of_fresh);
    unlink(bad);
    if (rc != 0 || rename(path, bad) != 0) {
        unlink(fresh);
        return -1;
    }
    rename(of_path, of_bad);
    if (rename(fresh, path) != 0)
        to.count = 0;
    return count > 0 ? count - to.count : missing > 0 || to.count > 0 ? missing : 1;
}

/* *lost: as of tccl_outbox_close; -1: the file was not moved. */
static void close_outbox(struct tccl_outbox *outbox, int64_t *lost)
{
    cleanup_free char *path = outbox->db && outbox->db->damaged ? strdup(outbox->db->path) : NULL;
    tccl_records_close(outbox->db);
    *lost = path ? renew(path, outbox->count) : -1;
    free(outbox);
}

int64_t tccl_outbox_close(struct tccl_outbox *outbox)
{
    int64_t lost = 0;
    if (outbox)
        close_outbox(outbox, &lost);
    return lost > 0 ? lost : 0;
}

int tccl_outbox_open(const char *path, struct tccl_outbox **outbox, int64_t *lost,
                     struct tccl_error *err)
{
    char fresh[4200], bad[4200];
    int64_t moved = 0;
    /* Who was saving a damaged one was killed between its last two steps. */
    snprintf(fresh, sizeof(fresh), "%s.new", path);
    snprintf(bad, sizeof(bad), "%s.bad", path);
    if (access(path, F_OK) != 0 && access(bad, F_OK) == 0 && access(fresh, F_OK) == 0)
        rename(fresh, path);
    *outbox = NULL;
    *lost = 0;
    for (int tries = 0; tries < 2 && moved >= 0; tries++) {
        struct tccl_outbox *new = calloc(1, sizeof(*new));
        if (!new)
            return tccl_fail(err, "out of memory for %s", path);
        if (open_once(path, new, err) == 0) {
            *outbox = new;
            return 0;
        }
        close_outbox(new, &moved);
        *lost += moved > 0 ? moved : 0;
    }
    return -1;
}

int tccl_outbox_put(struct tccl_outbox *outbox, const json_t *records, int *lost,
                    struct tccl_error *err)
{
    cleanup_stmt sqlite3_stmt *put = NULL;
    int rc = 0, too_long = 0;
    size_t count = json_array_size(records);
    if (tccl_store_prepare(outbox->db, PUT, &put, err) != 0 ||
        tccl_records_begin(outbox->db, err) != 0)
        return -1;
    for (size_t i = 0; rc == 0 && i < count; i++) {
        cleanup_free char *text = json_dumps(json_array_get(records, i), JSON_COMPACT);
        size_t size = text ? strlen(text) : 0;
        if (size > TCCL_OUTBOX_RECORD)
            too_long++;
        else
            rc = text ? put_row(outbox, put, text, size, err) : tccl_fail(err, "out of memory");
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
        const char *reason = json_string_value(json_array_get(each, 1));
        rc = run(outbox, put,
                 sqlite3_bind_int64(put, 1, json_integer_value(what)) |
                     sqlite3_bind_text(put, 2, record, -1, SQLITE_STATIC) |
                     sqlite3_bind_text(put, 3, reason, -1, SQLITE_STATIC),
                 err);
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
        const json_t *each = json_array_get(ids, i), *sum = json_array_get(each, 1);
        rc = run(outbox, delete,
                 sqlite3_bind_int64(delete, 1, json_integer_value(json_array_get(each, 0))) |
                     (sum ? sqlite3_bind_int64(delete, 2, json_integer_value(sum))
                          : sqlite3_bind_null(delete, 2)),
                 err);
        int found = sqlite3_changes(outbox->db->db);
        if (rc == 0 && found == 0) {
            outbox->stuck[0] = json_integer_value(json_array_get(each, 0));
            outbox->stuck[1] = json_integer_value(sum);
        }
        gone += found;
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
    bool stuck = false;
    if (tccl_store_prepare(outbox->db, ROW " WHERE id > ?1 ORDER BY id LIMIT ?2", &rows, err) !=
            0 ||
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
        stuck |= id == outbox->stuck[0] && sum == outbox->stuck[1];
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
    int64_t left = outbox->count - (int64_t)json_array_size(bad);
    if (tccl_outbox_remove(outbox, bad, refused, err) != 0)
        return NULL;
    if (stuck || outbox->count > left) { /* their numbers are none */
        outbox->db->damaged = outbox->db->broken = true;
        return tccl_fail_null(err, "%s: rows of it can't be found again", outbox->db->path);
    }
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
