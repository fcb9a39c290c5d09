/* groups.c: each group in turn takes the chain that is best beside those of the others, until none
 * gains. Begun twice, with each group's best chain alone and with one group after the other, which
 * spreads them; the better end counts. */
#include "ring/groups.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

enum { ROUNDS = 4, CANDIDATES = 64, NONE = -1 };

/* ---- who are the groups? ---- */

/* Bits of mask, counted among those of all. */
static uint32_t compress(uint32_t mask, uint32_t all)
{
    uint32_t places = 0;
    for (int place = 0; all; all &= all - 1, place++)
        if (mask & all & -all)
            places |= UINT32_C(1) << place;
    return places;
}

static uint32_t expand(uint32_t places, uint32_t all)
{
    uint32_t mask = 0;
    for (; all; all &= all - 1, places >>= 1)
        if (places & 1)
            mask |= all & -all;
    return mask;
}

/* Covers n places by the pattern, which begins at place 0, moved. Returns how many times it is
 * there, or 0. */
static int cover(uint32_t pattern, int n, uint32_t groups[static TCCL_MAX_GROUPS])
{
    uint32_t all = (UINT32_C(1) << n) - 1, covered = 0;
    int count = 0;
    while (covered != all) {
        uint64_t next = (uint64_t)pattern << __builtin_ctz(~covered);
        if ((next & ~(uint64_t)all) || (next & covered) || count == TCCL_MAX_GROUPS)
            return 0;
        groups[count++] = (uint32_t)next;
        covered |= (uint32_t)next;
    }
    return count;
}

static bool holds(const uint32_t *groups, int count, uint32_t group)
{
    for (int i = 0; i < count; i++)
        if (groups[i] == group)
            return true;
    return false;
}

int tccl_groups_split(uint32_t step, uint32_t group, uint32_t groups[static TCCL_MAX_GROUPS])
{
    uint32_t places = compress(group, step);
    int n = __builtin_popcount(step), count;
    if (!group || (group & ~step) || group == step || n > TCCL_MAX_GPUS)
        return 0;
    count = cover(places >> __builtin_ctz(places), n, groups);
    if (!holds(groups, count, places)) {
        count = 2 * __builtin_popcount(group) == n ? 2 : 0;
        groups[!(places & 1)] = places;
        groups[places & 1] = places ^ ((UINT32_C(1) << n) - 1);
    }
    for (int i = 0; i < count; i++)
        groups[i] = expand(groups[i], step);
    return count;
}

/* ---- what they may have ---- */

/* Of one group: the fastest first. */
struct list {
    const struct tccl_result *results[CANDIDATES];
    int n;
};

/* A round of all groups: which candidate each has, and what it makes of it. */
struct assignment {
    int chosen[TCCL_MAX_GROUPS]; /* NONE: none yet */
    struct tccl_side sides[TCCL_MAX_GROUPS];
    struct tccl_worth worth;
};

struct joint {
    const struct tccl_beside *beside;
    int n;
    double unit; /* the best of any group alone, GB/s */
    double noise;
    struct list lists[TCCL_MAX_GROUPS];
};

static int by_gbps(const void *a, const void *b)
{
    const struct tccl_result *const *x = a, *const *y = b;
    if ((*x)->gbps != (*y)->gbps)
        return ((*x)->gbps < (*y)->gbps) - ((*x)->gbps > (*y)->gbps);
    return (*x > *y) - (*x < *y); /* of one array, as in the table */
}

