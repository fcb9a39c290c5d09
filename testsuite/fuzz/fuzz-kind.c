/* JSON of a node's kind, as it comes from another node. */
#include <string.h>

#include "check.h"
#include "fuzz.h"
#include "sample.h"

static void check_kind(const struct tccl_kind *kind)
{
    struct tccl_error err = {0};
    json_t *json = tccl_kind_to_json(kind);
    struct tccl_kind *again = json ? tccl_kind_from_json(json, &err) : NULL;

    FUZZ_CHECK(kind->n_nics >= 0 && kind->n_nics <= TCCL_MAX_NICS);
    FUZZ_CHECK(kind->n_baseline >= 0 && kind->n_baseline <= TCCL_MAX_CHANNELS);
    for (int i = 0; i < kind->n_baseline; i++)
        FUZZ_CHECK(kind->baseline_entry_nics[i] < kind->n_nics &&
                   kind->baseline_exit_nics[i] < kind->n_nics);
    for (int i = 0; i < kind->n_nics * kind->n_nics; i++)
        FUZZ_CHECK(kind->cells[i].gbps >= 0 && kind->cells[i].bound >= kind->cells[i].gbps);
    FUZZ_CHECK(again && tccl_kind_equal(kind, again));
    tccl_kind_free(again);
    json_decref(json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tccl_error err = {0};
    json_t *json = json_loadb((const char *)data, size, JSON_REJECT_DUPLICATES, NULL);
    struct tccl_kind *kind = json ? tccl_kind_from_json(json, &err) : NULL;

    if (kind)
        check_kind(kind);
    else
        FUZZ_CHECK(!json || err.text[0]);
    tccl_kind_free(kind);
    json_decref(json);
    return 0;
}

void fuzz_seeds(fuzz_add *add, void *context)
{
    struct tccl_machine machine = sample_machine();

    srand(1);
    for (uint32_t gpus = 1; gpus < 16; gpus += 7) {
        struct tccl_table *table = sample_table(&machine, gpus);
        struct tccl_kind *kind = tccl_kind_from_table(table, &machine);
        json_t *json = tccl_kind_to_json(kind);
        char *text = json_dumps(json, JSON_COMPACT);
        add(context, text, strlen(text));
        free(text);
        json_decref(json);
        tccl_kind_free(kind);
        tccl_table_free(table);
    }
}
