/* ring-set.h: a ring set on one node: several rings that run at once over the same GPUs, each with
 * an equal part of the data, its own order, edges and NICs. One ring is a set of one. */
#pragma once

#include "chain/chain.h"
#include "machine/sides.h"

struct tccl_ring_set {
    int n;
    struct tccl_chain rings[TCCL_CHAIN_RINGS];
};

/* Is each chain possible on the machine, and are all of them open or all closed, over the same
 * GPUs? Returns 0, or -1 with err. */
int tccl_ring_set_check(const struct tccl_ring_set *set, const struct tccl_machine *machine,
                        struct tccl_error *err);

/* Adds the transfers of a ring, or of its chain on this node. Returns 0, or -1 as tccl_side_add. */
int tccl_side_add_chain(struct tccl_side *side, const struct tccl_chain *chain);

/* What n rings make on the node: a transfer as often as they make it. side->alone stays. Returns 0;
 * -1: there is no room for all, and the side has none. */
int tccl_rings_side(const struct tccl_chain *rings, int n, struct tccl_side *side);
static inline int tccl_ring_set_side(const struct tccl_ring_set *set, struct tccl_side *side)
{
    return tccl_rings_side(set->rings, set->n, side);
}

/* What the lines of the NICs leave to each ring, GB/s; infinite for closed ones. */
double tccl_ring_set_line(const struct tccl_ring_set *set, const struct tccl_machine *machine);

/* Do they say the same, in the same order (tccl_chain_equal)? */
bool tccl_ring_set_equal(const struct tccl_ring_set *a, const struct tccl_ring_set *b);

/* Do they make the same transfers, each as often? Then they are as fast, in whatever order their
 * rings are, and wherever closed ones begin. */
bool tccl_ring_set_alike(const struct tccl_ring_set *a, const struct tccl_ring_set *b);

/* Does P2P of any of its rings read? */
bool tccl_ring_set_reads(const struct tccl_ring_set *set);
/* All of their P2P edges read from now on, or write. */
void tccl_ring_set_turn(struct tccl_ring_set *set, bool reads);

/* The set's text, "chain | chain", GPUs by their numbers; and back, checked against the machine
 * (tccl_ring_set_check). Returns 0, or -1 with err. */
void tccl_ring_set_format(const struct tccl_ring_set *set, const struct tccl_machine *machine,
                          char text[static TCCL_RINGS_TEXT]);
int tccl_ring_set_parse(const char *text, const struct tccl_machine *machine,
                        struct tccl_ring_set *set, struct tccl_error *err);
