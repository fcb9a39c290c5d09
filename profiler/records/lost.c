/* lost.c: the table of lost records: a row for each ledger of a node. */
#include "records/records.h"

#include <string.h>

#include "client/hostlist.h"
#include "records/store.h"

#define MOST 1000000000000 /* records that one ledger may say are lost */

static int check_lost(const char *node, const char *ledger, const struct tccl_lost *lost,
                      struct tccl_error *err)
{
    if (!tccl_host_valid(node))
        return tccl_fail(err, "lost records: '%.40s' is not the name of a node", node);
    if (strlen(ledger) != TCCL_LOST_LEDGER ||
        strspn(ledger, "0123456789abcdef") != TCCL_LOST_LEDGER)
        return tccl_fail(err, "lost records: '%.40s' is not the number of a ledger", ledger);
    if (lost->records < 1 || lost->records > MOST || lost->first < 0 || lost->last < lost->first)
        return tccl_fail(err, "lost records: numbers that can't be right");
    return 0;
}

/* Nothing was changed: the row is there, with a higher count, or there are too many of them.
 * Returns 0, 1 or -1. */
static int check_known(struct tccl_records *records, const char *node, const char *ledger,
                       struct tccl_error *err)
{
    static const char sql[] = "SELECT 1 FROM lost WHERE node = ?1 AND ledger = ?2";
    cleanup_stmt sqlite3_stmt *known = NULL;
    if (tccl_store_prepare(records, sql, &known, err) != 0)
        return -1;
    if (sqlite3_bind_text(known, 1, node, -1, SQLITE_STATIC) != SQLITE_OK ||
        sqlite3_bind_text(known, 2, ledger, -1, SQLITE_STATIC) != SQLITE_OK)
        return tccl_store_fail(records, err);
    int rc = sqlite3_step(known);
    if (rc == SQLITE_ROW)
        return 0;
    if (rc != SQLITE_DONE)
        return tccl_store_fail(records, err);
    tccl_fail(err, "lost records: the store counts those of %d ledgers, and no more",
              TCCL_LOST_ROWS);
    return 1;
}

int tccl_records_put_lost(struct tccl_records *records, const char *node, const char *ledger,
                          const struct tccl_lost *lost, int64_t now, struct tccl_error *err)
{
    static const char sql[] =
        "INSERT INTO lost SELECT ?1, ?2, ?3, min(?4, ?6), min(?5, ?6)"
        " WHERE ?7 > (SELECT count(*) FROM lost)"
        " OR EXISTS (SELECT 1 FROM lost WHERE node = ?1 AND ledger = ?2)"
        " ON CONFLICT (node, ledger) DO UPDATE SET records = excluded.records,"
        " last = excluded.last WHERE excluded.records > lost.records";
    cleanup_stmt sqlite3_stmt *put = NULL;
    if (check_lost(node, ledger, lost, err) != 0)
        return 1;
    if (tccl_store_prepare(records, sql, &put, err) != 0)
        return -1;
    if (sqlite3_bind_text(put, 1, node, -1, SQLITE_STATIC) != SQLITE_OK ||
        sqlite3_bind_text(put, 2, ledger, -1, SQLITE_STATIC) != SQLITE_OK ||
        sqlite3_bind_int64(put, 3, lost->records) != SQLITE_OK ||
        sqlite3_bind_int64(put, 4, lost->first) != SQLITE_OK ||
        sqlite3_bind_int64(put, 5, lost->last) != SQLITE_OK ||
        sqlite3_bind_int64(put, 6, now) != SQLITE_OK ||
        sqlite3_bind_int(put, 7, TCCL_LOST_ROWS) != SQLITE_OK || sqlite3_step(put) != SQLITE_DONE)
        return tccl_store_fail(records, err);
    return sqlite3_changes(records->db) > 0 ? 0 : check_known(records, node, ledger, err);
}

int tccl_records_lost(struct tccl_records *records, struct tccl_lost *lost, struct tccl_error *err)
{
    static const char sql[] = "SELECT coalesce(sum(records), 0), count(DISTINCT node),"
                              " coalesce(min(first), 0), coalesce(max(last), 0) FROM lost";
    cleanup_stmt sqlite3_stmt *sum = NULL;
    if (tccl_store_prepare(records, sql, &sum, err) != 0)
        return -1;
    if (sqlite3_step(sum) != SQLITE_ROW)
        return tccl_store_fail(records, err);
    *lost = (struct tccl_lost){.records = sqlite3_column_int64(sum, 0),
                               .nodes = sqlite3_column_int64(sum, 1),
                               .first = sqlite3_column_int64(sum, 2),
                               .last = sqlite3_column_int64(sum, 3)};
    return 0;
}

json_t *tccl_lost_to_json(const struct tccl_lost *lost)
{
    return json_pack("{s:I, s:I, s:I, s:I}", "records", (json_int_t)lost->records, "nodes",
                     (json_int_t)lost->nodes, "first", (json_int_t)lost->first, "last",
                     (json_int_t)lost->last);
}
