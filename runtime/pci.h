/* pci.h: the PCI tree around GPUs and NICs, as NCCL finds it in /sys. */
#ifndef SHIM_PCI_H
#define SHIM_PCI_H

#include "base.h"

enum { SHIM_PCI_DEVICES = SHIM_GPUS + 2, SHIM_PCI_DEPTH = 16 };

/* How far NCCL takes two devices to be apart: topo.h's PATH_PIX … PATH_SYS. */
enum shim_path { SHIM_PIX, SHIM_PXB, SHIM_PHB, SHIM_SYS };
const char *shim_path_name(enum shim_path path); /* "PIX" … */

struct shim_pci_device {
    shim_bus bus;
    int16_t node; /* NUMA node, -1 unknown (NCCL takes 0) */
    uint8_t depth;
    shim_bus above[SHIM_PCI_DEPTH]; /* bridges from the root port down to the one it hangs below */
};

struct shim_pci {
    uint8_t n;
    bool amd; /* the CPU's maker */
    struct shim_pci_device devices[SHIM_PCI_DEVICES];
};

/* Reads the places of n devices from /sys. Returns 0, or -1 with why. */
int shim_pci_read(const shim_bus *devices, int n, struct shim_pci *pci, struct shim_why *why);
/* Index of a device, or -1. */
int shim_pci_find(const struct shim_pci *pci, shim_bus bus);
/* a, b: bus ids that were read. */
enum shim_path shim_pci_path(const struct shim_pci *pci, shim_bus a, shim_bus b);

#endif
