/* choice.h: NCCL's own choice: the rings that a stock NCCL builds on a node when nobody helps it.
 */
#ifndef TCCL_CHOICE_H
#define TCCL_CHOICE_H

#include "chain.h"

enum { TCCL_MAX_CHANNELS = 8 };

/* The distinct channels' chains; channels that repeat one are left out. NCCL runs them at the same
 * time. */
struct tccl_choice {
    int n_chains;
    struct tccl_chain chains[TCCL_MAX_CHANNELS];
    /* Edges of each chain (bit i: edges[i]) that NCCL takes through NICs, though both GPUs are on
     * this node. No chain can say that: such an edge stands there as a bounce. */
    uint32_t by_network[TCCL_MAX_CHANNELS];
};

/* NCCL's own choice for the GPUs of mask. closed: a single node's ring; else the node is one of
 * several, and each chain has ports. Returns 0, or -1 with err (no GPU, no NIC for several nodes,
 * one GPU for a ring). */
int tccl_nccl_choice(const struct tccl_machine *machine, uint32_t gpus, bool closed,
                     struct tccl_choice *choice, struct tccl_error *err);

#endif
