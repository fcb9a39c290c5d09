/* ring-collective.c: collectives as training programs start them. What is too small for all ranks
 * has an element for each of them. */
#include "ring-collective.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[RING_KINDS] = {"all-reduce", "all-gather", "reduce-scatter",
                                              "broadcast",  "reduce",     "all-to-all"};

static const struct ring_type types[] = {
    {"i8", ncclInt8, 1, true, 0},      {"u8", ncclUint8, 1, false, 0},
    {"i32", ncclInt32, 4, true, 0},    {"u32", ncclUint32, 4, false, 0},
    {"i64", ncclInt64, 8, true, 0},    {"u64", ncclUint64, 8, false, 0},
    {"f16", ncclFloat16, 2, true, 10}, {"bf16", RING_BFLOAT16, 2, true, 7},
    {"f32", ncclFloat32, 4, true, 23}, {"f64", ncclFloat64, 8, true, 52},
};

static const char *const ops[] = {[ncclSum] = "sum",
                                  [ncclProd] = "prod",
                                  [ncclMax] = "max",
                                  [ncclMin] = "min",
                                  [ncclAvg] = "avg"};

enum { MOST_BYTES = 1 << 30 };

const char *ring_collective_name(enum ring_kind kind)
{
    return names[kind];
}

const char *ring_collective_op(ncclRedOp_t op)
{
    return ops[op];
}

static int find_name(const char *text, const char *const list[], int n)
{
    int i = 0;
    while (i < n && strcmp(list[i], text) != 0)
        i++;
    return i < n ? i : -1;
}

int ring_collective_parse(const char *text, struct ring_collective *out)
{
    char kind[16], type[8] = "i8", op[8] = "sum";
    unsigned long long bytes;
    int length = 0, n;
    n = sscanf(text, "%15[^:]:%llu%n:%7[^:]%n:%7[a-z]%n", kind, &bytes, &length, type, &length, op,
               &length);
    if (n < 2 || text[length] != '\0' || bytes < 1 || bytes > MOST_BYTES)
        return -1;
    int k = find_name(kind, names, RING_KINDS), o = find_name(op, ops, ncclAvg + 1);
    for (size_t i = 0; i < sizeof(types) / sizeof(*types) && k >= 0 && o >= 0; i++)
        if (strcmp(types[i].name, type) == 0) {
            *out = (struct ring_collective){(enum ring_kind)k, (size_t)bytes, &types[i],
                                            (ncclRedOp_t)o};
            return 0;
        }
    return -1;
}

size_t ring_collective_count(const struct ring_collective *collective, int ranks)
{
    bool whole = collective->kind == RING_ALL_REDUCE || collective->kind == RING_BROADCAST ||
                 collective->kind == RING_REDUCE;
    size_t count = collective->bytes / collective->type->size / (whole ? 1 : (size_t)ranks);
    return count > 0 ? count : 1;
}

int ring_collective_root(const struct ring_collective *collective, int ranks)
{
    return collective->kind == RING_REDUCE ? ranks - 1 : 0;
}

static ncclResult_t all_to_all(ncclComm_t comm, int ranks, size_t count,
                               const struct ring_type *type, const char *send, char *receive,
                               cudaStream_t stream)
{
    ncclResult_t result = ncclGroupStart(), ended;
    for (int rank = 0; rank < ranks && result == ncclSuccess; rank++) {
        size_t at = (size_t)rank * count * type->size;
        result = ncclSend(send + at, count, type->type, rank, comm, stream);
        if (result == ncclSuccess)
            result = ncclRecv(receive + at, count, type->type, rank, comm, stream);
    }
    ended = ncclGroupEnd();
    return result == ncclSuccess ? ended : result;
}

ncclResult_t ring_collective_start(const struct ring_collective *collective, ncclComm_t comm,
                                   const void *send, void *receive, cudaStream_t stream)
{
    ncclDataType_t type = collective->type->type;
    int ranks;
    ncclResult_t result = ncclCommCount(comm, &ranks);
    if (result != ncclSuccess)
        return result;
    size_t count = ring_collective_count(collective, ranks);
    int root = ring_collective_root(collective, ranks);
    switch (collective->kind) {
    case RING_ALL_REDUCE:
        return ncclAllReduce(send, receive, count, type, collective->op, comm, stream);
    case RING_ALL_GATHER:
        return ncclAllGather(send, receive, count, type, comm, stream);
    case RING_REDUCE_SCATTER:
        return ncclReduceScatter(send, receive, count, type, collective->op, comm, stream);
    case RING_BROADCAST:
        return ncclBroadcast(send, receive, count, type, root, comm, stream);
    case RING_REDUCE:
        return ncclReduce(send, receive, count, type, collective->op, root, comm, stream);
    default:
        return all_to_all(comm, ranks, count, collective->type, send, receive, stream);
    }
}
