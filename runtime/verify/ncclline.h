/* ncclline.h: one line of NCCL's log (NCCL_DEBUG=INFO), in the formats of 2.21 to 2.32. */
#ifndef SHIM_NCCLLINE_H
#define SHIM_NCCLLINE_H

#include "base/base.h"

enum shim_line_kind {
    SHIM_LINE_OTHER,
    SHIM_LINE_START,    /* "… comm 0x55d0 rank 0 nranks 4 … busId 41000 … - Init START" */
    SHIM_LINE_COMPLETE, /* the same with "Init COMPLETE" */
    SHIM_LINE_ORDER,    /* "Channel 00/02 : 0 2 1 3": only rank 0 says it */
    SHIM_LINE_RING,     /* "Ring 00 : 3 -> 0 -> 2" */
    SHIM_LINE_EDGE,     /* "Channel 00/0 : 0[0] -> 1[1] via P2P/IPC" */
    SHIM_LINE_CHANNELS, /* "8 coll channels, 8 collnet channels, …": of the rings */
    SHIM_LINE_RINGS,    /* "Connected all rings" */
    SHIM_LINE_TREES,    /* "Connected all trees" */
    SHIM_LINE_NETWORK,  /* "Using network IB" */
    SHIM_LINE_NICS,     /* "NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.0.0.1<0>" */
    SHIM_LINE_VIRTUAL   /* "NET/IB : Made virtual device [2] name=a+b speed=400000 ndevs=2" */
};

struct shim_line {
    enum shim_line_kind kind;
    int pid, tid;
    uint64_t comm; /* START, COMPLETE: the ncclComm_t as a number */
    int rank, ranks;
    tccl_bus gpu;
    int channel;    /* ORDER, RING, EDGE; CHANNELS: how many */
    int prev, next; /* RING, with rank */
    int from, to;   /* EDGE */
    /* EDGE: "[send]" and "[receive]" stand where a NIC is used. No connection of a ring, but of
     * ncclSend and ncclRecv: p2p. */
    bool send, receive, p2p;
    int devices;      /* VIRTUAL */
    const char *text; /* what follows: the order's ranks, "P2P/IPC", the network's name, the NICs;
                         not ended by a zero byte: up to end */
    const char *end;
};

/* Reads one line, from start up to its newline at end. Returns false if it is not one of the
 * above, or of no process. */
bool shim_line_read(const char *start, const char *end, struct shim_line *line);

/* The NICs of a line, one after the other: at points to text at first. Returns 1 and the next one,
 * 0 after the last, -1 for what can't be told apart (several ports that NCCL has made one of). */
int shim_line_nic(const char **at, const char *end, int *number, char name[static SHIM_NAME]);

#endif
