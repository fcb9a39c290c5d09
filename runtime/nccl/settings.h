/* settings.h: what the user has set for NCCL (environment, or nccl.conf, which NCCL puts into the
 * environment when it starts: after the wrappers, before its first question). It is never
 * overruled. Of its own the shim gives a process no setting, but for net-intra.h's. */
#ifndef SHIM_SETTINGS_H
#define SHIM_SETTINGS_H

#include "nccl/pci.h"
#include "plan/plan.h"

/* What the user has set, as bits: of such a process' communicators some or all can't be steered. */
enum {
    SHIM_USER_FILES = 1 << 0, /* NCCL_GRAPH_FILE, NCCL_TOPO_FILE, NCCL_ENV_PLUGIN, or an nccl.conf
                                 that can't be looked through */
    SHIM_USER_P2P = 1 << 1,   /* NCCL_P2P_DISABLE, NCCL_P2P_LEVEL other than PXB …: edges within a
                                 node */
    SHIM_USER_SHM = 1 << 2,   /* NCCL_SHM_DISABLE, NCCL_SHM_LOCALITY other than 2 … */
    SHIM_USER_NET =
        1 << 3, /* NCCL_NET, NCCL_NET_PLUGIN, NCCL_IB_DISABLE, NCCL_NET_MERGE_LEVEL …: NICs */
    SHIM_USER_GDR = 1 << 4,   /* NCCL_NET_GDR_LEVEL, NCCL_NET_GDR_READ */
    SHIM_USER_SHARP = 1 << 5, /* NCCL_COLLNET_ENABLE */
    SHIM_USER_ALGO = 1 << 6,  /* NCCL_ALGO without Ring, NCCL_CROSS_NIC=1 */
    /* No hindrance by themselves: what can't be given in their place. */
    SHIM_USER_PXB = 1 << 7,          /* NCCL_P2P_LEVEL=PXB, as we would have it */
    SHIM_USER_READ = 1 << 8,         /* NCCL_P2P_READ_ENABLE, =0 */
    SHIM_USER_HOST = 1 << 9,         /* NCCL_CUMEM_HOST_ENABLE other than 0 */
    SHIM_USER_NO_HOST = 1 << 10,     /* NCCL_CUMEM_HOST_ENABLE=0, NCCL_CUMEM_ENABLE=0 */
    SHIM_USER_NO_NET_INTRA = 1 << 11 /* NCCL_NET_DISABLE_INTRA=1, as we would have it */
};
/* Reads the environment, and the files that NCCL will put into it. May look the user up in the
 * user database, as NCCL does: not on a path that has to be short. */
uint32_t shim_settings_user(void);
/* Words for these bits: the variables that are set, for the log. */
void shim_settings_user_words(uint32_t user, struct shim_text *text);

/* Does what the user has set leave the chain to us? Returns 0, or -1 with why. */
int shim_settings_user_allows(const struct shim_chain *chain, uint32_t user,
                              struct tccl_error *why);

/* Would the chain come out as planned where users have set that (user: of each of the members that
 * hold chain->rings.chains[0].gpus[i])? Returns 0, or -1 with why. Fills in pci->net_intra: false
 * only if the chain needs it so. */
int shim_settings_suit(const struct shim_chain *chain, struct shim_pci *pci, const uint32_t *user,
                       uint32_t version, struct tccl_error *why);

/* Is one of the GPU's buffers on another memory than its own, where NCCL puts them by itself? */
bool shim_settings_move(const struct shim_chain *chain, const struct shim_pci *pci, tccl_bus gpu);
/* Does NCCL have its buffers between processes from CUDA's host memory? Else they are files in
 * /dev/shm. driver: CUDA's version that it is for (12060: 12.6); user: what the user has set. */
bool shim_settings_cumem_host(uint32_t version, int driver, uint32_t user);

#endif
