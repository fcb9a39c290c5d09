/* islands.h: NCCL takes P2P between GPUs that are at most PXB apart, else it goes through host
 * memory; and GPUDirect between a GPU and a NIC that are. Where that is not what the chain wants, a
 * topology file puts consecutive GPUs that hand on directly below one invented bridge, and the NIC
 * of an end there, or away from it. That holds for one communicator, as no setting would. */
#ifndef SHIM_ISLANDS_H
#define SHIM_ISLANDS_H

#include "nccl/pci.h"
#include "plan/plan.h"

/* Reads the places of a chain's GPUs and of the machine's NICs. Returns 0, or -1 with why. */
int shim_islands_read(const struct shim_chain *chain, struct shim_pci *pci, struct tccl_error *why);

/* Writes the topology file for a chain. pci: all of its GPUs were read, and its NICs if it is open.
 * Returns 0: none is needed, NCCL takes each edge as planned; 1: text holds it; or -1 with why: it
 * can't be expressed. linked: which pairs of chain->rings.chains[0].gpus have NVLink (device.h),
 * which NCCL always takes. p2p_level_pxb: NCCL_P2P_LEVEL is (given or the user's) PXB, else NCCL's
 * default of that version (0: unknown). */
int shim_islands(const struct shim_chain *chain, const struct shim_pci *pci,
                 bool linked[SHIM_GPUS][SHIM_GPUS], bool p2p_level_pxb, uint32_t version,
                 struct shim_text *text, struct tccl_error *why);

/* Does NCCL by itself take P2P at any distance, on a node with n GPUs of the communicator? True
 * also if that can't be known. */
bool shim_islands_far_p2p(const struct shim_pci *pci, int n, uint32_t version);

/* Does this NCCL fail where a topology file leaves out a CPU that a NIC is at? */
bool shim_islands_all_cpus(uint32_t version);

/* How far two devices are apart, GPUs of the chain or others, in that topology (in the real one,
 * where none is needed: islands false). */
enum shim_path shim_islands_path(const struct shim_chain *chain, const struct shim_pci *pci,
                                 bool islands, tccl_bus a, tccl_bus b);

#endif
