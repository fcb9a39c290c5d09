/* search.h: the best chains of a GPU set, with as few measured transfer sets as possible.
 *
 * The bandwidth of a set never rises when a transfer is added, so every measured set bounds all
 * sets that contain it. The search asks, without measuring, for a chain whose bounds are all above
 * the best one known (depth first, the most promising step first); measures that one chain; and if
 * it disappoints, finds a small part of it that explains the disappointment, whose bandwidth then
 * bounds all other chains through the same congested spot. When no chain is left that could be
 * better by more than the gap, the best one known is proven.
 *
 * A meter of real hardware is not so exact. A set measured lower than one that contains it was
 * measured wrong: it limits no more than that one. Where symmetries are only assumed, a chain is
 * not kept before it is itself measured; if it is slower than it should be, the symmetry is given
 * up. A set that failed says nothing: the search keeps off a small part of it, but bounds are as if
 * it could be fast, so that a later run looks again. */
#pragma once

#include "machine/meter.h"
#include "ring/table.h"
#include "search/symmetry.h"

struct tccl_search_progress {
    long measured; /* sets measured so far */
    long shared;   /* answered by a symmetric set */
    long pruned;   /* beginnings of chains that known bounds cut off, and chains */
    long failed;   /* of the measured sets: could not be measured */
    int pairs_done, pairs_total;
    bool ring; /* what it looks for now is the ring */
};

/* What follows. */
enum tccl_search_wish {
    TCCL_SEARCH_GO_ON,
    TCCL_SEARCH_STOP,      /* no other set is measured */
    TCCL_SEARCH_LEAVE_RING /* the ring stays as it is, the pairs are next */
};

struct tccl_search_options {
    double gap;   /* stop when proven within this ratio, e.g. 0.03; 0: exact */
    double noise; /* values closer than this ratio count as equal: no gap is smaller. If each set is
                     measured this well or better, what is found is within gap + 2 * noise of the
                     best: bounds may be too low by the noise, bandwidths too high. Sets that are to
                     limit others are measured twice then (meter.again), for the rare one measured
                     far too low */
    double blur;  /* measurements of two sets that differ by no more than this ratio can't be told
                     apart (bounds.h): several times the deviation of a noisy meter, which may be off
                     by more than noise; 0: all can */
    int settle; /* what is chosen, and NCCL's own, is measured again, so many times more (fewer than
                   TCCL_VALUES), beside the budget; 0: not */
    long budget; /* transfer sets to measure at most in this call; 0: no limit */
    int pairs;   /* port pairs to search to the end, best first, and the best of every pair of NICs;
                    the others get a first chain and proven bounds; 0: all pairs to the end */
    bool every_nccl; /* baselines of all generations of NCCL; else all are as that of the newest */
    bool trees;  /* also trees beside the best chain of every pair of NICs, the best chains first:
                    some 200 sets at most, beside the budget */
    long hosts;  /* also the best chain without P2P of every pair of NICs, and the ring, where the
                    best one has some: sets to ask for at most, beside the budget; 0: none */
    long others; /* also rings and chains of other footprints (table.h): sets to ask for at most,
                    beside the budget; 0: none */
    bool reads;  /* also chains whose P2P edges read, where that loses nothing: the best ones,
                    where they are better, else others; as many sets more as for others, if these
                    are wanted */
    long sets;   /* also ring sets: sets of transfers to ask for at most, beside the budget, and by
                    all searches no more than for all else, but for a few; 0: none */
    bool alone;  /* only what concerns the node alone: its ring, and what goes beside that */
    bool any;    /* also chains that a stock NCCL can't be made to build */
    /* Can the transfer be measured at all? Pairs of ports that need another one are left out: no
     * bandwidth, no bound. NULL: all can. */
    bool (*can)(void *context, tccl_transfer transfer);
    /* Called after each measured set and each finished pair, and several times a second while
     * nothing is measured; returns a tccl_search_wish. May be NULL. */
    int (*progress)(void *context, const struct tccl_search_progress *progress);
    void *context;
};

struct tccl_search;

/* symmetry may be NULL. It and the meter's store are borrowed for the search's life; what is in the
 * store is not measured again, sets that failed excepted. A store serves one search at a time, and
 * is cleared of the former's marks here. NULL only without memory. */
struct tccl_search *tccl_search_new(const struct tccl_machine *machine, struct tccl_meter meter,
                                    const struct tccl_symmetry *symmetry);
void tccl_search_free(struct tccl_search *search);

/* Bandwidth of one set: known, symmetric to a known one, or measured now. Returns 0, or -1 with
 * err, also if the set failed. */
int tccl_search_measure(struct tccl_search *search, const struct tccl_set *set, double *gbps,
                        struct tccl_error *err);

/* Fills the table of a GPU set: every port pair, the closed ring, NCCL's default. Results are right
 * (bounds proven) also when stopped early. Returns 0; 1 if the budget or progress stopped it, or
 * if, with more than some five GPUs, it had computed for long (some ten seconds, counted in steps,
 * so that runs repeat); -1 with err if the meter failed. */
int tccl_search_table(struct tccl_search *search, struct tccl_table *table,
                      const struct tccl_search_options *options, struct tccl_error *err);

/* Only the single-node ring. Same returns. */
int tccl_search_ring(struct tccl_search *search, uint32_t gpus,
                     const struct tccl_search_options *options, struct tccl_result *result,
                     struct tccl_error *err);

/* Are symmetries that were only assumed still taken for true? Also where there are none. */
bool tccl_search_symmetric(const struct tccl_search *search);

/* Transfer sets measured so far; baselines are not counted. */
long tccl_search_measured(const struct tccl_search *search);
/* Of all that were measured, baselines included: for ring sets. */
long tccl_search_measured_sets(const struct tccl_search *search);