/* All of the table that may be given. Returns how many. */
static int gather(const struct tccl_table *table, bool closed, bool hidden,
                  const struct tccl_result **all)
{
    const struct {
        const struct tccl_result *results;
        int count;
    } parts[] = {{&table->ring, 1},
                 {&table->host_ring, 1},
                 {table->pairs, table->n_ports * table->n_ports},
                 {table->hosts, table->n_hosts},
                 {table->others, table->n_others}};
    int n = 0;
    for (size_t part = 0; part < sizeof(parts) / sizeof(*parts); part++)
        for (int i = 0; i < parts[part].count; i++) {
            const struct tccl_result *result = &parts[part].results[i];
            if (result->chain.n_gpus && result->gbps > 0 && result->chain.closed == closed &&
                !(hidden && tccl_chain_has_p2p(&result->chain)) &&
                tccl_chain_expressible(&result->chain, NULL) == 0)
                all[n++] = result;
        }
    return n;
}

static int nics_of(const struct tccl_result *result)
{
    return result->chain.closed ? 0
                                : result->chain.entry.nic * TCCL_MAX_NICS + result->chain.exit.nic;
}

/* The fastest ones, of each pair of NICs in turn, so that none has all places. */
static void fill_list(struct list *list, const struct tccl_result **all, int n)
{
    int most = 1;
    qsort(all, (size_t)n, sizeof(*all), by_gbps);
    list->n = 0;
    for (int turn = 0; turn < most && list->n < CANDIDATES; turn++) {
        int seen[TCCL_MAX_NICS * TCCL_MAX_NICS] = {0};
        for (int i = 0; i < n && list->n < CANDIDATES; i++) {
            int rank = seen[nics_of(all[i])]++;
            if (rank == turn)
                list->results[list->n++] = all[i];
            most = rank >= most ? rank + 1 : most;
        }
    }
    qsort(list->results, (size_t)list->n, sizeof(*list->results), by_gbps);
}

static int make_list(struct list *list, const struct tccl_table *table, bool closed, bool hidden,
                     struct tccl_error *err)
{
    size_t most = (size_t)table->n_ports * table->n_ports + table->n_hosts + table->n_others + 2;
    cleanup_free const struct tccl_result **all = calloc(most, sizeof(*all));
    if (!all)
        return tccl_fail(err, "out of memory");
    fill_list(list, all, gather(table, closed, hidden, all));
    return 0;
}

/* ---- what they are worth together ---- */

/* A group beside all others that have a side, and the steps that run. */
static int rate(const struct joint *joint, const struct tccl_side *sides, int group,
                const struct tccl_side *side, struct tccl_worth *worth, struct tccl_error *err)
{
    struct tccl_beside beside = *joint->beside;
    beside.own = joint->unit;
    beside.selfish = false;
    for (int i = 0; i < joint->n; i++) {
        if (i == group || sides[i].count == 0)
            continue;
        beside.others[beside.n] = &sides[i];
        beside.alone[beside.n++] = joint->unit;
    }
    return tccl_beside_worth(&beside, side, worth, err);
}

/* The best candidate of a group beside what the others have; that which it has, where none is
 * better. */
static int improve(const struct joint *joint, struct assignment *now, int group,
                   struct tccl_error *err)
{
    const struct list *list = &joint->lists[group];
    struct tccl_worth best = now->worth;
    bool has = now->chosen[group] != NONE;
    for (int i = 0; i < list->n; i++) {
        struct tccl_side side = {0};
        struct tccl_worth worth;
        /* No group has more than its chain alone. */
        if (has && list->results[i]->gbps < best.least * joint->unit)
            break;
        if (i == now->chosen[group] || tccl_side_add_chain(&side, &list->results[i]->chain) != 0)
            continue;
        if (rate(joint, now->sides, group, &side, &worth, err) != 0)
            return -1;
        if (has && !tccl_worth_better(&worth, &best, joint->noise))
            continue;
        has = true;
        best = worth;
        now->chosen[group] = i;
        now->sides[group] = side;
    }
    now->worth = best;
    return 0;
}

