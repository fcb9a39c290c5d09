/* Ranges of nodes: classes are kept once, runs grow, and what comes from the wire is checked. */
#include "tccld/join/merge.h"

#include "check.h"

OWNED(merge, struct merge, merge_free)
OWNED(shared_class, struct shared_class, shared_class_drop)

/* A class with one NIC, different for each number. */
static struct shared_class *make_class(int number)
{
    cleanup_json json_t *json = NULL;
    struct tccl_node_class class = {.gpus = 3, .n_gpus = 2, .n_nics = 1};
    const struct tccl_chain chain = {.n_gpus = 2,
                                     .gpus = {1, 0},
                                     .entry = {.via = {.kind = TCCL_MEMORY, .index = 0}},
                                     .exit = {.via = {.kind = TCCL_MEMORY, .index = 0}}};
    struct tccl_seen seen[2] = {{.gbps = 1 + number,
                                 .alone = 1 + number,
                                 .share = 1,
                                 .bound = 1 + number,
                                 .set = {1, {chain}}}};
    class.seen = seen;
    class.n_seen = 2;
    snprintf(class.machine, sizeof(class.machine), "%032x", number);
    strcpy(class.source, "model");
    strcpy(class.nics[0].name, "mlx5_0");
    strcpy(class.nics[0].fabric, "ib");
    class.nics[0].gbps = 25;
    json = tccl_node_class_to_json(&class);
    struct tccl_node_class *read = tccl_node_class_from_json(json, ERR);
    CHECK_STR(check_err.text, "");
    return shared_class_new(read);
}

static struct merge *make_merge(int first, int class, int count)
{
    struct merge *merge = merge_new(first);
    owned(shared_class) struct shared_class *shared = make_class(class);
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
            CHECK(read->classes[read->runs[run].class]->class->seen[0].gbps == 1 + classes[node]);
    CHECK(merge_from_json(json, 0, nodes - 1, ERR) == NULL);
    CHECK(merge_from_json(json, 0, nodes + 1, ERR) == NULL);
}

TEST(too_many_classes)
{
    owned(merge) struct merge *merge = merge_new(0);
    for (int i = 0; i < MERGE_CLASSES; i++) {
        owned(shared_class) struct shared_class *shared = make_class(i);
        CHECK_INT(merge_add(merge, shared, 1, ERR), 0);
    }
    struct shared_class *shared = make_class(MERGE_CLASSES), *known = make_class(7);
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
