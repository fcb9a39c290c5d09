/* search.h: NCCL's search for rings on what it sees of a machine. */
#ifndef TCCL_NCCL_SEARCH_H
#define TCCL_NCCL_SEARCH_H

#include "nccl/topology.h"

enum { TCCL_SEARCH_CHANNELS = 32 };

/* Of each channel: positions in the view of the GPUs in order, and of the NICs at both ends. */
struct tccl_rings {
    int n_channels;
    bool crosses; /* channels were found in pairs that enter by the NIC by which the other leaves */
    uint8_t gpus[TCCL_SEARCH_CHANNELS][TCCL_MAX_GPUS];
    uint8_t nics[TCCL_SEARCH_CHANNELS][2];
};

/* The rings of a communicator: from NIC to NIC where it has more nodes than this, else closed. The
 * view is as before afterwards. Returns 0, or -1 with err (out of memory). */
int tccl_nccl_search(struct tccl_view *view, bool closed, struct tccl_rings *rings,
                     struct tccl_error *err);

#endif
