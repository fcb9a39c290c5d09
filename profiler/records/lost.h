/* lost.h: how many records are lost, as the nodes say that had them. */
#pragma once

#include <stdint.h>

#include <jansson.h>

#include "records/records.h"

enum {
    TCCL_LOST_LEDGER = 16,   /* hexadecimal digits of a ledger's number */
    TCCL_LOST_ROWS = 1 << 16 /* ledgers in a store; those of more are refused */
};

/* What one node says, or all of them together. */
struct tccl_lost {
    int64_t records;     /* at most so many: what a tccld was killed with may have arrived */
    int64_t nodes;       /* of so many nodes */
    int64_t first, last; /* when, unix time */
};

/* A node's count by one of its ledgers, of which it has a new one after each boot: saying it again
 * changes nothing, and of two counts the higher one holds. now: as the store believes; nothing is
 * lost later. Returns 0; 1 with err if it is not acceptable (do not retry); -1 with err. */
int tccl_records_put_lost(struct tccl_records *records, const char *node, const char *ledger,
                          const struct tccl_lost *lost, int64_t now, struct tccl_error *err);

/* The sum over all nodes. Returns 0, or -1 with err. */
int tccl_records_lost(struct tccl_records *records, struct tccl_lost *lost, struct tccl_error *err);

/* {"records", "nodes", "first", "last"}. A new reference, or NULL without memory. */
json_t *tccl_lost_to_json(const struct tccl_lost *lost);
