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

struct shared_class *shared_class_new(struct tccl_node_class *class)
{
    struct shared_class *shared = malloc(sizeof(*shared));
    if (!shared) {
        tccl_node_class_free(class);
        return NULL;
    }
    *shared = (struct shared_class){.class = class, .holders = 1};
    return shared;
}

struct shared_class *shared_class_hold(struct shared_class *shared)
{
    shared->holders++;
    return shared;
}

void shared_class_drop(struct shared_class *shared)
{
    if (!shared || --shared->holders > 0)
        return;
    tccl_node_class_free(shared->class);
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
    for (int i = 0; i < merge->n_classes; i++)
        shared_class_drop(merge->classes[i]);
    free(merge->runs);
    free(merge);
}

/* Index of a class, added if it is new; -1 with err. */
static int find_class(struct merge *merge, struct shared_class *shared, struct tccl_error *err)
{
    for (int i = 0; i < merge->n_classes; i++)
        if (merge->classes[i] == shared ||
            tccl_node_class_equal(merge->classes[i]->class, shared->class))
            return i;
    if (merge->n_classes == MERGE_CLASSES)
        return tccl_fail(err, "too many node classes in one step: more than %d", MERGE_CLASSES);
    merge->classes[merge->n_classes] = shared_class_hold(shared);
    return merge->n_classes++;
}

static int add_run(struct merge *merge, int class, int count, struct tccl_error *err)
{
    struct merge_run *last = merge->n_runs ? &merge->runs[merge->n_runs - 1] : NULL;
    merge->end += count;
    if (last && last->class == class) {
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
    merge->runs[merge->n_runs++] = (struct merge_run){.class = class, .count = count};
    return 0;
}

int merge_add(struct merge *merge, struct shared_class *class, int count, struct tccl_error *err)
{
    int index = find_class(merge, class, err);
    return index < 0 ? -1 : add_run(merge, index, count, err);
}

int merge_append(struct merge *merge, const struct merge *next, struct tccl_error *err)
{
    int index[MERGE_CLASSES];
    if (next->first != merge->end)
        return tccl_fail(err, "ranges of nodes do not follow: %d and %d", merge->end, next->first);
    for (int i = 0; i < next->n_classes; i++)
        if ((index[i] = find_class(merge, next->classes[i], err)) < 0)
            return -1;
    for (int i = 0; i < next->n_runs; i++)
        if (add_run(merge, index[next->runs[i].class], next->runs[i].count, err) != 0)
            return -1;
    return 0;
}

json_t *merge_to_json(const struct merge *merge, struct tccl_error *err)
{
    cleanup_json json_t *classes = json_array();
    cleanup_json json_t *runs = json_array();
    int failed = !classes || !runs;
    for (int i = 0; !failed && i < merge->n_classes; i++)
        failed = json_array_append_new(classes, tccl_node_class_to_json(merge->classes[i]->class));
    for (int i = 0; !failed && i < merge->n_runs; i++)
        failed = json_array_append_new(
            runs, json_pack("[ii]", merge->runs[i].class, merge->runs[i].count));
    json_t *json = failed ? NULL : json_pack("{s:O,s:O}", "classes", classes, "runs", runs);
    if (!json)
        tccl_fail(err, "out of memory");
    return json;
}

static int read_classes(struct merge *merge, const json_t *classes, struct tccl_error *err)
{
    size_t count = json_array_size(classes);
    if (count == 0 || count > MERGE_CLASSES)
        return tccl_fail(err, "classes: a list of 1 to %d node classes is expected", MERGE_CLASSES);
    for (size_t i = 0; i < count; i++) {
        struct tccl_node_class *class = tccl_node_class_from_json(json_array_get(classes, i), err);
        if (!class)
            return tccl_fail_in(err, "classes: entry %zu", i);
        struct shared_class *shared = shared_class_new(class);
        if (!shared)
            return tccl_fail(err, "out of memory");
        merge->classes[merge->n_classes++] = shared;
    }
    return 0;
}

static int read_runs(struct merge *merge, const json_t *runs, int end, struct tccl_error *err)
{
    for (size_t i = 0; i < json_array_size(runs); i++) {
        int class, count;
        if (json_unpack(json_array_get(runs, i), "[ii!]", &class, &count) != 0 || class < 0 ||
            class >= merge->n_classes || count < 1 || count > end - merge->end)
            return tccl_fail(err, "runs: entry %zu is not a run of nodes below %d", i, end);
        if (add_run(merge, class, count, err) != 0)
            return -1;
    }
    if (merge->end != end)
        return tccl_fail(err, "runs: they end at node %d instead of %d", merge->end, end);
    return 0;
}

struct merge *merge_from_json(const json_t *json, int first, int end, struct tccl_error *err)
{
    cleanup_merge struct merge *merge = merge_new(first);
    if (!merge)
        return tccl_fail_null(err, "out of memory");
    if (read_classes(merge, json_object_get(json, "classes"), err) != 0 ||
        read_runs(merge, json_object_get(json, "runs"), end, err) != 0)
        return NULL;
    return tccl_steal(merge);
}

struct tccl_run *merge_runs(const struct merge *merge)
{
    struct tccl_run *runs = calloc((size_t)merge->n_runs + 1, sizeof(*runs));
    for (int i = 0; runs && i < merge->n_runs; i++)
        runs[i] = (struct tccl_run){.class = merge->classes[merge->runs[i].class]->class,
                                    .count = merge->runs[i].count};
    return runs;
}

long merge_gpus(const struct merge *merge)
{
    long gpus = 0;
    for (int i = 0; i < merge->n_runs; i++)
        gpus += (long)merge->classes[merge->runs[i].class]->class->n_gpus * merge->runs[i].count;
    return gpus;
}

long merge_neighbours(const struct merge *merge)
{
    long neighbours = 0;
    for (int i = 0; i < merge->n_runs; i++)
        neighbours +=
            (long)merge->classes[merge->runs[i].class]->class->neighbours * merge->runs[i].count;
    return neighbours;
}
