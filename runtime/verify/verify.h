/* verify.h: the files of this folder, one after the other. */
#pragma once

#include <stdio.h>

#include "base/base.h"
#include "plan/plan.h"

/* ---- ncclline ---- */

/* One line of NCCL's log (NCCL_DEBUG=INFO), in the formats of 2.21 to 2.32. */

enum shim_line_kind {
    SHIM_LINE_OTHER,
    SHIM_LINE_START,    /* "… comm 0x55d0 rank 0 nranks 4 … busId 41000 … - Init START" */
    SHIM_LINE_COMPLETE, /* the same with "Init COMPLETE" */
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
    int channel;    /* RING, EDGE; CHANNELS: how many */
    int prev, next; /* RING, with rank */
    int from, to;   /* EDGE */
    /* EDGE: "[send]" and "[receive]" stand where a NIC is used. No connection of a ring, but of
     * ncclSend and ncclRecv: p2p. */
    bool send, receive, p2p;
    int devices;      /* VIRTUAL */
    const char *text; /* what follows: "P2P/IPC", the network's name, the NICs;
                         not ended by a zero byte: up to end */
    const char *end;
};

/* Reads one line, from start up to its newline at end. Returns false if it is not one of the
 * above, or of no process. */
bool shim_line_read(const char *start, const char *end, struct shim_line *line);

/* The NICs of a line, one after the other: at points to text at first. Returns 1 and the next one,
 * 0 after the last, -1 for what can't be told apart (several ports that NCCL has made one of). */
int shim_line_nic(const char **at, const char *end, int *number, char name[static SHIM_NAME]);

/* ---- nccllog ---- */

/* NCCL's own log, read by the shim. Where the user has set none of NCCL_DEBUG, NCCL_DEBUG_LEVELS,
 * NCCL_DEBUG_SUBSYS and NCCL_DEBUG_FILE, NCCL's questions for them are answered so that it logs
 * into a memory file that nobody else sees. Where the user has NCCL log what it connects
 * (NCCL_DEBUG is INFO or TRACE, NCCL_DEBUG_SUBSYS has INIT or is not set), the shim reads along
 * what NCCL writes to the user's file, or to the standard output. Otherwise there is no log.
 * Before 2.22 NCCL also writes its version to the standard output when it logs to a file: these are
 * only read where the user has a file. */

/* The shim's answer to the question for one of these names by an NCCL of that version
 * (ncclGetVersion's number; 0: unknown, no answer); NULL: none. The first call with one of them
 * makes the memory file. */
const char *shim_nccllog_answer(const char *name, uint32_t version);

/* NCCL has opened that file for its log (opened: what libc's fopen has returned): what it gets in
 * its place, or the same. */
FILE *shim_nccllog_opened(const char *path, FILE *opened);

/* Is there a log? If not, shim_nccllog_missing says why. */
bool shim_nccllog_there(void);
int shim_nccllog_missing(struct tccl_error *why); /* returns -1 */

/* Reads what has been written since, and takes note of it: NICs, and for each communicator "Init
 * START" … "Init COMPLETE", rings, how peers are reached. Bounded; memory that has been read is
 * given back. */
void shim_nccllog_read(void);

/* The number of NCCL's NIC of that name, among count real ones; -1 with why. After
 * shim_nccllog_read. */
int shim_nccllog_nic(const char *name, int *count, struct tccl_error *why);

/* What the communicator is that thread tid has begun to join and is not done with. Returns 0, or
 * -1. */
int shim_nccllog_joining(int tid, int *rank, int *ranks, tccl_bus *gpu);

enum shim_way { SHIM_WAY_UNKNOWN, SHIM_WAY_P2P, SHIM_WAY_SHM, SHIM_WAY_NET };

/* How one rank reaches a neighbour. */
struct shim_reach {
    enum shim_way way;
    int nic;   /* of NET, NCCL's number; -1 unknown */
    bool gdr;  /* GPUDirect */
    bool read; /* P2P by reading */
    bool pxn;  /* of NET: through another GPU */
};

/* One rank's part of a channel's ring. */
struct shim_part {
    int prev, next;            /* ranks; -1: not said (prev of this node: by no line of an edge) */
    struct shim_reach send;    /* to next */
    struct shim_reach receive; /* from prev; NCCL tells it of NET only */
};

/* What NCCL built for one rank. */
enum { SHIM_CHANNELS = 64 }; /* NCCL's most */
struct shim_built {
    int rank, ranks, channels; /* channels: how many rings, with copies */
    struct shim_part parts[SHIM_CHANNELS];
    bool complete;  /* "Init COMPLETE" was read */
    bool connected; /* the ways on all channels are known */
    bool trees;     /* so are those of the trees */
    bool unclear;   /* what was connected may be another communicator's */
};

/* The newest communicator of a GPU and rank that the log tells of and that was not done with
 * before. comm: its ncclComm_t, or NULL: any; rank, ranks: -1: any. last: it is done with. Returns
 * 0, or -1: there is none. */
int shim_nccllog_built(const void *comm, tccl_bus gpu, int rank, int ranks, bool last,
                       struct shim_built *built);

/* What NCCL says that it has connected in any communicator of this process so far, by the log as
 * far as it has been read; both only where comm (an ncclComm_t) has them. 0: nothing, or it is not
 * known whose, or there is no log. */
enum { SHIM_CONNECTED_RINGS = 1, SHIM_CONNECTED_TREES = 2 };
int shim_nccllog_connected(const void *comm);

/* This thread begins a collective of a communicator; all that it has begun are over. From 2.22 on,
 * where the driver offers cuMem, NCCL connects a communicator then, in any thread, and the lines do
 * not say which one: of several that they fit it is one of these. No lock. */
void shim_nccllog_expect(const void *comm);
void shim_nccllog_expect_no_more(void);

/* Takes lines into the notes as shim_nccllog_read does; what is behind the last newline is left.
 * Returns how many bytes were used. For tests, too. */
size_t shim_nccllog_take(const char *text, size_t size, int pid);

/* ---- verdict ---- */

/* Is what NCCL built the chain? */

/* From good to bad. FEWER: the plan's first rings, and not all of them. NOT_USED: the plan was left
 * alone; BEGUN: it was not, and the verdict follows; never an answer of shim_verdict_of. */
enum shim_verdict {
    SHIM_APPLIED,
    SHIM_UNKNOWN,
    SHIM_FEWER,
    SHIM_DIFFERS,
    SHIM_NOT_USED,
    SHIM_UNKNOWN_NCCL, /* the same */
    SHIM_BEGUN
};

/* Compares one rank's part of each channel with the chain's rings: its neighbours, and how it
 * reaches them. Channels are the rings' in any order, equally many of each; or in the order of the
 * first ones, again and again (FEWER: text says how many). members:
 * the local ranks, with their GPUs. entry, exit: NCCL's numbers of the rings' NICs, -1: not
 * compared. text: how it differs, or why it can't be known; empty for APPLIED. The memory of a
 * bounce can't be seen, and neither can the order of nodes: a rank knows its neighbours on other
 * nodes by their rank only. */
enum shim_verdict shim_verdict_of(const struct shim_chain *chain, const struct shim_member *members,
                                  int n, tccl_bus gpu, const struct shim_built *built,
                                  const int32_t entry[static TCCL_CHAIN_RINGS],
                                  const int32_t exit[static TCCL_CHAIN_RINGS],
                                  char text[static 256]);
