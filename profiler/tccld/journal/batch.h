/* batch.h: records that travel together, in one message or one file. */
#ifndef TCCL_BATCH_H
#define TCCL_BATCH_H

#include <stddef.h>

#include <jansson.h>

enum {
    BATCH_RECORDS = 256,
    BATCH_BYTES = 512 * 1024, /* as text; one record alone may be longer */
};

/* Bytes of a record, or of several, as text. */
size_t batch_bytes(const json_t *records);

/* Takes a batch from the front of an array of records. A new reference to another one, which is
 * empty if that was; NULL without memory, and nothing is taken. *bytes, where it is not NULL: of
 * what was taken. */
json_t *batch_take(json_t *records, size_t *bytes);

#endif
