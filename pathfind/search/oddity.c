/* oddity.c: sets that collapse, and such as are faster than a part of them. */
#include "search/oddity.h"

#include <math.h>
#include <stdio.h>

#include "machine/sides.h"

/* More than that, and twice what the measurements of both differ by, is no noise. */
static const double FASTER = 0.05;

/* What each transfer of a set has at least where they only share capacities, GB/s: 1 / sum of 1 /
 * alone, since the time that a byte of each takes in the bottleneck adds up. 0: not all of them
 * were measured alone. */
static double shared(const struct tccl_setmap *map, const struct tccl_set *set)
{
    double time = 0;
    for (int i = 0; i < set->count; i++) {
        const struct tccl_set one = {1, {set->transfers[i]}};
        const struct tccl_setmap_entry *entry = tccl_setmap_find(map, &one);
        if (!entry || !(entry->best.gbps > 0))
            return 0;
        time += 1 / entry->best.gbps;
    }
    return time > 0 ? 1 / time : 0;
}

bool tccl_oddity_collapses(const struct tccl_setmap *map, const struct tccl_set *set, double gbps)
{
    return set->count > 1 && gbps > 0 && gbps < TCCL_COLLAPSED * shared(map, set);
}

bool tccl_oddity_is_pair(const struct tccl_set *set)
{
    uint32_t gpus[2];
    if (set->count != 2)
        return false;
    for (int i = 0; i < 2; i++) {
        const struct tccl_set one = {1, {set->transfers[i]}};
        gpus[i] = tccl_set_gpus(&one);
        if (tccl_transfer_initiator(set->transfers[i]).kind != TCCL_GPU)
            return false;
    }
    return !(gpus[0] & gpus[1]);
}

static double range(const struct tccl_setmap_entry *entry)
{
    double low = INFINITY, high = 0;
    for (int i = 0; i < TCCL_VALUES; i++) {
        low = fmin(low, entry->values[i]);
        high = fmax(high, entry->values[i]);
    }
    return high - low;
}

bool tccl_oddity_faster(const struct tccl_setmap_entry *part, const struct tccl_setmap_entry *whole)
{
    if (!part || !whole || part->measured < TCCL_VALUES || whole->measured < TCCL_VALUES)
        return false;
    double low = tccl_setmap_later(part, TCCL_VALUES - 1);
    double high = tccl_setmap_later(whole, TCCL_VALUES - 1);
    return high > low * (1 + FASTER) + 2 * (range(part) + range(whole));
}

/* Keeps the list in order. */
static void insert(struct tccl_oddity *list, int *n, const struct tccl_oddity *oddity)
{
    int i = *n < TCCL_MAX_ODDITIES ? (*n)++ : TCCL_MAX_ODDITIES;
    for (; i > 0 &&
           oddity->whole_gbps / oddity->part_gbps > list[i - 1].whole_gbps / list[i - 1].part_gbps;
         i--)
        if (i < TCCL_MAX_ODDITIES)
            list[i] = list[i - 1];
    if (i < TCCL_MAX_ODDITIES)
        list[i] = *oddity;
}

int tccl_oddity_list(const struct tccl_setmap *map,
                     struct tccl_oddity list[static TCCL_MAX_ODDITIES])
{
    int n = 0;
    for (size_t i = 0; i < map->count; i++) {
        struct tccl_oddity best = {.part = &map->entries[i]};
        if (best.part->measured < TCCL_VALUES || tccl_set_repeats(&best.part->set))
            continue;
        best.part_gbps = tccl_setmap_later(best.part, TCCL_VALUES - 1);
        for (size_t k = 0; k < map->count; k++) {
            const struct tccl_setmap_entry *whole = &map->entries[k];
            if (whole->set.count <= best.part->set.count || !tccl_oddity_faster(best.part, whole) ||
                !tccl_set_contains(&whole->set, &best.part->set))
                continue;
            double gbps = tccl_setmap_later(whole, TCCL_VALUES - 1);
            if (gbps > best.whole_gbps) {
                best.whole = whole;
                best.whole_gbps = gbps;
            }
        }
        if (best.whole)
            insert(list, &n, &best);
    }
    return n;
}

void tccl_oddity_format(const struct tccl_oddity *oddity, char text[static TCCL_ODDITY_TEXT])
{
    char part[TCCL_SET_TEXT], rest[TCCL_SET_TEXT];
    struct tccl_set others = {0};
    for (int i = 0; i < oddity->whole->set.count; i++)
        if (!tccl_set_has(&oddity->part->set, oddity->whole->set.transfers[i]))
            tccl_set_add(&others, oddity->whole->set.transfers[i]);
    tccl_set_format(&oddity->part->set, part);
    tccl_set_format(&others, rest);
    snprintf(text, TCCL_ODDITY_TEXT, "%.80s reaches %.1f GB/s, but %.1f with %.80s beside it", part,
             oddity->part_gbps, oddity->whole_gbps, rest);
}
