/* choice.h: NCCL's own choice: the rings that a stock NCCL builds on a node when nobody helps.
 *
 * It is that of NCCL 2.29.7, without settings of the user's, with a process for each GPU in rising
 * order, over InfiniBand or RoCE, without NVLink, all nodes alike. NCCL knows the real rates of
 * slots; a machine here does not have them, and nominal ones are taken (16 lanes; PCIe 3 below
 * sm_80, 5 from sm_90, else 4; NICs by their rate). As far as it matters here, versions differ so:
 *  - up to 2.22 P2P is taken at any distance, except with CPUs of Intel, ARM or Zhaoxin; since then
 *    below a common switch only, except between the only two GPUs with CPUs of AMD;
 *  - 2.18 has no rate for the way between CPUs of AMD; up to 2.25 newer ones of Intel are as
 *    Skylake;
 *  - in 2.18 devices below a switch stand in the order in which they are met, since then in that of
 *    bus ids; since 2.22 each process adds its own GPU after all NICs, which changes what is first;
 *  - up to 2.22 single channels cross NICs, since then pairs do; up to 2.24 there are at most 16
 *    channels, not 32; up to 2.26 one begins at any of the GPUs nearest to the NIC;
 *  - up to 2.28 NICs stand in the order of ibv_get_device_list, since then in that of bus ids. */
#ifndef TCCL_CHOICE_H
#define TCCL_CHOICE_H

#include "chain/chain.h"

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

/* NCCL's own choice for the GPUs of mask. It takes from a millisecond to some tenths of a second,
 * as NCCL's search does. A closed chain begins at its lowest GPU. closed: a single node's ring;
 * else the node is one of several, and each chain has ports. Returns 0, or -1 with err (no GPU, no
 * NIC for several nodes, one GPU for a ring). */
int tccl_nccl_choice(const struct tccl_machine *machine, uint32_t gpus, bool closed,
                     struct tccl_choice *choice, struct tccl_error *err);

#endif
