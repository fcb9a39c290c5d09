/* store.h: the SQLite file behind records.h. Private to this folder. */
#pragma once

#include <stdbool.h>

#include <sqlite3.h>

#include "records/owners.h"
#include "records/records.h"

struct tccl_records {
    sqlite3 *db;
    sqlite3_stmt *put, *put_build, *renew;
    char *path;
    int64_t arrived; /* of the record that is being put, if it is misdated; else 0 */
    bool together;   /* between tccl_records_begin and tccl_records_commit */
    bool damaged;    /* the file is no database, or no sound one */
    bool broken;     /* that, or it can't be used any more, as it is open: moved, removed, an error
                      * of the disk */
    struct tccl_owners *owners;
    struct tccl_pass *pass; /* the one under way (filter.c) */
    int most_ms;            /* of a question (tccl_records_bound) */
    int64_t until_ms;
    const atomic_bool *stop;
};

static inline void tccl_cleanup_statement(sqlite3_stmt **statement)
{
    sqlite3_finalize(*statement);
}
#define cleanup_stmt __attribute__((cleanup(tccl_cleanup_statement)))

/* Fails with SQLite's error message, and notes whether the file is damaged. Returns -1. */
int tccl_store_fail(struct tccl_records *records, struct tccl_error *err);

/* Runs statements without results. Returns 0, or -1 with err. */
int tccl_store_execute(struct tccl_records *records, const char *sql, struct tccl_error *err);

/* Runs a statement that returns one number. Returns 0, or -1 with err. */
int tccl_store_number(struct tccl_records *records, const char *sql, int64_t *number,
                      struct tccl_error *err);

/* Prepares a statement, whose text tccl_sql (sql.h) expands first. Returns 0, or -1 with err. */
int tccl_store_prepare(struct tccl_records *records, const char *text, sqlite3_stmt **statement,
                       struct tccl_error *err);

/* Opens a file of other tables than the store's, or makes it; sql: makes the tables where there are
 * none. Returns 0, or -1 with err. *records is to be closed in either case, unless it is NULL. */
int tccl_store_open_plain(const char *path, const char *sql, struct tccl_records **records,
                          struct tccl_error *err);

/* Is this f_type of statfs that of a file system that other machines may write to? */
bool tccl_store_is_remote(long file_system);

/* Instead of tccl_records_commit: undoes everything put since begin. */
void tccl_records_give_up(struct tccl_records *records);

/* A question begins: its time, and what is known of the store. */
void tccl_store_ask(struct tccl_records *records);

/* Is the question's time over, or shall it stop? SQLite looks, too, but not while a row is worked
 * on. Returns 0, or -1 with err. */
int tccl_store_look(const struct tccl_records *records, struct tccl_error *err);
