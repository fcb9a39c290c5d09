/* ring-set.h: a ring set on one node: several rings that run at once over the same GPUs, each with
 * an equal part of the data, its own order, edges and NICs. One ring is a set of one. */
#ifndef TCCL_RING_SET_H
#define TCCL_RING_SET_H

#include "chain/chain.h"
#include "machine/side.h"

struct tccl_ring_set {
    int n;
    struct tccl_chain rings[TCCL_CHAIN_RINGS];
};

/* Is each chain possible on the machine, and are all of them open or all closed, over the same
 * GPUs? Returns 0, or -1 with err. */
int tccl_ring_set_check(const struct tccl_ring_set *set, const struct tccl_machine *machine,
                        struct tccl_error *err);

/* Can the runtime impose it on a stock NCCL? Each chain by itself (tccl_chain_expressible), and
 * together:
 *  - GPUs that some ring joins by P2P, or that have GPUDirect to one NIC, are an island, and no
 *    edge of any ring leads through memory within one: two GPUs have one transport in all rings;
 *  - all buffers of a process are in one memory: where it receives in any ring, and on its way from
 *    and to the network;
 *  - a process has GPUDirect in all rings in which it meets a NIC, or in none;
 *  - a NIC to which some GPU of an island has GPUDirect exchanges data through memory with no other
 *    GPU of the island: it is near all of them. (The exit of a single ring may, as older GPUs send
 *    through memory in any case.)
 * Returns 0, or -1 with the reason in err. */
int tccl_ring_set_expressible(const struct tccl_ring_set *set, struct tccl_error *err);

/* Adds the transfers of a ring, or of its chain on this node. Returns 0, or -1 as tccl_side_add. */
int tccl_side_add_chain(struct tccl_side *side, const struct tccl_chain *chain);

/* What runs on the node: a transfer as often as rings make it. */
void tccl_ring_set_side(const struct tccl_ring_set *set, struct tccl_side *side);

/* Do they make the same transfers, each as often? Then they are as fast, in whatever order their
 * rings are, and wherever closed ones begin. */
bool tccl_ring_set_alike(const struct tccl_ring_set *a, const struct tccl_ring_set *b);

/* The set's text, "chain | chain", GPUs by their numbers; and back, checked against the machine
 * (tccl_ring_set_check). Returns 0, or -1 with err. */
void tccl_ring_set_format(const struct tccl_ring_set *set, const struct tccl_machine *machine,
                          char text[static TCCL_RINGS_TEXT]);
int tccl_ring_set_parse(const char *text, const struct tccl_machine *machine,
                        struct tccl_ring_set *set, struct tccl_error *err);

#endif
