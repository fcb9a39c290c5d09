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

/* table-sets.c: the ring sets of a chain table. */

struct tccl_table_sets_options {
    bool alone;  /* of the node alone only */
    double gap;  /* as of struct tccl_rings_options */
    long budget; /* sets to rate at most for the best number of rings, and as many for others */
    int (*progress)(void *context); /* called now and then, may be NULL; non-zero stops */
    void *context;
};

/* Finds ring sets by a model and keeps them in the table, which has its chains and baselines:
 * where it has chains that read, of both kinds; of the node alone, and between NICs; the best
 * number of rings, and 2 and 4, which nodes of other kinds have, too; where NICs are on several
 * fabrics, also with those of each fabric alone, and with rings that change fabrics from node to
 * node. It begins with NCCL's own rings and the best chains. The same table and model give the same
 * sets. Returns 0; 1 when stopped; -1 with err. */
int tccl_table_find_sets(const struct tccl_model *model, struct tccl_table *table,
                         const struct tccl_table_sets_options *options, struct tccl_error *err);

/* Where a search for sets of the table may begin: NCCL's own rings, then the best ring, or the best
 * chain of each pair of NICs, and for each number of NICs the best chains of so many of them
 * together; with P2P edges that read, or write. Returns how many, TCCL_TABLE_STARTS at most. */
enum { TCCL_TABLE_STARTS = TCCL_MAX_NICS * TCCL_MAX_NICS + TCCL_MAX_NICS + 2 };
int tccl_table_starts(const struct tccl_table *table, bool closed, bool reads,
                      struct tccl_ring_set starts[static TCCL_TABLE_STARTS]);
