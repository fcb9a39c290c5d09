/* groups.c: each group in turn takes the chain that is best beside those of the others, until none
 * gains. Begun with each group's best chain alone, and with one group after the other, the first or
 * the last one first, which spreads them; and so with chains that stay near to their NICs, of which
 * there are few, so that work is left to improve them. The best end counts. */
#include "ring/groups.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "machine/meter.h"
#include "ring/decision.h"
#include "ring/latency.h"
#include "ring/reach.h"
#include "ring/ring.h"

enum {
    STARTS = 4,
    ROUNDS = 4,
    CANDIDATES = 64,
    NEAREST = CANDIDATES / 2, /* of these, at most */
    NONE = -1,
    /* Transfers that may be rated while one start settles, counted as often as a set with them is:
     * the choice is made on tccld's event loop. A thousand take a fifth of a millisecond. */
    WORK = 5000
};

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

/* Of one group: the fastest first, and what NCCL would build. */
struct list {
    struct tccl_result results[CANDIDATES];
    bool nearest[CANDIDATES]; /* of those with these NICs */
    int n;
    struct tccl_baseline baselines[TCCL_GENERATIONS];
};

struct tccl_groups {
    const struct tccl_machine *machine;
    bool closed;
    enum tccl_view view;
    const struct tccl_beside *beside;
    double unit; /* the best of any group alone, GB/s */
    double noise;
    bool measured; /* all tables */
    int work;      /* left of WORK */
    int n;
    struct list lists[TCCL_MAX_GROUPS];
};

/* Which candidate each group has, and what they make together. */
struct assignment {
    int chosen[TCCL_MAX_GROUPS];           /* NONE: none yet */
    bool near;                             /* begun with those that stay nearest */
    int changes, settled[TCCL_MAX_GROUPS]; /* so far; and when this group had its best one */
    struct tccl_side sides[TCCL_MAX_GROUPS];
    struct tccl_worth worth;
};

/* A chain of a table, and how often its data leave a NUMA node. */
struct candidate {
    const struct tccl_result *result;
    int far;
    bool nearest;
};

static int count_far(const struct tccl_machine *machine, const struct tccl_chain *chain)
{
    struct tccl_set set;
    int count = 0;
    tccl_chain_set(chain, &set);
    for (int i = 0; i < set.count; i++)
        count += tccl_machine_numa(machine, tccl_transfer_source(set.transfers[i])) !=
                 tccl_machine_numa(machine, tccl_transfer_sink(set.transfers[i]));
    return count;
}

/* In the table's order where they are alike. */
static int by_gbps(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    if (x->result->gbps != y->result->gbps)
        return x->result->gbps < y->result->gbps ? 1 : -1;
    return x->far != y->far ? x->far - y->far : (x->result > y->result) - (x->result < y->result);
}

/* With NICs that meet those of the other nodes, if it has some. With a NIC of its own at each of
 * two GPUs NCCL takes the network between them in place of host memory, but where the step's own
 * ring has made it do without for the processes' whole life. */
static bool may_have(const struct tccl_groups *groups, const struct tccl_result *result,
                     const char *fabric)
{
    const struct tccl_chain *chain = &result->chain;
    const struct tccl_nic *nics = groups->machine->nics;
    if (!(result->gbps > 0) || chain->closed != groups->closed ||
        !tccl_view_allows(groups->view, chain) ||
        tccl_expressible(groups->machine, chain, 1, NULL) != 0)
        return false;
    return chain->closed ||
           (fabric && strcmp(nics[chain->entry.nic].fabric, fabric) == 0 &&
            strcmp(nics[chain->exit.nic].fabric, fabric) == 0 &&
            !(chain->n_gpus == 2 && chain->edges[0].kind == TCCL_BOUNCE &&
              chain->entry.via.kind == TCCL_GPU && chain->exit.via.kind == TCCL_GPU));
}

static int nics_of(const struct tccl_chain *chain)
{
    return chain->closed ? 0 : chain->entry.nic * TCCL_MAX_NICS + chain->exit.nic;
}

/* Of each pair of NICs the one that leaves NUMA nodes least often, and of these the fastest. They
 * are marked in all, too. Returns how many. */
