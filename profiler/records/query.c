/* query.c: pages of records. A page is bounded in size and time, so that no query blocks tccld. */
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fields.h"
#include "records/records.h"
#include "records/store.h"

enum {
    LOOK_MS = 40,   /* time per page */
    LOOK_ROWS = 64, /* rows between two looks at the clock */
    ROWS = 4096,    /* of a page, matching or not: as many as are kept while they are sorted */
};

/* A page: its limits and what it holds. */
struct page {
    size_t max_bytes, bytes;
    int64_t begun_ms;
    int rows;
    json_t *records;
    int64_t last_start, last_id;
};

/* A text that is not UTF-8 (a damaged file) must not hide the other records. */
static json_t *column(sqlite3_stmt *row, int i, const struct tccl_field *field)
{
    if (tccl_field_is_text(field)) {
        json_t *json = json_string((const char *)sqlite3_column_text(row, i));
        return json ? json : json_string("");
    }
    return field->type == TCCL_FIELD_REAL ? json_real(sqlite3_column_double(row, i))
                                          : json_integer(sqlite3_column_int64(row, i));
}

/* What NCCL built may be the better answer. */
static int show_built(json_t *record)
{
    struct tccl_facts facts = {.step = json_integer_value(json_object_get(record, "step"))};
#define TEXT_OF(member) facts.member = tccl_text_of(record, #member)
    TEXT_OF(state), TEXT_OF(reason), TEXT_OF(reason_class), TEXT_OF(reason_node);
    TEXT_OF(built), TEXT_OF(built_reason), TEXT_OF(built_class), TEXT_OF(built_node);
    struct tccl_facts_shown shown = tccl_facts_shown(&facts);
    json_t *state = json_string(shown.state), *reason = json_string(shown.reason);
    json_t *node = json_string(shown.node), *built = json_string(shown.built);
    int failed =
        json_object_set_new(record, "state", state) |
        json_object_set_new(record, "reason", reason) |
        json_object_set_new(record, "reason_class", json_string(tccl_reason_words[shown.cause])) |
        json_object_set_new(record, "reason_node", node) |
        json_object_set_new(record, "built", built);
    if (!*shown.built)
        failed |= json_object_set_new(record, "built_reason", json_string(""));
    return failed ? -1 : 0;
}

static json_t *read_record(sqlite3_stmt *row)
{
    cleanup_json json_t *record = json_object();
    int place = 0;
    for (int i = 0; i < tccl_n_step_fields; i++) {
        const struct tccl_field *field = &tccl_step_fields[i];
        if (field->use & (TCCL_IN_RECORD | TCCL_IN_CONFIRMATION) &&
            json_object_set_new_nocheck(record, field->name, column(row, place++, field)) != 0)
            return NULL;
    }
    int64_t arrived = sqlite3_column_int64(row, place);
    if (arrived && json_object_set_new(record, "arrived", json_integer(arrived)) != 0)
        return NULL;
    double share = tccl_achieved_share(
        tccl_real_of(record, "achieved_gbps"), tccl_text_of(record, "achieved_with"),
        tccl_text_of(record, "built"), tccl_real_of(record, "gbps"),
        tccl_real_of(record, "nccl_gbps"), tccl_real_of(record, "baseline_gbps"));
    return json_object_set_new(record, "achieved_share", json_real(share)) == 0 &&
                   show_built(record) == 0
               ? tccl_steal(record)
               : NULL;
}

/* A whole record by its id. NULL with err. */
static json_t *fetch(struct tccl_records *records, int64_t id, struct tccl_error *err)
{
    json_t *record = NULL;
    if (sqlite3_bind_int64(records->one, 1, id) != SQLITE_OK ||
        sqlite3_step(records->one) != SQLITE_ROW)
        tccl_store_fail(records, err);
    else if (!(record = read_record(records->one)))
        tccl_fail(err, "out of memory for a query");
    sqlite3_reset(records->one);
    return record;
}

