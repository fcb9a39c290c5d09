/* tree.h: the chain that NCCL's trees take through a node: used both ways at once, since sums come
 * up to the root while results go down again.
 *
 * What a process decides once it decides for trees, too. So beside a ring only the order and the
 * NIC of the tree are free: its P2P is between neighbours of the ring that have it, and within the
 * ring's P2P islands below a common PCI switch; where it goes through host memory, the receiver's
 * buffer is in the memory in which it receives in the ring. */
#pragma once

#include "chain/chain.h"

struct tccl_tree {
    double gbps;  /* each way, while all of its transfers run; 0: unknown */
    double along; /* the same of the tree that goes along the ring's chain; 0: unknown */
    /* From the GPU next to the root. The NIC belongs to the first one, up to the root, and to the
     * second one, down to other nodes: NCCL's balanced tree. Used where gbps is known. */
    uint8_t nic;
    uint8_t gpus[TCCL_MAX_GPUS];
};

/* How trees go beside a chain: open, of several GPUs. */
struct tccl_tree_ways {
    const struct tccl_machine *machine;
    const struct tccl_chain *chain;
    uint8_t memory[TCCL_MAX_GPUS];  /* of each GPU's buffers */
    uint32_t direct[TCCL_MAX_GPUS]; /* GPUs to which each of them has P2P */
    bool reads;                     /* by which they read, as in the chain */
};
void tccl_tree_ways(const struct tccl_machine *machine, const struct tccl_chain *chain,
                    struct tccl_tree_ways *ways);

/* The transfers between two neighbours of the tree, and between a GPU and the NIC, both ways.
 * Each returns how many: 2 to 4. */
int tccl_tree_edge(const struct tccl_tree_ways *ways, int a, int b, tccl_transfer out[static 4]);
int tccl_tree_end(const struct tccl_tree_ways *ways, int nic, int gpu, tccl_transfer out[static 4]);

/* The tree along the chain itself, over the NIC by which the chain enters; bandwidths unknown. */
void tccl_tree_along(const struct tccl_chain *chain, struct tccl_tree *tree);

/* Is it over the chain's GPUs, with a NIC of the machine and with bandwidths? One of which nothing
 * is known always is. */
bool tccl_tree_fits(const struct tccl_tree *tree, const struct tccl_chain *chain, int n_nics);