static int pick_nearest(struct candidate *all, int n, struct candidate *picked)
{
    int nearest[TCCL_MAX_NICS * TCCL_MAX_NICS] = {0}; /* of each pair, counted from 1 */
    int count = 0;
    for (int i = 0; i < n; i++) {
        int *now = &nearest[nics_of(&all[i].result->chain)];
        if (*now == 0 || all[i].far < all[*now - 1].far)
            *now = i + 1;
    }
    for (int i = 0; i < n; i++) {
        all[i].nearest = count < NEAREST && nearest[nics_of(&all[i].result->chain)] == i + 1;
        if (all[i].nearest)
            picked[count++] = all[i];
    }
    return count;
}

/* The nearest and the fastest ones, of each pair of NICs in turn, so that none has all places. */
static int pick(struct candidate *all, int n, struct candidate *picked)
{
    int most = 1, count = pick_nearest(all, n, picked);
    for (int turn = 0; turn < most; turn++) {
        int seen[TCCL_MAX_NICS * TCCL_MAX_NICS] = {0};
        for (int i = 0; i < n && count < CANDIDATES; i++) {
            if (all[i].nearest)
                continue;
            int rank = seen[nics_of(&all[i].result->chain)]++;
            if (rank == turn)
                picked[count++] = all[i];
            most = rank >= most ? rank + 1 : most;
        }
        if (count == CANDIDATES)
            break;
    }
    qsort(picked, (size_t)count, sizeof(*picked), by_gbps);
    return count;
}

struct tccl_groups *tccl_groups_new(const struct tccl_machine *machine, bool closed,
                                    enum tccl_view view)
{
    struct tccl_groups *groups = calloc(1, sizeof(*groups));
    if (!groups)
        return NULL;
    groups->machine = machine;
    groups->closed = closed;
    groups->view = view;
    return groups;
}

void tccl_groups_free(struct tccl_groups *groups)
{
    free(groups);
}

int tccl_groups_add(struct tccl_groups *groups, const struct tccl_table *table,
                    struct tccl_error *err)
{
    cleanup_free struct candidate *all = calloc((size_t)table->n_results, sizeof(*all));
    struct candidate picked[CANDIDATES];
    if (!all)
        return tccl_fail(err, "out of memory");
    if (groups->n == TCCL_MAX_GROUPS)
        return tccl_fail(err, "more than %d groups", TCCL_MAX_GROUPS);
    /* All of the table that may be given, the fastest first, of equal ones those that stay near. */
    const char *fabric = tccl_table_fabric(table, groups->machine);
    int n = 0;
    for (const struct tccl_result *own = NULL; (own = tccl_table_next(table, own, TCCL_SINGLES));)
        if (may_have(groups, own, fabric))
            all[n++] =
                (struct candidate){.result = own, .far = count_far(groups->machine, &own->chain)};
    qsort(all, (size_t)n, sizeof(*all), by_gbps);
    if (n == 0)
        return tccl_fail(err, "the profile has no such chain of these GPUs");
    struct list *list = &groups->lists[groups->n];
    list->n = pick(all, n, picked);
    for (int i = 0; i < list->n; i++) {
        list->results[i] = *picked[i].result;
        list->nearest[i] = picked[i].nearest;
    }
    groups->unit = fmax(groups->unit, list->results[0].gbps);
    groups->noise = fmax(groups->noise, table->noise);
    groups->measured = (groups->n == 0 || groups->measured) && tccl_meter_measured(table->source);
    for (int i = 0; i < TCCL_GENERATIONS; i++) {
        list->baselines[i] = table->baselines[groups->closed][i];
        groups->unit = fmax(groups->unit, list->baselines[i].gbps);
    }
    groups->n++;
    return 0;
}

/* ---- what they are worth together ---- */

/* The job's other groups that have a side run beside this one, and the steps. Returns how many
 * transfers those make. */
static int see_others(const struct tccl_groups *groups, const struct tccl_side *sides, int group,
                      struct tccl_beside *beside)
{
    int count = 0;
    *beside = *groups->beside;
    beside->own = groups->unit;
    beside->selfish = false;
    for (int i = 0; i < groups->n; i++) {
        if (i == group || sides[i].count == 0)
            continue;
        count += sides[i].count;
        beside->others[beside->n] = &sides[i];
        beside->alone[beside->n++] = groups->unit;
        beside->mates++;
    }
    return count;
}

static int rate(struct tccl_groups *groups, const struct tccl_side *sides, int group,
                const struct tccl_side *side, struct tccl_worth *worth, struct tccl_error *err)
{
    struct tccl_beside beside;
    see_others(groups, sides, group, &beside);
    return tccl_beside_worth(&beside, side, worth, err);
}

