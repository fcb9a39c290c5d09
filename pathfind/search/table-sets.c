/* table-sets.c: the ring sets of a chain table: which ones are looked for, and where from. */
#include "search/model-table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "search/rings.h"

enum { SEED = 1 };

/* Numbers of rings that nodes of any kind have, so that different ones have one in common. */
static const int common[] = {2, 4};
enum { COMMON = sizeof(common) / sizeof(*common) };

/* Starts */

static void add_start(struct tccl_ring_set *starts, int *n, const struct tccl_chain *chains,
                      int count)
{
    if (*n == TCCL_TABLE_STARTS || count < 1 || count > TCCL_CHAIN_RINGS)
        return;
    struct tccl_ring_set *start = &starts[(*n)++];
    start->n = count;
    memcpy(start->rings, chains, (size_t)count * sizeof(*chains));
}

/* The best chain between these NICs; NULL: there is none. */
static const struct tccl_result *best_of(const struct tccl_table *table, int entry, int exit)
{
    const struct tccl_result *best = tccl_table_best(table, entry, exit);
    return best && best->gbps > 0 ? best : NULL;
}

int tccl_table_starts(const struct tccl_table *table, bool closed, bool reads,
                      struct tccl_ring_set starts[static TCCL_TABLE_STARTS])
{
    const struct tccl_baseline *own = &table->baselines[closed][TCCL_NEWEST];
    int n = 0;
    add_start(starts, &n, own->set.rings, own->set.n);
    if (closed && tccl_table_ring(table)->chain.n_gpus)
        add_start(starts, &n, &tccl_table_ring(table)->chain, 1);
    if (!closed) {
        /* Chains by one NIC each, as many as there are; and the same turned by one NIC: in by one,
         * out by the next. */
        for (int turn = 0; turn < 2; turn++) {
            struct tccl_chain chains[TCCL_CHAIN_RINGS];
            int count = 0, n_nics = TCCL_MAX_NICS;
            while (n_nics > 0 && !best_of(table, n_nics - 1, n_nics - 1))
                n_nics--;
            for (int i = 0; i < n_nics && count < TCCL_CHAIN_RINGS; i++) {
                const struct tccl_result *best = best_of(table, i, (i + turn) % n_nics);
                if (best)
                    chains[count++] = best->chain;
            }
            if (count > 1)
                add_start(starts, &n, chains, count);
        }
    }
    for (int i = 0; i < TCCL_MAX_NICS * TCCL_MAX_NICS && !closed; i++) {
        const struct tccl_result *chain = best_of(table, i / TCCL_MAX_NICS, i % TCCL_MAX_NICS);
        if (chain)
            add_start(starts, &n, &chain->chain, 1);
    }
    for (int i = 0; i < n; i++)
        tccl_ring_set_turn(&starts[i], reads);
    return n;
}

/* By a model */

struct work {
    const struct tccl_model *model;
    struct tccl_table *table;
    const struct tccl_table_sets_options *options;
    struct tccl_ring_set *starts;
    int n_starts;
    bool closed, reads;
    double single_bound;
    struct tccl_error *err;
};

static double single_bound(const struct tccl_table *table, bool closed)
{
    double bound = closed ? tccl_table_ring(table)->bound : 0;
    for (int i = 0; i < tccl_table_pairs(table) && !closed; i++)
        bound = fmax(bound, table->results[i].bound);
    return isfinite(bound) ? bound : 0;
}

static bool has_set(const struct work *work, int rings, uint32_t nics)
{
    for (const struct tccl_result *own = NULL;
         (own = tccl_table_next(work->table, own, TCCL_SETS));) {
        const struct tccl_ring_set *set = own->set;
        bool within = set->n == rings && set->rings[0].closed == work->closed &&
                      tccl_ring_set_reads(set) == work->reads;
        for (int k = 0; k < set->n && within && !work->closed; k++)
            within = (nics >> set->rings[k].entry.nic & 1) && (nics >> set->rings[k].exit.nic & 1);
        if (within)
            return true;
    }
    return false;
}

/* The best set of so many rings (0: whatever is best) by these NICs; turns: as rings.h has it.
 * Returns 0; 1 when stopped; -1 with err. */
static int find_one(struct work *work, int rings, uint32_t nics, bool turns)
{
    const struct tccl_table_sets_options *options = work->options;
    const struct tccl_rings_options wanted = {
        .rings = rings,
        .reads = work->reads,
        .turns = turns,
        .gap = fmax(options->gap, 0.01),
        .budget = options->budget,
        .single_bound = work->single_bound,
        .nics = work->closed ? 0 : nics,
        .seed = SEED,
    };
    struct tccl_rings_result found;
    if (options->progress && options->progress(options->context) != 0)
        return 1;
    if (tccl_rings_find(work->model, work->table->gpus, work->closed, &wanted, work->starts,
                        work->n_starts, &found, work->err) != 0)
        return -1;
    if (found.set.n < 2 || tccl_ring_set_reads(&found.set) != work->reads)
        return 0;
    tccl_table_keep_set(work->table, &found.set, found.gbps, found.bound);
    return 0;
}

static int find_by(struct work *work, uint32_t nics)
{
    int status = find_one(work, 0, nics, false);
    for (int i = 0; i < COMMON && status == 0 && !work->closed; i++)
        if (!has_set(work, common[i], nics))
            status = find_one(work, common[i], nics, false);
    return status;
}

static int find_sets(struct work *work, bool closed)
{
    const struct tccl_machine *machine = tccl_model_machine(work->model);
    uint32_t all = machine->n_nics ? (UINT32_C(1) << machine->n_nics) - 1 : 0;
    work->closed = closed;
    work->n_starts = tccl_table_starts(work->table, closed, work->reads, work->starts);
    work->single_bound = single_bound(work->table, closed);
    int status = find_by(work, all);
    if (closed || machine->n_nics == 0 || tccl_machine_fabric(machine, 0) == all)
        return status;
    for (int i = 0; i < machine->n_nics && status == 0; i++) {
        uint32_t nics = tccl_machine_fabric(machine, i);
        if (__builtin_ctz(nics) == i)
            status = find_by(work, nics);
    }
    return status == 0 ? find_one(work, 0, all, true) : status;
}

int tccl_table_find_sets(const struct tccl_model *model, struct tccl_table *table,
                         const struct tccl_table_sets_options *options, struct tccl_error *err)
{
    cleanup_free struct tccl_ring_set *starts = calloc(TCCL_TABLE_STARTS, sizeof(*starts));
    struct work work = {
        .model = model, .table = table, .options = options, .starts = starts, .err = err};
    int status = 0;
    if (!starts)
        return tccl_fail(err, "out of memory");
    for (int reads = 0; reads <= tccl_table_reads(table) && status == 0; reads++) {
        work.reads = reads;
        if (__builtin_popcount(table->gpus) > 1)
            status = find_sets(&work, true);
        if (status == 0 && !options->alone && tccl_model_machine(model)->n_nics > 0)
            status = find_sets(&work, false);
    }
    return status;
}
