/* Ranges of nodes: kinds are kept once, runs grow, and what comes from the wire is checked. */
#include "tccld/join/merge.h"

#include "base/cleanup.h"
#include "check.h"

/* A kind with one NIC, different for each number. */
static struct shared_kind *make_kind(int number)
{
    struct tccl_error err = {0};
    cleanup_json json_t *json = NULL;
    struct tccl_kind kind = {.gpus = 3, .n_gpus = 2, .n_nics = 1};
    struct tccl_cell cell = {.gbps = 1 + number, .bound = 1 + number};
    cell.chain = (struct tccl_chain){.n_gpus = 2,
                                     .gpus = {1, 0},
                                     .entry = {.via = {.kind = TCCL_MEMORY, .index = 0}},
                                     .exit = {.via = {.kind = TCCL_GPU, .index = 0}}};
    kind.cells = &cell;
    snprintf(kind.machine, sizeof(kind.machine), "%032x", number);
    strcpy(kind.source, "model");
    strcpy(kind.nics[0].name, "mlx5_0");
    strcpy(kind.nics[0].fabric, "ib");
    kind.nics[0].gbps = 25;
    json = tccl_kind_to_json(&kind);
    struct tccl_kind *read = tccl_kind_from_json(json, &err);
    CHECK_STR(err.text, "");
    return shared_kind_new(read);
}

static struct merge *make_merge(int first, int kind, int count)
{
    struct merge *merge = merge_new(first);
    struct shared_kind *shared = make_kind(kind);
    CHECK_INT(merge_add(merge, shared, count, NULL), 0);
    shared_kind_drop(shared);
    return merge;
}

static void test_append(void)
{
    struct tccl_error err = {0};
    struct merge *a = make_merge(4, 1, 1), *b = make_merge(5, 1, 7), *c = make_merge(12, 2, 2),
                 *d = make_merge(14, 1, 1);
    CHECK_INT(merge_append(a, b, &err), 0);
    CHECK_INT(merge_append(a, c, &err), 0);
    CHECK_INT(merge_append(a, d, &err), 0);
    CHECK_INT(a->n_kinds, 2);
    CHECK_INT(a->n_runs, 3);
    CHECK_INT(a->runs[0].count, 8);
    CHECK_INT(a->end, 15);
    CHECK_INT(merge_gpus(a), 22);
    CHECK_INT(merge_append(a, c, &err), -1); /* does not follow */
    merge_free(a);
    merge_free(b);
    merge_free(c);
    merge_free(d);
}

/* Runs from the wire are those that were sent. */
static void test_round(void)
{
    struct tccl_error err = {0};
    struct merge *merge = merge_new(0);
    int nodes = 0, kinds[300];
    srand((unsigned)check_seed());
    while (nodes < 300) {
        int kind = rand() % 5;
        struct merge *next = make_merge(nodes, kind, 1);
        CHECK_INT(merge_append(merge, next, &err), 0);
        merge_free(next);
        kinds[nodes++] = kind;
    }
    cleanup_json json_t *json = merge_to_json(merge, &err);
    struct merge *read = merge_from_json(json, 0, nodes, &err);
    CHECK_STR(err.text, "");
    CHECK_INT(read->n_kinds, merge->n_kinds);
    for (int run = 0, node = 0; run < read->n_runs; run++)
        for (int i = 0; i < read->runs[run].count; i++, node++)
            CHECK(read->kinds[read->runs[run].kind]->kind->cells[0].gbps == 1 + kinds[node]);
    CHECK(merge_from_json(json, 0, nodes - 1, &err) == NULL);
    CHECK(merge_from_json(json, 0, nodes + 1, &err) == NULL);
    merge_free(read);
    merge_free(merge);
}

static void test_too_many_kinds(void)
{
    struct tccl_error err = {0};
    struct merge *merge = merge_new(0);
    for (int i = 0; i < MERGE_KINDS; i++) {
        struct shared_kind *shared = make_kind(i);
        CHECK_INT(merge_add(merge, shared, 1, &err), 0);
        shared_kind_drop(shared);
    }
    struct shared_kind *shared = make_kind(MERGE_KINDS), *known = make_kind(7);
    CHECK_INT(merge_add(merge, known, 5, &err), 0);
    CHECK_INT(merge_add(merge, shared, 1, &err), -1);
    CHECK(strstr(err.text, "too many kinds of node") != NULL);
    shared_kind_drop(shared);
    shared_kind_drop(known);
    merge_free(merge);
}

static void test_malformed(void)
{
    static const char *const runs[] = {
        "[]",      "[[0]]",   "[[0,1,2]]",   "[[1,4]]",       "[[-1,4]]", "[[0,0]]", "[[0,-4]]",
        "[[0,5]]", "[[0,3]]", "[[0,\"4\"]]", "[[0,4],[0,1]]", "{}",       "null"};
    struct tccl_error none = {0};
    struct merge *merge = make_merge(0, 1, 4);
    cleanup_json json_t *json = merge_to_json(merge, &none);
    for (size_t i = 0; i < sizeof(runs) / sizeof(*runs); i++) {
        struct tccl_error err = {0};
        json_object_set_new(json, "runs", json_loads(runs[i], JSON_DECODE_ANY, NULL));
        CHECK(merge_from_json(json, 0, 4, &err) == NULL);
        CHECK(strstr(err.text, "runs") != NULL);
    }
    json_object_set_new(json, "runs", json_pack("[[ii]]", 0, 4));
    json_object_set_new(json, "kinds", json_array());
    CHECK(merge_from_json(json, 0, 4, &none) == NULL);
    merge_free(merge);
}

int main(void)
{
    test_append();
    test_round();
    test_too_many_kinds();
    test_malformed();
    return check_result();
}
