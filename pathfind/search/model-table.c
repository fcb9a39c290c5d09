/* model-table.c: chain tables of GPU sets alone on a node, by a model. Sets that a symmetry of the
 * model turns into one another have the same rings, moved, and are searched once. NCCL's search
 * looks at GPUs in their order, so its baselines are moved only to sets that have the same order;
 * of such sets one is looked at. */
#include "search/model-table.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "ring/reach.h"
#include "search/beside.h"
#include "search/likeness.h"

#define GAP 0.03
#define ANY_RING 1e9 /* a gap with which the first ring will do */
enum { BUDGET = 5000 };

/* Where the rings of a set come from: the same table for all that are alike. */
struct origin {
    struct tccl_table *table; /* NULL: not searched yet */
    bool searched;            /* it is this set's own */
    struct tccl_exchange move;
};

/* Where all of a set comes from: the first of those that are alike in the order of their GPUs. */
struct first {
    uint32_t gpus; /* 0: not looked for yet */
    struct tccl_exchange move;
    struct tccl_baseline *baseline; /* of the first one itself; NULL: not looked for yet */
};

struct tccl_model_tables {
    const struct tccl_model *model;
    const struct tccl_symmetry *symmetry;
    struct tccl_search *search;
    struct origin *origins; /* of each mask of GPUs, as these */
    struct first *firsts;
    uint32_t n_origins;
    struct tccl_table *moved; /* the last one that was asked for */
};

struct tccl_model_tables *tccl_model_tables_new(const struct tccl_model *model,
                                                const struct tccl_symmetry *symmetry)
{
    const struct tccl_machine *machine = tccl_model_machine(model);
    struct tccl_model_tables *tables = calloc(1, sizeof(*tables));
    if (!tables)
        return NULL;
    *tables = (struct tccl_model_tables){
        .model = model,
        .symmetry = symmetry,
        .search = tccl_search_new(machine, tccl_model_meter(model), symmetry),
        .n_origins = UINT32_C(1) << machine->n_gpus,
    };
    tables->origins = calloc(tables->n_origins, sizeof(*tables->origins));
    tables->firsts = calloc(tables->n_origins, sizeof(*tables->firsts));
    if (!tables->search || !tables->origins || !tables->firsts) {
        tccl_model_tables_free(tables);
        return NULL;
    }
    return tables;
}

void tccl_model_tables_free(struct tccl_model_tables *tables)
{
    if (!tables)
        return;
    for (uint32_t gpus = 0; tables->origins && gpus < tables->n_origins; gpus++)
        if (tables->origins[gpus].searched)
            tccl_table_free(tables->origins[gpus].table);
    for (uint32_t gpus = 0; tables->firsts && gpus < tables->n_origins; gpus++)
        free(tables->firsts[gpus].baseline);
    free(tables->origins);
    free(tables->firsts);
    tccl_table_free(tables->moved);
    tccl_search_free(tables->search);
    free(tables);
}

/* ---- sets that are alike ---- */

/* A table that was searched, and what is known of all sets. */
struct spread {
    struct tccl_model_tables *tables;
    struct tccl_table *table;
    uint32_t gpus;
};

/* A set to which the table's can be moved has its rings from there. */
static bool spread(void *context, uint32_t gpus, const struct tccl_exchange *move)
{
    const struct spread *from = context;
    struct origin *origin = &from->tables->origins[gpus];
    if (origin->table)
        return false;
    *origin = (struct origin){from->table, gpus == from->table->gpus, *move};
    return true;
}

static bool spread_first(void *context, uint32_t gpus, const struct tccl_exchange *move)
{
    const struct spread *from = context;
    struct first *first = &from->tables->firsts[gpus];
    if (first->gpus || !tccl_exchange_in_order(move, from->gpus) ||
        !tccl_likeness_to_nccl(tccl_model_machine(from->tables->model), move))
        return false;
    *first = (struct first){.gpus = from->gpus, .move = *move};
    return true;
}

/* ---- tables ---- */

/* The baselines, and the best ring with so many others; 0: any ring, which is to be replaced. */
static struct tccl_table *begin(struct tccl_model_tables *tables, uint32_t gpus, long others,
                                struct tccl_error *err)
{
    const struct tccl_search_options options = {.gap = others ? GAP : ANY_RING,
                                                .budget = BUDGET,
                                                .others = others,
                                                .reads = true,
                                                .alone = true};
    cleanup_table struct tccl_table *table =
        tccl_table_new(tccl_model_machine(tables->model), gpus);
    if (!table)
        return tccl_fail_null(err, "out of memory");
    return tccl_search_table(tables->search, table, &options, err) < 0 ? NULL : tccl_steal(table);
}

