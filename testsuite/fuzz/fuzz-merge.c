/* MERGE and PLAN between the tccld of two nodes: what is accepted can be solved, and says the same
 * when it is sent on. */
#include "fuzz.h"
#include "owned.h"
#include "sample.h"
#include "tccld/join/merge.h"
#include "tccld/join/step-outcome.h"

OWNED(merge, struct merge, merge_free)
OWNED(shared_class, struct shared_class, shared_class_drop)

enum { NODES = 6 };

static const struct tccl_step_key key = {.cluster = "c", .job = 7};
static char *names[NODES] = {"n1", "n2", "n3", "n4", "n5", "n6"};
static const struct tccl_step join = {.nodes = names, .policy = "p"};

static int nodes_of(const struct merge *merge)
{
    int nodes = 0;
    for (int i = 0; i < merge->n_runs; i++) {
        FUZZ_CHECK(merge->runs[i].class >= 0 && merge->runs[i].class < merge->n_classes);
        FUZZ_CHECK(merge->runs[i].count > 0);
        nodes += merge->runs[i].count;
    }
    return nodes;
}

static void check_merge(const struct merge *merge)
{
    cleared_by(tccl_outcome_clear) struct tccl_outcome outcome = {0};
    FUZZ_CHECK(merge->n_classes <= MERGE_CLASSES && nodes_of(merge) == NODES);
    cleanup_json json_t *json = merge_to_json(merge, ERR);
    owned(merge) struct merge *again = json ? merge_from_json(json, 0, NODES, ERR) : NULL;
    FUZZ_CHECK(again && nodes_of(again) == NODES && merge_gpus(again) == merge_gpus(merge));
    outcome_solve(&outcome, merge, &join, TCCL_CHAIN_RINGS);
    FUZZ_CHECK(!(outcome.gbps < 0) && outcome.bound_gbps >= outcome.gbps);
}

static void check_plan(const json_t *json)
{
    cleared_by(tccl_outcome_clear) struct tccl_outcome outcome = {0};
    if (tccl_plan_from_json(json, &key, 0, NODES, &outcome, ERR) == 0)
        FUZZ_CHECK(outcome.n_choices == 0 || outcome.n_choices == NODES);
    else
        FUZZ_CHECK(check_err.text[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cleanup_json json_t *json = fuzz_json(data, size);
    if (!json)
        return 0;
    owned(merge) struct merge *merge = merge_from_json(json, 0, NODES, ERR);
    if (merge)
        check_merge(merge);
    else
        FUZZ_CHECK(check_err.text[0]);
    check_plan(json);
    return 0;
}

static struct shared_class *sample_class(uint32_t gpus)
{
    struct tccl_machine machine = sample_machine();
    owned(table) struct tccl_table *table = sample_table(&machine, gpus);
    return shared_class_new(tccl_node_class_from_table(table, &machine, TCCL_VIEW_JOB));
}

void fuzz_seeds(fuzz_add *add, void *context)
{
    owned(merge) struct merge *merge = merge_new(0);
    cleared_by(tccl_outcome_clear) struct tccl_outcome outcome = {0};
    srand(1);
    owned(shared_class) struct shared_class *whole = sample_class(0xf), *half = sample_class(0x3);
    if (merge_add(merge, whole, 2, NULL) < 0 || merge_add(merge, half, 3, NULL) < 0 ||
        merge_add(merge, whole, 1, NULL) < 0)
        abort();
    fuzz_add_json(add, context, merge_to_json(merge, NULL));
    outcome_solve(&outcome, merge, &join, TCCL_CHAIN_RINGS);
    fuzz_add_json(add, context, outcome_to_json(&outcome, &key, 0, NODES));
}
