/* memory.h: bounce buffers on the memory of the chain. NCCL's receiver allocates them, in a thread
 * that the init thread makes, which inherits the policy. */
#ifndef SHIM_MEMORY_H
#define SHIM_MEMORY_H

#include <stdint.h>

#include "base/base.h"

struct shim_policy {
    bool changed;
    int mode;
    unsigned long nodes[16]; /* 1,024 nodes */
};
/* Prefers the NUMA node for the calling thread and those that it makes from now on; saved gets what
 * was before. node -1 or a kernel without NUMA: nothing. Returns 0; -1 with why: it was refused
 * (seccomp, cpuset); 1 with why: this machine has no such node. */
int shim_policy_prefer(int node, struct shim_policy *saved, struct tccl_error *why);
void shim_policy_restore(struct shim_policy *saved);
/* May the process ask for its policy? Where it may not, neither can CUDA choose a memory. */
bool shim_policy_can(void);
/* The node that such a policy of ours prefers in the calling thread, set here or inherited; -1:
 * there is none. */
int shim_policy_node(void);

/* Bytes that are free in /dev/shm. UINT64_MAX: unknown. */
uint64_t shim_shm_left(void);

/* Bytes that the process can still have: of the machine, and of its memory cgroups. UINT64_MAX:
 * unknown. */
uint64_t shim_memory_left(void);
/* Bytes that its own limits leave to the process (ulimit -v, -d). UINT64_MAX: there are none. */
uint64_t shim_memory_limits_left(void);

#endif
