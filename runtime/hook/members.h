/* members.h: the ranks of a communicator on this node, in the order of their GPUs. Are they as a
 * chain needs them? */
#ifndef SHIM_MEMBERS_H
#define SHIM_MEMBERS_H

#include "hook/decide.h"
#include "nccl/pci.h"

/* Are these all of its ranks on this node, and alike? Returns 0, or -1 with why. */
int shim_members_check(const struct shim_plan *plan, const struct shim_registry *registry,
                       const struct shim_comm *comm, const struct shim_member *members, int n,
                       struct tccl_error *why);

/* Are there GPUs of the communicator that some of its ranks don't see, as NVML hides those of other
 * tasks? They may then have equal numbers. All GPUs are of the plan. */
bool shim_members_hidden(const struct shim_plan *plan, const struct shim_member *members, int n);

/* Does NCCL take P2P up to PXB in all processes? */
bool shim_members_pxb(const struct shim_member *members, int n);

/* Does NCCL by itself send directly from a ring's last GPU to a NIC that is near? linked: NVLink
 * between the members. */
bool shim_members_send_directly(const struct tccl_named_chain *path,
                                const struct shim_member *members, int n,
                                bool linked[SHIM_GPUS][SHIM_GPUS]);

/* Does what the members' users have set suit the chain? Returns 0, or -1 with why. Fills in
 * pci->net_intra. */
int shim_members_suit(const struct shim_chain *chain, struct shim_pci *pci,
                      const struct shim_member *members, int n, struct tccl_error *why);

/* Can all members' processes have what the answer's chain needs beside its files? Once all have
 * asked. Returns 0, or -1 with why. */
int shim_members_can(const struct shim_answer *answer, const struct shim_member *members, int n,
                     struct tccl_error *why);

#endif
