/* ring-collective.h: collectives as training programs start them, of each kind, type and size. */
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>
#include <stdbool.h>
#include <stddef.h>

enum ring_kind {
    RING_ALL_REDUCE,
    RING_ALL_GATHER,
    RING_REDUCE_SCATTER,
    RING_BROADCAST,
    RING_REDUCE,
    RING_ALL_TO_ALL,
    RING_KINDS
};

/* ncclBfloat16, which older headers have for a GPU's code only. */
#define RING_BFLOAT16 ((ncclDataType_t)9)

struct ring_type {
    const char *name;
    ncclDataType_t type;
    size_t size;
    bool is_signed;
    int digits; /* of a float's fraction, in bits; 0: an integer */
};

struct ring_collective {
    enum ring_kind kind;
    size_t bytes; /* of the larger of a rank's two buffers */
    const struct ring_type *type;
    ncclRedOp_t op;
};

/* "all-reduce", …; "sum", … */
const char *ring_collective_name(enum ring_kind kind);
const char *ring_collective_op(ncclRedOp_t op);

/* Reads "all-gather:1048576", or "all-reduce:1048576:f32:sum" (without: i8, sum). Returns 0, or -1
 * if it is none. */
int ring_collective_parse(const char *text, struct ring_collective *out);

/* Elements that a rank sends to each other rank, or in all where all get the same: at least 1. */
size_t ring_collective_count(const struct ring_collective *collective, int ranks);

/* The rank from which a broadcast comes, to which a reduce goes. */
int ring_collective_root(const struct ring_collective *collective, int ranks);

/* One rank's part of it, inside a group or not. Both buffers have the collective's bytes, and one
 * element for each rank at least. Returns NCCL's result. */
ncclResult_t ring_collective_start(const struct ring_collective *collective, ncclComm_t comm,
                                   const void *send, void *receive, cudaStream_t stream);
