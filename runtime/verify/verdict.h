/* verdict.h: is what NCCL built the chain? */
#ifndef SHIM_VERDICT_H
#define SHIM_VERDICT_H

#include "plan/registry.h"
#include "verify/nccllog.h"

/* From good to bad. FEWER: the plan's first rings, and not all of them. NOT_USED: the plan was left
 * alone; BEGUN: it was not, and the verdict follows; never an answer of shim_verdict_of. */
enum shim_verdict {
    SHIM_APPLIED,
    SHIM_UNKNOWN,
    SHIM_FEWER,
    SHIM_DIFFERS,
    SHIM_NOT_USED,
    SHIM_BEGUN
};

/* Compares one rank's part of each channel with the chain's rings: its neighbours, and how it
 * reaches them. Channels are the rings' in any order, equally many of each; or in the order of the
 * first ones, again and again (FEWER), as NCCL takes no more than any node has room for. members:
 * the local ranks, with their GPUs. entry, exit: NCCL's numbers of the rings' NICs, -1: not
 * compared. text: how it differs, or why it can't be known; empty for APPLIED. The memory of a
 * bounce can't be seen, and neither can the order of nodes: a rank knows its neighbours on other
 * nodes by their rank only. */
enum shim_verdict shim_verdict_of(const struct shim_chain *chain, const struct shim_member *members,
                                  int n, tccl_bus gpu, const struct shim_built *built,
                                  const int32_t entry[static TCCL_CHAIN_RINGS],
                                  const int32_t exit[static TCCL_CHAIN_RINGS],
                                  char text[static 256]);

#endif
