/* settings.h: what the user has set for NCCL, and what the shim adds for a process. NCCL reads it
 * once in a process: so it is given from NCCL's first question on or not at all, and follows from
 * the plan alone. Never in place of the user's own
 * (environment, or nccl.conf, which NCCL puts into the environment when it starts: after the
 * wrappers, before its first question). */
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
    SHIM_USER_PXB = 1 << 7,     /* NCCL_P2P_LEVEL=PXB, as we would have it */
    SHIM_USER_READ = 1 << 8,    /* NCCL_P2P_READ_ENABLE, =0 */
    SHIM_USER_HOST = 1 << 9,    /* NCCL_CUMEM_HOST_ENABLE other than 0 */
    SHIM_USER_NO_HOST = 1 << 10 /* NCCL_CUMEM_HOST_ENABLE=0, NCCL_CUMEM_ENABLE=0 */
};
/* Reads the environment, and the files that NCCL will put into it. May look the user up in the
 * user database, as NCCL does: not on a path that has to be short. */
uint32_t shim_settings_user(void);
/* Words for these bits: the variables that are set, for the log. */
void shim_settings_user_words(uint32_t user, struct shim_text *text);

/* What a process can be given: bits, one for each name and value. NCCL keeps it for the life of the
 * process, so it should change nothing for communicators that are not steered: they have the same
 * edges, GPUDirect, channels and tuning as without us. What NCCL would do otherwise by itself comes
 * from a communicator's own topology file, or not at all:
 * - NCCL_P2P_LEVEL, NCCL_P2P_READ_ENABLE, NCCL_NET_GDR_LEVEL, NCCL_NET_GDR_READ would change
 * others; they are not given.
 * - NCCL_NET_DISABLE_INTRA is given only for a chain between nodes that goes through host memory
 *   between two GPUs that both have a NIC of their own there: NCCL would take the network. This is
 *   the one that others notice, between two such GPUs. */
enum { SHIM_GIVE_NO_NET_INTRA = 1 << 0 /* NCCL_NET_DISABLE_INTRA=1 */ };
/* What all processes of the node need for the plan's chain: only what NCCL of that version (0:
 * unknown) would do otherwise by itself. Returns 0, or -1 with why: it can't be had. */
int shim_settings_for(const struct shim_plan *plan, const struct shim_pci *pci, uint32_t version,
                      uint32_t user, uint32_t *given, struct shim_why *why);

/* Does what the user has set leave the chain to us? Returns 0, or -1 with why. */
int shim_settings_user_allows(const struct shim_chain *chain, uint32_t user, struct shim_why *why);

/* Would the chain come out as planned in processes with these settings (one pair of bits for each
 * of the members that hold chain->rings[0].path.gpus[i])? Returns 0, or -1 with why. Fills in
 * pci->net_intra. */
int shim_settings_suit(const struct shim_chain *chain, struct shim_pci *pci, const uint32_t *user,
                       const uint32_t *given, uint32_t version, struct shim_why *why);

/* Is one of the GPU's buffers on another memory than its own, where NCCL puts them by itself? */
bool shim_settings_move(const struct shim_chain *chain, const struct shim_pci *pci, shim_bus gpu);
/* Does NCCL have its buffers between processes from CUDA's host memory? Else they are files in
 * /dev/shm. driver: CUDA's version that it is for (12060: 12.6); user: what the user has set. */
bool shim_settings_cumem_host(uint32_t version, int driver, uint32_t user);

/* All that NCCL's question for that name can be answered with; 0: another name. */
uint32_t shim_settings_asked(const char *name);
/* The value for NCCL's question, or NULL. */
const char *shim_settings_answer(uint32_t given, const char *name);

#endif
