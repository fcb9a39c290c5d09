/* islands.h: NCCL takes P2P between GPUs that are at most PXB apart, else it goes through host
 * memory. Where that is not what the chain wants, a topology file puts consecutive GPUs that hand
 * on directly below one invented bridge. */
#ifndef SHIM_ISLANDS_H
#define SHIM_ISLANDS_H

#include "pci.h"
#include "plan.h"

/* Writes the topology file for a chain. Returns 0: none is needed, NCCL takes each edge as planned;
 * 1: text holds it; or -1 with why: it can't be expressed. gpus_of_node: how many GPUs of the
 * communicator are on this node. linked: which pairs of chain->gpus have NVLink (device.h).
 * p2p_level_pxb: NCCL_P2P_LEVEL is (given or the user's) PXB, else NCCL's default of that version.
 */
int shim_islands(const struct shim_chain *chain, const struct shim_pci *pci,
                 bool linked[SHIM_GPUS][SHIM_GPUS], bool p2p_level_pxb, uint32_t version,
                 struct shim_text *text, struct shim_why *why);

/* How far a NIC is from a GPU in that topology (in the real one, where none is needed). */
enum shim_path shim_islands_path(const struct shim_chain *chain, const struct shim_pci *pci,
                                 bool islands, shim_bus nic, shim_bus gpu);

#endif
