/* nccl-abi.h: as much of NCCL's public interface as the wrappers need, from 2.21 on; nccl.h need
 * not be there. Names are NCCL's. */
#ifndef SHIM_NCCL_ABI_H
#define SHIM_NCCL_ABI_H

#include <stddef.h>

typedef struct ncclComm *ncclComm_t;
typedef struct {
    char internal[128];
} ncclUniqueId;
typedef int ncclResult_t;

enum { NCCL_SUCCESS = 0, NCCL_SYSTEM_ERROR = 2, NCCL_IN_PROGRESS = 7, NCCL_NO_COLOR = -1 };
#define NCCL_CONFIG_MAGIC 0xcafebeefu

/* Newer NCCLs have more behind it; size tells how much there is. */
typedef struct {
    size_t size;
    unsigned magic, version;
    int blocking, cgaClusterSize, minCTAs, maxCTAs;
    const char *netName;
    int splitShare, trafficClass;
    const char *commName;
    int collnetEnable, CTAPolicy, shrinkShare;
} ncclConfig_t;

#define NCCL_WRAPPER __attribute__((visibility("default"))) ncclResult_t

NCCL_WRAPPER ncclGetUniqueId(ncclUniqueId *id);
NCCL_WRAPPER ncclCommInitRank(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank);
NCCL_WRAPPER ncclCommInitRankConfig(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t *config);
NCCL_WRAPPER ncclCommInitRankScalable(ncclComm_t *comm, int ranks, int rank, int n_ids,
                                      ncclUniqueId *ids, ncclConfig_t *config);
NCCL_WRAPPER ncclCommInitAll(ncclComm_t *comms, int n, const int *devices);
NCCL_WRAPPER ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *child,
                           ncclConfig_t *config);
NCCL_WRAPPER ncclCommShrink(ncclComm_t comm, int *excluded, int n_excluded, ncclComm_t *child,
                            ncclConfig_t *config, int flags);
NCCL_WRAPPER ncclCommGrow(ncclComm_t comm, int ranks, const ncclUniqueId *id, int rank,
                          ncclComm_t *child, ncclConfig_t *config);
NCCL_WRAPPER ncclCommFinalize(ncclComm_t comm);
NCCL_WRAPPER ncclCommDestroy(ncclComm_t comm);
NCCL_WRAPPER ncclCommAbort(ncclComm_t comm);

/* type, op: enums; stream: a cudaStream_t. */
NCCL_WRAPPER ncclAllReduce(const void *from, void *to, size_t count, int type, int op,
                           ncclComm_t comm, void *stream);
NCCL_WRAPPER ncclAllGather(const void *from, void *to, size_t count, int type, ncclComm_t comm,
                           void *stream);
NCCL_WRAPPER ncclReduceScatter(const void *from, void *to, size_t count, int type, int op,
                               ncclComm_t comm, void *stream);
NCCL_WRAPPER ncclBroadcast(const void *from, void *to, size_t count, int type, int root,
                           ncclComm_t comm, void *stream);
NCCL_WRAPPER ncclBcast(void *buffer, size_t count, int type, int root, ncclComm_t comm,
                       void *stream);
NCCL_WRAPPER ncclReduce(const void *from, void *to, size_t count, int type, int op, int root,
                        ncclComm_t comm, void *stream);
/* The same from 2.31 on, with what the user wants of this call; config: may be NULL. */
typedef struct {
    size_t size;
    unsigned magic, version;
    void *ext;
    int minCTAs, maxCTAs, nvlsCTAs, cgaClusterSize;
    const char *algSelection; /* algorithms that it may use; NULL, "": any */
} ncclCollConfig_t;

NCCL_WRAPPER ncclAllReduceConfig(const void *from, void *to, size_t count, int type, int op,
                                 ncclComm_t comm, void *stream, const ncclCollConfig_t *config);
NCCL_WRAPPER ncclAllGatherConfig(const void *from, void *to, size_t count, int type,
                                 ncclComm_t comm, void *stream, const ncclCollConfig_t *config);
NCCL_WRAPPER ncclReduceScatterConfig(const void *from, void *to, size_t count, int type, int op,
                                     ncclComm_t comm, void *stream, const ncclCollConfig_t *config);
NCCL_WRAPPER ncclBroadcastConfig(const void *from, void *to, size_t count, int type, int root,
                                 ncclComm_t comm, void *stream, const ncclCollConfig_t *config);
NCCL_WRAPPER ncclReduceConfig(const void *from, void *to, size_t count, int type, int op, int root,
                              ncclComm_t comm, void *stream, const ncclCollConfig_t *config);
NCCL_WRAPPER ncclGroupStart(void);
NCCL_WRAPPER ncclGroupEnd(void);

#endif
