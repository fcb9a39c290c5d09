/* stores.h: a store of records at a path of the test's. */
#ifndef TCCL_TEST_STORES_H
#define TCCL_TEST_STORES_H

#include "check.h"
#include "records/records.h"

static struct tccl_records *open_store_at(const char *path)
{
    struct tccl_records *records;
    struct tccl_error err = {0};
    CHECK_INT(tccl_records_open(path, &records, &err), 0);
    CHECK_STR(err.text, "");
    return records;
}

#endif
