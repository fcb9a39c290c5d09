/* shim-layout.h: where a topology file of steer.h has a chain's GPUs and its NIC: which are below
 * one bridge, at which CPU, and which pairs have a way of their own. */
#ifndef SHIM_LAYOUT_H
#define SHIM_LAYOUT_H

#include "nccl/steer.h"

struct shim_layout {
    const struct shim_chain *chain;
    const struct shim_pci *pci;
    const struct shim_steer *facts;
    bool intel;                /* the CPU that the file has: Intel's, or AMD's */
    int n, first;              /* number of GPUs; the one that the file begins with */
    int islands;               /* consecutive P2P neighbours */
    int begins[SHIM_GPUS + 1]; /* of each island: its first GPU, counted from `first` */
    int16_t node[SHIM_GPUS];   /* and the NUMA node that most of its GPUs are at */
    int home;                  /* the island below whose bridge the NIC is, -1: none */
    bool crowded;              /* NCCL would not read all ways */
};

/* Of a chain; the layout keeps the pointers. Returns 0, or -1 with why: pci does not have all of
 * its GPUs. */
int shim_layout(const struct shim_chain *chain, const struct shim_pci *pci,
                const struct shim_steer *facts, struct shim_layout *layout, struct tccl_error *why);

/* GPU i, counted from the first. */
const struct shim_pci_device *shim_layout_gpu(const struct shim_layout *layout, int i);

/* GPUs i < j: P2P where it is planned, or, between GPUs that are no neighbours, where NCCL alone
 * takes it? */
bool shim_layout_wants_p2p(const struct shim_layout *layout, int i, int j);

/* Would a bridge above the island's GPUs make more of them direct to each other than wanted? Then
 * the number of ways that do in its place, else 0. */
int shim_layout_count_ways(const struct shim_layout *layout, int island);
bool shim_layout_can_have_ways(const struct shim_layout *layout, int island);
bool shim_layout_needs_ways(const struct shim_layout *layout, int island);

/* Writes the topology file (topo-file.c). Returns 1, with why if GPUs become direct that are not to
 * (steer.h); or 0 with why: NCCL would not read it. */
int shim_topo_file(const struct shim_layout *layout, struct shim_text *text,
                   struct tccl_error *why);

#endif
