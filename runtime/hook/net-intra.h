/* net-intra.h: NCCL_NET_DISABLE_INTRA=1. A chain between nodes that goes through host memory
 * between two GPUs which both have a NIC needs it: NCCL would take the network there. NCCL asks for
 * it when it computes the paths of a process' first communicator, and keeps the answer for all
 * others. So it is given only to a communicator that needs it, if it is the first one, and others
 * of the process that come later notice it; where NCCL has gone without it such chains are left
 * alone. */
#ifndef SHIM_NET_INTRA_H
#define SHIM_NET_INTRA_H

#include "hook/pending.h"

/* What NCCL has in this process, as this init finds it at its first question. */
enum shim_net shim_net_intra(const struct shim_init *init, uint32_t user);

/* The answer to the question of the NCCL that begins at start. init: for which it asks; NULL: for
 * none that is known. */
const char *shim_net_intra_answer(const struct shim_init *init, uintptr_t start);

/* NCCL has asked before the shim knew of it. */
void shim_net_intra_early(void);

#endif
