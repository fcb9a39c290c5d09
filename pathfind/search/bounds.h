/* bounds.h: what is known of transfer sets: measured ones, and the bounds that follow.
 *
 * Adding a transfer never raises the bandwidth of a set. So a measured set bounds every set that
 * contains it from above, and every set that it contains from below. Symmetric sets share all that.
 * Measurements that contradict this are wrong, or the machine does otherwise: a set measured higher
 * raises the limits of all its parts. A part that is still slower once both were measured again is
 * an exception: it, those symmetric to it, and all parts with one of these limit nothing. A set
 * that failed limits nothing; it may only be told to keep chains off some of its part.
 */
#pragma once

#include "search/setmap.h"
#include "search/symmetry.h"

/* All sets that are given to it have their transfers in the order of a walk along a chain, by which
 * symmetries go, and need not be sorted. */
struct tccl_bounds;

/* symmetry may be NULL; it is borrowed, and so is the store of measured sets, of which these bounds
 * are the only ones. NULL only without memory. */
struct tccl_bounds *tccl_bounds_new(const struct tccl_machine *machine,
                                    const struct tccl_symmetry *symmetry, struct tccl_setmap *sets);
void tccl_bounds_free(struct tccl_bounds *bounds); /* NULL is fine */

/* From now on measurements of two sets that differ by no more than this ratio (0: at first) can't
 * be told apart: a set that is bounded by another one counts as that where it could be. So noise
 * makes no limits of its own: else each set in the same bottleneck would be one. */
void tccl_bounds_set_blur(struct tccl_bounds *bounds, double blur);

/* What is known of a set. gbps and upper are 0 if it failed. */
struct tccl_known {
    double gbps;
    double upper;   /* what it may reach in truth: more than gbps where the measurement was noisy */
    bool symmetric; /* it was a symmetric one that was measured */
    bool failed;
};

/* From now on what the store says of the set counts: its best bandwidth, which raises the limits of
 * its parts that are lower; what it may reach in truth (upper, GB/s); or that it failed, which says
 * nothing of symmetric sets. To be called again when it was measured again. Returns 0, or -1
 * without memory. */
int tccl_bounds_add(struct tccl_bounds *bounds, const struct tccl_set *walk, double upper);
/* Was the set, or a symmetric one, measured, or did it fail? */
bool tccl_bounds_find(const struct tccl_bounds *bounds, const struct tccl_set *walk,
                      struct tccl_known *known);
/* Is the limit of this set confirmed by a second measurement? Confirm says that it is. */
bool tccl_bounds_confirmed(const struct tccl_bounds *bounds, const struct tccl_set *walk);
void tccl_bounds_confirm(struct tccl_bounds *bounds, const struct tccl_set *walk);
/* A proven lower bound: the largest bandwidth of a set measured lately that contains the walk; 0 if
 * there is none. */
double tccl_bounds_floor(const struct tccl_bounds *bounds, const struct tccl_set *walk);

/* Makes a measured set, and those symmetric to it, limit the sets on the stack below. Returns 0, or
 * -1 without memory. */
int tccl_bounds_limit(struct tccl_bounds *bounds, const struct tccl_set *walk, double gbps);

/* Keeps the search off all sets that contain this one, which failed. Returns 0, or -1 without
 * memory. */
int tccl_bounds_avoid(struct tccl_bounds *bounds, const struct tccl_set *walk);
/* Bounds without what is avoided: true, or with it. The stack must be empty. */
void tccl_bounds_ignore_avoided(struct tccl_bounds *bounds, bool ignore);
/* Is, or was, any set avoided? */
bool tccl_bounds_avoids(const struct tccl_bounds *bounds);

/* Limits that were raised: what was proven with the low one holds with the high one. They stand in
 * the order in which it happened, and move when there are more. Returns how many. */
struct tccl_raise {
    double low, high;
};
size_t tccl_bounds_raises(const struct tccl_bounds *bounds, const struct tccl_raise **raises);

/* A part that was measured slower than the whole by more than noise; once for each part, and for
 * TCCL_MAX_DOUBTS at most. In the order in which it was noticed; they stay where they are. Returns
 * how many. */
enum { TCCL_MAX_DOUBTS = 32 };
struct tccl_doubt {
    struct tccl_set part, whole;
};
size_t tccl_bounds_doubts(const struct tccl_bounds *bounds, const struct tccl_doubt **doubts);
/* The part is an exception from now on: limits of sets that contain it are raised to infinity, and
 * who makes limits asks for it. The stack must be empty. Returns 0, or -1 without memory. */
int tccl_bounds_except(struct tccl_bounds *bounds, const struct tccl_set *part);
/* Does the walk contain one? */
bool tccl_bounds_excepted(const struct tccl_bounds *bounds, const struct tccl_set *walk);

/* The symmetry turned out to be wrong: from now on only sets themselves measured count. The stack
 * must be empty. Returns 0, or -1 without memory. */
int tccl_bounds_distrust(struct tccl_bounds *bounds);
bool tccl_bounds_assumes(const struct tccl_bounds *bounds); /* symmetries assumed? */

/* The symmetry that it was made with, while that is trusted; NULL: none. */
const struct tccl_symmetry *tccl_bounds_symmetry(const struct tccl_bounds *bounds);

/* Calls each with every limit of these GPUs (a mask) by two transfers or more, their images
 * included, that is not one to be avoided. */
void tccl_bounds_each_limit(const struct tccl_bounds *bounds, uint32_t gpus,
                            void (*each)(void *context, const struct tccl_set *set, double gbps),
                            void *context);

/* The different bandwidths of all limits, in ascending order, in *values; they are the bounds'
 * and change with the next limit. Returns how many. */
size_t tccl_bounds_values(const struct tccl_bounds *bounds, const double **values);

/* A stack of transfers, for a search that adds and takes back. Push returns the upper bound of all
 * that is on the stack now, GB/s, exactly if it is no more than above, else some value above that
 * (+inf: nothing is known); above must not grow while something is on the stack. Pop takes back the
 * last. */
double tccl_bounds_push(struct tccl_bounds *bounds, tccl_transfer transfer, double above);
void tccl_bounds_pop(struct tccl_bounds *bounds);
/* The bound of these transfers together, as push gives it; the stack must be empty. */
double tccl_bounds_of(struct tccl_bounds *bounds, const tccl_transfer *transfers, int count,
                      double above);
/* The upper bound known for one transfer alone. */
double tccl_bounds_alone(const struct tccl_bounds *bounds, tccl_transfer transfer);
