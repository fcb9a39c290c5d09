/* nccl-abi.h: as much of NCCL's public interface as the wrappers need, from 2.21 on; nccl.h need
 * not be there. Names are NCCL's. */
#pragma once

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

/* What begins a wrapper's definition: it is seen by programs, and has no other prototype. */
#define NCCL_WRAPPER(name, parameters)                                                             \
    __attribute__((visibility("default"))) ncclResult_t name parameters;                           \
    ncclResult_t name parameters

/* From 2.31 on: what the user wants of one collective. */
typedef struct {
    size_t size;
    unsigned magic, version;
    void *ext;
    int minCTAs, maxCTAs, nvlsCTAs, cgaClusterSize;
    const char *algSelection; /* algorithms that it may use; NULL, "": any */
} ncclCollConfig_t;