/* What all groups have while each has its side. */
struct worths {
    struct tccl_worth worth; /* of the first one */
    double gbps[TCCL_MAX_GROUPS];
    uint8_t ends[TCCL_MAX_GROUPS]; /* of the rounds of its all-reduces */
    bool harms;
};

/* floor: what other steps have beside NCCL's own of all groups; have they less? No group counts for
 * more than it has alone then. NULL: the ends are told; those that are known stay where no model
 * can say. */
static int rate_all(struct tccl_groups *groups, const struct tccl_side *sides,
                    const struct tccl_floor *floor, struct worths *all, struct tccl_error *err)
{
    const int before = groups->beside->n, rest = groups->n - 1;
    uint8_t ends[TCCL_MAX_SIDES] = {all->ends[0]};
    struct tccl_beside beside;
    see_others(groups, sides, 0, &beside);
    memcpy(&ends[before + 1], &all->ends[1], (size_t)rest);
    if (tccl_beside_worth(&beside, &sides[0], &all->worth, err) != 0 ||
        (!floor && tccl_beside_ends(&beside, &sides[0], &all->worth, ends, err) != 0))
        return -1;
    all->ends[0] = ends[0];
    memcpy(&all->ends[1], &ends[before + 1], (size_t)rest);
    all->gbps[0] = all->worth.gbps;
    memcpy(&all->gbps[1], &all->worth.others[before], (size_t)rest * sizeof(*all->gbps));
    for (int i = 0; i < groups->n && floor; i++)
        all->gbps[i] = fmin(all->gbps[i], sides[i].alone);
    all->harms = floor && tccl_floor_harms(floor, groups->beside, &all->worth, groups->noise);
    return 0;
}

/* The best candidate of a group beside what the others have; that which it has, where none is
 * better. */
static int improve(struct tccl_groups *groups, struct assignment *now, int group,
                   struct tccl_error *err)
{
    const struct list *own = &groups->lists[group];
    const struct tccl_result *list[CANDIDATES];
    int chosen = now->chosen[group];
    struct tccl_beside beside;
    struct tccl_candidates candidates = {.list = list,
                                         .noise = groups->noise,
                                         .work = &groups->work,
                                         .cost = see_others(groups, now->sides, group, &beside)};
    struct tccl_choice best = {.result = chosen == NONE ? NULL : &own->results[chosen],
                               .worth = now->worth};
    for (int i = 0; i < own->n; i++)
        if (i != chosen && !(now->near && chosen == NONE && !own->nearest[i]))
            list[candidates.n++] = &own->results[i];
    if (tccl_choose(&beside, &candidates, &best, err) != 0)
        return -1;
    if (best.result && (chosen == NONE || best.result != &own->results[chosen])) {
        now->changes++;
        now->chosen[group] = (int)(best.result - own->results);
        now->sides[group] = (struct tccl_side){.alone = best.result->gbps};
        tccl_side_add_chain(&now->sides[group], &best.result->chain); /* as it was rated */
    }
    now->worth = best.worth;
    now->settled[group] = now->changes;
    return 0;
}

static int begin_alone(struct tccl_groups *groups, struct assignment *now, struct tccl_error *err)
{
    for (int i = 0; i < groups->n; i++) {
        now->chosen[i] = 0;
        now->settled[i] = -1;
        now->sides[i].alone = groups->lists[i].results[0].gbps;
        if (tccl_side_add_chain(&now->sides[i], &groups->lists[i].results[0].chain) != 0)
            return tccl_fail(err, "a chain has too many transfers");
    }
    return rate(groups, now->sides, 0, &now->sides[0], &now->worth, err);
}

static void begin_empty(const struct tccl_groups *groups, struct assignment *now)
{
    for (int i = 0; i < groups->n; i++)
        now->chosen[i] = NONE;
}

/* ---- against NCCL's own ---- */

/* Those of a generation, of all groups: what each reaches. Where that is known by bounds only,
 * which say how much it is at least, they count as they are alone: they have no more than that.
 * Returns 0; 1: of some group they are not known; or -1. */
