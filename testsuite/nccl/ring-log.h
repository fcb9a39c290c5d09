/* ring-log.h: what NCCL says in its log (NCCL_DEBUG=INFO) of the communicators it made. */
#pragma once

#include <stdbool.h>

enum { RING_CHANNELS = 64, RING_VIA = 48 };

/* One channel of one rank. */
struct ring_channel {
    int prev, next;             /* ranks; -1: not said */
    int *order;                 /* all ranks in the ring's order; only rank 0 is told, else NULL */
    char send_via[RING_VIA];    /* "SHM/direct/direct"; "" if not said */
    char receive_via[RING_VIA]; /* of what comes over the network, else "" */
};

/* When a communicator reached its neighbours: at the end of its init, or at a collective after it,
 * as NCCL does from 2.22 on where it takes its memory by cuMemCreate. */
enum ring_connected { RING_NOT, RING_AT_INIT, RING_AT_COLLECTIVE };

/* One communicator as one rank sees it. */
struct ring_member {
    void *comm; /* the ncclComm_t */
    int thread; /* that made it, and is still at it; 0: none */
    int device; /* CUDA's number */
    int rank, ranks;
    enum ring_connected connected;
    int n_channels;
    struct ring_channel channels[RING_CHANNELS];
};

/* Memory of the process' buffers: not said; CUDA's and /dev/shm; by cuMemCreate. */
enum ring_memory { RING_UNKNOWN, RING_OLDER, RING_CUMEM };

struct ring_log {
    enum ring_memory memory;
    int version;     /* of NCCL, 22907 for 2.29.7 */
    bool told_early; /* NCCL_RUNTIME_CONNECT=0 */
    int n_members;
    struct ring_member *members;
};

/* Reads the log of one process, written by this version of NCCL. Returns 0, or -1 with errno. The
 * caller frees it with ring_log_free, also after a failure. */
int ring_log_read(const char *path, int version, struct ring_log *log);
void ring_log_free(struct ring_log *log);

/* The member with that communicator, or NULL. */
const struct ring_member *ring_log_find(const struct ring_log *log, const void *comm);