/* Its text has no more bytes: a number is not written for this, which costs more than all else. */
static size_t most_bytes(json_t *record)
{
    size_t bytes = 3;
    const char *name;
    json_t *value;
    json_object_foreach(record, name, value)
    {
        const char *text = json_string_value(value);
        bytes += strlen(name) + 4 + (text ? 2 : json_number_value(value) == 0 ? 4 : 25);
        for (; text && *text; text++)
            bytes += (unsigned char)*text < ' ' || *text == '"' || *text == '\\' ? 6 : 1;
    }
    return bytes;
}

/* Adds the row to the page if it matches. Returns 0; 1 if the page is full (the row is not in it);
 * -1 with err. */
static int take_row(struct page *page, const struct tccl_filter *filter,
                    struct tccl_records *records, sqlite3_stmt *rows, struct tccl_error *err)
{
    struct tccl_facts row;
    size_t count = json_array_size(page->records);
    if ((json_int_t)count >= filter->limit || (page->rows > 0 && page->rows % LOOK_ROWS == 0 &&
                                               tccl_now_ms() - page->begun_ms >= LOOK_MS))
        return 1;
    if (tccl_filter_row(filter, rows, &row)) {
        cleanup_json json_t *record = fetch(records, row.id, err);
        if (!record)
            return -1;
        size_t bytes = most_bytes(record);
        if (count > 0 && page->bytes + bytes > page->max_bytes)
            return 1;
        page->bytes += bytes;
        if (json_array_append(page->records, record) != 0)
            return tccl_fail(err, "out of memory for a query");
    }
    page->rows++;
    page->last_id = row.id;
    page->last_start = row.start;
    return 0;
}

/* Fills the page. *more: there may be rows after it. Returns 0, or -1 with err. */
static int fill_page(struct tccl_records *records, const struct tccl_filter *filter,
                     sqlite3_stmt *rows, struct page *page, bool *more, struct tccl_error *err)
{
    int rc = SQLITE_ROW, taken = 0;
    while (taken == 0 && (rc = sqlite3_step(rows)) == SQLITE_ROW) {
        if (page->rows == 0)
            page->begun_ms = tccl_now_ms(); /* they have been found, and sorted if need be */
        taken = take_row(page, filter, records, rows, err);
    }
    if (taken < 0)
        return -1;
    *more = taken == 1 || page->rows == ROWS;
    return *more || rc == SQLITE_DONE ? 0 : tccl_store_fail(records, err);
}

/* A whole record by its id. */
static const char one_sql[] = "SELECT $all, arrived FROM records WHERE id = ?1";

json_t *tccl_records_query(struct tccl_records *records, const json_t *filter, int64_t uid,
                           size_t max_bytes, json_t **next, struct tccl_error *err)
{
    __attribute__((cleanup(tccl_filter_clear))) struct tccl_filter wanted = {0};
    bool more = false;
    *next = NULL;
    if (tccl_filter_read(filter, uid, &wanted, err) != 0)
        return NULL;
    wanted.looks |= TCCL_LOOK(id);
    tccl_store_ask(records);
    cleanup_stmt sqlite3_stmt *rows = tccl_filter_prepare(records, &wanted, 0, ROWS, err);
    if (!rows || (!records->one && tccl_store_prepare(records, one_sql, &records->one, err) != 0))
        return NULL;
    cleanup_json json_t *found = json_array();
    struct page page = {.records = found, .max_bytes = max_bytes, .bytes = 2};
    if (fill_page(records, &wanted, rows, &page, &more, err) != 0)
        return NULL;
    cleanup_json json_t *then = filter ? json_copy((json_t *)filter) : json_object();
    if (more && json_object_set_new(then, "after",
                                    json_pack("[I, I]", (json_int_t)page.last_start,
                                              (json_int_t)page.last_id)) != 0)
        return tccl_fail_null(err, "out of memory for a query");
    *next = more ? tccl_steal(then) : NULL;
    return tccl_steal(found);
}
