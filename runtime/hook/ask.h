/* ask.h: this node's tccld, over its unix socket (profiler/client/shim.md: CHAIN, CONFIRM,
 * AGREE). Never waits beyond a deadline. */
#ifndef SHIM_ASK_H
#define SHIM_ASK_H

#include "plan/plan.h"
#include "verify/verdict.h"

enum { SHIM_CONFIRM_US = 20000 }; /* what telling may take at the most */

/* The best chain of a subset of the step's GPUs on this node. Returns 0; 1 with why: NCCL's own
 * choice is as good; -1 with why: tccld has none, can't be asked, or did not answer in time. */
int shim_ask_chain(const struct shim_plan *plan, const tccl_bus *gpus, int n, bool closed,
                   int64_t deadline_us, struct shim_chain *chain, struct tccl_error *why);

/* Tells what became of a communicator. Does not wait for the answer longer than to deadline.
 * nccl: its version, 0: not known; ranks: of the communicator, gpus: those of them on this node,
 * lowest: of these, -1 unknown; whole: it holds all GPUs of the step. Returns 0, or -1 with why. */
int shim_ask_confirm(const struct shim_plan *plan, enum shim_verdict verdict, const char *text,
                     uint32_t nccl, int ranks, bool whole, int gpus, int lowest,
                     int64_t deadline_us, struct tccl_error *why);

/* Tells whether this node builds all of the plan's rings in a communicator, and learns whether all
 * nodes do. comm: its key, which all nodes have. Returns 1; 0 with why: one does not; -1 with why:
 * one has not said so in time, or tccld can't be asked, or did not answer before deadline. */
int shim_ask_agree(const struct shim_plan *plan, uint64_t comm, bool will, int64_t deadline_us,
                   struct tccl_error *why);

#endif
