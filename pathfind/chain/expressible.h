/* expressible.h: can the runtime impose chains on a stock NCCL? What nobody can build is neither
 * searched, kept, sent nor given to a job. */
#ifndef TCCL_EXPRESSIBLE_H
#define TCCL_EXPRESSIBLE_H

#include "chain/chain.h"

/* Chains over the same GPUs that run at once; a single one is a set of one. machine: with what GPUs
 * can do; NULL: not known, then what some machine can. What NCCL decides once for a process or a
 * pair of GPUs must suit all of them:
 *  - P2P edges write, as by default (reading is one choice for all communicators of a process);
 *  - a closed chain does not have exactly one bounce (its GPUs would all be joined by P2P edges);
 *  - GPUs that some chain joins by P2P, or that have GPUDirect to one NIC, are an island, and no
 *    edge of any chain leads through memory within one: two GPUs have one transport;
 *  - all buffers of a process are in one memory: where it receives in any chain, and on its way
 *    from and to the network;
 *  - a process has GPUDirect in all chains in which it meets a NIC, or in none;
 *  - a NIC to which some GPU of an island has GPUDirect exchanges data through memory with no other
 *    GPU of the island: it is near all of them. But GPUs before compute capability 8.0 send through
 *    memory in any case, where they are not alone;
 *  - a chain of one GPU enters and leaves by one NIC (NCCL takes the entry's for both).
 * Returns 0, or -1 with the reason in err. */
int tccl_expressible(const struct tccl_machine *machine, const struct tccl_chain *chains, int n,
                     struct tccl_error *err);

#endif
