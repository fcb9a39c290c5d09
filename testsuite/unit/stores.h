/* stores.h: a store of records at a path of the test's. */
#ifndef TCCL_TEST_STORES_H
#define TCCL_TEST_STORES_H

#include "check.h"
#include "records/records.h"

static inline struct tccl_records *open_store_at(const char *path)
{
    struct tccl_records *records;
    CHECK_OK(tccl_records_open(path, &records, ERR));
    return records;
}

/* The summary by a reader that is opened for it. A new reference, or NULL with err. */
static inline json_t *summary_of(const char *path, const json_t *filter, int64_t uid,
                                 struct tccl_error *err)
{
    struct tccl_records *reader;
    if (tccl_records_open_reader(path, &reader, err) != 0)
        return NULL;
    json_t *summary = tccl_records_summary(reader, filter, uid, err);
    tccl_records_close(reader);
    return summary;
}

#endif
