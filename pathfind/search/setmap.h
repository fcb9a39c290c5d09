/* setmap.h: transfer sets, and what is known of each: the one store of a run.
 *
 * Of several measurements of a set the largest bandwidth counts, since what disturbs only slows
 * down. A set that failed says nothing, until one gives a bandwidth. */
#pragma once

#include "base/grow.h"
#include "machine/meter.h"

enum { TCCL_VALUES = 4 /* of one set that are kept */ };

struct tccl_setmap_entry {
    struct tccl_set set;
    struct tccl_measurement best; /* the largest; failed where none gave a bandwidth */
    int measured;                 /* how many gave a bandwidth; */
    double values[TCCL_VALUES];   /* the first ones of them, GB/s */
    bool failed;                  /* one gave none */
    bool given_up;                /* in this run: not tried again */
    /* A search's own (bounds.h). */
    double gbps;    /* what counts: best, or what it can't be told from */
    double upper;   /* what the set may reach in truth: best, or more where that was noisy */
    bool asked;     /* the search knows the set */
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
/* Makes an entry for the set, of which nothing is known. Returns 1 if the set was new, 0 if it was
 * there (and stays as it is), -1 without memory. */
int tccl_setmap_add(struct tccl_setmap *map, const struct tccl_set *set);
/* Adds what was measured. Returns the entry, or NULL without memory. */
struct tccl_setmap_entry *tccl_setmap_note(struct tccl_setmap *map, const struct tccl_set *set,
                                           const struct tccl_measurement *measurement);

/* What the measurements behind the first one say, where there are so many (at least one; no more
 * than TCCL_VALUES - 1): their median, GB/s. The first one may be why the set was chosen. Else the
 * best one known. */
double tccl_setmap_later(const struct tccl_setmap_entry *entry, int times);

/* By how much measurements of one set differ: their standard deviation, as a ratio, as estimated
 * from those among the first count sets (NULL: among all) that were measured twice; 0 where none
 * was. */
double tccl_setmap_deviation(const struct tccl_setmap *map, const struct tccl_set *sets, int count);