static int rate_own(struct tccl_groups *groups, int generation, struct tccl_side *sides,
                    struct worths *all, struct tccl_error *err)
{
    bool known = true;
    for (int i = 0; i < groups->n; i++) {
        const struct tccl_baseline *own = &groups->lists[i].baselines[generation];
        sides[i] = (struct tccl_side){.alone = own->gbps};
        all->ends[i] = tccl_baseline_ends(own);
        known = known && own->gbps > 0 && tccl_ring_set_side(&own->set, &sides[i]) == 0 &&
                sides[i].count;
    }
    if (!known)
        return 1;
    if (rate_all(groups, sides, NULL, all, err) != 0)
        return -1;
    if (all->worth.basis == TCCL_BASIS_BOUNDS) {
        /* As if no group, and no other step, took anything from another one. */
        struct tccl_worth *worth = &all->worth;
        *worth = (struct tccl_worth){.least = 1, .left = 1, .sum = groups->beside->n};
        for (int i = 0; i < groups->beside->n; i++)
            worth->others[i] = groups->beside->alone[i];
        for (int i = 0; i < groups->n; i++) {
            all->gbps[i] = sides[i].alone;
            worth->least = fmin(worth->least, all->gbps[i] / groups->unit);
            worth->sum += all->gbps[i] / groups->unit;
        }
        worth->gbps = all->gbps[groups->n - 1];
    }
    return 0;
}

static double least_of(const double *gbps, int n)
{
    double least = INFINITY;
    for (int i = 0; i < n; i++)
        least = fmin(least, gbps[i]);
    return least;
}

/* Of a group, on all of its nodes: how many these are is not known here; two, if there are several.
 */
static int count_gpus(const struct tccl_groups *groups)
{
    return (groups->closed ? 1 : 2) * groups->lists[0].results[0].chain.n_gpus;
}

/* What all-reduces of each group reach of that, GB/s: by the chains planned, or, without, and of
 * groups that are not better by these, by NCCL's own. Returns the least. */
static double least_reach(const struct tccl_groups *groups, const struct assignment *planned,
                          const bool *better, int generation, const double *gbps)
{
    double least = INFINITY;
    for (int i = 0; i < groups->n; i++) {
        const struct list *list = &groups->lists[i];
        uint8_t ends = planned && (!better || better[i])
                           ? tccl_result_ends(&list->results[planned->chosen[i]])
                           : tccl_baseline_ends(&list->baselines[generation]);
        least = fmin(least, gbps[i] * tccl_reach(ends, count_gpus(groups)));
    }
    return least;
}

/* Which groups need their chain with that NCCL: one after the other is left to NCCL where all
 * together lose nothing by it, and where its own all-reduces lose nothing, as far as that is known
 * as well as what the chains reach; none where only other steps gain by that, and the slowest group
 * would have less than enough, GB/s, nor where another step has less than its floor. */
static int judge(struct tccl_groups *groups, const struct assignment *planned, int generation,
                 const struct worths *ours_all, const struct tccl_side *own, double enough,
                 const struct tccl_floor *floor, bool better[static TCCL_MAX_GROUPS],
                 struct tccl_error *err)
{
    const int gpus = count_gpus(groups);
    struct tccl_side sides[TCCL_MAX_GROUPS];
    memcpy(sides, planned->sides, sizeof(sides));
    for (int i = 0; i < groups->n; i++) {
        const struct list *list = &groups->lists[i];
        struct tccl_worth worth, now;
        if (rate(groups, sides, i, &own[i], &worth, err) != 0 ||
            rate(groups, sides, i, &sides[i], &now, err) != 0)
            return -1;
        uint8_t ours = tccl_result_ends(&list->results[planned->chosen[i]]),
                nccl = tccl_baseline_ends(&list->baselines[generation]);
        bool reaches =
            now.gbps * tccl_reach(ours, gpus) * (1 + 1e-9) >= worth.gbps * tccl_reach(nccl, gpus);
        better[i] = worth.basis > planned->worth.basis ||
                    (reaches && tccl_worth_better(&planned->worth, &worth, groups->noise));
        if (!better[i])
            sides[i] = own[i];
    }
    struct worths all = {.harms = false};
    if (rate_all(groups, sides, floor, &all, err) != 0)
        return -1;
    bool less = least_of(all.gbps, groups->n) < enough ||
                least_reach(groups, planned, better, generation, all.gbps) * (1 + 1e-9) <
                    least_reach(groups, planned, NULL, generation, ours_all->gbps);
    for (int i = 0; i < groups->n && (less || all.harms); i++)
        better[i] = true;
    return 0;
}

