/* put-records.c: puts records, JSON objects one to a line on standard input, into a store.
 * Usage: put-records RECORDS.DB
 *        put-records --old RECORDS.DB    makes one of the first version, with three records
 *        put-records --hold RECORDS.DB   keeps others from writing until standard input ends */
#include <stdio.h>
#include <string.h>

#include <sqlite3.h>

#include "base/cleanup.h"
#include "old-store.h"
#include "records/records.h"

static int run(const char *path, const char *sql, const char *more, int wait)
{
    sqlite3 *db;
    int rc = sqlite3_open(path, &db);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(db, sql, NULL, NULL, NULL);
    if (rc == SQLITE_OK && more)
        rc = sqlite3_exec(db, more, NULL, NULL, NULL);
    puts(rc == SQLITE_OK ? "done" : sqlite3_errmsg(db));
    fflush(stdout);
    while (wait && getchar() != EOF)
        ;
    sqlite3_close(db);
    return rc == SQLITE_OK ? 0 : 1;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--old") == 0)
        return run(argv[2], store_version_1, old_rows, 0);
    if (argc == 3 && strcmp(argv[1], "--hold") == 0)
        return run(argv[2], "BEGIN IMMEDIATE", NULL, 1);
    char line[65536];
    struct tccl_error err = {0};
    struct tccl_records *records = NULL;
    int rc = argc == 2 ? tccl_records_open(argv[1], &records, &err) : -1;
    while (rc == 0 && fgets(line, sizeof line, stdin)) {
        cleanup_json json_t *record = json_loads(line, 0, NULL);
        rc = tccl_records_put(records, record, &err);
    }
    tccl_records_close(records);
    if (rc != 0)
        fprintf(stderr, "put-records: %s\n", err.text);
    return rc == 0 ? 0 : 1;
}
