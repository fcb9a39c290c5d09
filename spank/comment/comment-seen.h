/* comment-seen.h: which records were read already, and what they said then. */
#ifndef TCCL_COMMENT_SEEN_H
#define TCCL_COMMENT_SEEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "base/error.h"

enum { COMMENT_SEEN_MOST = 200000 }; /* records; of more, the older half is forgotten */

struct comment_seen_entry {
    uint64_t key, said; /* hashes: of the record's key; of what a comment may tell of it; said 0:
                           the place is free */
    int64_t start;
};

struct comment_seen {
    struct comment_seen_entry *entries; /* a hash table, at most half full */
    size_t size, count;
};

void comment_seen_clear(struct comment_seen *seen);

/* Remembers a record. Returns 1 if it is new or says something else than before, 0 if not, -1
 * without memory. */
int comment_seen_add(struct comment_seen *seen, const json_t *record);

/* Forgets the records of steps that started before that time. Returns 0, or -1 without memory. */
int comment_seen_forget(struct comment_seen *seen, int64_t before);

/* As JSON: a new reference to an array, NULL without memory; and back, returns 0 or -1 with err. */
json_t *comment_seen_to_json(const struct comment_seen *seen);
int comment_seen_from_json(struct comment_seen *seen, const json_t *json, struct tccl_error *err);

#endif
