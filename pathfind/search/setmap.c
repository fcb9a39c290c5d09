/* setmap.c: a hash table of transfer sets, with open addressing. */
#include "search/setmap.h"

#include <math.h>
#include <stdlib.h>

#include "base/hash.h"

/* So many times the median difference of two measurements is not noise: of normal ones it is four
 * deviations. */
static const double DISTURBED = 6;

void tccl_setmap_clear(struct tccl_setmap *map)
{
    free(map->slots);
    free(map->entries);
    *map = (struct tccl_setmap){0};
}

/* The slot that holds the set, or the empty one where it belongs. Slots hold index + 1. */
static size_t slot_of(const struct tccl_setmap *map, const struct tccl_set *set)
{
    uint64_t hash = tccl_hash64(set->transfers, set->count * sizeof(set->transfers[0]));
    size_t slot = hash & (map->n_slots - 1);
    while (map->slots[slot] && !tccl_set_equal(&map->entries[map->slots[slot] - 1].set, set))
        slot = (slot + 1) & (map->n_slots - 1);
    return slot;
}

struct tccl_setmap_entry *tccl_setmap_find(const struct tccl_setmap *map,
                                           const struct tccl_set *set)
{
    if (map->n_slots == 0)
        return NULL;
    uint32_t entry = map->slots[slot_of(map, set)];
    return entry ? &map->entries[entry - 1] : NULL;
}

static int rehash(struct tccl_setmap *map)
{
    if (2 * (map->count + 1) <= map->n_slots)
        return 0;
    size_t wanted = map->n_slots ? map->n_slots * 2 : 256;
    uint32_t *slots = calloc(wanted, sizeof(*slots));
    if (!slots)
        return -1;
    free(map->slots);
    map->slots = slots;
    map->n_slots = wanted;
    for (size_t i = 0; i < map->count; i++)
        slots[slot_of(map, &map->entries[i].set)] = i + 1;
    return 0;
}

int tccl_setmap_add(struct tccl_setmap *map, const struct tccl_set *set)
{
    if (rehash(map) != 0)
        return -1;
    size_t slot = slot_of(map, set);
    if (map->slots[slot])
        return 0;
    if (TCCL_GROW(map->entries, map->count, map->room) != 0)
        return -1;
    map->entries[map->count] = (struct tccl_setmap_entry){.set = *set};
    map->slots[slot] = ++map->count;
    return 1;
}

struct tccl_setmap_entry *tccl_setmap_note(struct tccl_setmap *map, const struct tccl_set *set,
                                           const struct tccl_measurement *measurement)
{
    if (tccl_setmap_add(map, set) < 0)
        return NULL;
    struct tccl_setmap_entry *entry = tccl_setmap_find(map, set);
    if (entry->measured == 0 || (!measurement->failed && measurement->gbps > entry->best.gbps))
        entry->best = *measurement;
    if (!measurement->failed && entry->measured < TCCL_VALUES)
        entry->values[entry->measured] = measurement->gbps;
    entry->measured += !measurement->failed;
    entry->failed = entry->failed || measurement->failed;
    entry->given_up = measurement->failed && entry->measured == 0;
    return entry;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int n)
{
    qsort(values, (size_t)n, sizeof(*values), compare);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

double tccl_setmap_later(const struct tccl_setmap_entry *entry, int times)
{
    double later[TCCL_VALUES];
    if (times < 1 || times >= TCCL_VALUES || entry->measured <= times)
        return entry->best.gbps;
    for (int i = 0; i < times; i++)
        later[i] = entry->values[i + 1];
    return median(later, times);
}

double tccl_setmap_deviation(const struct tccl_setmap *map, const struct tccl_set *sets, int count)
{
    const size_t all = sets ? (size_t)count : map->count;
    double *differences = calloc(all + 1, sizeof(*differences)), deviation = 0;
    int n = 0;
    for (size_t i = 0; differences && i < all; i++) {
        const struct tccl_setmap_entry *entry =
            sets ? tccl_setmap_find(map, &sets[i]) : &map->entries[i];
        if (entry && entry->measured > 1)
            differences[n++] = fabs(entry->values[0] - entry->values[1]) /
                               fmax(entry->values[0], entry->values[1]);
    }
    double middle = n > 0 ? median(differences, n) : 0, squares = 0;
    int used = 0;
    for (int i = 0; i < n; i++) /* but those that something disturbed */
        if (differences[i] <= DISTURBED * middle) {
            squares += differences[i] * differences[i];
            used++;
        }
    if (used > 0)
        deviation = sqrt(squares / (2 * used));
    free(differences);
    return deviation;
}
