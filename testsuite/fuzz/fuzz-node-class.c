/* JSON of a node class, as it comes from another node. */
#include "fuzz.h"
#include "owned.h"
#include "sample.h"

static void check_class(const struct tccl_node_class *class)
{
    cleanup_json json_t *json = tccl_node_class_to_json(class);
    cleanup_class struct tccl_node_class *again =
        json ? tccl_node_class_from_json(json, ERR) : NULL;
    FUZZ_CHECK(class->n_nics >= 0 && class->n_nics <= TCCL_MAX_NICS);
    FUZZ_CHECK(class->baselines[TCCL_NEWEST].n_chains >= 0 &&
               class->baselines[TCCL_NEWEST].n_chains <= TCCL_MAX_CHANNELS);
    for (int i = 0; i < class->baselines[TCCL_NEWEST].n_chains; i++)
        FUZZ_CHECK(class->baselines[TCCL_NEWEST].entry_nics[i] < class->n_nics &&
                   class->baselines[TCCL_NEWEST].exit_nics[i] < class->n_nics);
    for (int i = 0; i < class->n_nics * class->n_nics; i++)
        FUZZ_CHECK(class->seen[i].gbps >= 0 && class->seen[i].bound >= class->seen[i].gbps);
    for (int i = tccl_class_first_set(class); i < class->n_seen; i++)
        FUZZ_CHECK(class->seen[i].set.n >= 2 && class->seen[i].set.n <= TCCL_CHAIN_RINGS &&
                   class->seen[i].gbps > 0 && class->seen[i].bound >= class->seen[i].gbps);
    FUZZ_CHECK(class->n_seen <= tccl_class_first_set(class) + TCCL_CLASS_SETS);
    FUZZ_CHECK(again && tccl_node_class_equal(class, again));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cleanup_json json_t *json = fuzz_json(data, size);
    cleanup_class struct tccl_node_class *class =
        json ? tccl_node_class_from_json(json, ERR) : NULL;
    if (class)
        check_class(class);
    else
        FUZZ_CHECK(!json || check_err.text[0]);
    return 0;
}

void fuzz_seeds(fuzz_add *add, void *context)
{
    struct tccl_machine machine = sample_machine();
    srand(1);
    for (uint32_t gpus = 1; gpus < 16; gpus += 7) {
        owned(table) struct tccl_table *table = sample_table(&machine, gpus);
        cleanup_class struct tccl_node_class *class =
            tccl_node_class_from_table(table, &machine, TCCL_VIEW_JOB);
        for (int i = 0; i < 4; i++) {
            struct tccl_seen set = sample_set(gpus, 2 + i % 3, gpus > 1 && i == 3);
            tccl_node_class_add_set(class, &set);
        }
        fuzz_add_json(add, context, tccl_node_class_to_json(class));
    }
}
