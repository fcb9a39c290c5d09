/* nics.h: the number that this process' NCCL gives to a NIC. */
#ifndef SHIM_NICS_H
#define SHIM_NICS_H

#include "base/base.h"
#include "base/resolve.h"

/* NCCL's device number of the NIC named name ("mlx5_0"). From NCCL's own log where the shim has it
 * (nccllog.h: "NET/IB : Using [0]mlx5_0:1/IB …"), else found as NCCL does (libibverbs' list if the
 * process has loaded it, ports that are up, NCCL_IB_HCA). -1 with why on any doubt: another net
 * plugin, devices that NCCL has fused, one NIC with several ports, a filter that is not understood,
 * sockets, a NIC that NCCL leaves out. To be asked when NCCL asks: it knows its NICs by then. */
int shim_nic_number(const char *name, const struct shim_nccl *nccl, struct tccl_error *why);

/* How many InfiniBand or RoCE devices the node has, also those that NCCL leaves out. */
int shim_nics_there(void);

/* A hash of what the user has set that decides NICs' numbers: processes where it is not the same
 * may number them differently. */
uint64_t shim_nics_settings(void);

#endif
