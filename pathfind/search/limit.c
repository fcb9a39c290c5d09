/* limit.c: what limits chains that run at once on a node. */
#include "search/limit.h"

#include <string.h>

static const double SAME = 1 + 1e-9, MEASURED = 1.01; /* as slow */

void tccl_limit_set(const struct tccl_side *side, struct tccl_set *set)
{
    *set = (struct tccl_set){.count = 0};
    for (int i = 0; i < side->count; i++)
        tccl_set_add(set, side->transfers[i]);
}

int tccl_limit_shrink(const struct tccl_model *model, tccl_transfer *members, int count, int least,
                      double slowest, struct tccl_error *err)
{
    for (int i = count - 1; i >= 0 && count > least; i--) {
        tccl_transfer without = members[i];
        double gbps;
        memmove(members + i, members + i + 1, (size_t)(count - i - 1) * sizeof(*members));
        if (tccl_model_slowest(model, members, count - 1, &gbps, err) != 0)
            return -1;
        if (gbps <= slowest * SAME) {
            count--;
            continue;
        }
        memmove(members + i + 1, members + i, (size_t)(count - i - 1) * sizeof(*members));
        members[i] = without;
    }
    return count;
}

/* Search for a smaller part: of size members, those taken so far in part. */
struct subsets {
    const struct tccl_model *model;
    const struct tccl_set *set;
    double slowest;
    int size, left; /* left: how many more may be tried */
};

/* Adds members from the set's place `from` on. Returns 1: part is found; 0: there is none; -1: with
 * err, or none are left to try. */
static int find_subset(struct subsets *subsets, int from, struct tccl_set *part,
                       struct tccl_error *err)
{
    double gbps;
    if (part->count == subsets->size) {
        if (subsets->left-- == 0 ||
            tccl_model_slowest(subsets->model, part->transfers, part->count, &gbps, err) != 0)
            return -1;
        return gbps <= subsets->slowest * SAME;
    }
    for (int i = from; i < subsets->set->count; i++) {
        struct tccl_set more = *part;
        tccl_set_add(&more, subsets->set->transfers[i]);
        int rc = find_subset(subsets, i + 1, &more, err);
        if (rc == 1)
            *part = more;
        if (rc)
            return rc;
    }
    return 0;
}

/* All parts smaller than that one: removal alone may miss the smallest. */
static int find_smallest(const struct tccl_model *model, const struct tccl_set *set, double slowest,
                         struct tccl_set *part, struct tccl_error *err)
{
    struct subsets subsets = {model, set, slowest, 1, 20000};
    for (; subsets.size < part->count && subsets.left > 0; subsets.size++) {
        struct tccl_set found = {.count = 0};
        int rc = find_subset(&subsets, 0, &found, err);
        if (rc < 0 && subsets.left >= 0)
            return -1;
        if (rc == 1)
            *part = found;
    }
    return 0;
}

static int find_part(const struct tccl_model *model, const struct tccl_setmap *sets, bool exact,
                     double slowest, struct tccl_limit *limit, struct tccl_error *err)
{
    struct tccl_set all, part;
    limit->part = limit->side;
    tccl_limit_set(&limit->side, &all);
    if (model && !exact)
        return (limit->part.count = tccl_limit_shrink(model, limit->part.transfers,
                                                      limit->part.count, 1, slowest, err)) < 0
                   ? -1
                   : 0;
    part = all;
    int left = model ? tccl_limit_shrink(model, part.transfers, part.count, 1, slowest, err)
                     : (int)part.count;
    if (left < 0)
        return -1;
    part.count = (uint16_t)left;
    if (model && find_smallest(model, &all, slowest, &part, err) != 0)
        return -1;
    for (size_t i = 0; i < sets->count && !model; i++) {
        const struct tccl_setmap_entry *entry = &sets->entries[i];
        if (!entry->best.failed && entry->set.count > 0 && entry->set.count < part.count &&
            entry->best.gbps <= slowest * MEASURED && tccl_set_contains(&all, &entry->set))
            part = entry->set;
    }
    if (part.count == all.count) /* then repeats stay */
        return 0;
    limit->part = (struct tccl_side){.rings = 1};
    return tccl_side_add(&limit->part, &part);
}

int tccl_limit_find(const struct tccl_model *model, const struct tccl_setmap *sets,
                    const struct tccl_chain *chains, int n, double slowest, bool exact,
                    struct tccl_limit *limit, struct tccl_error *err)
{
    *limit = (struct tccl_limit){.side = {.rings = 0}, .together = model != NULL};
    if (tccl_rings_side(chains, n, &limit->side) != 0)
        return tccl_fail(err, "more than %d transfers at once", TCCL_MAX_SIDE);
    if (!model) {
        /* Alone, what was measured. */
        for (int i = 0; i < limit->side.count; i++) {
            const struct tccl_set one = {.count = 1, .transfers = {limit->side.transfers[i]}};
            const struct tccl_setmap_entry *entry = tccl_setmap_find(sets, &one);
            limit->rates[i] = entry && !entry->best.failed ? entry->best.gbps : 0;
        }
    } else if (tccl_model_rates(model, limit->side.transfers, limit->side.count, limit->rates,
                                limit->held, err) != 0)
        return -1;
    if (find_part(model, sets, exact && n == 1, slowest, limit, err) != 0)
        return -1;
    /* A single one is not held back by others. */
    struct tccl_rated *rated = &limit->rated;
    bool whole = limit->part.count >= limit->side.count;
    tccl_limit_set(&limit->side, &rated->set);
    if (!whole && limit->part.count > 1)
        tccl_limit_set(&limit->part, &rated->slow);
    for (int i = 0; i < rated->set.count; i++) {
        for (int k = 0; k < limit->side.count; k++)
            if (limit->side.transfers[k] == rated->set.transfers[i])
                rated->gbps[i] = limit->rates[k];
        if (limit->together && (whole || limit->part.count > 1) && rated->gbps[i] > 0 &&
            rated->gbps[i] <= slowest * (1 + 1e-6))
            tccl_set_add(&rated->slow, rated->set.transfers[i]);
    }
    return 0;
}
