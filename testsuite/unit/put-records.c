/* put-records.c: puts records, JSON objects one to a line on standard input, into a store.
 * Usage: put-records RECORDS.DB */
#include <stdio.h>

#include "base/cleanup.h"
#include "records/records.h"

int main(int argc, char **argv)
{
    char line[65536];
    struct tccl_error err = {0};
    struct tccl_records *records = NULL;
    int rc = argc == 2 ? tccl_records_open(argv[1], NULL, &records, &err) : -1;
    if (rc == 0)
        rc = tccl_records_begin(records, &err);
    while (rc == 0 && fgets(line, sizeof(line), stdin)) {
        cleanup_json json_t *record = json_loads(line, 0, NULL);
        rc = tccl_records_put(records, record, &err);
    }
    if (rc == 0)
        rc = tccl_records_commit(records, &err);
    tccl_records_close(records);
    if (rc != 0)
        fprintf(stderr, "put-records: %s\n", err.text);
    return rc == 0 ? 0 : 1;
}
