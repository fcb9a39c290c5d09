/* steer.h: a topology file under which NCCL's own search finds the chain. From 2.29.7 on NCCL
 * makes a table of 0.9 GB for any graph file (clearing.h); a topology file needs none. */
#ifndef SHIM_STEER_H
#define SHIM_STEER_H

#include "nccl/pci.h"
#include "plan/plan.h"

/* What the file is made for. */
struct shim_steer {
    int channels; /* that NCCL's own search finds on this node without us, and the nominal GB/s */
    double gbps;  /* of each; 0: unknown */
    double tree_gbps;           /* of all channels of its trees, to the NICs */
    bool near_entry, near_exit; /* does NCCL take the NIC to be at most PXB from the chain's first
                                   GPU, its last? */
    bool far_p2p;               /* NCCL takes P2P at any distance */
    int nics;                   /* on this node; those that NCCL leaves out count, too */
    bool given;    /* a graph file gives NCCL the ring, which its search need not find */
    bool ways;     /* NCCL reads links between PCI switches, and takes P2P along one of them only:
                      from 2.30.7 on it takes any number of switches in a row */
    bool all_cpus; /* NUMA nodes without GPUs have to be in the file, too */
};

/* Writes the file for a chain whose edges and ends shim_islands has found possible. linked: NVLink
 * between GPUs, in the order of the chain. The ranks of a node must all have it. Returns 1, with
 * why if some GPUs that NCCL alone joins by host memory, and that are no neighbours in the chain,
 * become direct to each other; or 0 with why: a graph file is needed. why is "" before. */
int shim_steer(const struct shim_chain *chain, const struct shim_pci *pci,
               bool linked[SHIM_GPUS][SHIM_GPUS], const struct shim_steer *facts,
               struct shim_text *text, struct tccl_error *why);

/* Does a bridge above the chain's P2P neighbours make other GPUs direct to each other that NCCL
 * alone joins by host memory? Beside a graph file (facts->given) shim_steer's file is better then:
 * it has ways for pairs. pci: all GPUs of the chain were read. */
bool shim_steer_matters(const struct shim_chain *chain, const struct shim_pci *pci,
                        const struct shim_steer *facts);

#endif