/* Until a round changes nothing. */
static int settle(const struct joint *joint, struct assignment *now, struct tccl_error *err)
{
    for (int round = 0; round < ROUNDS; round++) {
        int before[TCCL_MAX_GROUPS];
        bool same = true;
        memcpy(before, now->chosen, sizeof(before));
        for (int i = 0; i < joint->n; i++) {
            if (improve(joint, now, i, err) != 0)
                return -1;
            same = same && now->chosen[i] == before[i];
        }
        if (same)
            break;
    }
    return 0;
}

static int begin_alone(const struct joint *joint, struct assignment *now, struct tccl_error *err)
{
    for (int i = 0; i < joint->n; i++) {
        now->chosen[i] = 0;
        if (tccl_side_add_chain(&now->sides[i], &joint->lists[i].results[0]->chain) != 0)
            return tccl_fail(err, "a chain has too many transfers");
    }
    return rate(joint, now->sides, 0, &now->sides[0], &now->worth, err);
}

static void begin_empty(const struct joint *joint, struct assignment *now)
{
    for (int i = 0; i < joint->n; i++)
        now->chosen[i] = NONE;
}

/* ---- against NCCL's own ---- */

/* Those of a generation of all groups. Returns 0; 1: of some group they are not known; or -1. */
static int rate_own(const struct joint *joint, const struct tccl_group *groups, bool closed,
                    int generation, struct tccl_side *sides, struct tccl_worth *worth,
                    double gbps[TCCL_MAX_GROUPS], struct tccl_error *err)
{
    for (int i = 0; i < joint->n; i++) {
        const struct tccl_table *table = groups[i].table;
        const struct tccl_baseline *own =
            closed ? &table->baseline_ring[generation] : &table->baseline_chain[generation];
        sides[i] = (struct tccl_side){0};
        if (!(own->gbps > 0) || tccl_side_add_baseline(&sides[i], own) != 0 || !sides[i].count)
            return 1;
    }
    for (int i = 0; i < joint->n; i++) {
        if (rate(joint, sides, i, &sides[i], worth, err) != 0)
            return -1;
        gbps[i] = worth->gbps;
    }
    return 0;
}

/* Which groups need their chain with that NCCL: one after the other is left to NCCL where all
 * together lose nothing by it. */
static int judge(const struct joint *joint, const struct assignment *planned,
                 const struct tccl_side *own, const struct tccl_worth *own_worth,
                 bool better[TCCL_MAX_GROUPS], struct tccl_error *err)
{
    struct tccl_side sides[TCCL_MAX_GROUPS];
    bool gains = tccl_worth_better(&planned->worth, own_worth, joint->noise);
    memcpy(sides, planned->sides, sizeof(sides));
    for (int i = 0; i < joint->n; i++) {
        struct tccl_worth worth;
        better[i] = gains;
        if (!gains)
            continue;
        if (rate(joint, sides, i, &own[i], &worth, err) != 0)
            return -1;
        better[i] = tccl_worth_better(&planned->worth, &worth, joint->noise);
        if (!better[i])
            sides[i] = own[i];
    }
    return 0;
}

static bool same_baselines(const struct tccl_group *groups, int n, bool closed, int a, int b)
{
    for (int i = 0; i < n; i++) {
        const struct tccl_baseline *own =
            closed ? groups[i].table->baseline_ring : groups[i].table->baseline_chain;
        if (!tccl_baseline_equal(&own[a], &own[b]))
            return false;
    }
    return true;
}

static int judge_generation(const struct joint *joint, const struct assignment *planned,
                            struct tccl_group *groups, bool closed, int generation,
                            struct tccl_error *err)
{
    struct tccl_side own[TCCL_MAX_GROUPS];
    struct tccl_worth worth;
    double gbps[TCCL_MAX_GROUPS] = {0};
    bool better[TCCL_MAX_GROUPS] = {false};
    int known = rate_own(joint, groups, closed, generation, own, &worth, gbps, err);
    if (known < 0 || (known == 0 && judge(joint, planned, own, &worth, better, err) != 0))
        return -1;
    for (int i = 0; i < joint->n; i++) {
        groups[i].baseline_gbps[generation] = known == 0 ? gbps[i] : 0;
        groups[i].better[generation] = known != 0 || better[i];
    }
    return 0;
}

