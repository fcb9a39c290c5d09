/* Ranges of nodes: classes are kept once, runs grow, and what comes from the wire is checked. */
#include "tccld/join/merge.h"

#include "merges.h"

static struct merge *make_merge(int first, int class, int count)
{
    struct merge *merge = merge_new(first);
    owned(shared_class) struct shared_class *shared = make_class(class, "model");
    CHECK_INT(merge_add(merge, shared, count, NULL), 0);
    return merge;
}

TEST(append)
{
    owned(merge) struct merge *a = make_merge(4, 1, 1), *b = make_merge(5, 1, 7),
                              *c = make_merge(12, 2, 2), *d = make_merge(14, 1, 1);
    CHECK_INT(merge_append(a, b, ERR), 0);
    CHECK_INT(merge_append(a, c, ERR), 0);
    CHECK_INT(merge_append(a, d, ERR), 0);
    CHECK_INT(a->n_classes, 2);
    CHECK_INT(a->n_runs, 3);
    CHECK_INT(a->runs[0].count, 8);
    CHECK_INT(a->end, 15);
    CHECK_INT(merge_gpus(a), 22);
    CHECK_INT(merge_append(a, c, ERR), -1); /* does not follow */
}

/* Runs from the wire are those that were sent. */
TEST(round)
{
    owned(merge) struct merge *merge = merge_new(0);
    int nodes = 0, classes[300];
    while (nodes < 300) {
        int class = rand() % 5;
        owned(merge) struct merge *next = make_merge(nodes, class, 1);
        CHECK_OK(merge_append(merge, next, ERR));
        classes[nodes++] = class;
    }
    cleanup_json json_t *json = merge_to_json(merge, ERR);
    owned(merge) struct merge *read = merge_from_json(json, 0, nodes, ERR);
    CHECK_STR(check_err.text, "");
    CHECK_INT(read->n_classes, merge->n_classes);
    for (int run = 0, node = 0; run < read->n_runs; run++)
        for (int i = 0; i < read->runs[run].count; i++, node++)
            CHECK(read->classes[read->runs[run].class]->class->seen[0].gbps ==
                  1 + classes[node] * 7 % 9);
    CHECK(merge_from_json(json, 0, nodes - 1, ERR) == NULL);
    CHECK(merge_from_json(json, 0, nodes + 1, ERR) == NULL);
}

TEST(too_many_classes)
{
    owned(merge) struct merge *merge = merge_new(0);
    for (int i = 0; i < MERGE_CLASSES; i++) {
        owned(shared_class) struct shared_class *shared = make_class(i, "model");
        CHECK_INT(merge_add(merge, shared, 1, ERR), 0);
    }
    struct shared_class *shared = make_class(MERGE_CLASSES, "model"),
                        *known = make_class(7, "model");
    CHECK_INT(merge_add(merge, known, 5, ERR), 0);
    CHECK_SAYS(merge_add(merge, shared, 1, ERR) == -1, "too many node classes");
    shared_class_drop(shared);
    shared_class_drop(known);
}

TEST(malformed)
{
    static const char *const runs[] = {
        "[]",      "[[0]]",   "[[0,1,2]]",   "[[1,4]]",       "[[-1,4]]", "[[0,0]]", "[[0,-4]]",
        "[[0,5]]", "[[0,3]]", "[[0,\"4\"]]", "[[0,4],[0,1]]", "{}",       "null"};
    struct tccl_error none = {0};
    owned(merge) struct merge *merge = make_merge(0, 1, 4);
    cleanup_json json_t *json = merge_to_json(merge, &none);
    for (size_t i = 0; i < COUNT(runs); i++) {
        json_object_set_new(json, "runs", json_loads(runs[i], JSON_DECODE_ANY, NULL));
        CHECK_SAYS(merge_from_json(json, 0, 4, ERR) == NULL, "runs");
    }
    json_object_set_new(json, "runs", json_pack("[[ii]]", 0, 4));
    json_object_set_new(json, "classes", json_array());
    CHECK(merge_from_json(json, 0, 4, &none) == NULL);
}
