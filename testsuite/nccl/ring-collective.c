/* ring-collective.c: collectives as training programs start them. All are of bytes, so that any
 * size can be divided; what is too small for all ranks has a byte for each of them. */
#include "ring-collective.h"

#include <stdlib.h>
#include <string.h>

static const char *const names[RING_KINDS] = {"all-reduce", "all-gather", "reduce-scatter",
                                              "broadcast", "all-to-all"};

enum { MOST_BYTES = 1 << 30 };

const char *ring_collective_name(enum ring_kind kind)
{
    return names[kind];
}

int ring_collective_parse(const char *text, struct ring_collective *out)
{
    size_t length = strcspn(text, ":");
    char *end = NULL;

    for (int i = 0; i < RING_KINDS; i++)
        if (strlen(names[i]) == length && strncmp(text, names[i], length) == 0 &&
            text[length] == ':') {
            unsigned long long bytes = strtoull(text + length + 1, &end, 10);
            *out = (struct ring_collective){(enum ring_kind)i, (size_t)bytes};
            return end > text + length + 1 && *end == '\0' && bytes > 0 && bytes <= MOST_BYTES ? 0
                                                                                               : -1;
        }
    return -1;
}

static ncclResult_t all_to_all(ncclComm_t comm, int ranks, size_t part, const char *send,
                               char *receive, cudaStream_t stream)
{
    ncclResult_t result = ncclGroupStart(), ended;

    for (int rank = 0; rank < ranks && result == ncclSuccess; rank++) {
        result = ncclSend(send + (size_t)rank * part, part, ncclInt8, rank, comm, stream);
        if (result == ncclSuccess)
            result = ncclRecv(receive + (size_t)rank * part, part, ncclInt8, rank, comm, stream);
    }
    ended = ncclGroupEnd();
    return result == ncclSuccess ? ended : result;
}

ncclResult_t ring_collective_start(const struct ring_collective *collective, ncclComm_t comm,
                                   const void *send, void *receive, cudaStream_t stream)
{
    size_t bytes = collective->bytes, part;
    int ranks;
    ncclResult_t result = ncclCommCount(comm, &ranks);

    if (result != ncclSuccess)
        return result;
    part = bytes / (size_t)ranks > 0 ? bytes / (size_t)ranks : 1;
    switch (collective->kind) {
    case RING_ALL_REDUCE:
        return ncclAllReduce(send, receive, bytes, ncclInt8, ncclSum, comm, stream);
    case RING_ALL_GATHER:
        return ncclAllGather(send, receive, part, ncclInt8, comm, stream);
    case RING_REDUCE_SCATTER:
        return ncclReduceScatter(send, receive, part, ncclInt8, ncclSum, comm, stream);
    case RING_BROADCAST:
        return ncclBroadcast(send, receive, bytes, ncclInt8, 0, comm, stream);
    default:
        return all_to_all(comm, ranks, part, send, receive, stream);
    }
}
