/* misdated.c: records whose start can't be right go when somebody says which. */
#include <stdlib.h>

#include "base/cleanup.h"
#include "records/filter.h"
#include "records/records.h"
#include "records/store.h"

/* The ids of records that match. Returns how many, -1 with err. */
static int find_ids(struct tccl_records *records, const struct tccl_filter *filter, int64_t *ids,
                    int most, struct tccl_error *err)
{
    struct tccl_row row;
    int rc = SQLITE_ROW, count = 0;
    cleanup_stmt sqlite3_stmt *rows = tccl_filter_prepare(records, filter, 0, err);
    if (!rows)
        return -1;
    while (count < most && (rc = sqlite3_step(rows)) == SQLITE_ROW)
        if (tccl_filter_row(filter, rows, &row))
            ids[count++] = row.id;
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? count : tccl_store_fail(records, err);
}

static int remove_id(struct tccl_records *records, sqlite3_stmt *statement, int64_t id,
                     struct tccl_error *err)
{
    sqlite3_reset(statement);
    return sqlite3_bind_int64(statement, 1, id) == SQLITE_OK &&
                   sqlite3_step(statement) == SQLITE_DONE
               ? 0
               : tccl_store_fail(records, err);
}

static int remove_found(struct tccl_records *records, const struct tccl_filter *filter,
                        int64_t *ids, int most, struct tccl_error *err)
{
    cleanup_stmt sqlite3_stmt *build = NULL, *record = NULL;
    int count = find_ids(records, filter, ids, most, err);
    if (count < 0 ||
        tccl_store_prepare(records,
                           "DELETE FROM builds WHERE step_start ="
                           " (SELECT $step_start FROM records WHERE id = ?1)",
                           &build, err) != 0 ||
        tccl_store_prepare(records, "DELETE FROM records WHERE id = ?1", &record, err) != 0)
        return -1;
    for (int i = 0; i < count; i++)
        if (remove_id(records, build, ids[i], err) != 0 ||
            remove_id(records, record, ids[i], err) != 0)
            return -1;
    return count;
}

int tccl_records_purge_misdated(struct tccl_records *records, const json_t *filter, int most,
                                struct tccl_error *err)
{
    __attribute__((cleanup(tccl_filter_clear))) struct tccl_filter wanted = {0};
    cleanup_free int64_t *ids = calloc((size_t)most, sizeof(*ids));
    if (!ids)
        return tccl_fail(err, "out of memory");
    if (tccl_filter_read(filter, -1, &wanted, err) != 0)
        return -1;
    if (!wanted.arrived)
        return tccl_fail(err, "filter: arrived: which misdated records?");
    wanted.unordered = true;
    tccl_store_ask(records);
    if (tccl_records_begin(records, err) != 0)
        return -1;
    int count = remove_found(records, &wanted, ids, most, err);
    if (count >= 0 && tccl_records_commit(records, err) == 0)
        return count;
    if (count < 0)
        tccl_records_give_up(records);
    return -1;
}
