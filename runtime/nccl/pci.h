/* pci.h: the PCI tree around GPUs and NICs, as NCCL finds it in /sys. */
#ifndef SHIM_PCI_H
#define SHIM_PCI_H

#include "base/base.h"

enum {
    SHIM_PCI_NICS = 32,
    SHIM_PCI_DEVICES = SHIM_GPUS + SHIM_PCI_NICS,
    SHIM_PCI_DEPTH = 16,
    SHIM_PCI_NODES = 1024
};

/* How far NCCL takes two devices to be apart: topo.h's PATH_PIX … PATH_SYS. */
enum shim_path { SHIM_PIX, SHIM_PXB, SHIM_PHB, SHIM_SYS };
const char *shim_path_name(enum shim_path path); /* "PIX" … */

struct shim_pci_device {
    tccl_bus bus;
    int16_t node; /* what NCCL takes for the number of its CPU: the NUMA node of its uppermost
                     bridge (its own, where it has none), -1 if the kernel knows none */
    uint8_t depth;
    tccl_bus above[SHIM_PCI_DEPTH]; /* the bridges that NCCL sees, from the top down: each second
                                       one of the kernel's, so that a switch is one */
};

struct shim_pci {
    uint8_t n;
    bool amd, intel; /* the CPU's maker, as NCCL will see it */
    uint8_t reads;   /* bit i: NCCL sends directly from ring i's last GPU to a NIC that is near */
    bool net_intra;  /* NCCL may take NICs in place of host memory within the node */
    bool cautious;   /* a CPU through which NCCL never took P2P: Intel's, Zhaoxin's, ARM */
    /* What NCCL has been told of the CPU in place of asking it; "", -1: nothing. */
    char vendor[16];
    int32_t family, model;
    uint64_t nodes[SHIM_PCI_NODES / 64]; /* NUMA nodes that the kernel has; bits */
    struct shim_pci_device devices[SHIM_PCI_DEVICES];
};

/* Reads the places of n devices from root's sys, proc and var ("" is the real one). Returns 0, or
 * -1 with why: they can't be read, or NCCL would not go by them (the machine has a topology file,
 * or switches that are joined otherwise). A device that is there twice is kept once. */
int shim_pci_read(const char *root, const tccl_bus *devices, int n, struct shim_pci *pci,
                  struct tccl_error *why);

/* Adds the machine's NICs whose places can be read, as far as there is room. */
void shim_pci_add_nics(struct shim_pci *pci);

/* Has the kernel such a NUMA node? -1, where devices of no node are: yes. */
bool shim_pci_has_node(const struct shim_pci *pci, int node);
/* Is the device behind that bridge? */
bool shim_pci_is_below(const struct shim_pci_device *device, tccl_bus bridge);
/* The i-th address that nothing has: for bridges that are invented. */
tccl_bus shim_pci_unused(const struct shim_pci *pci, int i);

/* Index of a device, or -1. */
int shim_pci_find(const struct shim_pci *pci, tccl_bus bus);
/* How far apart two places are; what is behind a device's own bridge counts alike. */
enum shim_path shim_pci_distance(const struct shim_pci_device *a, const struct shim_pci_device *b);
/* a, b: bus ids that were read; SHIM_SYS for others. */
enum shim_path shim_pci_path(const struct shim_pci *pci, tccl_bus a, tccl_bus b);

#endif
