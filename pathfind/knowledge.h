/* knowledge.h: what is known of transfer sets: measured ones, and the bounds that follow.
 *
 * Adding a transfer never raises the bandwidth of a set. So a measured set bounds every set that
 * contains it from above, and every set that it contains from below. Symmetric sets share all that.
 */
#ifndef TCCL_KNOWLEDGE_H
#define TCCL_KNOWLEDGE_H

#include "symmetry.h"

/* Transfers in the order of a walk along a chain. */
struct tccl_walk {
    int count;
    tccl_transfer transfers[TCCL_MAX_SET];
};

struct tccl_knowledge;

/* symmetry may be NULL; it is borrowed. NULL only without memory. */
struct tccl_knowledge *tccl_knowledge_new(const struct tccl_machine *machine,
                                          const struct tccl_symmetry *symmetry);
void tccl_knowledge_free(struct tccl_knowledge *knowledge); /* NULL is fine */

/* Remembers a measured set, GB/s. Returns 0, or -1 without memory. */
int tccl_knowledge_add(struct tccl_knowledge *knowledge, const struct tccl_walk *walk, double gbps);
/* The bandwidth of a set, if it or a symmetric one was measured: 1 and *gbps, else 0. *symmetric
 * says that it was another one (may be NULL). */
int tccl_knowledge_find(const struct tccl_knowledge *knowledge, const struct tccl_walk *walk,
                        double *gbps, bool *symmetric);
/* A proven lower bound: the largest bandwidth of a set measured lately that contains the walk; 0 if
 * there is none. */
double tccl_knowledge_floor(const struct tccl_knowledge *knowledge, const struct tccl_walk *walk);

/* Makes a measured set, and those symmetric to it, limit the sets on the stack below. Returns 0, or
 * -1 without memory. */
int tccl_knowledge_limit(struct tccl_knowledge *knowledge, const struct tccl_walk *walk,
                         double gbps);

/* The different bandwidths of all limits, in ascending order, in *values; they are the knowledge's
 * and change with the next limit. Returns how many. */
size_t tccl_knowledge_values(const struct tccl_knowledge *knowledge, const double **values);

/* A stack of transfers, for a search that adds and takes back. Push returns the upper bound of all
 * that is on the stack now, GB/s, exactly if it is no more than above, else some value above that
 * (+inf: nothing is known); above must not grow while something is on the stack. Pop takes back the
 * last. */
double tccl_knowledge_push(struct tccl_knowledge *knowledge, tccl_transfer transfer, double above);
void tccl_knowledge_pop(struct tccl_knowledge *knowledge);
/* The bound of these transfers together, as push gives it; the stack must be empty. */
double tccl_knowledge_bound(struct tccl_knowledge *knowledge, const tccl_transfer *transfers,
                            int count, double above);
/* The upper bound known for one transfer alone. */
double tccl_knowledge_alone(const struct tccl_knowledge *knowledge, tccl_transfer transfer);

#endif
