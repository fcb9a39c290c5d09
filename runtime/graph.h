/* graph.h: the graph file of a chain. */
#ifndef SHIM_GRAPH_H
#define SHIM_GRAPH_H

#include "pci.h"
#include "plan.h"

struct shim_numbers {
    int gpus[SHIM_GPUS]; /* NVML's index of chain->gpus[i] */
    int entry, exit;     /* NCCL's numbers of the NICs; not used when closed */
};

/* Writes <graphs> with the ring (id 0) and, with tree, the tree along it (id 1). types: the
 * farthest edge and end as NCCL will see them (never NVL). Returns 0, or -1 with why: too long. */
int shim_graph(const struct shim_chain *chain, const struct shim_numbers *numbers,
               enum shim_path intra, enum shim_path inter, bool tree, struct shim_text *text,
               struct shim_why *why);

/* From 2.28 on each graph that is answered costs NCCL a table of 65,536 XML nodes (0.8 GB, 0.7 s):
 * only the ring is answered then. The tree is NCCL's own, with as many channels (it is searched
 * with those of the ring). */
bool shim_graph_gives_tree(uint32_t version);
/* Memory that NCCL takes for a moment when the question is answered, for each rank, in bytes. */
uint64_t shim_graph_memory(uint32_t version);

#endif