static int judge_all(const struct joint *joint, const struct assignment *planned,
                     struct tccl_group *groups, bool closed, struct tccl_error *err)
{
    for (int generation = 0; generation < TCCL_GENERATIONS; generation++) {
        if (generation == 0 ||
            !same_baselines(groups, joint->n, closed, generation - 1, generation)) {
            if (judge_generation(joint, planned, groups, closed, generation, err) != 0)
                return -1;
            continue;
        }
        for (int i = 0; i < joint->n; i++) {
            groups[i].baseline_gbps[generation] = groups[i].baseline_gbps[generation - 1];
            groups[i].better[generation] = groups[i].better[generation - 1];
        }
    }
    return 0;
}

/* ---- */

static int fill_cells(const struct joint *joint, const struct assignment *planned,
                      struct tccl_group *groups, struct tccl_error *err)
{
    for (int i = 0; i < joint->n; i++) {
        const struct tccl_result *result = joint->lists[i].results[planned->chosen[i]];
        struct tccl_cell *cell = &groups[i].cell;
        struct tccl_worth worth;
        if (rate(joint, planned->sides, i, &planned->sides[i], &worth, err) != 0)
            return -1;
        *cell = (struct tccl_cell){.gbps = fmin(worth.gbps, result->gbps),
                                   .bound = fmax(result->bound, result->gbps),
                                   .alone = result->gbps,
                                   .share = fmin(worth.left, 1),
                                   .chain = result->chain,
                                   .tree = result->tree};
        cell->tree.gbps *= cell->gbps / cell->alone;
        cell->tree.along *= cell->gbps / cell->alone;
    }
    return 0;
}

static int prepare(struct joint *joint, const struct tccl_group *groups, bool closed, bool hidden,
                   struct tccl_error *err)
{
    for (int i = 0; i < joint->n; i++) {
        const struct tccl_table *table = groups[i].table;
        if (make_list(&joint->lists[i], table, closed, hidden, err) != 0)
            return -1;
        if (joint->lists[i].n == 0) {
            tccl_fail(err, "the profile has no such chain of the GPUs of another group");
            return 1;
        }
        joint->unit = fmax(joint->unit, joint->lists[i].results[0]->gbps);
        joint->noise = fmax(joint->noise, table->noise);
        for (int j = 0; j < TCCL_GENERATIONS; j++)
            joint->unit = fmax(joint->unit, closed ? table->baseline_ring[j].gbps
                                                   : table->baseline_chain[j].gbps);
    }
    return 0;
}

int tccl_groups_choose(const struct tccl_beside *beside, struct tccl_group *groups, int n,
                       bool closed, bool hidden, struct tccl_error *err)
{
    cleanup_free struct joint *joint = calloc(1, sizeof(*joint));
    cleanup_free struct assignment *ways = calloc(2, sizeof(*ways));
    if (!joint || !ways)
        return tccl_fail(err, "out of memory");
    if (n < 2 || beside->n + n > TCCL_MAX_SIDES)
        return tccl_fail(err, "%d groups beside %d steps", n, beside->n);
    joint->beside = beside;
    joint->n = n;
    int status = prepare(joint, groups, closed, hidden, err);
    if (status != 0)
        return status;
    begin_empty(joint, &ways[1]);
    if (begin_alone(joint, &ways[0], err) != 0 || settle(joint, &ways[0], err) != 0 ||
        settle(joint, &ways[1], err) != 0)
        return -1;
    const struct assignment *best =
        &ways[tccl_worth_better(&ways[1].worth, &ways[0].worth, joint->noise)];
    return fill_cells(joint, best, groups, err) != 0 ? -1
                                                     : judge_all(joint, best, groups, closed, err);
}
