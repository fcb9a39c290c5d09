#include "comment/comment-seen.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/cleanup.h"

enum { FIRST_SIZE = 1024 };

void comment_seen_clear(struct comment_seen *seen)
{
    free(seen->entries);
    *seen = (struct comment_seen){0};
}

/* The entry of that key, or the free one where it belongs. There is a free one always. */
static struct comment_seen_entry *place(struct comment_seen_entry *entries, size_t size,
                                        uint64_t key)
{
    size_t at = key & (size - 1);
    while (entries[at].said && entries[at].key != key)
        at = (at + 1) & (size - 1);
    return &entries[at];
}

/* Moves what is not older than before into a table of that size. */
static int rebuild(struct comment_seen *seen, size_t size, int64_t before)
{
    struct comment_seen_entry *entries = calloc(size, sizeof(*entries));
    size_t count = 0;
    if (!entries)
        return -1;
    for (size_t i = 0; i < seen->size; i++)
        if (seen->entries[i].said && seen->entries[i].start >= before) {
            *place(entries, size, seen->entries[i].key) = seen->entries[i];
            count++;
        }
    free(seen->entries);
    *seen = (struct comment_seen){entries, size, count};
    return 0;
}

static int by_start(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

/* The start in the middle of all. */
static int64_t middle(const struct comment_seen *seen)
{
    cleanup_free int64_t *starts = malloc(seen->count * sizeof(*starts));
    size_t count = 0;
    if (!starts)
        return INT64_MAX;
    for (size_t i = 0; i < seen->size; i++)
        if (seen->entries[i].said)
            starts[count++] = seen->entries[i].start;
    qsort(starts, count, sizeof(*starts), by_start);
    return starts[count / 2] + 1;
}

static int make_room(struct comment_seen *seen)
{
    if (seen->count >= COMMENT_SEEN_MOST && rebuild(seen, seen->size, middle(seen)) != 0)
        return -1;
    if (seen->size && (seen->count + 1) * 2 <= seen->size)
        return 0;
    return rebuild(seen, seen->size ? 2 * seen->size : FIRST_SIZE, INT64_MIN);
}

static int put(struct comment_seen *seen, const struct comment_seen_entry *new)
{
    if (make_room(seen) != 0)
        return -1;
    struct comment_seen_entry *entry = place(seen->entries, seen->size, new->key);
    if (entry->said == new->said)
        return 0;
    seen->count += entry->said == 0;
    *entry = *new;
    return 1;
}

/* Hash of some of the record's values; never 0. */
static uint64_t hash_of(const json_t *record, const char *const *names, size_t count)
{
    cleanup_json json_t *values = json_array();
    for (size_t i = 0; i < count; i++) {
        json_t *value = json_object_get(record, names[i]);
        json_array_append_new(values, value ? json_incref(value) : json_null());
    }
    cleanup_free char *text = json_dumps(values, JSON_COMPACT | JSON_REAL_PRECISION(12));
    uint64_t hash = text ? XXH3_64bits(text, strlen(text)) : 0;
    return hash ? hash : 1;
}

int comment_seen_add(struct comment_seen *seen, const json_t *record)
{
    static const char *const key[] = {"cluster", "job",     "het_job", "het_offset",
                                      "step",    "restart", "run",     "start"};
    static const char *const said[] = {"state", "reason", "gbps",   "ratio",
                                       "built", "gpus",   "n_nodes"};
    struct comment_seen_entry entry = {
        .key = hash_of(record, key, sizeof(key) / sizeof(*key)),
        .said = hash_of(record, said, sizeof(said) / sizeof(*said)),
        .start = json_integer_value(json_object_get(record, "start")),
    };
    return put(seen, &entry);
}

int comment_seen_forget(struct comment_seen *seen, int64_t before)
{
    return seen->size ? rebuild(seen, seen->size, before) : 0;
}

json_t *comment_seen_to_json(const struct comment_seen *seen)
{
    cleanup_json json_t *array = json_array();
    char line[64];
    for (size_t i = 0; i < seen->size; i++) {
        const struct comment_seen_entry *entry = &seen->entries[i];
        if (!entry->said)
            continue;
        snprintf(line, sizeof(line), "%016" PRIx64 " %016" PRIx64 " %" PRId64, entry->key,
                 entry->said, entry->start);
        if (json_array_append_new(array, json_string(line)) != 0)
            return NULL;
    }
    return tccl_steal(array);
}

int comment_seen_from_json(struct comment_seen *seen, const json_t *json, struct tccl_error *err)
{
    for (size_t i = 0; i < json_array_size(json); i++) {
        const char *line = json_string_value(json_array_get(json, i));
        struct comment_seen_entry entry;
        if (!line ||
            sscanf(line, "%16" SCNx64 " %16" SCNx64 " %18" SCNd64, &entry.key, &entry.said,
                   &entry.start) != 3 ||
            !entry.said)
            return tccl_fail(err, "seen: entry %zu is none", i);
        if (put(seen, &entry) < 0)
            return tccl_fail(err, "out of memory");
    }
    return 0;
}
