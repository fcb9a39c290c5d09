/* nccl-search.h: NCCL's search for rings on its topology of a machine. */
#pragma once

#include "chain/nccl-version.h"
#include "nccl/topo.h"
#include "ring/nominal.h"

enum { TCCL_SEARCH_CHANNELS = 32 };

/* For each channel: its GPUs in order, and the NICs at both ends, as indices in the topology. */
struct tccl_rings {
    int n_channels;
    bool crosses; /* channels are in pairs: each enters by the NIC by which the other leaves */
    uint8_t gpus[TCCL_SEARCH_CHANNELS][TCCL_MAX_GPUS];
    uint8_t nics[TCCL_SEARCH_CHANNELS][2];
    struct tccl_nominal ring, tree; /* what NCCL would say of both graphs, before the communicator
                                     * takes the smaller number of channels */
};

/* The rings of a communicator. closed: on this node only; else from NIC to NIC. The topo is
 * modified during the search and restored. Returns 0, or -1 with err (out of memory). */
int tccl_nccl_search(struct tccl_topo *topo, bool closed, struct tccl_rings *rings,
                     struct tccl_error *err);

/* The highest of the rates that NCCL tries, GB/s of a channel, which is at most so much, or its
 * least. least_sm: of the GPUs. */
float tccl_nccl_rate(bool closed, int least_sm, enum tccl_nccl nccl, double gbps);

/* Do the searches on these two topologies, of an older and a newer NCCL, find the same for sure?
 * Both are as tccl_topo_make made them, as a copy of them may be kept. */
bool tccl_nccl_search_alike(const struct tccl_topo *older, const struct tccl_topo *newer,
                            bool closed);
