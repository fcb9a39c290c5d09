/* owned.h: variables of tests that release what they hold at the end of their scope, as those of
 * base/cleanup.h do. */
#pragma once

#include "check.h"
#include "machine/model.h"
#include "ring/node-class.h"
#include "search/search.h"
#include "search/symmetry.h"

OWNED(model, struct tccl_model, tccl_model_free)
OWNED(search, struct tccl_search, tccl_search_free)
OWNED(symmetry, struct tccl_symmetry, tccl_symmetry_free)
OWNED(table, struct tccl_table, tccl_table_free)

/* The chain table of a GPU set as a search by the model fills it. The caller frees it. */
static inline struct tccl_table *table_of(const struct tccl_model *model, uint32_t gpus,
                                          bool symmetric, const struct tccl_search_options *options)
{
    const struct tccl_machine *machine = tccl_model_machine(model);
    owned(symmetry) struct tccl_symmetry *symmetry =
        symmetric ? tccl_symmetry_of_model(model) : NULL;
    owned(search) struct tccl_search *search =
        tccl_search_new(machine, tccl_model_meter(model), symmetry);
    struct tccl_table *table = tccl_table_new(machine, gpus);
    int rc = tccl_search_table(search, table, options, ERR);
    CHECK(rc == 0 || (rc == 1 && options->budget > 0));
    CHECK_STR(check_err.text, "");
    return table;
}
