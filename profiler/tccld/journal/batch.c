/* batch.c: how many records go together: as many as one message or one file of the spool holds. */
#include "tccld/journal/batch.h"

size_t batch_bytes(const json_t *records)
{
    return json_dumpb(records, NULL, 0, JSON_COMPACT);
}

json_t *batch_take(json_t *records, size_t *bytes)
{
    json_t *batch = json_array();
    size_t all = 0, count = 0, most = json_array_size(records);
    if (!batch)
        return NULL;
    for (; count < most && count < BATCH_RECORDS; count++) {
        json_t *record = json_array_get(records, count);
        size_t size = batch_bytes(record) + 1;
        if ((count > 0 && all + size > BATCH_BYTES) || json_array_append(batch, record) != 0)
            break;
        all += size;
    }
    for (size_t i = 0; i < count; i++)
        json_array_remove(records, 0);
    if (bytes)
        *bytes = all;
    return batch;
}
