/* graph.h: the graph file of a chain. */
#ifndef SHIM_GRAPH_H
#define SHIM_GRAPH_H

#include "nccl/pci.h"
#include "plan/plan.h"

struct shim_numbers {
    int gpus[SHIM_GPUS]; /* NVML's index of chain->path.gpus[i] */
    int entry, exit;     /* NCCL's numbers of the NICs; not used when closed */
};

/* Writes <graphs> with the ring (id 0) and, with tree, the tree along it (id 1), in
 * shim_graph_channels equal channels that share the chain's bandwidth. types: the farthest edge and
 * end as NCCL will see them (never NVL). Returns 0, or -1 with why: too long, or a number is
 * negative. */
int shim_graph(const struct shim_chain *chain, const struct shim_numbers *numbers,
               enum shim_path intra, enum shim_path inter, bool tree, struct shim_text *text,
               struct shim_why *why);
/* Channels in the file; NCCL makes twice as many of them. */
int shim_graph_channels(const struct shim_chain *chain);

/* From 2.29.7 on each graph that is answered costs NCCL a table of 65,536 XML nodes (0.9 GB, which
 * it clears): only the ring is answered then. The tree is NCCL's own, searched with as many
 * channels as the ring has. version 0 (unknown): as the newest. */
bool shim_graph_gives_tree(uint32_t version);
/* Memory that NCCL takes for a moment when one graph is answered, for each rank, in bytes. */
uint64_t shim_graph_memory(uint32_t version);

#endif
