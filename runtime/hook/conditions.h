/* conditions.h: do the processes of a node have what a chain needs beside its files? */
#ifndef SHIM_CONDITIONS_H
#define SHIM_CONDITIONS_H

#include "nccl/pci.h"
#include "plan/registry.h"

/* Does NCCL by itself send directly from a ring's last GPU to a NIC that is near? linked: NVLink
 * between the members. */
bool shim_sends_directly(const struct tccl_named_chain *path, const struct shim_member *members,
                         int n, bool linked[SHIM_GPUS][SHIM_GPUS]);

/* What the members' users have set. Returns 0, or -1 with why. Fills in pci->net_intra. */
int shim_check_settings(const struct shim_chain *chain, struct shim_pci *pci,
                        const struct shim_member *members, int n, struct shim_why *why);

/* Can all members' processes have what the answer's chain needs beside its files? Once all have
 * asked. Returns 0, or -1 with why. */
int shim_check_processes(const struct shim_answer *answer, const struct shim_member *members, int n,
                         struct shim_why *why);

#endif