static struct tccl_table *make(struct tccl_model_tables *tables, uint32_t gpus,
                               struct tccl_error *err)
{
    const struct tccl_search_options replies = {.gap = GAP, .budget = TCCL_TABLE_REPLIES};
    const struct tccl_table_sets_options sets = {
        .gap = GAP,
        .budget = gpus == tables->n_origins - 1 ? TCCL_TABLE_RINGS : TCCL_TABLE_PARTS,
        .alone = true};
    cleanup_table struct tccl_table *table = begin(tables, gpus, TCCL_TABLE_OTHERS, err);
    if (!table || tccl_beside_replies(tables->model, table, &replies, err) != 0 ||
        tccl_table_find_sets(tables->model, table, &sets, err) != 0)
        return NULL;
    tccl_table_ends(table, tables->model);
    return tccl_steal(table);
}

/* The first set's own baseline. NULL with err. */
static const struct tccl_baseline *find_baseline(struct tccl_model_tables *tables, uint32_t gpus,
                                                 struct tccl_error *err)
{
    struct first *first = &tables->firsts[gpus];
    if (first->baseline)
        return first->baseline;
    cleanup_table struct tccl_table *made = NULL;
    const struct tccl_table *own = tables->origins[gpus].searched
                                       ? tables->origins[gpus].table
                                       : (made = begin(tables, gpus, 0, err));
    if (own)
        first->baseline = malloc(sizeof(*first->baseline));
    if (first->baseline)
        *first->baseline = own->baselines[1][TCCL_NEWEST];
    else
        tccl_fail(err, "out of memory");
    return first->baseline;
}

/* All of the set from the first one, whose rings are moved themselves. NULL with err. */
static struct tccl_table *move(struct tccl_model_tables *tables, uint32_t gpus,
                               struct tccl_error *err)
{
    const struct first *first = &tables->firsts[gpus];
    const struct origin *origin = &tables->origins[first->gpus];
    const struct tccl_exchange move = tccl_exchange_then(&origin->move, &first->move);
    const struct tccl_baseline *baseline = find_baseline(tables, first->gpus, err);
    struct tccl_table *table =
        baseline ? tccl_table_new(tccl_model_machine(tables->model), gpus) : NULL;
    if (!table)
        return tccl_fail_null(err, "out of memory");
    const struct tccl_table *from = origin->table;
    const struct tccl_result *own = tccl_table_ring(from);
    *tccl_table_ring(table) = *own;
    tccl_table_ring(table)->chain = tccl_exchange_chain(&move, &own->chain);
    while ((own = tccl_table_next(from, own, TCCL_OTHERS | TCCL_SETS))) {
        struct tccl_ring_set set = own->set ? *own->set : (struct tccl_ring_set){1, {own->chain}};
        tccl_exchange_rings(&move, &set);
        if (own->set)
            tccl_table_keep_set(table, &set, own->gbps, own->bound);
        else
            tccl_table_keep_other(table, &set.rings[0], own->gbps);
    }
    struct tccl_baseline moved = *baseline;
    tccl_exchange_rings(&first->move, &moved.set);
    for (int i = 0; i < TCCL_GENERATIONS; i++)
        table->baselines[1][i] = moved;
    tccl_table_ends(table, tables->model);
    return table;
}

const struct tccl_table *tccl_model_tables_get(struct tccl_model_tables *tables, uint32_t gpus,
                                               struct tccl_error *err)
{
    struct spread from = {.tables = tables, .gpus = gpus};
    struct first *first = &tables->firsts[gpus];
    if (!first->gpus)
        tccl_symmetry_images(tables->symmetry, gpus, spread_first, &from);
    from.gpus = first->gpus;
    struct origin *origin = &tables->origins[from.gpus];
    if (!origin->table) {
        from.table = make(tables, from.gpus, err);
        if (!from.table)
            return NULL;
        tccl_symmetry_images(tables->symmetry, from.gpus, spread, &from);
    }
    if (origin->searched && from.gpus == gpus)
        return origin->table;
    tccl_table_free(tables->moved);
    tables->moved = move(tables, gpus, err);
    return tables->moved;
}
