/* Model files (the seeds are those of testsuite/machines): what is accepted can be asked for any
 * set of its machine, and adding a transfer never helps. */
#include <math.h>

#include "fuzz.h"
#include "owned.h"

/* Some transfers of the machine; which ones hangs on the input. */
static void choose(const struct tccl_machine *machine, uint32_t choice, struct tccl_set *set)
{
    for (int i = 0; i < TCCL_TRANSFERS && set->count < 12; i++) {
        choice = choice * 1664525 + 1013904223; /* Numerical Recipes, 7.1 */
        if (choice >> 28 == 0 && tccl_transfer_valid((tccl_transfer)i) &&
            tccl_machine_allows(machine, (tccl_transfer)i, NULL) == 0)
            tccl_set_add(set, (tccl_transfer)i);
    }
}

static void ask(const struct tccl_model *model, uint32_t choice)
{
    struct tccl_set set = {0}, less;
    double gbps, rates[TCCL_MAX_SET], more;
    const char *limits[TCCL_MAX_SET];
    choose(tccl_model_machine(model), choice, &set);
    FUZZ_CHECK(tccl_model_measure(model, &set, &gbps, rates, limits, NULL) == 0);
    FUZZ_CHECK(!isnan(gbps) && gbps >= 0);
    if (set.count < 2)
        return;
    less = set;
    less.count--;
    FUZZ_CHECK(tccl_model_measure(model, &less, &more, NULL, NULL, NULL) == 0);
    FUZZ_CHECK(more >= gbps * (1 - 1e-9));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    owned(model) struct tccl_model *model = NULL;
    cleanup_json json_t *json = fuzz_json(data, size);
    if (json && tccl_model_from_json(json, &model, ERR) == 0)
        ask(model, (uint32_t)size * 2654435761u);
    else
        FUZZ_CHECK(!json || check_err.text[0]);
    return 0;
}

FUZZ_SEEDS("{}")