/* The ways through host memory of the group that has most. */
static int most_bounces(const struct tccl_groups *groups, const struct assignment *planned,
                        int generation)
{
    int most = 0;
    for (int i = 0; i < groups->n; i++) {
        const struct list *list = &groups->lists[i];
        const struct tccl_baseline *own = &list->baselines[generation];
        int bounces = planned ? tccl_bounces(&list->results[planned->chosen[i]].chain, 1)
                              : tccl_bounces(own->set.rings, own->set.n);
        most = bounces > most ? bounces : most;
    }
    return most;
}

/* Is it worth it for the slowest group, beside other steps? choices: with what is told of ours. */
static bool is_worth_it(const struct tccl_groups *groups, const struct assignment *planned,
                        int generation, const struct worths *ours, const struct worths *own,
                        const struct tccl_group_choice *choices)
{
    double ours_told = INFINITY, own_told = INFINITY;
    for (int i = 0; i < groups->n; i++) {
        const double reach = tccl_reach(choices[i].cell.told_ends, count_gpus(groups));
        ours_told = fmin(ours_told, ours->gbps[i] * reach);
        own_told = fmin(own_told, own->gbps[i] * tccl_reach(own->ends[i], count_gpus(groups)));
    }
    int nodes = groups->closed ? 1 : 2;
    double reach = least_reach(groups, planned, NULL, generation, ours->gbps);
    const struct tccl_decision_case asked = {
        .ours = {.gbps = reach,
                 .told = ours_told,
                 .share = planned->worth.left,
                 .harms = ours->harms,
                 .bounces = nodes * most_bounces(groups, planned, generation)},
        .nccl = {.gbps = least_reach(groups, NULL, NULL, generation, own->gbps),
                 .told = own_told,
                 .share = own->worth.left,
                 .bounces = nodes * most_bounces(groups, NULL, generation)},
        .nodes = nodes,
        .gpus = count_gpus(groups),
        .small_first = groups->closed,
        .alone = groups->beside->n > 0 ? groups->unit * reach / least_of(ours->gbps, groups->n) : 0,
        .noise = groups->noise,
        .measured = groups->measured};
    return tccl_decide(&asked).decided == TCCL_TAKE;
}

/* Chains by which other steps gain are taken where the slowest group has no less. */
static int judge_generation(struct tccl_groups *groups, const struct assignment *planned,
                            int generation, struct tccl_group_choice *choices,
                            struct tccl_error *err)
{
    struct tccl_side sides[TCCL_MAX_GROUPS];
    struct worths own = {.harms = false}, ours = own;
    bool better[TCCL_MAX_GROUPS] = {false};
    struct tccl_floor floor = {.known = {0}};
    const int known = rate_own(groups, generation, sides, &own, err);
    if (known < 0)
        return -1;
    const double enough = least_of(own.gbps, groups->n) * (1 - 1e-9);
    tccl_floor_raise(&floor, groups->beside, known == 0 ? &own.worth : NULL);
    if (rate_all(groups, planned->sides, &floor, &ours, err) != 0 ||
        (known == 0 && least_of(ours.gbps, groups->n) >= enough &&
         tccl_worth_better(&planned->worth, &own.worth, groups->noise) &&
         is_worth_it(groups, planned, generation, &ours, &own, choices) &&
         judge(groups, planned, generation, &ours, sides, enough, &floor, better, err) != 0))
        return -1;
    for (int i = 0; i < groups->n; i++) {
        choices[i].baseline_ends[generation] = own.ends[i];
        choices[i].baseline_gbps[generation] = own.gbps[i];
        choices[i].better[generation] = (known != 0 && !ours.harms) || better[i];
    }
    return 0;
}

/* The best end of all starts. *best is one of the ways. */
static int search(struct tccl_groups *groups, struct assignment ways[static STARTS],
                  const struct assignment **best, struct tccl_error *err)
{
    *best = &ways[0];
    if (begin_alone(groups, &ways[0], err) != 0)
        return -1;
    begin_empty(groups, &ways[1]);
    begin_empty(groups, &ways[2]);
    begin_empty(groups, &ways[3]);
    ways[3].near = true;
    for (int i = 0; i < STARTS; i++) {
        /* Until nobody has changed anything since each group had its best one. */
        bool backward = i == 2;
        groups->work = WORK;
        for (int turn = 0; turn < ROUNDS * groups->n; turn++) {
            int group = turn % groups->n;
            group = backward ? groups->n - 1 - group : group;
            bool same = ways[i].chosen[group] != NONE && ways[i].settled[group] == ways[i].changes;
            if (!same && improve(groups, &ways[i], group, err) != 0)
                return -1;
        }
        if (tccl_worth_better(&ways[i].worth, &(*best)->worth, groups->noise))
            *best = &ways[i];
    }
    return 0;
}

