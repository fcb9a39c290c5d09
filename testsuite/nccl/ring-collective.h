/* ring-collective.h: collectives as training programs start them, of each kind and any size. */
#ifndef TCCL_RING_COLLECTIVE_H
#define TCCL_RING_COLLECTIVE_H

#include <cuda_runtime_api.h>
#include <nccl.h>
#include <stddef.h>

enum ring_kind {
    RING_ALL_REDUCE,
    RING_ALL_GATHER,
    RING_REDUCE_SCATTER,
    RING_BROADCAST,
    RING_ALL_TO_ALL,
    RING_KINDS
};

struct ring_collective {
    enum ring_kind kind;
    size_t bytes; /* of the larger of a rank's two buffers */
};

/* "all-reduce", … */
const char *ring_collective_name(enum ring_kind kind);

/* Reads "all-gather:1048576". Returns 0, or -1 if it is none. */
int ring_collective_parse(const char *text, struct ring_collective *out);

/* One rank's part of it, inside a group or not. Both buffers have the collective's bytes. Returns
 * NCCL's result. */
ncclResult_t ring_collective_start(const struct ring_collective *collective, ncclComm_t comm,
                                   const void *send, void *receive, cudaStream_t stream);

#endif
