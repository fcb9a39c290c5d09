/* class-sets.h: the ring sets of a node class. Of sets of as many rings that pass through the node
 * in the same way, from and to the same fabrics, only the best one matters. */
#ifndef TCCL_CLASS_SETS_H
#define TCCL_CLASS_SETS_H

#include "ring/node-class.h"

enum { TCCL_CLASS_SETS = 64 /* of one class; more are left out */ };

/* The NICs of a set's chains, as many as it has. */
void tccl_set_nics(const struct tccl_ring_set *set, int *in, int *out);

/* What the line rates of the node's NICs leave to so many rings that come in and go out by these,
 * GB/s of all of them together: those by one NIC share its rate. */
double tccl_class_hops(const struct tccl_node_class *class, const int *in, const int *out,
                       int rings);

/* How many rings at once are best between nodes of this class alone, as far as its chains and NICs
 * go; 0: it has no chain. */
int tccl_class_best_rings(const struct tccl_node_class *class);

/* The fastest one of a node alone (closed) or, as the NICs' line rates leave it, between nodes of
 * this class; NULL: there is none. */
const struct tccl_class_set *tccl_class_best_set(const struct tccl_node_class *class, bool closed);

/* The fastest sets of a table that jobs get (tccl_node_class_from_table): [0] of one of several
 * nodes like this one, [1] of this node alone; gbps 0: there is none. Returns 0, or -1 if out of
 * memory. */
int tccl_job_sets(const struct tccl_table *table, const struct tccl_machine *machine,
                  struct tccl_class_set best[static 2]);

/* The set whose chains have these NICs, in any order; -1 each: a closed one. order[i]: which of its
 * chains has the NICs i. NULL: the class has none. */
const struct tccl_class_set *tccl_class_find_set(const struct tccl_node_class *class, const int *in,
                                                 const int *out, int rings,
                                                 uint8_t order[static TCCL_CHAIN_RINGS]);

/* For messages between nodes: a list, each with its chains as one text. from_json adds to the
 * class, which has its GPUs and NICs by then; without a list (NULL: a node that knows of no sets)
 * nothing. It returns 0, or -1 with err. */
json_t *tccl_class_sets_to_json(const struct tccl_node_class *class);
int tccl_class_sets_from_json(const json_t *json, struct tccl_node_class *class,
                              struct tccl_error *err);
bool tccl_class_sets_equal(const struct tccl_node_class *a, const struct tccl_node_class *b);

#endif
