/* Ranges of nodes as runs of node classes, and their form in MERGE messages, whose numbers are
 * checked before anything is allocated for them. */
#include "tccld/join/merge.h"

#include <stdlib.h>

#include "base/cleanup.h"

static void cleanup_merge_(struct merge **merge)
{
    merge_free(*merge);
}
#define cleanup_merge __attribute__((cleanup(cleanup_merge_)))

struct shared_kind *shared_kind_new(struct tccl_kind *kind)
{
    struct shared_kind *shared = malloc(sizeof(*shared));
    if (!shared) {
        tccl_kind_free(kind);
        return NULL;
    }
    *shared = (struct shared_kind){.kind = kind, .holders = 1};
    return shared;
}

struct shared_kind *shared_kind_hold(struct shared_kind *shared)
{
    shared->holders++;
    return shared;
}

void shared_kind_drop(struct shared_kind *shared)
{
    if (!shared || --shared->holders > 0)
        return;
    tccl_kind_free(shared->kind);
    free(shared);
}

struct merge *merge_new(int first)
{
    struct merge *merge = calloc(1, sizeof(*merge));
    if (merge)
        merge->first = merge->end = first;
    return merge;
}

void merge_free(struct merge *merge)
{
    if (!merge)
        return;
    for (int i = 0; i < merge->n_kinds; i++)
        shared_kind_drop(merge->kinds[i]);
    free(merge->runs);
    free(merge);
}

/* Index of a kind, added if it is new; -1 with err. */
static int find_kind(struct merge *merge, struct shared_kind *shared, struct tccl_error *err)
{
    for (int i = 0; i < merge->n_kinds; i++)
        if (merge->kinds[i] == shared || tccl_kind_equal(merge->kinds[i]->kind, shared->kind))
            return i;
    if (merge->n_kinds == MERGE_KINDS)
        return tccl_fail(err, "too many kinds of node in one step: more than %d", MERGE_KINDS);
    merge->kinds[merge->n_kinds] = shared_kind_hold(shared);
    return merge->n_kinds++;
}

static int add_run(struct merge *merge, int kind, int count, struct tccl_error *err)
{
    struct merge_run *last = merge->n_runs ? &merge->runs[merge->n_runs - 1] : NULL;
    merge->end += count;
    if (last && last->kind == kind) {
        last->count += count;
        return 0;
    }
    if (merge->n_runs == merge->room) {
        int room = merge->room ? 2 * merge->room : 4;
        struct merge_run *runs = reallocarray(merge->runs, (size_t)room, sizeof(*runs));
        if (!runs)
            return tccl_fail(err, "out of memory");
        merge->runs = runs;
        merge->room = room;
    }
    merge->runs[merge->n_runs++] = (struct merge_run){.kind = kind, .count = count};
    return 0;
}

int merge_add(struct merge *merge, struct shared_kind *kind, int count, struct tccl_error *err)
{
    int index = find_kind(merge, kind, err);
    return index < 0 ? -1 : add_run(merge, index, count, err);
}

int merge_append(struct merge *merge, const struct merge *next, struct tccl_error *err)
{
    int index[MERGE_KINDS];
    if (next->first != merge->end)
        return tccl_fail(err, "ranges of nodes do not follow: %d and %d", merge->end, next->first);
    for (int i = 0; i < next->n_kinds; i++)
        if ((index[i] = find_kind(merge, next->kinds[i], err)) < 0)
            return -1;
    for (int i = 0; i < next->n_runs; i++)
        if (add_run(merge, index[next->runs[i].kind], next->runs[i].count, err) != 0)
            return -1;
    return 0;
}

json_t *merge_to_json(const struct merge *merge, struct tccl_error *err)
{
    cleanup_json json_t *kinds = json_array();
    cleanup_json json_t *runs = json_array();
    int failed = !kinds || !runs;
    for (int i = 0; !failed && i < merge->n_kinds; i++)
        failed = json_array_append_new(kinds, tccl_kind_to_json(merge->kinds[i]->kind));
    for (int i = 0; !failed && i < merge->n_runs; i++)
        failed = json_array_append_new(
            runs, json_pack("[ii]", merge->runs[i].kind, merge->runs[i].count));
    json_t *json = failed ? NULL : json_pack("{s:O,s:O}", "kinds", kinds, "runs", runs);
    if (!json)
        tccl_fail(err, "out of memory");
    return json;
}

static int read_kinds(struct merge *merge, const json_t *kinds, struct tccl_error *err)
{
    size_t count = json_array_size(kinds);
    if (count == 0 || count > MERGE_KINDS)
        return tccl_fail(err, "kinds: a list of 1 to %d kinds of node is expected", MERGE_KINDS);
    for (size_t i = 0; i < count; i++) {
        struct tccl_kind *kind = tccl_kind_from_json(json_array_get(kinds, i), err);
        if (!kind)
            return tccl_fail_in(err, "kinds: entry %zu", i);
        struct shared_kind *shared = shared_kind_new(kind);
        if (!shared)
            return tccl_fail(err, "out of memory");
        merge->kinds[merge->n_kinds++] = shared;
    }
    return 0;
}

static int read_runs(struct merge *merge, const json_t *runs, int end, struct tccl_error *err)
{
    for (size_t i = 0; i < json_array_size(runs); i++) {
        int kind, count;
        if (json_unpack(json_array_get(runs, i), "[ii!]", &kind, &count) != 0 || kind < 0 ||
            kind >= merge->n_kinds || count < 1 || count > end - merge->end)
            return tccl_fail(err, "runs: entry %zu is not a run of nodes below %d", i, end);
        if (add_run(merge, kind, count, err) != 0)
            return -1;
    }
    if (merge->end != end)
        return tccl_fail(err, "runs: they end at node %d instead of %d", merge->end, end);
    return 0;
}

struct merge *merge_from_json(const json_t *json, int first, int end, struct tccl_error *err)
{
    cleanup_merge struct merge *merge = merge_new(first);
    if (!merge) {
        tccl_fail(err, "out of memory");
        return NULL;
    }
    if (read_kinds(merge, json_object_get(json, "kinds"), err) != 0 ||
        read_runs(merge, json_object_get(json, "runs"), end, err) != 0)
        return NULL;
    return tccl_steal(merge);
}

struct tccl_run *merge_runs(const struct merge *merge)
{
    struct tccl_run *runs = calloc((size_t)merge->n_runs + 1, sizeof(*runs));
    for (int i = 0; runs && i < merge->n_runs; i++)
        runs[i] = (struct tccl_run){.kind = merge->kinds[merge->runs[i].kind]->kind,
                                    .count = merge->runs[i].count};
    return runs;
}

long merge_gpus(const struct merge *merge)
{
    long gpus = 0;
    for (int i = 0; i < merge->n_runs; i++)
        gpus += (long)merge->kinds[merge->runs[i].kind]->kind->n_gpus * merge->runs[i].count;
    return gpus;
}
