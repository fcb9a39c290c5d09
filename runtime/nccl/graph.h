/* graph.h: the graph file of a chain. */
#ifndef SHIM_GRAPH_H
#define SHIM_GRAPH_H

#include "nccl/pci.h"
#include "plan/plan.h"

struct shim_numbers {
    int gpus[SHIM_GPUS];  /* NVML's index of chain->rings.chains[0].gpus[i], in its own process */
    bool by_rank;         /* these may be equal: NCCL is told ranks */
    int ranks[SHIM_GPUS]; /* in the communicator; -1: unknown. Not used without by_rank */
    int entry[TCCL_CHAIN_RINGS], exit[TCCL_CHAIN_RINGS]; /* NCCL's numbers of the rings' NICs; not
                                                            used when closed */
    int tree;   /* of the tree's NIC; negative: NCCL finds its own tree */
    bool apart; /* not all nodes have several rings: as many channels as NCCL's own */
};

/* Channels of a graph: as many as NCCL's own rings have on this node (own > 0), or as few more as
 * give each of n rings equally many (some fewer, beyond the 16 that all versions have room for). */
int shim_graph_channels(int own, int n);

/* Writes <graphs> with the rings (id 0), one channel after the other, and the tree (id 1) where one
 * is planned. The rings' channels and speeds are those that NCCL's own search has for its rings on
 * this node (own->ring), with shim_graph_channels of them, which are as fast together, or with as
 * many (apart): of several rings the first ones then. From them
 * NCCL reckons how long each algorithm and protocol takes for a size, after it has taken the least
 * of all nodes, of each number by itself. So the tree gives way to the ring, and LL to Simple, at
 * the sizes at which they would without us, on nodes without a plan, too, and NCCL's tree has as
 * many channels as ever. A planned tree has NCCL's own speeds, too, but no more, beside the ring's,
 * than was measured of both. types: the farthest edge and end as NCCL will see them (never NVL: it
 * would use LL128, which needs NVLink). Returns 0, or -1 with why: too long, a number is negative,
 * or own is not known. */
int shim_graph(const struct shim_chain *chain, const struct shim_numbers *numbers,
               const struct shim_baseline *own, enum shim_path intra, enum shim_path inter,
               struct shim_text *text, struct tccl_error *why);

/* GB/s, nominal, of all channels of a tree that was measured with so many GB/s each way, beside the
 * planned ring: NCCL's own (speed_tree for each channel), but no more, beside those of its own ring
 * (speed_ring), than was measured of both (chain/tree-rate.h). */
double shim_graph_tree_gbps(const struct shim_chain *chain, const struct shim_baseline *own,
                            double tree, double speed_tree, double speed_ring);

/* Has a graph file a tree? NCCL reads it once for each graph. */
bool shim_graph_tells_tree(const char *file);

/* Does reading a graph file take NCCL hundreds of megabytes? version 0 (unknown): yes. */
bool shim_graph_is_costly(uint32_t version);
/* Memory that NCCL takes for a moment when one graph is answered, for each rank, in bytes. */
uint64_t shim_graph_memory(uint32_t version);

#endif
