/* setmap.h: bandwidths by transfer set. */
#ifndef TCCL_SETMAP_H
#define TCCL_SETMAP_H

#include "machine/transfer.h"

struct tccl_setmap_entry {
    struct tccl_set set;
    double gbps;
    double upper;   /* what it may reach in truth; gbps unless the measurement was noisy */
    bool failed;    /* could not be measured */
    bool limits;    /* a limit was made of it, */
    bool confirmed; /* after a second measurement */
};

/* Zero-initialise; tccl_setmap_clear frees. Entries stand in the order in which they were added and
 * move when one is added. */
struct tccl_setmap {
    uint32_t *slots;
    size_t n_slots;
    struct tccl_setmap_entry *entries;
    size_t count, room;
};

void tccl_setmap_clear(struct tccl_setmap *map);
/* The entry of the set, or NULL. */
struct tccl_setmap_entry *tccl_setmap_find(const struct tccl_setmap *map,
                                           const struct tccl_set *set);
/* Returns 1 if the set was new (upper is gbps then), 0 if it was there (and keeps its bandwidth),
 * -1 without memory. */
int tccl_setmap_add(struct tccl_setmap *map, const struct tccl_set *set, double gbps);

/* Doubles an array when it is full. Returns 0, or -1 without memory. */
int tccl_grow(void **array, size_t count, size_t *room, size_t element);

#endif
