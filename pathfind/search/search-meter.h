/* search-meter.h: measures sets for a search, each at most once, and finds out what makes a set
 * slow. */
#pragma once

#include "machine/meter.h"
#include "search/bounds.h"
#include "search/setmap.h"

struct tccl_search_meter {
    struct tccl_meter source; /* is asked */
    struct tccl_bounds *bounds;
    struct tccl_setmap *sets;   /* measured: answers instead of the source */
    double noise;               /* of the source: values closer than this ratio count as equal */
    double blur;                /* and of two sets */
    long measured;              /* by the source */
    long asked;                 /* of the source or the store: the same in a run that is resumed */
    long shared;                /* known from a symmetric set */
    long failed;                /* could not be measured */
    long budget;                /* measured may not pass this; 0: no limit */
    long most_asked;            /* nor asked this */
    int (*poll)(void *context); /* called after each measured set; non-zero stops. May be NULL */
    void *context;
    bool stopped;   /* nothing is measured any more */
    int mismatches; /* sets unlike symmetric ones */
    bool distrusts; /* the symmetry is wrong, and so may be the limits */
};

/* Bandwidth of a set, GB/s: known, symmetric to a known one, or measured now. A noisy or failed
 * meter's answer is kept for what it is: a set that failed has 0. Returns 0; 1 if the budget is
 * used up, or stopped; -1 with err if the meter can't go on or without memory. */
int tccl_search_meter_measure(struct tccl_search_meter *meter, const struct tccl_set *walk,
                              double *gbps, struct tccl_error *err);

/* The same of a set with repeats, which bounds know nothing of: it may itself be known, or is
 * measured now. Counts as a set that was asked. */
int tccl_search_meter_measure_repeats(struct tccl_search_meter *meter, const struct tccl_set *set,
                                      double *gbps, struct tccl_error *err);

/* The same, but where symmetries are only assumed the set itself is measured. If it turns out
 * slower than it should be by symmetry, also when measured again, the meter distrusts the symmetry:
 * the search has to do something about it when the bounds' stack is empty. */
int tccl_search_meter_measure_itself(struct tccl_search_meter *meter, const struct tccl_set *walk,
                                     double *gbps, struct tccl_error *err);

/* What a set reaches, measured some more times, so often in all (fewer than TCCL_VALUES, beside the
 * first): the median of these (tccl_setmap_later). 0: it failed. Returns as measure. */
int tccl_search_meter_settle(struct tccl_search_meter *meter, const struct tccl_set *set, int times,
                             double *gbps, struct tccl_error *err);

/* A part that was measured slower than the whole: measures both as settle does, where measurements
 * differ. *slower: the part still is, by more than they do (search/oddity.h). Returns as measure.
 */
int tccl_search_meter_compare(struct tccl_search_meter *meter, const struct tccl_set *part,
                              const struct tccl_set *whole, bool *slower, struct tccl_error *err);

/* For a set that reaches no more than most: finds a part of it that alone reaches no more, from
 * which no transfer can be left out (QuickXplain, Junker, AAAI 2004), and makes it limit later
 * routes. With noise the part is measured again first, since it will speak for many others. For a
 * set that failed: a few measurements find a small part to be avoided. Returns as measure. */
int tccl_search_meter_explain(struct tccl_search_meter *meter, const struct tccl_set *walk,
                              double most, struct tccl_error *err);