int tccl_groups_choose(struct tccl_groups *groups, const struct tccl_beside *beside,
                       struct tccl_group_choice *choices, struct tccl_error *err)
{
    cleanup_free struct assignment *ways = calloc(STARTS, sizeof(*ways));
    const struct assignment *best;
    struct worths all = {.harms = false};
    if (!ways)
        return tccl_fail(err, "out of memory");
    if (groups->n < 2 || beside->n + groups->n > TCCL_MAX_SIDES)
        return tccl_fail(err, "%d groups beside %d steps", groups->n, beside->n);
    groups->beside = beside;
    if (search(groups, ways, &best, err) != 0)
        return -1;
    for (int i = 0; i < groups->n; i++) {
        const struct tccl_result *result = &groups->lists[i].results[best->chosen[i]];
        struct tccl_seen *cell = &choices[i].cell;
        struct tccl_worth worth;
        if (rate(groups, best->sides, i, &best->sides[i], &worth, err) != 0)
            return -1;
        *cell = (struct tccl_seen){.bound = result->bound};
        tccl_seen_take(cell, result, &worth, false);
        all.ends[i] = cell->ends;
    }
    if (rate_all(groups, best->sides, NULL, &all, err) != 0)
        return -1;
    for (int i = 0; i < groups->n; i++)
        choices[i].cell.told_ends = all.ends[i];
    for (int generation = 0; generation < TCCL_GENERATIONS; generation++) {
        bool as_before = generation > 0;
        for (int i = 0; i < groups->n && as_before; i++)
            as_before = tccl_baseline_equal(&groups->lists[i].baselines[generation],
                                            &groups->lists[i].baselines[generation - 1]);
        if (!as_before && judge_generation(groups, best, generation, choices, err) != 0)
            return -1;
        for (int i = 0; i < groups->n && as_before; i++) {
            choices[i].baseline_gbps[generation] = choices[i].baseline_gbps[generation - 1];
            choices[i].baseline_ends[generation] = choices[i].baseline_ends[generation - 1];
            choices[i].better[generation] = choices[i].better[generation - 1];
        }
    }
    return 0;
}

void tccl_group_alone(const struct tccl_node_class *class, const struct tccl_seen *cell,
                      bool closed, struct tccl_group_choice *choice)
{
    const int nodes = closed ? 1 : 2, gpus = class->n_gpus * nodes;
    const bool told = cell->told_ends;
    *choice = (struct tccl_group_choice){.cell = *cell};
    choice->cell.told_ends = told ? cell->told_ends : cell->ends;
    struct tccl_ring ring = {.gbps = cell->gbps,
                             .alone = cell->alone,
                             .lost = 1 - tccl_reach(cell->ends, gpus),
                             .told_lost = 1 - tccl_reach(choice->cell.told_ends, gpus),
                             .share = cell->share,
                             .harms = cell->harms,
                             .noise = class->noise,
                             .measured = tccl_meter_measured(class->source),
                             .rings = 1,
                             .n_nodes = nodes,
                             .gpus = gpus,
                             .bounces = tccl_bounces(&cell->set.rings[0], 1) * nodes};
    for (int i = 0; i < TCCL_GENERATIONS; i++) {
        const struct tccl_class_baseline *own = &class->baselines[i];
        const uint8_t ends = tccl_class_baseline_ends(own, closed, told);
        ring.baseline_gbps[i] = choice->baseline_gbps[i] = own->gbps[closed];
        ring.baseline_lost[i] = 1 - tccl_reach(own->ends[closed], gpus);
        ring.baseline_told_lost[i] = 1 - tccl_reach(ends, gpus);
        ring.baseline_share[i] = own->share[closed];
        ring.baseline_bounces[i] = nodes * own->bounces[closed];
        choice->baseline_ends[i] = ends;
        struct tccl_decision_case asked = tccl_ring_case(&ring, i, 0);
        asked.small_first = closed;
        choice->better[i] = tccl_decide(&asked).decided == TCCL_TAKE;
    }
}
