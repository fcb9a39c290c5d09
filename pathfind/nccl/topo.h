/* topo.h: a machine as NCCL sees it before it searches for rings: GPUs and NICs in its
 * order, links with nominal rates, and the way between any two devices. */
#pragma once

#include "chain/nccl-version.h"
#include "machine/machine.h"
#include "ring/nominal.h"

/* The distance of two devices on NCCL's own scale. The search steps through all integers of it. */
enum tccl_far {
    TCCL_FAR_SAME = 0,
    TCCL_FAR_NVLINK = 1,       /* not used here */
    TCCL_FAR_SWITCH = 4,       /* PIX */
    TCCL_FAR_SWITCHES = 5,     /* PXB */
    TCCL_FAR_RELAYED = 7,      /* PXN: through another GPU; not used here */
    TCCL_FAR_NODE = 8,         /* PHB */
    TCCL_FAR_SYSTEM = 9,       /* SYS */
    TCCL_FAR_NETWORK = 10,     /* the network is faster than the path between the two */
    TCCL_FAR_UNREACHABLE = 11, /* not used here */
};

enum { TCCL_TOPO_LINKS = 512, TCCL_TOPO_WAY = 80 };

/* One direction. */
struct tccl_topo_link {
    float gbps; /* remaining rate; the search takes and gives back */
    bool pci;
    bool to_intel;   /* ends at an Intel CPU */
    bool to_old_gpu; /* ends at a GPU below sm_80 */
    uint16_t back;   /* the link of the other direction */
};

/* The links from one device to another. */
struct tccl_topo_way {
    uint8_t far; /* enum tccl_far */
    uint8_t n_links;
    float gbps; /* of the slowest link */
    uint16_t links[TCCL_TOPO_WAY];
};

struct tccl_topo_gpu {
    int index; /* in the machine */
    int sm;
    float slot; /* GB/s of its own link */
    int up;     /* index of that link; its back leads down */
    struct tccl_topo_way to_gpu[TCCL_MAX_GPUS], to_nic[TCCL_MAX_NICS];
};

struct tccl_topo_nic {
    int index; /* in the machine */
    float gbps;
    int nearest; /* the GPU with which channels begin, -1: none */
    struct tccl_topo_way to_gpu[TCCL_MAX_GPUS];
};

struct tccl_topo {
    enum tccl_nccl nccl; /* the NCCL that sees it so */
    enum tccl_cpu cpu;
    int n_gpus, n_nics, n_links;
    struct tccl_topo_gpu gpus[TCCL_MAX_GPUS];
    struct tccl_topo_nic nics[TCCL_MAX_NICS];
    struct tccl_topo_link links[TCCL_TOPO_LINKS];
};

/* The topology of a communicator with one process per GPU of `all`, in ascending order, by a
 * generation of NCCL. `part`: the subset of GPUs that NCCL treats as one node, see tccl_topo_parts.
 * closed: the communicator is on this node only, which is not known yet when parts are looked for.
 * Returns 0, or -1 with err (the tree of switches is deeper than a topology can hold). */
int tccl_topo_make(const struct tccl_machine *machine, enum tccl_nccl nccl, uint32_t all,
                   uint32_t part, bool closed, struct tccl_topo *topo, struct tccl_error *err);

/* If GPUs reach each other faster through their NICs, NCCL may treat one machine as several nodes.
 * Fills in the GPUs of each, ordered by their lowest GPU. topo: of all GPUs. Returns how many. */
int tccl_topo_parts(const struct tccl_topo *topo, uint32_t parts[static TCCL_MAX_GPUS]);

/* The best NICs (indices in the topology) for a GPU, in order of preference. Returns how many. */
int tccl_topo_own_nics(const struct tccl_topo *topo, int gpu, int nics[static TCCL_MAX_NICS]);

/* The GPUs nearest to a NIC: those with the highest rate, of these the shortest. Returns how many.
 */
int tccl_topo_near_gpus(const struct tccl_topo *topo, int nic, int gpus[static TCCL_MAX_GPUS]);

/* Does NCCL use P2P between the two GPUs, by its rule of distance? Does it use their NICs, because
 * these are faster? */
bool tccl_topo_p2p(const struct tccl_topo *topo, const struct tccl_machine *machine, int from,
                   int to);
bool tccl_topo_by_network(const struct tccl_topo *topo, int from, int to);

/* nccl-search.c: NCCL's search for rings on its topology of a machine. */

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
