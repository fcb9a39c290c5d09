/* nccllog.h: NCCL's own log, read by the shim. Where the user has set none of NCCL_DEBUG,
 * NCCL_DEBUG_LEVELS, NCCL_DEBUG_SUBSYS and NCCL_DEBUG_FILE, NCCL's questions for them are answered
 * so that it logs into a memory file that nobody else sees. Where the user has NCCL log what it
 * connects (NCCL_DEBUG is INFO or TRACE, NCCL_DEBUG_SUBSYS has INIT or is not set), the shim reads
 * along what NCCL writes to the user's file, or to the standard output. Otherwise there is no log.
 * Before 2.22 NCCL also writes its version to the standard output when it logs to a file: these are
 * only read where the user has a file. */
#ifndef SHIM_NCCLLOG_H
#define SHIM_NCCLLOG_H

#include <stdio.h>

#include "base/base.h"

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

/* This thread begins a collective of a communicator; all that it has begun are over. From 2.22 on,
 * where the driver offers cuMem, NCCL connects a communicator then, in any thread, and the lines do
 * not say which one: of several that they fit it is one of these. No lock. */
void shim_nccllog_expect(const void *comm);
void shim_nccllog_expect_no_more(void);

/* Takes lines into the notes as shim_nccllog_read does; what is behind the last newline is left.
 * Returns how many bytes were used. For tests, too. */
size_t shim_nccllog_take(const char *text, size_t size, int pid);

#endif
