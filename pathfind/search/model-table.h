/* model-table.h: chain tables of GPU sets that have a node for themselves, by a model: what
 * tccl-profile run finds for them, without what concerns several nodes. */
#pragma once

#include "machine/model.h"
#include "ring/table.h"
#include "search/symmetry.h"

/* What tccl-profile run spends on a table, beside the search for the best chains, in sets. */
enum {
    TCCL_TABLE_OTHERS = 150,  /* chains of other footprints */
    TCCL_TABLE_REPLIES = 500, /* each search beside another step, by a model */
    TCCL_TABLE_RINGS = 3000,  /* each search for a ring set of all GPUs, by a model, */
    TCCL_TABLE_PARTS = 1000   /* and of some of them */
};

/* What was found for one table serves the next ones. model and symmetry (or NULL) are
 * borrowed. NULL only without memory. */
struct tccl_model_tables;
struct tccl_model_tables *tccl_model_tables_new(const struct tccl_model *model,
                                                const struct tccl_symmetry *symmetry);
void tccl_model_tables_free(struct tccl_model_tables *tables); /* NULL is fine */

/* The table of a GPU set of two at least, valid until the next call. NULL with err. */
const struct tccl_table *tccl_model_tables_get(struct tccl_model_tables *tables, uint32_t gpus,
                                               struct tccl_error *err);
